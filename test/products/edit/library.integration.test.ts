import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type EditOptions, type EditStep, editOnnx } from '../../../src/products/edit/index.js';
import { modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-edit-library-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const model = await modelFile((g) => {
  g.input('x', 'float32', ['batch', 4]);
  g.node('Relu', { name: 'relu', inputs: ['x'], outputs: ['h'] });
  g.node('Sigmoid', { name: 'sigmoid', inputs: ['h'], outputs: ['y'] });
  g.output('y', 'float32', ['batch', 4]);
});
let count = 0;
const edit = (steps: readonly unknown[], more: object = {}) =>
  editOnnx({
    model,
    output: join(folder, `out-${count++}.onnx`),
    steps: steps as EditOptions['steps'],
    threads: 1,
    ...more,
  });

/** Each step as data, and the words of the command line that do the same. */
const same: readonly (readonly [EditStep, readonly string[]])[] = [
  [{ setDim: { dimension: 'batch', becomes: 2 } }, ['--set-dim', 'batch=2']],
  [{ setDim: { dimension: [{ input: 'x', axis: 0 }], becomes: 2 } }, ['--set-dim', 'x:0=2']],
  [{ renameDim: { from: 'batch', to: 'n' } }, ['--rename-dim', 'batch=n']],
  [{ rename: { from: 'y', to: 'scores' } }, ['--rename', 'y=scores']],
  [{ extract: { outputs: ['h'] } }, ['--extract', ':h']],
  [{ mark: ['h'] }, ['--mark', 'h']],
  [{ ioType: { type: 'float16' } }, ['--io-type', 'float16']],
  [{ ioType: { name: 'x', type: 'uint8' } }, ['--io-type', 'x:uint8']],
  [{ opset: 17 }, ['--opset', '17']],
  [{ ir: 9 }, ['--ir', '9']],
  [{ fold: true }, ['--fold']],
  [{ dead: true }, ['--dead']],
  [{ inline: true }, ['--inline']],
];

describe('a step as data', () => {
  test.each(same)('%j does what the command line does', async (step, words) => {
    const { steps, proof, inputs, outputs, output } = await edit([step]);
    const line = ['edit', model, '-o', join(folder, `line-${count++}.onnx`), '--threads', '1', ...words];
    const typed = (await trtforge([...line, '--json'])).json<Awaited<ReturnType<typeof editOnnx>>>();
    expect([proof.outcome, steps[0]!.did, inputs, outputs]).toEqual([
      typed.proof.outcome,
      typed.steps[0]!.did,
      typed.inputs,
      typed.outputs,
    ]);
    expect([proof.outcome, existsSync(output!)]).toEqual(['pass', true]);
  });

  test('steps are applied in their order; sizes may be an object by name', async () => {
    const { outputs, proof } = await edit(
      [{ mark: ['h'] }, { dropOutput: ['y'] }, { rename: { from: 'h', to: 'hidden' } }],
      { shapes: { x: [3, 4] } },
    );
    expect(outputs.map(({ name, was }) => [name, was])).toEqual([['hidden', 'h']]);
    expect(proof.shapes).toEqual([{ x: [3, 4] }]);
  });
});

describe('rejected:', () => {
  test.each<[string, readonly unknown[], object, string, string]>([
    ['a step that is none', [{ setDimension: 'x' }], {}, 'TF_USAGE', '"setDimension"'],
    ['two steps in one', [{ fold: true, dead: true }], {}, 'TF_USAGE', 'one option'],
    ['no step', [{}], {}, 'TF_USAGE', 'one option'],
    ['a step without a value', [{ mark: undefined }], {}, 'TF_USAGE', 'one option'],
    ['a text for a size', [{ setDim: 'batch=1' }], {}, 'TF_USAGE', '"setDim"'],
    ['a size of 0', [{ setDim: { dimension: 'batch', becomes: 0 } }], {}, 'TF_USAGE', '"setDim.becomes"'],
    [
      'half a place',
      [{ setDim: { dimension: [{ input: 'x' }], becomes: 1 } }],
      {},
      'TF_USAGE',
      'dimension.0.axis',
    ],
    ['half a name', [{ rename: { from: 'y' } }], {}, 'TF_USAGE', '"rename.to"'],
    ['a type of no input', [{ ioType: { type: 'float64' } }], {}, 'TF_USAGE', '"ioType.type"'],
    ['a step that is not done', [{ fold: false }], {}, 'TF_USAGE', '"fold"'],
    ['a tensor that is not there', [{ mark: ['hh'] }], {}, 'TF_EDIT_UNKNOWN', '"hh"'],
    ['a name that is a number', [{ mark: [5] }], {}, 'TF_USAGE', '"mark"'],
    ['an option that is none', [{ fold: true }], { sample: 3 }, 'TF_USAGE', '"sample"'],
    ['steps that are no list', {} as never, {}, 'TF_USAGE', '"steps"'],
  ])('%s', async (_what, steps, more, code, named) => {
    const error = await edit(steps, more).catch((caught) => caught);
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(named)]);
    expect(`${error.message} ${error.remedy}`).not.toMatch(/--[a-z]/);
  });

  test('no steps, and what a step cannot do, in words of the library', async () => {
    await expect(edit([])).rejects.toMatchObject({
      code: 'TF_USAGE',
      remedy: expect.stringContaining('`setDim`'),
    });
    const cut = edit([
      { extract: { inputs: ['h'], outputs: ['h', 'y'] } },
      { setDim: { dimension: 'n', becomes: 1 } },
    ]);
    await expect(cut).rejects.toMatchObject({ code: 'TF_EDIT_UNKNOWN' });
  });
});
