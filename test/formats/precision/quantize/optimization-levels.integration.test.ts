import { beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import { buildPlan } from '../../../../src/engines/builder/build-supervised.js';
import { readPlanHeader } from '../../../../src/engines/plan/header.js';
import { multiplications, readPlanProgram } from '../../../../src/engines/plan/program.js';
import { ignoreEvents } from '../../../../src/events.js';
import { type AttributeValue, attribute as a, GraphBuilder } from '../../../../src/formats/onnx/builder.js';
import { openModel } from '../../../../src/formats/onnx/model.js';
import { writeModel } from '../../../../src/formats/onnx/write.js';
import type { ConvertOptions } from '../../../../src/formats/precision/convert.js';
import { rtxToolchain } from '../../../native/rtx-toolchain.js';
import { describeWith } from '../../../support/needs.js';
import { resolvedBuild } from '../../../support/sample-engine.js';
import { type Converted, converted, type Feeds, freshPath, noise, run, written } from '../judge.js';
import { calibrationOn } from './calibration.js';

type Layer = 'Conv' | 'Gemm' | 'MatMul';
type Between = 'Relu' | 'Clip' | 'MaxPool';

/** Four layers, each behind the other's Relu. Their biases of up to 1 are far larger than the products of small weights. */
function network(layer: Layer, between: Between = 'Relu', weight = 0.01): GraphBuilder {
  const g = new GraphBuilder('network');
  const space = layer === 'Conv' ? [8, 8] : [];
  const kernel = layer === 'Conv' ? [3, 3] : [];
  const widths = [32, 64, 128, 64, 32];
  g.input('x', 'float32', ['n', 32, ...space]);
  g.initializer('low', noise([], 0, 1));
  const last = widths.slice(1).reduce((input, width, i) => {
    const from = widths[i]!;
    g.initializer(`w${i}`, noise(layer === 'Conv' ? [width, from, ...kernel] : [from, width], weight, i + 2));
    g.initializer(`b${i}`, noise([width], 1, i + 7));
    const inputs = layer === 'MatMul' ? [input, `w${i}`] : [input, `w${i}`, `b${i}`];
    const attributes: Record<string, AttributeValue> = layer === 'Conv' ? { pads: a.ints([1, 1, 1, 1]) } : {};
    const product = g.node(layer, { name: `layer${i}`, inputs, outputs: [`product${i}`], attributes });
    const sum =
      layer === 'MatMul'
        ? g.node('Add', { name: `add${i}`, inputs: [product, `b${i}`], outputs: [`sum${i}`] })
        : product;
    const name = `act${i}`;
    const outputs = [`act${i}.out`];
    if (between !== 'MaxPool')
      return g.node(between, { name, inputs: between === 'Clip' ? [sum, 'low'] : [sum], outputs });
    const relu = g.node('Relu', { name: `relu${i}`, inputs: [sum], outputs: [`relu${i}.out`] });
    return g.node('MaxPool', { name, inputs: [relu], outputs, attributes: { kernel_shape: a.ints([1, 1]) } });
  }, 'x');
  g.output(last, 'float32', ['n', 32, ...space]);
  return g;
}

const feedsOf = (layer: Layer): Feeds => ({
  x: noise(layer === 'Conv' ? [4, 32, 8, 8] : [64, 32], 1, 3),
});

async function quantized(
  layer: Layer,
  options: Partial<ConvertOptions>,
  { graph = network(layer), method = 'max' as 'max' | 'mse' } = {},
): Promise<Converted> {
  const calibration = calibrationOn([feedsOf(layer)], method);
  return converted(await written(graph), { precision: 'int8', ...options, calibration });
}

const sums = ({ nodes }: Converted): number => nodes.filter(({ opType }) => opType === 'Sum').length;

/** Signal to noise against the original, in dB, by what ONNX Runtime's optimizer may do. */
async function byLevel({ input, output }: Converted, feeds: Feeds): Promise<readonly number[]> {
  const only = (outputs: ReadonlyMap<string, readonly number[]>) => [...outputs.values()][0]!;
  const reference = only(await run(input, feeds));
  const signal = reference.reduce((sum, value) => sum + value ** 2, 0);
  const levels: number[] = [];
  for (const level of ['disabled', 'basic', 'extended', 'all'] as const) {
    const values = only(await run(output, feeds, level));
    const noise = reference.reduce((sum, value, i) => sum + (value - values[i]!) ** 2, 0);
    levels.push(10 * Math.log10(signal / noise));
  }
  return levels;
}

describe('what is quantized is the same to every optimization level of ONNX Runtime', () => {
  it.each<readonly [Layer, Between, Partial<ConvertOptions>, 'max' | 'mse']>([
    ['Conv', 'Relu', {}, 'max'],
    ['Conv', 'Relu', {}, 'mse'],
    ['Conv', 'Clip', {}, 'max'],
    ['Conv', 'MaxPool', {}, 'max'],
    ['Conv', 'Relu', { rest: 'fp32' }, 'max'],
    ['Gemm', 'Relu', {}, 'max'],
    ['MatMul', 'Relu', {}, 'max'],
    ['Conv', 'Relu', { precision: 'fp8' }, 'max'],
    ['Conv', 'Relu', { precision: 'fp8', rest: 'fp32' }, 'max'],
    ['Gemm', 'Clip', { precision: 'fp8', rest: 'fp32' }, 'max'],
  ])('%s, %s, %j, %s', async (layer, between, options, method) => {
    const made = await quantized(layer, options, { graph: network(layer, between), method });
    const [plain = 0, ...optimized] = await byLevel(made, feedsOf(layer));
    expect(plain).toBeGreaterThan(40);
    for (const level of optimized) expect(Math.abs(level - plain)).toBeLessThan(1);
  });

  it('leaves pairs alone that ONNX Runtime computes rightly', async () => {
    const graph = network('Conv', 'Relu', 1);
    expect(sums(await quantized('Conv', {}, { graph }))).toBe(0);
    expect(sums(await quantized('Conv', { rest: 'fp32' }))).toBe(0);
  });
});

describeWith('toolchain', 'TensorRT-RTX', (libraries) => {
  beforeAll(async () => {
    await buildAddon({ say: () => {} });
  });

  async function program(modelPath: string) {
    const planPath = freshPath('.plan');
    const build = resolvedBuild(modelPath, {
      toolchain: rtxToolchain(libraries),
      computeCapabilities: [89],
      recipe: {
        profiles: [{ x: { min: [4, 32, 8, 8], opt: [4, 32, 8, 8], max: [4, 32, 8, 8], values: false } }],
      },
    });
    await buildPlan(build, { modelPath, planPath }, { emit: ignoreEvents });
    return readPlanProgram(readPlanHeader(planPath))!;
  }

  it.each([
    ['int8', 'int8'],
    ['fp8', 'float8_e4m3fn'],
  ] as const)('compiles %s to the same program as without what the optimizer stops at', async (...types) => {
    const [precision, dtype] = types;
    const made = await quantized('Conv', { precision });
    expect(sums(made)).toBe(3);
    const plain = openModel(made.output);
    const graph = plain.proto.graph!;
    const behind = new Map(
      graph.node.flatMap(({ opType, input, output }) => (opType === 'Sum' ? [[output[0], input[0]!]] : [])),
    );
    for (const { input } of graph.node) input.splice(0, 1, behind.get(input[0]) ?? input[0]!);
    graph.node = graph.node.filter(({ opType }) => opType !== 'Sum');
    const plainPath = freshPath();
    await writeModel(plain, plainPath);
    plain.close();
    const [compiled, without] = [await program(made.output), await program(plainPath)];
    expect(compiled.digest).toBe(without.digest);
    const used = compiled.graphs.flatMap(({ kernels }) =>
      kernels.flatMap((kernel) => multiplications(kernel)),
    );
    expect(used.map(({ type }) => type)).toEqual([dtype, dtype, dtype, dtype]);
  });
});
