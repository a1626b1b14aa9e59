import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openSession } from '../../../../src/engines/runtime/open-session.js';
import { attribute as a, GraphBuilder } from '../../../../src/formats/onnx/builder.js';
import { readNpy, writeNpy } from '../../../../src/formats/tensor/npy.js';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import type { Tensor } from '../../../../src/formats/tensor/tensor.js';
import { numbersOf } from '../../../../src/formats/tensor/values.js';
import {
  ioContractSchema,
  precisionSchemeSchema,
  quantizedComparisonSchema,
} from '../../../../src/quality/study/layers/quantized-result.js';
import { readQuantized } from '../../../../src/quality/study/layers/scheme.js';
import { floats, freshPath, noise, written } from '../../../formats/precision/judge.js';
import { samplePlan } from '../../../support/sample-engine.js';
import { trtforge } from '../../../support/trtforge.js';

const g = new GraphBuilder('network');
g.input('x', 'float32', ['n', 24, 8, 8]);
let value = 'x';
for (const [index, name] of ['first', 'second', 'third'].entries()) {
  g.initializer(`${name}.weight`, noise([24, 24, 3, 3], 0.15, index + 1));
  const made = g.node('Conv', {
    name,
    inputs: [value, `${name}.weight`],
    outputs: [`${name}.out`],
    attributes: { pads: a.ints([1, 1, 1, 1]) },
  });
  value = g.node('Relu', { name: `${name}.relu`, inputs: [made], outputs: [`${name}.relu.out`] });
}
g.node('GlobalAveragePool', { name: 'pool', inputs: [value], outputs: ['pooled'] });
g.output('pooled', 'float32', ['n', 24, 1, 1]);
const model = await written(g);
const data = freshPath('.npy');
const samples = noise([6, 24, 8, 8], 1, 9);
writeNpy(data, samples);

async function quantized(precision: string, ...more: string[]) {
  const path = freshPath();
  const line = ['convert', model, '--precision', precision, '--calibration', data, '--json', ...more];
  expect((await trtforge([...line, '-o', path])).exitCode).toBe(0);
  return path;
}

const compared = (candidate: string, ...more: string[]) => comparedWith(model, candidate, data, ...more);

async function comparedWith(against: string, candidate: string, calibration: string, ...more: string[]) {
  const output = freshPath('/compare');
  const line = ['compare', 'layers', candidate, '--against', against];
  line.push('--inputs', calibration, '-o', output);
  const { exitCode, json } = await trtforge([...line, ...more, '--json']);
  const read = (name: string): unknown => JSON.parse(readFileSync(join(output, name), 'utf8'));
  return { output, exitCode, json, read };
}

it('writes the errors of outputs and nodes, what each node computes in, inputs and outputs, and the samples', async () => {
  const candidate = await quantized('int8');
  const { output, exitCode, read, json } = await compared(candidate, '--samples', '4');
  expect([0, 1]).toContain(exitCode);
  const metrics = quantizedComparisonSchema.parse(read('metrics.json'));
  expect(json().quantized).toEqual(metrics);
  expect(metrics).toMatchObject({ num_samples: 4, input_chw: [24, 8, 8], calibration_path: data });

  const rows = Array.from({ length: 4 }, (_, row) => ({
    ...samples,
    shape: [1, 24, 8, 8],
    bytes: samples.bytes.slice(6144 * row, 6144 * (row + 1)),
  }));
  const run = async (path: string) => {
    await using session = await openSession(path);
    const outputs: number[][] = [];
    for (const x of rows)
      outputs.push([...numbersOf((await session.run(new Map([['x', x]]))).get('pooled')!)]);
    return outputs;
  };
  const [fp, qt] = [await run(model), await run(candidate)];
  const power = (values: readonly number[]) => values.reduce((sum, each) => sum + each * each, 0);
  const decibels = fp.map((row, at) => {
    const differences = row.map((each, index) => qt[at]![index]! - each);
    return 10 * Math.log10(power(row) / power(differences));
  });
  expect(metrics.per_sample.map(({ sqnr_db }) => sqnr_db)).toEqual(
    decibels.map((each) => expect.closeTo(each, 6)),
  );
  expect(metrics.errors.min_sqnr_db).toBeCloseTo(Math.min(...decibels), 6);
  for (const key of Object.keys(metrics.errors)) expect(metrics.metric_definitions[key]?.key_name).toBe(key);

  const names = metrics.per_layer.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['first', 'third.relu', 'pool']));
  const errors = metrics.per_layer.map(({ metrics: each }) => Number(each.mean_sqnr_db));
  expect(errors).toEqual([...errors].sort((x, y) => x - y));

  const scheme = precisionSchemeSchema.parse(read('precision-scheme.json'));
  const precisions = new Map(scheme.nodes.map(({ name, precision }) => [name, precision]));
  for (const name of ['first', 'second', 'third']) expect(precisions.get(name)).toBe('int8');
  expect(precisions.get('pool')).toBe('fp32_fp16');
  expect(scheme.nodes.every(({ op_type }) => !/QuantizeLinear/.test(op_type))).toBe(true);
  expect(Object.values(scheme.counts).reduce((sum, count) => sum + count, 0)).toBe(scheme.nodes.length);

  expect(ioContractSchema.parse(read('io.json'))).toEqual({
    inputs: [{ name: 'x', dtype: 1, shape: ['n', 24, 8, 8] }],
    outputs: [{ name: 'pooled', dtype: 1, shape: ['n', 24, 1, 1] }],
  });
  const stacked = readNpy(join(output, 'calibration.npy'));
  expect(stacked.shape).toEqual([4, 24, 8, 8]);
  expect(Buffer.from(stacked.bytes).equals(Buffer.from(samples.bytes.slice(0, 4 * 6144)))).toBe(true);
});

