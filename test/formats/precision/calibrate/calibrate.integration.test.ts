import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { openOrtSession } from '../../../../src/engines/runtime/onnxruntime/ort-session.js';
import type { WorkEvent } from '../../../../src/events.js';
import { attribute as a, buildModel, GraphBuilder } from '../../../../src/formats/onnx/builder.js';
import { openModel } from '../../../../src/formats/onnx/model.js';
import { writeModel } from '../../../../src/formats/onnx/write.js';
import { calibrateTensors } from '../../../../src/formats/precision/calibrate/calibrate.js';
import { parseMethod } from '../../../../src/formats/precision/calibrate/methods.js';
import { integerTensor } from '../../../../src/formats/tensor/tensor.js';
import { floats, noise, written } from '../judge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-observed-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function graph(): GraphBuilder {
  const g = new GraphBuilder('g');
  g.input('x', 'float32', ['n']);
  g.initializer('ten', floats([], [10]));
  g.node('Mul', { name: 'mul', inputs: ['x', 'ten'], outputs: ['scaled'] });
  g.node('Relu', { name: 'relu', inputs: ['scaled'], outputs: ['positive'] });
  g.node('Cast', { name: 'whole', inputs: ['scaled'], outputs: ['integers'], attributes: { to: a.int(7) } });
  g.node('Sqrt', { name: 'root', inputs: ['scaled'], outputs: ['y'] });
  g.output('y', 'float32', ['n']);
  return g;
}
const model = await written(graph());
const sample = (...values: number[]) => new Map([['x', floats([values.length], values)]]);

async function calibrate(
  tensors: readonly string[],
  samples: readonly ReturnType<typeof sample>[],
  method = 'max',
) {
  const warnings: string[] = [];
  const emit = (event: WorkEvent) => void (event.type === 'log' && warnings.push(event.message));
  const context = { method: parseMethod(method), emit };
  const ranges = await calibrateTensors(
    model,
    tensors,
    () => samples,
    ({ path, weightsFolder }) => openOrtSession(path, { weightsFolder }),
    context,
  );
  return { ranges: Object.fromEntries(ranges), warnings };
}

const four = [sample(1, -2), sample(0.5), sample(), sample(-1)];

describe('calibration on ONNX Runtime', () => {
  test('gives exactly the tensors asked for, inputs of the graph among them', async () => {
    const { ranges, warnings } = await calibrate(
      ['positive', 'x', 'scaled'],
      [four, four, four, four].flat(),
    );
    expect(ranges).toEqual({
      positive: { min: 0, max: 10, amax: 10 },
      x: { min: -2, max: 1, amax: 2 },
      scaled: { min: -20, max: 10, amax: 20 },
    });
    expect(warnings).toEqual([]);
  });

  test.each(['percentile', 'entropy', 'mse'])(
    '%s chooses a magnitude within the extremes',
    async (method) => {
      const samples = Array.from({ length: 4 }, (_, seed) => new Map([['x', noise([4096], 1, seed + 1)]]));
      const { ranges } = await calibrate(['x', 'positive'], samples, method);
      for (const { min, max, amax } of Object.values(ranges)) {
        expect(amax).toBeGreaterThan(0.9 * Math.max(-min, max));
        expect(amax).toBeLessThanOrEqual(Math.max(-min, max));
      }
    },
  );

  test('a tensor of zeros has the magnitude 0', async () => {
    const negative = four.map(() => sample(-1, -2));
    for (const method of ['max', 'mse'])
      expect((await calibrate(['positive'], negative, method)).ranges.positive).toEqual({
        min: 0,
        max: 0,
        amax: 0,
      });
  });

  test('warns of few samples, and of ranges that still grow', async () => {
    const times = <T>(count: number, one: T) => Array.from({ length: count }, () => one);
    expect((await calibrate(['x'], [sample(1)])).warnings).toEqual([expect.stringContaining('1 sample')]);
    expect((await calibrate(['x'], times(15, sample(1)))).warnings).toEqual([
      expect.stringContaining('15 samples'),
    ]);
    const growing = await calibrate(
      ['x', 'positive'],
      [1, 1, 1, 2].flatMap((value) => times(4, sample(value))),
    );
    expect(growing.warnings).toEqual([expect.stringContaining('100 %')]);
    const steady = await calibrate(
      ['x'],
      [2, 1, 1, 2].flatMap((value) => times(4, sample(value))),
    );
    expect(steady.warnings).toEqual([]);
  });

  test.each([
    ['NaN', ['y'], [sample(1), sample(-1)], /y has NaN in sample 2/],
    ['an infinity', ['x'], [sample(Number.POSITIVE_INFINITY)], /x has an infinity in sample 1/],
    ['no sample', ['x'], [], /no sample/],
    ['a tensor that is none', ['integers'], [sample(1)], /no float32 activation "integers"/],
    ['a weight', ['ten'], [sample(1)], /"ten"/],
  ])('%s is an error', async (_what, tensors, samples, message) => {
    for (const method of ['max', 'entropy'])
      await expect(calibrate(tensors, samples, method)).rejects.toMatchObject({
        code: 'TF_CALIBRATION_INVALID',
        message: expect.stringMatching(message),
        remedy: expect.any(String),
      });
  });
});

