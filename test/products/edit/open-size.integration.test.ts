import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { attribute, type GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { inspectModel } from '../../../src/formats/onnx/inspect.js';
import { floatTensor } from '../../../src/formats/tensor/tensor.js';
import type { EditResult } from '../../../src/products/edit/result.js';
import { ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-open-size-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;

const noise = (...shape: number[]) =>
  floatTensor(
    'float32',
    shape,
    Float32Array.from(
      { length: shape.reduce((all, size) => all * size, 1) },
      (_, at) => Math.sin(3 * at) / 2,
    ),
  );
/** The same rows, as an exporter stores what it stretched. */
const rows = (times: number, ...shape: number[]) => {
  const { bytes } = noise(...shape);
  return {
    dtype: 'float32',
    shape: [times, ...shape],
    bytes: Buffer.concat(new Array(times).fill(bytes)),
  } as const;
};

async function open(model: string, place = 'x:0=batch') {
  const output = join(folder, `${count++}.onnx`);
  const { json, exitCode } = await trtforge([
    'edit',
    model,
    '-o',
    output,
    '--set-dim',
    place,
    '--threads',
    '1',
    '--json',
  ]);
  const result = json<EditResult & { error?: { code: string; message: string; remedy: string } }>();
  const { findings } = existsSync(output) ? await inspectModel(output) : { findings: null };
  return { ...result, exitCode, codes: findings?.map(({ code }) => code), isThere: existsSync(output) };
}

/** A block of a transformer whose every size was stored by the export: its token, its heads, and batch and heads as one axis. */
const attention = (stored: number, batch: number | string) =>
  modelFile((g) => {
    const sizes = (...values: number[]) => g.initializer(`sizes${count++}`, ids([values.length], values));
    const reshape = (name: string, ...to: number[]) =>
      g.node('Reshape', { inputs: [name, sizes(...to)], outputs: [`r${count++}`] });
    const transpose = (name: string, ...perm: number[]) =>
      g.node('Transpose', {
        inputs: [name],
        outputs: [`t${count++}`],
        attributes: { perm: attribute.ints(perm) },
      });
    g.input('x', 'float32', [batch, 8, 4, 4]);
    const tokens = transpose(reshape('x', stored, 8, -1), 0, 2, 1);
    g.initializer('token', rows(stored, 1, 8));
    g.node('Concat', { inputs: ['token', tokens], outputs: ['all'], attributes: { axis: attribute.int(1) } });
    g.initializer('w', noise(8, 8));
    g.node('MatMul', { inputs: ['all', 'w'], outputs: ['q'] });
    const heads = reshape(transpose(reshape('q', stored, 17, 2, 4), 0, 2, 1, 3), 2 * stored, 17, 4);
    g.node('MatMul', { inputs: [heads, transpose(heads, 0, 2, 1)], outputs: ['products'] });
    g.node('Softmax', {
      inputs: ['products'],
      outputs: ['weights'],
      attributes: { axis: attribute.int(-1) },
    });
    g.node('MatMul', { inputs: ['weights', heads], outputs: ['mixed'] });
    const back = transpose(reshape('mixed', stored, 2, 17, 4), 0, 2, 1, 3);
    g.node('Neg', { inputs: [reshape(back, stored, 17, 8)], outputs: ['y'] });
    g.output('y', 'float32', [batch, 17, 8]);
  });

/** States of an LSTM as the export made them: one stored, one of a constant shape; time comes first. */
const recurrent = (stored: number) =>
  modelFile((g) => {
    g.input('x', 'float32', ['time', 'n', 6]);
    g.initializer('w', noise(1, 16, 6));
    g.initializer('r', noise(1, 16, 4));
    g.initializer('h', rows(stored, 4));
    g.initializer('front', ids([1], [0]));
    g.node('Unsqueeze', { inputs: ['h', 'front'], outputs: ['h0'] });
    g.initializer('sizes', ids([3], [1, stored, 4]));
    g.node('ConstantOfShape', { inputs: ['sizes'], outputs: ['c0'] });
    g.node('LSTM', {
      inputs: ['x', 'w', 'r', '', '', 'h0', 'c0'],
      outputs: ['y', 'last'],
      attributes: { hidden_size: attribute.int(4) },
    });
    g.output('y', 'float32', ['time', 1, 'n', 4]);
    g.output('last', 'float32', [1, 'n', 4]);
  });

describe('--set-dim opens an axis that the export stored with one size', () => {
  it.each([
    [1, 1, [2]],
    [1, 'batch', [2]],
    [4, 4, [8, 1]],
    [4, 'batch', [8, 1]],
  ] as const)('a transformer of %s samples, declared as %s', async (stored, declared, sizes) => {
    const result = await open(await attention(stored, declared));
    expect(result).toMatchObject({
      exitCode: 0,
      proof: {
        outcome: 'pass',
        found: 'bits',
        shapes: [{ x: [stored, 8, 4, 4] }],
        opened: [{ stored, sizes }],
      },
      inputs: [{ shape: ['batch', 8, 4, 4] }],
      outputs: [{ shape: ['batch', 17, 8] }],
      codes: [],
    });
  });

  it.each([1, 3])('states of a recurrent network with %s sequences, behind the time', async (stored) => {
    const result = await open(await recurrent(stored), 'x:1=n');
    expect(result).toMatchObject({
      exitCode: 0,
      proof: { opened: [{ input: 'x', axis: 1, stored }] },
      codes: [],
    });
  });

  it('of several inputs, which are one dimension, and an input that is none of them', async () => {
    const two = await modelFile((g) => {
      for (const name of ['x', 'mask']) g.input(name, 'float32', [2, 'time', 6]);
      g.input('scale', 'float32', [1]);
      g.node('Mul', { inputs: ['x', 'mask'], outputs: ['m'] });
      g.node('Mul', { inputs: ['m', 'scale'], outputs: ['s'] });
      g.initializer('to', ids([4], [2, -1, 3, 2]));
      g.node('Reshape', { inputs: ['s', 'to'], outputs: ['y'] });
      g.output('y', 'float32', [2, 'time', 3, 2]);
    });
    const one = await open(two);
    expect(one.error).toMatchObject({
      code: 'TF_EDIT_IMPOSSIBLE',
      remedy: expect.stringContaining('--set-dim x:0,mask:0=batch'),
    });
    const both = await open(two, 'x:0,mask:0=batch');
    expect(both).toMatchObject({
      exitCode: 0,
      inputs: [{ shape: ['batch', 'time', 6] }, { shape: ['batch', 'time', 6] }, {}],
    });
    expect((await open(two, 'x:0,scale:0=batch')).error).toMatchObject({ code: 'TF_EDIT_IMPOSSIBLE' });
  });

  it('where sizes are computed of open ones too', async () => {
    const partly = await modelFile((g) => {
      g.input('x', 'float32', ['batch', 'time', 8]);
      g.node('Shape', { inputs: ['x'], outputs: ['shape'] });
      g.initializer('one', ids([1], [1]));
      g.node('Gather', { inputs: ['shape', 'one'], outputs: ['time'] });
      g.initializer('two', ids([1], [2]));
      g.initializer('eight', ids([1], [8]));
      g.node('Concat', {
        inputs: ['two', 'time', 'eight'],
        outputs: ['to'],
        attributes: { axis: attribute.int(0) },
      });
      g.initializer('token', noise(1, 1, 8));
      g.node('Expand', { inputs: ['token', 'to'], outputs: ['tokens'] });
      g.node('Concat', { inputs: ['tokens', 'x'], outputs: ['y'], attributes: { axis: attribute.int(2) } });
      g.output('y', 'float32', ['batch', 'time', 16]);
    });
    expect(await open(partly)).toMatchObject({ exitCode: 0, codes: [], proof: { opened: [{ stored: 2 }] } });
  });
});

describe('what cannot be opened', () => {
  it.each<[string, (g: GraphBuilder) => void]>([
    [
      'a mean over the batch',
      (g) => {
        g.input('x', 'float32', ['batch', 4, 6]);
        g.node('ReduceMean', { inputs: ['x'], outputs: ['m'], attributes: { axes: attribute.ints([0]) } });
        g.node('Sub', { inputs: ['x', 'm'], outputs: ['s'] });
        g.initializer('to', ids([2], [4, 24]));
        g.node('Reshape', { inputs: ['s', 'to'], outputs: ['y'] });
        g.output('y', 'float32', ['batch', 24]);
      },
    ],
    [
      'the only sample, which loses its axis',
      (g) => {
        g.input('x', 'float32', [1, 4, 6]);
        g.initializer('front', ids([1], [0]));
        g.node('Squeeze', { inputs: ['x', 'front'], outputs: ['y'] });
        g.output('y', 'float32', [4, 6]);
      },
    ],
  ])('%s: other sizes show it, and nothing is written', async (_, draw) => {
    const result = await open(await modelFile(draw));
    expect(result).toMatchObject({
      exitCode: 1,
      output: null,
      isThere: false,
      proof: { outcome: 'fail', opened: [] },
    });
  });

  it('rows of which no run shows whose they are: not proven', async () => {
    const chosen = await modelFile((g) => {
      g.input('x', 'float32', [1, 9]);
      g.node('NonZero', { inputs: ['x'], outputs: ['y'] });
      g.output('y', 'int64', [2, 'found']);
    });
    expect(await open(chosen)).toMatchObject({
      exitCode: 4,
      isThere: false,
      proof: { outcome: 'inconclusive' },
    });
  });

  const shifted = (g: GraphBuilder, by: number, ...from: string[]) => {
    g.initializer('shift', floatTensor('float32', [], Float32Array.of(by)));
    g.node('Add', { inputs: [...from, 'shift'], outputs: ['low'] });
    g.node('Relu', { inputs: ['low'], outputs: ['y'] });
    g.output('y', 'float32', [1, 6]);
  };
  it.each<[string, boolean, (g: GraphBuilder) => void]>([
    ['an output that no sample moves', false, (g) => shifted(g, -100, 'x')],
    [
      'a mean over the batch that the samples do not move',
      true,
      (g) => {
        g.node('ReduceMean', { name: 'mean', inputs: ['x'], outputs: ['m'] });
        shifted(g, -100, 'm');
      },
    ],
    [
      'a mean beside it, below the last rounding',
      true,
      (g) => {
        g.node('ReduceMean', { name: 'mean', inputs: ['x'], outputs: ['m'] });
        g.initializer('small', floatTensor('float32', [], Float32Array.of(1e-9)));
        g.node('Mul', { inputs: ['m', 'small'], outputs: ['none'] });
        g.node('Add', { inputs: ['x', 'none'], outputs: ['sum'] });
        shifted(g, 3, 'sum');
      },
    ],
  ])('%s: not proven', async (_, isNamed, draw) => {
    const model = await modelFile((g) => {
      g.input('x', 'float32', [1, 6]);
      draw(g);
    });
    const result = await open(model);
    expect(result).toMatchObject({
      exitCode: 4,
      isThere: false,
      proof: { outcome: 'inconclusive', opened: [] },
    });
    expect(result.proof.reasons.some((reason) => reason.includes('"mean"'))).toBe(isNamed);
  });

  it('samples that change places: the node is named', async () => {
    const model = await modelFile((g) => {
      g.input('x', 'float32', [1, 4, 6]);
      g.node('Transpose', { inputs: ['x'], outputs: ['t'], attributes: { perm: attribute.ints([1, 0, 2]) } });
      g.initializer('to', ids([3], [1, 4, 6]));
      g.node('Reshape', { name: 'back', inputs: ['t', 'to'], outputs: ['y'] });
      g.output('y', 'float32', [1, 4, 6]);
    });
    expect((await open(model)).error).toMatchObject({
      code: 'TF_EDIT_IMPOSSIBLE',
      message: expect.stringContaining('"back"'),
    });
  });

  it('other numbers of each sample: the size is named, and the line of inspect fixes it', async () => {
    const model = await modelFile((g) => {
      g.input('x', 'float32', ['batch', 5]);
      g.initializer('own', noise(8, 5));
      g.node('Add', { name: 'sum', inputs: ['x', 'own'], outputs: ['y'] });
      g.output('y', 'float32', ['batch', 5]);
    });
    expect((await open(model)).error).toMatchObject({
      code: 'TF_EDIT_IMPOSSIBLE',
      message: expect.stringContaining('"sum"'),
    });
    const [found] = (await inspectModel(model)).findings;
    expect(found).toMatchObject({ code: 'size-fixed', remedy: expect.stringContaining('--set-dim batch=8') });
  });
});