it('names the codes of other types, and infinite decibels where nothing differs', async () => {
  const { read } = await compared(await quantized('fp8', '--high-precision', 'fp32'));
  expect(precisionSchemeSchema.parse(read('precision-scheme.json')).counts).toHaveProperty('fp8');
  const same = await compared(model);
  const { errors, per_layer } = quantizedComparisonSchema.parse(same.read('metrics.json'));
  expect(errors).toMatchObject({ max_max_abs: 0, mean_sqnr_db: 'Infinity', mean_cosine_sim: 1 });
  expect(per_layer).toHaveLength(7);
});

describe('two models that multiply by other factors', () => {
  interface Factors {
    readonly side?: Tensor;
    readonly inner?: number;
    readonly last?: number;
  }
  const number = (value: number) => floats([], [value]);

  /** Outputs: y = x * inner * last, then side = x * side. */
  async function chain({ side = number(2), inner = 2, last = 2 }: Factors, prefix: string | null = 'make ') {
    const g = new GraphBuilder('chain');
    g.input('x', 'float32', ['n', 4]);
    for (const [from, name, factor] of [
      ['x', 'side', side],
      ['x', 'inner', number(inner)],
      ['inner', 'y', number(last)],
    ] as const) {
      g.initializer(`${name}.factor`, factor);
      const own = prefix === null ? {} : { name: prefix + name };
      g.node('Mul', { ...own, inputs: [from, `${name}.factor`], outputs: [name] });
    }
    for (const name of ['y', 'side']) g.output(name, 'float32', null);
    return written(g);
  }

  const rows = freshPath('.npy');
  writeNpy(rows, noise([3, 4], 1, 4));

  async function judged(factors: Factors, calibration = rows) {
    const { exitCode, json, read } = await comparedWith(await chain({}), await chain(factors), calibration);
    expect([0, 1]).toContain(exitCode);
    const metrics = quantizedComparisonSchema.parse(read('metrics.json'));
    expect(json().quantized).toEqual(metrics);
    const nodes = metrics.per_layer.map(({ name, metrics: each }) => [name, each.mean_sqnr_db]);
    return { ...metrics, nodes };
  }

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('has a node that makes %d first', async (factor) => {
    const { output_name, errors, nodes } = await judged({ side: number(factor), last: 2.02 });
    expect([output_name, errors.mean_sqnr_db, errors.min_sqnr_db]).toEqual(['side', 'NaN', 'NaN']);
    expect(nodes).toEqual([
      ['make side', 'NaN'],
      ['make y', expect.closeTo(40, 3)],
      ['make inner', 'Infinity'],
    ]);
  });

  it('averages over the samples that differ', async () => {
    const path = freshPath('.npy');
    writeNpy(path, floats([3, 4], [1, 2, 3, 4, 0, 0, 0, 0, 4, 3, 2, 1]));
    const { errors, nodes, per_sample } = await judged({ inner: 2.02, last: 2.02 }, path);
    const y = expect.closeTo(10 * Math.log10(1 / 0.0201 ** 2), 3);
    expect(per_sample.map(({ sqnr_db }) => sqnr_db)).toEqual([y, 'Infinity', y]);
    expect([errors.mean_sqnr_db, errors.min_sqnr_db]).toEqual([y, y]);
    expect(nodes.map(([name]) => name)).toEqual(['make y', 'make inner', 'make side']);
  });

  it('judges by the output with the largest error', async () => {
    const { output_name, errors } = await judged({ side: number(2.2), last: 2.02 });
    expect([output_name, errors.mean_sqnr_db]).toEqual(['side', expect.closeTo(20, 3)]);
  });

  it('finds nodes without names by what they make', async () => {
    for (const prefix of [null, 'quantized ']) {
      const { read } = await comparedWith(await chain({}, null), await chain({ last: 2.02 }, prefix), rows);
      const { per_layer } = quantizedComparisonSchema.parse(read('metrics.json'));
      expect(per_layer.map(({ fp_tensor }) => fp_tensor)).toEqual(['y', 'side', 'inner']);
      expect(per_layer[0]?.name).toBe(`${prefix ?? ''}y`);
    }
  });

  it('fails where an output has another shape, whose figures are no numbers', async () => {
    const deeper = await chain({ side: floats([1, 1, 1], [2]) });
    const { exitCode, json } = await comparedWith(await chain({}), deeper, rows);
    expect([exitCode, json().quantized]).toMatchObject([
      1,
      { output_name: 'side', errors: { max_mse: 'NaN' } },
    ]);
  });
});