describe('the weights of a model', () => {
  const size = 96;
  const g = new GraphBuilder('g');
  g.input('x', 'float32', [1, size]);
  g.initializer('first', noise([size, size], 1, 1));
  g.initializer('odd', { dtype: 'uint8', shape: [1025], bytes: new Uint8Array(1025) });
  g.initializer('second', noise([size, size], 1, 2));
  g.initializer('shape', integerTensor('int64', [200], [1, size, ...Array<number>(198).fill(1)]));
  g.node('MatMul', { name: 'a', inputs: ['x', 'first'], outputs: ['h'] });
  g.node('Reshape', { name: 'r', inputs: ['h', 'shape'], outputs: ['many'] });
  g.node('Reshape', { name: 's', inputs: ['many', 'flat'], outputs: ['back'] });
  g.initializer('flat', integerTensor('int64', [2], [1, size]));
  g.node('Cast', { name: 'c', inputs: ['odd'], outputs: ['odds'], attributes: { to: a.int(1) } });
  g.node('MatMul', { name: 'b', inputs: ['back', 'second'], outputs: ['y'] });
  g.output('y', 'float32', [1, size]);
  g.output('odds', 'float32', [1025]);
  const inside = join(folder, 'inside.onnx');
  const beside = join(folder, 'beside.onnx');
  const linked = join(folder, 'snapshot', 'model.onnx');
  const sample = new Map([['x', noise([1, size], 1, 3)]]);

  async function ranges(path: string) {
    let bytes = 0;
    const found = await calibrateTensors(
      path,
      ['h', 'y'],
      () => [sample],
      ({ path: copy, weightsFolder }) => {
        bytes = statSync(copy).size;
        return openOrtSession(copy, { weightsFolder });
      },
      { method: parseMethod('max') },
    );
    return { bytes, ranges: Object.fromEntries(found) };
  }

  test('are read where they are: in the file, beside it, behind links', async () => {
    await writeModel(buildModel(g), inside);
    const model = openModel(inside);
    await writeModel(model, beside, { externalData: 'always' });
    model.close();
    mkdirSync(join(folder, 'snapshot'));
    // As the cache of a hub has them: both are links into a folder of blobs.
    symlinkSync(beside, linked);
    symlinkSync(`${beside}.data`, join(folder, 'snapshot', 'beside.onnx.data'));
    const expected = await ranges(inside);
    expect(expected.ranges.y?.max).toBeGreaterThan(1);
    expect(expected.bytes).toBeLessThan(8_000);
    for (const path of [beside, linked])
      expect(await ranges(path)).toEqual({ ...expected, bytes: expect.any(Number) });
    expect((await ranges(beside)).bytes).toBeLessThan(8_000);
  });
});
