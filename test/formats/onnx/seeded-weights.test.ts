import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { type OnnxModel, openModel } from '../../../src/formats/onnx/model.js';
import { removeTexts, seededWeights } from '../../../src/formats/onnx/seeded-weights.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import type { Dtype } from '../../../src/formats/tensor/dtype.js';
import {
  float32Values,
  floatTensor,
  integerTensor,
  type Tensor,
} from '../../../src/formats/tensor/tensor.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-seeded-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
/** A model with these weights, and a copy of it with seeded ones. */
async function pairOf(weights: Readonly<Record<string, Tensor>>, source = '') {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', [1]);
  for (const [name, tensor] of Object.entries(weights)) graph.initializer(name, tensor);
  graph.node('Relu', { name: 'relu', inputs: ['x'], outputs: ['y'] });
  graph.output('y', 'float32', [1]);
  const path = join(folder, `${++files}.onnx`);
  const built = buildModel(graph);
  built.proto.docString = source;
  built.proto.graph!.node[0]!.docString = source;
  await writeModel(built, path);
  const model = openModel(path);
  const target = join(folder, `${files}.seeded.onnx`);
  const replacements = seededWeights(model);
  removeTexts(model);
  await writeModel(model, target, { replacements });
  const copy = openModel(target);
  const valuesIn = (of: OnnxModel, name: string) => {
    const weight = of.weight(of.proto.graph!.initializer.find((each) => each.name === name)!);
    const bytes = Buffer.concat([...weight.chunks()].map((chunk) => Buffer.from(chunk)));
    return {
      dtype: weight.dtype,
      dims: weight.dims,
      values: float32Values({ dtype: weight.dtype, shape: weight.dims, bytes }),
    };
  };
  return {
    copy,
    before: (name: string) => valuesIn(model, name),
    after: (name: string) => valuesIn(copy, name),
  };
}

const waves = (dtype: 'float32' | 'float16' | 'bfloat16', shape: readonly number[], offset = 0): Tensor =>
  floatTensor(
    dtype,
    shape,
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => offset + 0.3 * Math.sin(7 * i)),
  );
const statistics = (values: Float32Array) => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    mean,
    deviation: Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length),
  };
};

test.each<[Dtype, Tensor]>([
  ['float32', waves('float32', [40, 30])],
  ['float16', waves('float16', [40, 30])],
  ['bfloat16', waves('bfloat16', [40, 30])],
  [
    'int8',
    integerTensor(
      'int8',
      [40, 30],
      Float64Array.from({ length: 1200 }, (_, i) => (i % 41) - 20),
    ),
  ],
])('%s: other values of its type, shape and scale', async (dtype, tensor) => {
  const { before, after } = await pairOf({ w: tensor });
  expect(after('w')).toMatchObject({ dtype, dims: before('w').dims });
  const [was, is] = [before('w').values, after('w').values];
  expect(is.filter((value, i) => value === was[i]).length).toBeLessThan(was.length / 10);
  expect(Math.max(...is.map(Math.abs))).toBeLessThan(1.1 * Math.max(...was.map(Math.abs)));
  const scale = statistics(was).deviation;
  expect(Math.abs(statistics(is).mean - statistics(was).mean)).toBeLessThan(0.2 * scale);
  expect(statistics(is).deviation / scale).toBeGreaterThan(0.7);
});

test('one sign stays one sign: variances and scales are divided by', async () => {
  const { after } = await pairOf({
    positive: waves('float32', [100], 0.31),
    negative: waves('float32', [100], -0.31),
  });
  expect(Math.min(...after('positive').values)).toBeGreaterThan(0);
  expect(Math.max(...after('negative').values)).toBeLessThan(0);
});

test('a constant stays what it is', async () => {
  const { after } = await pairOf({ ones: floatTensor('float32', [64], new Float32Array(64).fill(1)) });
  expect(new Set(after('ones').values)).toEqual(new Set([1]));
});

test('what decides shapes stays, and small tensors do', async () => {
  const { before, after } = await pairOf({
    shape: integerTensor(
      'int64',
      [20],
      Float64Array.from({ length: 20 }, (_, i) => i),
    ),
    epsilon: floatTensor('float32', [1], Float32Array.of(1e-5)),
  });
  for (const name of ['shape', 'epsilon']) expect(after(name)).toEqual(before(name));
});

test('a weight of one name has the same numbers in FP32 and FP16', async () => {
  const [wide, narrow] = await Promise.all([
    pairOf({ w: waves('float32', [400]) }),
    pairOf({ w: waves('float16', [400]) }),
  ]);
  const worst = narrow.after('w').values.map((value, i) => Math.abs(value - wide.after('w').values[i]!));
  expect(Math.max(...worst)).toBeLessThan(5e-4);
});

test('texts of exporters are removed', async () => {
  const { copy } = await pairOf({}, 'File "/home/me/secret/model.py", line 12');
  expect([copy.proto.docString, copy.proto.graph?.node[0]?.docString]).toEqual(['', '']);
});