it('leaves no samples of an earlier comparison', async () => {
  const { output } = await compared(model, '--samples', '1');
  const both = new GraphBuilder('both');
  for (const name of ['x', 'z']) both.input(name, 'float32', ['n', 4]);
  both.node('Add', { name: 'sum', inputs: ['x', 'z'], outputs: ['y'] });
  both.output('y', 'float32', ['n', 4]);
  const path = await written(both);
  const sample = freshPath('.npz');
  writeNpz(sample, new Map(['x', 'z'].map((name) => [name, noise([1, 4], 1, 1)])));
  expect(existsSync(join(output, 'calibration.npy'))).toBe(true);
  const line = ['compare', 'layers', path, '--against', path, '--inputs', sample, '-o', output];
  expect((await trtforge(line)).exitCode).toBe(0);
  expect(existsSync(join(output, 'calibration.npy'))).toBe(false);
});

it('names FP4 codes, whose scales are codes too', async () => {
  const products = new GraphBuilder('products');
  products.input('x', 'float32', ['n', 32]);
  for (const [index, [from, to]] of [['x', 'h'] as const, ['r', 'z'] as const].entries()) {
    products.initializer(`w${index}`, noise([32, 32], 0.2, index + 1));
    products.node('MatMul', { name: `product${index}`, inputs: [from, `w${index}`], outputs: [to] });
    if (index === 0) products.node('Relu', { name: 'relu', inputs: ['h'], outputs: ['r'] });
  }
  products.node('Relu', { name: 'last', inputs: ['z'], outputs: ['y'] });
  products.output('y', 'float32', ['n', 32]);
  const candidate = freshPath();
  const line = ['convert', await written(products), '--precision', 'nvfp4', '-o', candidate];
  expect((await trtforge(line)).exitCode).toBe(0);
  const { nodes } = readQuantized(candidate).scheme;
  const precisions = new Map(nodes.map(({ name, precision }) => [name, precision]));
  expect([precisions.get('product0'), precisions.get('relu')]).toEqual(['fp4', 'fp32_fp16']);
});

it('writes nothing where no output of the models has one name', async () => {
  const other = new GraphBuilder('other');
  other.input('x', 'float32', ['n', 24, 8, 8]);
  other.node('Relu', { name: 'r', inputs: ['x'], outputs: ['first.out'] });
  other.output('first.out', 'float32', ['n', 24, 8, 8]);
  const path = await written(other);
  const { output, exitCode, json } = await compared(path);
  expect([exitCode, json().error?.code]).toEqual([2, 'TF_VERIFY_MISMATCH']);
  expect(existsSync(output)).toBe(false);
  const line = ['compare', 'layers', path, '--against', model, '--inputs', data, '--json'];
  expect((await trtforge(line)).json()).toMatchObject({ diverging: 1, quantized: null });
});

it('has the errors of a quantized model without a folder and on drawn samples too, and prints them', async () => {
  const line = ['compare', 'layers', await quantized('int8'), '--against', model, '--shapes', 'x:1x24x8x8'];
  const { json } = await trtforge([...line, '--json']);
  expect(json().quantized).toMatchObject({ output_name: 'pooled', calibration_path: '' });
  expect((await trtforge(line)).out).toContain('third.relu');
  const plain = [...line.with(2, model), '--json'];
  expect((await trtforge(plain)).json().quantized).toBeNull();
  const engine = freshPath('.engine');
  writeFileSync(engine, samplePlan());
  expect(
    (await trtforge([...line.with(2, engine), '-o', freshPath('/none'), '--json'])).json().error,
  ).toMatchObject({
    code: 'TF_USAGE',
    details: { option: '--output' },
  });
});

it('answers the verb of earlier versions with its line', async () => {
  const candidate = await quantized('int8');
  const line = ['compare', 'quantized', candidate, '--against', model, `--calibration=${data}`];
  const { exitCode, json } = await trtforge([...line, '-o', freshPath('/moved'), '--json']);
  expect([exitCode, json().error?.code]).toEqual([2, 'TF_USAGE']);
  const words = json().error?.remedy?.split('Run: trtforge ')[1]?.split(' ') ?? [];
  const { json: ran } = await trtforge(words);
  expect(ran()).toMatchObject({ schema: 'trtforge.compare-layers/1', quantized: { num_samples: 6 } });
});
