import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  attribute,
  buildModel,
  GraphBuilder as Graph,
  type GraphBuilder,
  writeModel,
} from '../../../src/formats/onnx/index.js';
import { viewModel } from '../../../src/formats/onnx/model.js';
import { interfaceOf } from '../../../src/formats/onnx/values.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import type { EditResult } from '../../../src/products/edit/result.js';
import { ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { codeOfLine, trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-edit-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;
const fresh = () => join(folder, `edited-${count++}.onnx`);

const noise = (...shape: number[]) => {
  const values = Float32Array.from(
    { length: shape.reduce((a, b) => a * b, 1) },
    (_, at) => Math.sin(7 * at + shape.length) / 2,
  );
  return tensorFrom('float32', shape, values);
};
const positive = (length: number) =>
  tensorFrom(
    'float32',
    [length],
    Float32Array.from({ length }, (_, at) => 0.5 + (at % 3)),
  );

/** Images to classes: a normalized convolution, a flattening by the batch as exporters write it, and a product with a bias. */
function classifier(g: GraphBuilder): void {
  g.input('x', 'float32', ['batch', 3, 8, 8]);
  g.initializer('w', noise(4, 3, 3, 3));
  g.node('Conv', {
    name: 'conv',
    inputs: ['x', 'w'],
    outputs: ['c'],
    attributes: { pads: attribute.ints([1, 1, 1, 1]) },
  });
  for (const [name, values] of Object.entries({
    scale: positive(4),
    shift: noise(4),
    mean: noise(4),
    variance: positive(4),
  }))
    g.initializer(name, values);
  g.node('BatchNormalization', {
    name: 'bn',
    inputs: ['c', 'scale', 'shift', 'mean', 'variance'],
    outputs: ['n'],
  });
  g.node('Relu', { name: 'relu', inputs: ['n'], outputs: ['features'] });
  g.node('Shape', { inputs: ['features'], outputs: ['sizes'] });
  g.initializer('zero', ids([], [0]));
  g.node('Gather', { inputs: ['sizes', 'zero'], outputs: ['batch_size'] });
  g.initializer('front', ids([1], [0]));
  g.node('Unsqueeze', { inputs: ['batch_size', 'front'], outputs: ['batch_list'] });
  g.initializer('rest', ids([1], [-1]));
  g.node('Concat', {
    inputs: ['batch_list', 'rest'],
    outputs: ['flat_shape'],
    attributes: { axis: attribute.int(0) },
  });
  g.node('Reshape', { inputs: ['features', 'flat_shape'], outputs: ['flat'] });
  g.initializer('v', noise(256, 5));
  g.node('MatMul', { inputs: ['flat', 'v'], outputs: ['m'] });
  g.initializer('bias', noise(5));
  g.node('Add', { inputs: ['m', 'bias'], outputs: ['logits'] });
  g.node('Identity', { inputs: ['logits'], outputs: ['same'] });
  g.node('Softmax', {
    name: 'softmax',
    inputs: ['same'],
    outputs: ['scores'],
    attributes: { axis: attribute.int(1) },
  });
  g.node('Neg', { name: 'unread', inputs: ['c'], outputs: ['nobody'] });
  g.initializer('unused', noise(9));
  g.output('logits', 'float32', ['batch', 5]);
  g.output('scores', 'float32', ['batch', 5]);
}

let model = '';
beforeAll(async () => {
  model = await modelFile(classifier);
});

type Answer = EditResult & { exitCode: number };
async function edit(...args: string[]): Promise<Answer> {
  const [path = model, ...steps] = args[0]?.endsWith('.onnx') ? args : [model, ...args];
  const { json } = await trtforge(['edit', path, '-o', fresh(), '--threads', '1', ...steps, '--json']);
  const result = json<Answer & { error?: unknown }>();
  expect(result.error).toBeUndefined();
  return result;
}
const operators = ({ output }: EditResult) =>
  viewModel(output!, ({ proto }) => proto.graph!.node.map(({ opType }) => opType));
const declared = ({ output }: EditResult) => viewModel(output!, ({ proto }) => interfaceOf(proto));
const passed = (result: Answer) =>
  expect(result).toMatchObject({ exitCode: 0, changed: true, proof: { outcome: 'pass' } });

describe('each step', () => {
  it('--fold leaves a convolution, a shape that is stored, and a product with its bias', async () => {
    const result = await edit('--fold');
    passed(result);
    expect(operators(result)).toEqual(['Conv', 'Relu', 'Reshape', 'Gemm', 'Softmax']);
    // The batch is open still, and was tried at several sizes.
    expect(declared(result).inputs[0]?.shape).toEqual(['batch', 3, 8, 8]);
    expect(new Set(result.proof.shapes.map(({ x }) => x![0])).size).toBeGreaterThan(1);
    expect(result.proof).toMatchObject({ promised: 'rounding', unproven: [] });
  });

  it('--set-dim fixes a dimension by its name and by its place, and the outputs follow', async () => {
    for (const place of ['batch=4', 'x:0=4']) {
      const result = await edit('--set-dim', place);
      passed(result);
      expect(declared(result).inputs[0]?.shape).toEqual([4, 3, 8, 8]);
      expect(declared(result).outputs.map(({ shape }) => shape)).toEqual([
        [4, 5],
        [4, 5],
      ]);
      expect(result.proof).toMatchObject({ promised: 'bits', found: 'bits', shapes: [{ x: [4, 3, 8, 8] }] });
    }
  });

  it('--set-dim names an axis that has no name, and --rename-dim gives another', async () => {
    const anonymous = await modelFile((g) => {
      g.input('x', 'float32', ['?', null, 3]);
      g.input('z', 'float32', ['?', 4]);
      g.node('Relu', { inputs: ['x'], outputs: ['y'] });
      g.node('Neg', { inputs: ['z'], outputs: ['u'] });
      g.output('y', 'float32', [null, null, 3]);
      g.output('u', 'float32', [null, 4]);
    });
    const named = await edit(
      anonymous,
      '--set-dim',
      'x:0=batch',
      '--set-dim',
      'x:1=time',
      '--rename-dim',
      'time=frames',
      '--set-dim',
      'z:0=2',
    );
    passed(named);
    expect(declared(named).inputs.map(({ shape }) => shape)).toEqual([
      ['batch', 'frames', 3],
      [2, 4],
    ]);
    const args = (text: string) => ['edit', anonymous, '-o', fresh(), '--set-dim', text];
    // It stands at two axes, which need not have one size.
    expect(await codeOfLine(args('?=1'))).toBe('TF_EDIT_IMPOSSIBLE');
    expect(
      await codeOfLine(['edit', anonymous, '-o', fresh(), '--set-dim', 'x:0=n', '--set-dim', 'x:1=n']),
    ).toBe('TF_EDIT_IMPOSSIBLE');
  });

  it('--rename gives inputs and outputs other names', async () => {
    const result = await edit('--rename', 'x=images', '--rename', 'scores=probabilities');
    passed(result);
    expect(result.inputs).toMatchObject([{ name: 'images', was: 'x' }]);
    expect(result.outputs).toMatchObject([{ name: 'logits' }, { name: 'probabilities', was: 'scores' }]);
    expect(result.proof.found).toBe('bits');
  });

  it('--extract leaves the part between tensors, fed with what the original has there', async () => {
    const result = await edit('--extract', 'features:logits');
    passed(result);
    expect(result.proof).toMatchObject({ found: 'bits', outputs: [{ name: 'logits', equal: 'bits' }] });
    expect(declared(result).inputs).toMatchObject([{ name: 'features', shape: ['batch', 4, 8, 8] }]);
    expect(operators(result)).not.toContain('Conv');
    const head = await edit('--extract', ':features');
    expect(operators(head)).toEqual(['Conv', 'BatchNormalization', 'Relu']);
    expect(head.proof.outputs).toMatchObject([{ name: 'features', equal: 'bits' }]);
  });

  it('--mark adds outputs, which are compared with the same values of the original, and --drop-output takes some away', async () => {
    const result = await edit('--mark', 'features,flat', '--drop-output', 'scores');
    passed(result);
    expect(declared(result).outputs.map(({ name }) => name)).toEqual(['logits', 'features', 'flat']);
    expect(operators(result)).not.toContain('Softmax');
    expect(result.proof.outputs).toHaveLength(3);
  });

  it('--io-type puts casts at inputs and outputs', async () => {
    const half = await edit('--io-type', 'float16');
    passed(half);
    expect([...half.inputs, ...half.outputs].map(({ dtype }) => dtype)).toEqual([
      'float16',
      'float16',
      'float16',
    ]);
    const codes = await edit('--io-type', 'x:uint8');
    passed(codes);
    expect([...codes.inputs, ...codes.outputs].map(({ dtype }) => dtype)).toEqual([
      'uint8',
      'float32',
      'float32',
    ]);
    expect(operators(codes)[0]).toBe('Cast');
  });

  it('--float32 makes FP32 of doubles, in weights of any size, attributes, bodies and functions', async () => {
    const twice = new Graph('twice');
    twice.node('Cast', { inputs: ['a'], outputs: ['d'], attributes: { to: attribute.int(11) } });
    twice.node('Add', { inputs: ['d', 'd'], outputs: ['b'] });
    const body = (operator: string) => {
      const graph = new Graph(operator);
      graph.node(operator, { inputs: ['m'], outputs: [`${operator}_m`] });
      graph.output(`${operator}_m`, 'float64', null);
      return attribute.body(graph);
    };
    const wide = (...shape: number[]) => {
      const { length } = noise(...shape).bytes;
      const values = Float64Array.from({ length: length / 4 }, (_, at) => Math.sin(at) / 100);
      return tensorFrom('float64', shape, values);
    };
    const doubles = await modelFile(
      (g) => {
        g.input('x', 'float32', ['batch', 512]);
        g.input('is', 'bool', []);
        g.input('z', 'float64', [512]);
        g.node('Twice', { inputs: ['x'], outputs: ['t'], domain: 'own' });
        g.initializer('w', wide(512, 512));
        g.node('MatMul', { inputs: ['t', 'w'], outputs: ['p'] });
        g.node('Add', { inputs: ['p', 'z'], outputs: ['m'] });
        g.node('If', {
          inputs: ['is'],
          outputs: ['y'],
          attributes: { then_branch: body('Neg'), else_branch: body('Tanh') },
        });
        g.output('y', 'float64', ['batch', 512]);
      },
      {
        opsets: { own: 1 },
        functions: [
          { domain: 'own', name: 'Twice', inputs: ['a'], outputs: ['b'], nodes: twice, opsets: { '': 17 } },
        ],
      },
    );
    const result = await edit(doubles, '--float32');
    passed(result);
    expect(result.proof).toMatchObject({ promised: 'rounding', found: 'rounding' });
    expect([...result.inputs, ...result.outputs].map(({ dtype }) => dtype)).toEqual([
      'float32',
      'bool',
      'float32',
      'float32',
    ]);
    expect(result.bytes.after! / result.bytes.before).toBeCloseTo(0.5, 1);
    expect((await edit(result.output!, '--float32')).changed).toBe(false);
    // The same on numbers that FP32 has not.
    const beyond = await modelFile((g) => {
      g.input('x', 'float64', ['batch', 4]);
      g.initializer('up', tensorFrom('float64', [], Float64Array.of(1e200)));
      g.node('Mul', { inputs: ['x', 'up'], outputs: ['large'] });
      g.node('Div', { inputs: ['large', 'up'], outputs: ['y'] });
      g.output('y', 'float64', ['batch', 4]);
    });
    expect(await edit(beyond, '--float32')).toMatchObject({ exitCode: 1, output: null });
  });

  it('--opset and --ir state other versions where operators mean the same', async () => {
    const result = await edit('--opset', '21', '--ir', '12');
    passed(result);
    expect(result).toMatchObject({ opset: { before: 17, after: 21 }, ir: { before: 8, after: 12 } });
    const back = await edit(result.output!, '--ir', '10', '--opset', '17');
    passed(back);
    expect(back).toMatchObject({ opset: { before: 21, after: 17 }, ir: { before: 12, after: 10 } });
    const gelu = await modelFile(
      (g) => {
        g.input('x', 'float32', [4]);
        g.node('Gelu', { inputs: ['x'], outputs: ['y'] });
        g.output('y', 'float32', [4]);
      },
      { opset: 20 },
    );
    for (const step of [
      ['--opset', '19'],
      ['--opset', '99'],
      ['--ir', '7'],
      ['--ir', '99'],
    ])
      expect(await codeOfLine(['edit', gelu, '-o', fresh(), ...step])).toBe('TF_EDIT_IMPOSSIBLE');
  });

  it('--inline replaces calls by the nodes of the function', async () => {
    const twice = new Graph('twice');
    twice.node('Add', { inputs: ['a', 'a'], outputs: ['b'] });
    const calling = await modelFile(
      (g) => {
        g.input('x', 'float32', [4]);
        g.node('Twice', { inputs: ['x'], outputs: ['y'], domain: 'own' });
        g.output('y', 'float32', [4]);
      },
      {
        opsets: { own: 1 },
        functions: [
          { domain: 'own', name: 'Twice', inputs: ['a'], outputs: ['b'], nodes: twice, opsets: { '': 17 } },
        ],
      },
    );
    const result = await edit(calling, '--inline');
    passed(result);
    expect(operators(result)).toEqual(['Add']);
  });

  it('--dead removes what no output needs', async () => {
    const result = await edit('--dead');
    passed(result);
    expect(operators(result)).not.toContain('Neg');
    expect(
      viewModel(result.output!, ({ proto }) => proto.graph!.initializer.map(({ name }) => name)),
    ).not.toContain('unused');
  });
});

describe('steps together', () => {
  it('happen in the order in which they are typed, across options', async () => {
    passed(
      await edit('--rename', 'x=images', '--set-dim', 'images:0=2', '--rename', 'images=pixels', '--fold'),
    );
    const early = ['edit', model, '-o', fresh(), '--set-dim', 'images:0=2', '--rename', 'x=images'];
    expect(await codeOfLine(early)).toBe('TF_EDIT_UNKNOWN');
    const result = await edit('--dead', '--mark', 'features', '--dead');
    expect(result.steps.map(({ step, did }) => [step, did !== null])).toEqual([
      ['--dead', true],
      ['--mark features', true],
      ['--dead', false],
    ]);
  });

  it('come from a configuration file too', async () => {
    const config = join(folder, 'trtforge.config.json');
    writeFileSync(config, JSON.stringify({ edit: { dead: true, 'set-dim': ['batch=2'] } }));
    const result = await edit('--config', config);
    expect(result.steps.map(({ step }) => step).sort()).toEqual(['--dead', '--set-dim batch=2']);
  });

  it('say that nothing was changed, and write the model', async () => {
    const clean = await edit('--dead');
    const again = await edit(clean.output!, '--dead', '--ir', '8');
    expect(again).toMatchObject({
      exitCode: 0,
      changed: false,
      nodes: { before: clean.nodes.after, after: clean.nodes.after },
    });
    expect(existsSync(again.output!)).toBe(true);
    expect((await trtforge(['edit', clean.output!, '-o', fresh(), '--dead'])).exitCode).toBe(0);
  });

  it('are proven on the samples of the user, at their shapes', async () => {
    const samples = join(folder, 'samples.npz');
    writeNpz(samples, new Map([['x', noise(3, 3, 8, 8)]]));
    const onData = await edit('--fold', '--inputs', samples);
    expect(onData.proof).toMatchObject({ outcome: 'pass', samples: 3, shapes: [{ x: [1, 3, 8, 8] }] });
    const drawn = await edit('--fold', '--seed', '3', '--samples', '2', '--shapes', 'x:5x3x8x8');
    expect(drawn.proof.shapes).toContainEqual({ x: [5, 3, 8, 8] });
  });
});

describe('what is wrong is named', () => {
  it('sizes of a model that has no named open ones, and one behind a cut that no shape of the original is known to give', async () => {
    const flat = (batch: number | null) =>
      modelFile((g) => {
        g.input('x', 'float32', [batch, 5, 4]);
        g.initializer('to', ids([2], [-1, 4]));
        g.node('Reshape', { inputs: ['x', 'to'], outputs: ['h'] });
        g.node('Neg', { inputs: ['h'], outputs: ['y'] });
        g.output('y', 'float32', [null, 4]);
      });
    const remedyOf = async (batch: number | null) => {
      const line = ['edit', await flat(batch), '-o', fresh(), '--set-dim', 'batch=3', '--json'];
      return (await trtforge(line)).json<{ error: { code: string; remedy: string } }>().error;
    };
    expect(await remedyOf(2)).toMatchObject({
      code: 'TF_EDIT_UNKNOWN',
      remedy: expect.stringContaining('x:0=batch'),
    });
    expect(await remedyOf(null)).toMatchObject({
      code: 'TF_EDIT_UNKNOWN',
      remedy: expect.stringContaining('x:0=1'),
    });
    const cut = ['--extract', 'h:y', '--set-dim', 'h:0=15'];
    const open = await edit(await flat(null), ...cut);
    expect(open).toMatchObject({
      exitCode: 4,
      proof: { reasons: [{}, expect.stringContaining('--shapes')] },
    });
    passed(await edit(await flat(null), ...cut, '--shapes', 'x:3x5x4'));
  });

  it.each([
    [['--mark', 'featurs'], 'features'],
    [['--set-dim', 'batsh=1'], 'batch'],
    [['--set-dim', 'x:7=1'], '3'],
    [['--rename', 'score=s'], 'scores'],
    [['--drop-output', 'logit'], 'logits'],
    [['--extract', 'x:logts'], 'logits'],
    [['--io-type', 'y:uint8'], 'x'],
  ])('%j: what there is instead', async (steps, meant) => {
    const { json, exitCode } = await trtforge(['edit', model, '-o', fresh(), ...steps, '--json']);
    expect(exitCode).toBe(2);
    expect(json()).toMatchObject({
      error: { code: 'TF_EDIT_UNKNOWN', remedy: expect.stringContaining(meant) },
    });
  });

  it.each([
    [['--extract', 'sizes:logits'], 'x'],
    [['--set-dim', 'x:2=9'], '8'],
    [['--drop-output', 'logits,scores'], 'output'],
    [['--rename', 'x=flat'], 'flat'],
    [['--set-dim', 'x:0=-1'], '-1'],
    [['--rename-dim', 'batch=4'], '4'],
  ])('%j cannot be done', async (steps, named) => {
    const { json, exitCode } = await trtforge(['edit', model, '-o', fresh(), ...steps, '--json']);
    expect(exitCode).toBe(2);
    expect(json()).toMatchObject({
      error: { code: 'TF_EDIT_IMPOSSIBLE', message: expect.stringContaining(named) },
    });
  });

  it.each([
    [[]],
    [['--set-dim', 'batch']],
    [['--set-dim', 'batch=0']],
    [['--extract', 'x']],
    [['--io-type', 'int8']],
    [['--rename', '=y']],
  ])('%j is no step', async (steps) => {
    expect(await codeOfLine(['edit', model, '-o', fresh(), ...steps])).toBe('TF_USAGE');
  });

  it('a folder is no output, and what cannot be read leaves nothing beside it', async () => {
    const place = mkdtempSync(join(folder, 'place-'));
    expect(await codeOfLine(['edit', model, '-o', place, '--dead'])).toBe('TF_USAGE');
    expect(await codeOfLine(['edit', model, '-o', `${join(place, 'new')}/`, '--dead'])).toBe('TF_USAGE');
    const short = join(folder, 'short.onnx');
    writeFileSync(short, readFileSync(model).subarray(0, 100));
    const line = ['edit', short, '-o', join(place, 'edited.onnx'), '--dead'];
    expect(await codeOfLine(line)).toBe('TF_ONNX_TRUNCATED');
    expect(readdirSync(place)).toEqual([]);
  });

  it('an output that no node makes keeps its type; without it, others get theirs', async () => {
    const through = await modelFile((g) => {
      g.input('x', 'float32', [2]);
      g.node('Relu', { inputs: ['x'], outputs: ['y'] });
      g.output('y', 'float32', [2]);
      g.output('x', 'float32', [2]);
    });
    const line = ['edit', through, '-o', fresh(), '--io-type', 'float16'];
    expect(await codeOfLine(line)).toBe('TF_EDIT_IMPOSSIBLE');
    passed(await edit(through, '--drop-output', 'x', '--io-type', 'float16'));
  });

  it('two calls of one function stay two: it may draw numbers', async () => {
    const noisy = await modelFile(
      (g) => {
        g.input('x', 'float32', [4]);
        for (const name of ['a', 'b']) g.node('Own', { inputs: ['x'], outputs: [name], domain: 'plugins' });
        g.node('Identity', { inputs: ['a'], outputs: ['c'] });
        g.node('Sub', { inputs: ['c', 'b'], outputs: ['y'] });
        g.output('y', 'float32', [4]);
      },
      { opsets: { plugins: 1 } },
    );
    const result = await edit(noisy, '--fold', '--unproven');
    expect(operators(result)).toEqual(['Own', 'Own', 'Sub']);
  });

  it('the model is never written over', async () => {
    const before = readFileSync(model);
    expect(await codeOfLine(['edit', model, '-o', model, '--dead'])).toBe('TF_OUTPUT_IS_INPUT');
    expect(readFileSync(model)).toEqual(before);
  });
});

describe('a model that does not run here', () => {
  it('is not proven, and is written on request only', async () => {
    const plugin = await modelFile(
      (g) => {
        g.input('x', 'float32', ['batch', 4]);
        g.node('Own', { inputs: ['x'], outputs: ['y'], domain: 'plugins' });
        g.output('y', 'float32', ['batch', 4]);
      },
      { opsets: { plugins: 1 } },
    );
    const result = await edit(plugin, '--set-dim', 'batch=1');
    expect(result).toMatchObject({ exitCode: 4, output: null, proof: { outcome: 'inconclusive' } });
    const kept = await edit(plugin, '--set-dim', 'batch=1', '--unproven');
    expect(kept).toMatchObject({ exitCode: 4, proof: { outcome: 'inconclusive' } });
    expect(declared(kept).inputs[0]?.shape).toEqual([1, 4]);
  });
});

describe('weights outside of the file', () => {
  it('stay outside, and no file is left beside them', async () => {
    const place = mkdtempSync(join(folder, 'outside-'));
    const graph = new Graph('outside');
    classifier(graph);
    await writeModel(buildModel(graph), join(place, 'model.onnx'), { externalData: 'always' });
    const result = await edit(join(place, 'model.onnx'), '--fold');
    expect(existsSync(result.externalData!)).toBe(true);
    const { json } = await trtforge([
      'edit',
      join(place, 'model.onnx'),
      '-o',
      join(place, 'one.onnx'),
      '--fold',
      '--external-data',
      'never',
      '--json',
    ]);
    expect(json()).toMatchObject({ externalData: null, proof: { outcome: 'pass' } });
    expect(readdirSync(place).sort()).toEqual(['model.onnx', 'model.onnx.data', 'one.onnx']);
  });
});
