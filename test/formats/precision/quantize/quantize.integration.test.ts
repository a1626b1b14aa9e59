import { describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { attribute as a, GraphBuilder, type ModelSpec } from '../../../../src/formats/onnx/builder.js';
import { inferDtypes } from '../../../../src/formats/onnx/dtype-inference.js';
import { visitMainGraphs } from '../../../../src/formats/onnx/graph.js';
import { openModel } from '../../../../src/formats/onnx/model.js';
import { QuantizedGraph } from '../../../../src/formats/onnx/quantized-operations.js';
import { inferShapes } from '../../../../src/formats/onnx/shapes/infer.js';
import type { TensorRange } from '../../../../src/formats/precision/calibrate/ranges.js';
import type { ConvertOptions } from '../../../../src/formats/precision/convert.js';
import { readFlow } from '../../../../src/formats/precision/flow.js';
import type { FormatId } from '../../../../src/formats/precision/formats/index.js';
import { tapShares } from '../../../../src/formats/precision/quantize/bias-correction.js';
import { converted, type Feeds, floats, integers, noise, run, written } from '../judge.js';
import { calibrationBy, calibrationOn } from './calibration.js';

const x = noise([4, 32, 8, 8], 1, 3);

/** Two convolutions with a residual, a pooling and a product. */
function network(): GraphBuilder {
  const g = new GraphBuilder('network');
  g.input('x', 'float32', ['n', 32, 8, 8]);
  const conv = (name: string, input: string) => {
    g.initializer(`${name}.weight`, noise([32, 32, 3, 3], 0.1, name.length));
    g.initializer(`${name}.bias`, noise([32], 0.1, name.length + 1));
    return g.node('Conv', {
      name,
      inputs: [input, `${name}.weight`, `${name}.bias`],
      outputs: [`${name}.out`],
      attributes: { pads: a.ints([1, 1, 1, 1]) },
    });
  };
  const relu = (name: string, input: string) =>
    g.node('Relu', { name, inputs: [input], outputs: [`${name}.out`] });
  const stem = relu('relu1', conv('first', 'x'));
  const sum = g.node('Add', { name: 'add', inputs: [conv('second', stem), stem], outputs: ['add.out'] });
  g.node('GlobalAveragePool', { name: 'pool', inputs: [relu('relu2', sum)], outputs: ['pool.out'] });
  g.node('Flatten', { name: 'flatten', inputs: ['pool.out'], outputs: ['flat'] });
  g.initializer('up.weight', noise([64, 32], 0.2, 9));
  g.node('Gemm', {
    name: 'up',
    inputs: ['flat', 'up.weight'],
    outputs: ['up.out'],
    attributes: { transB: a.int(1) },
  });
  g.initializer('head.weight', noise([64, 20], 0.2, 10));
  g.node('MatMul', { name: 'head', inputs: [relu('relu3', 'up.out'), 'head.weight'], outputs: ['y'] });
  g.output('y', 'float32', ['n', 20]);
  return g;
}

/** A product of activations with a weight that two nodes read. */
function products(width = 64): GraphBuilder {
  const g = new GraphBuilder('products');
  g.input('x', 'float32', ['n', width]);
  g.initializer('w', noise([width, width], 0.2, 2));
  g.node('MatMul', { name: 'one', inputs: ['x', 'w'], outputs: ['a'] });
  g.node('Relu', { name: 'relu', inputs: ['a'], outputs: ['b'] });
  g.node('MatMul', { name: 'two', inputs: ['b', 'w'], outputs: ['c'] });
  g.node('Relu', { name: 'relu2', inputs: ['c'], outputs: ['y'] });
  g.output('y', 'float32', ['n', width]);
  return g;
}

/** An attention over 16 positions and of one head, each product with a projection around it. */
function attention(): GraphBuilder {
  const g = new GraphBuilder('attention');
  g.input('x', 'float32', ['n', 16, 32]);
  const project = (name: string, input: string) => {
    g.initializer(`${name}.weight`, noise([32, 32], 0.3, name.length));
    return g.node('MatMul', { name, inputs: [input, `${name}.weight`], outputs: [`${name}.out`] });
  };
  const [q, k, v] = ['query', 'keys', 'val'].map((name) => project(name, 'x'));
  g.node('Transpose', {
    name: 'turn',
    inputs: [k!],
    outputs: ['k_t'],
    attributes: { perm: a.ints([0, 2, 1]) },
  });
  g.node('MatMul', { name: 'scores', inputs: [q!, 'k_t'], outputs: ['scores.out'] });
  g.initializer('scale', {
    dtype: 'float32',
    shape: [],
    bytes: new Uint8Array(Float32Array.of(0.18).buffer),
  });
  g.node('Mul', { name: 'scaled', inputs: ['scores.out', 'scale'], outputs: ['scaled.out'] });
  g.node('Softmax', {
    name: 'softmax',
    inputs: ['scaled.out'],
    outputs: ['p'],
    attributes: { axis: a.int(-1) },
  });
  g.node('MatMul', { name: 'mixed', inputs: ['p', v!], outputs: ['mixed.out'] });
  g.node('Relu', { name: 'relu', inputs: [project('output', 'mixed.out')], outputs: ['y'] });
  g.output('y', 'float32', ['n', 16, 32]);
  return g;
}

async function quantized(
  graph: GraphBuilder,
  precision: FormatId,
  feeds: Feeds,
  { spec, ...options }: Partial<ConvertOptions> & { readonly spec?: ModelSpec } = {},
) {
  const input = await written(graph, spec);
  const result = await converted(input, {
    precision,
    rest: 'fp32',
    calibration: calibrationOn([feeds]),
    ...options,
  });
  return result;
}

/** Signal to noise in dB, over all values of the only output. */
async function sqnr(input: string, output: string, feeds: Feeds): Promise<number> {
  const values = async (path: string) => [...(await run(path, feeds)).values()][0] ?? [];
  const [reference, candidate] = [await values(input), await values(output)];
  let [signal, noise] = [0, 0];
  for (const [i, value] of reference.entries()) {
    signal += value ** 2;
    noise += (value - candidate[i]!) ** 2;
  }
  return 10 * Math.log10(signal / noise);
}

const decisions = ({ result }: Awaited<ReturnType<typeof quantized>>) =>
  Object.fromEntries(
    (result.quantization?.nodes ?? []).map(({ node, quantized, rule }) => [
      node.replace(/^.*"(.*)"$/, '$1'),
      `${quantized ? '' : 'not '}${rule}`,
    ]),
  );

describe('INT8', () => {
  it('quantizes operations with weights, the residual and what lies between; the last layer stays', async () => {
    const made = await quantized(network(), 'int8', { x });
    expect(decisions(made)).toEqual({
      first: 'weighted',
      second: 'weighted',
      add: 'residual',
      pool: 'not pooling',
      up: 'weighted',
      head: 'not last-layer',
    });
    expect(made.result.quantization).toMatchObject({ rest: 'fp32', method: 'max', weights: 3 });
    expect(await sqnr(made.input, made.output, { x })).toBeGreaterThan(28);
  });

  it.each(['fp16', 'bf16'] as const)('with %s around the pairs: scales have its type', async (rest) => {
    const made = await quantized(network(), 'int8', { x }, { rest });
    const scales = made.model.proto.graph?.initializer.filter(({ name }) => name.endsWith('_scale')) ?? [];
    expect(scales.length).toBeGreaterThan(3);
    expect(new Set(scales.map(({ dataType }) => dataType))).toEqual(new Set([rest === 'fp16' ? 10 : 16]));
    expect(made.result.kept).toEqual([]);
    expect(made.result.weights).toMatchObject({ saturated: 0, toZero: 0, subnormal: 0 });
  });

  it.each([
    ['of one tap', 8, 1, 0],
    ['of which one tap in nine is inside', 1, 3, 1],
    ['whose taps are inside at a part of the positions', 4, 3, 3],
  ])('a convolution %s without a bias gets one that takes up the mean of its error', async (...network) => {
    const [, size, taps, dilation] = network;
    const g = new GraphBuilder('bare');
    g.input('x', 'float32', ['n', 32, size, size]);
    g.initializer('w', noise([32, 16, taps, taps], 0.2, 2));
    g.node('Conv', {
      name: 'conv',
      inputs: ['x', 'w'],
      outputs: ['a'],
      attributes: {
        group: a.int(2),
        pads: a.ints(new Array(4).fill(dilation)),
        dilations: a.ints(new Array(2).fill(Math.max(1, dilation))),
      },
    });
    g.node('Neg', { name: 'negative', inputs: ['a'], outputs: ['y'] });
    g.output('y', 'float32', ['n', 32, size, size]);
    const inner = size * size;
    const samples = 256 / inner;
    const values = noise([samples, 32, size, size], 1, 3);
    const shifted = new Float32Array(values.bytes.slice().buffer).map((value) => value + 3);
    const feeds = { x: { ...values, bytes: new Uint8Array(shifted.buffer) } };
    const made = await quantized(g, 'int8', feeds);
    const names = made.model.proto.graph?.initializer.map(({ name }) => name);
    expect(names).toContain('conv_bias_corrected');
    const outputOf = async (path: string) => (await run(path, feeds)).get('y')!;
    const [before, after] = [await outputOf(made.input), await outputOf(made.output)];
    const error = (channel: number) => {
      const at = Array.from(
        { length: samples * inner },
        (_, i) => Math.floor(i / inner) * 32 * inner + channel * inner + (i % inner),
      );
      return at.reduce((sum, i) => sum + before[i]! - after[i]!, 0) / at.length;
    };
    const scale = made.result.quantization?.activations[0]?.scale ?? 0;
    // Without a correction the mean of an error is 3 times the sum of 16 weights' rounding.
    for (let channel = 0; channel < 32; channel++) expect(Math.abs(error(channel))).toBeLessThan(scale / 8);
  });

  it('a corrected bias has the dimensions of the bias', async () => {
    const g = new GraphBuilder('ranks');
    g.input('x', 'float32', ['n', 64]);
    g.initializer('w', noise([64, 32], 0.2, 2));
    g.initializer('b', noise([1, 1, 32], 0.2, 3));
    g.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['a'] });
    g.node('Add', { name: 'bias', inputs: ['a', 'b'], outputs: ['c'] });
    g.node('Neg', { name: 'negative', inputs: ['c'], outputs: ['y'] });
    g.output('y', 'float32', [1, 'n', 32]);
    const made = await quantized(g, 'int8', { x: noise([5, 64], 1, 4) });
    const bias = made.model.proto.graph?.initializer.find(({ name }) => name === 'b_corrected');
    expect(bias?.dims.map(Number)).toEqual([1, 1, 32]);
  });

  it('one tensor of codes serves two readers, and the FP32 weight is gone', async () => {
    const made = await quantized(products(), 'int8', { x: noise([5, 64], 1, 4) });
    const names = made.model.proto.graph?.initializer.map(({ name }) => name);
    expect(names?.filter((name) => name.startsWith('w'))).toEqual(['w_quantized', 'w_scale']);
  });

  it('a FP32 weight that something else reads stays beside its codes', async () => {
    const made = await quantized(products(), 'int8', { x: noise([5, 64], 1, 4) }, { keepNodes: [/^two$/] });
    const names = made.model.proto.graph?.initializer.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['w', 'w_quantized']));
    expect(decisions(made)).toEqual({ one: 'weighted', two: 'not keep-node' });
  });

  it('a weight and a bias behind Identity are quantized and corrected as without, and nothing of them stays', async () => {
    const network = (isCopied: boolean) => {
      const g = new GraphBuilder('copied');
      const stored = (name: string, shape: readonly number[]) => {
        g.initializer(name, noise(shape, 0.2, name.length));
        return isCopied ? copied(name) : name;
      };
      const copied = (name: string) =>
        g.node('Identity', { name: `${name}.copy`, inputs: [name], outputs: [`${name}.copied`] });
      const turned = g.initializer('turned', noise([32, 32], 0.2, 5));
      g.input('x', 'float32', ['n', 32, 4, 32]);
      g.node('Conv', {
        name: 'conv',
        inputs: ['x', stored('kernel', [32, 32, 1, 1]), stored('offsets', [32])],
        outputs: ['a'],
      });
      const transposed = g.node('Transpose', { inputs: [turned], outputs: ['t'] });
      const second = isCopied ? copied(transposed) : transposed;
      for (const [name, input, weight] of [
        ['first', 'a', stored('shared', [32, 32])],
        ['again', 'a', 'shared'],
      ] as const)
        g.node('MatMul', { name, inputs: [input, weight], outputs: [`${name}.out`] });
      g.node('Add', { inputs: ['first.out', 'again.out'], outputs: ['b'] });
      g.node('Relu', { inputs: ['b'], outputs: ['c'] });
      g.node('MatMul', { name: 'second', inputs: ['c', second], outputs: ['d'] });
      g.node('Add', { inputs: ['d', stored('offset', [32])], outputs: ['e'] });
      g.node('Relu', { inputs: ['e'], outputs: ['f'] });
      g.node('MatMul', { name: 'head', inputs: ['f', stored('last', [32, 20])], outputs: ['h'] });
      g.node('Add', { inputs: ['h', stored('ends', [20])], outputs: ['y'] });
      g.output('y', 'float32', ['n', 32, 4, 20]);
      return g;
    };
    const feeds = { x: noise([2, 32, 4, 32], 1, 6) };
    const [plain, behind] = [
      await quantized(network(false), 'int8', feeds),
      await quantized(network(true), 'int8', feeds),
    ];
    expect(decisions(behind)).toEqual(decisions(plain));
    expect(decisions(behind)).toMatchObject({
      first: 'weighted',
      second: 'weighted',
      head: 'not last-layer',
    });
    const names = behind.model.proto.graph?.initializer.map(({ name }) => name) ?? [];
    expect(names.filter((name) => /^(kernel|offsets|shared|turned|offset)$/.test(name))).toEqual([]);
    expect(await run(behind.output, feeds)).toEqual(await run(plain.output, feeds));
  });

  it('an Identity of a weight that something else reads stays beside the codes', async () => {
    const g = new GraphBuilder('read twice');
    g.input('x', 'float32', ['n', 64]);
    g.initializer('w', noise([64, 64], 0.2, 2));
    g.node('Identity', { inputs: ['w'], outputs: ['copy'] });
    g.node('MatMul', { name: 'one', inputs: ['x', 'copy'], outputs: ['a'] });
    g.node('MatMul', { name: 'two', inputs: ['x', 'copy'], outputs: ['b'] });
    g.node('Sub', { inputs: ['a', 'b'], outputs: ['c'] });
    g.node('Relu', { inputs: ['c'], outputs: ['y'] });
    g.output('y', 'float32', ['n', 64]);
    const made = await quantized(g, 'int8', { x: noise([5, 64], 1, 4) }, { keepNodes: [/^two$/] });
    const inputs = (name: string) => made.nodes.find((node) => node.name === name)?.input;
    expect(inputs('two')).toEqual(['x', 'copy']);
    expect(inputs('one')?.[1]).toBe('w_dequantized');
    expect(made.nodes.filter(({ opType }) => opType === 'Identity')).toHaveLength(1);
  });

  it('a Transpose of a weight stays for readers that are kept out; those with codes have their own', async () => {
    const g = new GraphBuilder('turned');
    g.input('x', 'float32', ['n', 64]);
    g.initializer('w', noise([64, 64], 0.2, 2));
    g.node('Transpose', { name: 'turn', inputs: ['w'], outputs: ['t'] });
    g.node('MatMul', { name: 'one', inputs: ['x', 't'], outputs: ['a'] });
    g.node('Relu', { name: 'relu', inputs: ['a'], outputs: ['b'] });
    g.node('MatMul', { name: 'two', inputs: ['b', 't'], outputs: ['c'] });
    g.node('Gemm', {
      name: 'back',
      inputs: ['b', 't'],
      outputs: ['d'],
      attributes: { transB: a.int(1) },
    });
    g.node('Sub', { name: 'sub', inputs: ['c', 'd'], outputs: ['y'] });
    g.output('y', 'float32', ['n', 64]);
    const feeds = { x: noise([5, 64], 1, 4) };
    const operations = async (options: Partial<ConvertOptions>) => {
      const made = await quantized(g, 'int8', feeds, options);
      const { proto } = made.model;
      const found = new QuantizedGraph([...visitMainGraphs(proto)], inferDtypes(proto).graph).operations();
      expect(await sqnr(made.input, made.output, feeds)).toBeGreaterThan(20);
      return Object.fromEntries(
        found.map(({ node, operands: [, weight] }) => [node.name, [node.input[1], weight?.axis]]),
      );
    };
    expect(await operations({ keepNodes: [/^two$/] })).toEqual({
      one: ['w_dequantized_transposed', 1],
      two: ['t', undefined],
      back: ['w_dequantized_2_transposed', 0],
    });
    const { one, two } = await operations({});
    expect(two).toEqual(one);
  });

  it('an attention stays in 16 bits, with pairs on the products around it', async () => {
    for (const precision of ['int8', 'fp8'] as const) {
      const made = await quantized(attention(), precision, { x: noise([3, 16, 32], 1, 5) });
      expect(decisions(made)).toMatchObject({
        query: 'weighted',
        scores: 'not activations',
        mixed: 'not activations',
        output: 'weighted',
      });
    }
  });

  it('raises an opset that is too old, and rejects where that would change the model', async () => {
    for (const opset of [7, 11]) {
      const made = await quantized(products(), 'int8', { x: noise([5, 64], 1, 4) }, { spec: { opset } });
      expect(made.result.opset).toMatchObject({ before: opset, after: 13 });
    }
    await expect(
      quantized(products(), 'int8', { x: noise([5, 64]) }, { spec: { opset: 6 } }),
    ).rejects.toMatchObject({
      code: 'TF_NOT_QUANTIZABLE',
    });
  });

  it('a model that is quantized already is rejected by name', async () => {
    const made = await quantized(products(), 'int8', { x: noise([5, 64], 1, 4) });
    await expect(
      converted(made.output, { precision: 'int8', calibration: calibrationOn([]) }),
    ).rejects.toMatchObject({
      code: 'TF_NOT_QUANTIZABLE',
      message: expect.stringContaining('QuantizeLinear'),
    });
  });

  it('needs a calibration before any work', async () => {
    await expect(converted(await written(products()), { precision: 'int8' })).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
  });

  it.each<[string, TensorRange | undefined]>([
    ['zero', { min: 0, max: 0, amax: 0 }],
    ['infinite', { min: 0, max: Number.POSITIVE_INFINITY, amax: Number.POSITIVE_INFINITY }],
    ['unknown', undefined],
    ['too large for a FP16 scale', { min: 0, max: 1e8, amax: 1e8 }],
  ])('a range that is %s keeps its readers out', async (_, range) => {
    const ranges = new Map([
      ['x', { min: -1, max: 1, amax: 1 }],
      ...(range === undefined ? [] : [['b', range] as const]),
    ]);
    const calibration = calibrationBy(async () => ranges);
    const made = await quantized(products(), 'int8', {}, { calibration, rest: 'fp16' });
    expect(decisions(made)).toEqual({ one: 'weighted', two: 'not range' });
  });
});

/** Sums of ones by filters of one tap each: the mean of each is the share of positions at which its tap is inside. */
it.each([
  ['no padding', { strides: a.ints([1, 2]) }, [5, 6]],
  ['pads', { pads: a.ints([1, 2, 0, 3]), strides: a.ints([2, 1]) }, [5, 6]],
  ['dilations', { pads: a.ints([4, 2, 4, 2]), dilations: a.ints([4, 2]) }, [3, 6]],
  ['SAME_UPPER', { auto_pad: a.string('SAME_UPPER'), strides: a.ints([2, 2]) }, [6, 7]],
  ['SAME_LOWER', { auto_pad: a.string('SAME_LOWER'), strides: a.ints([2, 3]) }, [6, 8]],
  ['VALID', { auto_pad: a.string('VALID') }, [3, 4]],
] as const)('taps inside the input: %s', async (_what, attributes, size) => {
  const taps = Array.from({ length: 9 }, (_, filter) =>
    Array.from({ length: 9 }, (_, tap) => (tap === filter ? 1 : 0)),
  );
  const g = new GraphBuilder('taps');
  g.input('x', 'float32', ['n', 1, ...size]);
  g.initializer('w', floats([9, 1, 3, 3], taps.flat()));
  g.node('Relu', { name: 'relu', inputs: ['x'], outputs: ['r'] });
  g.node('Conv', { name: 'conv', inputs: ['r', 'w'], outputs: ['y'], attributes });
  g.output('y', 'float32', ['n', 9, 'h', 'w']);
  const path = await written(g);
  const ones = floats([1, 1, ...size], new Array(size[0] * size[1]).fill(1));
  const sums = (await run(path, { x: ones })).get('y')!;
  const positions = sums.length / 9;
  const model = openModel(path);
  const conv = readFlow(model.proto).operations.at(-1)!;
  const shares = tapShares(conv, [3, 3], inferShapes(model));
  model.close();
  const means = Array.from(
    { length: 9 },
    (_, tap) =>
      sums.slice(tap * positions, (tap + 1) * positions).reduce((sum, value) => sum + value) / positions,
  );
  expect(shares).toHaveLength(9);
  for (const [tap, share] of shares.entries()) expect(share).toBeCloseTo(means[tap]!, 6);
});

it('where one branch of an addition is kept out, the other operand has no range and gets no pair', async () => {
  const g = new GraphBuilder('branches');
  g.input('x', 'float32', ['n', 32, 8, 8]);
  const conv = (name: string, input: string) => {
    g.initializer(`${name}.weight`, noise([32, 32, 1, 1], 0.1, name.length));
    g.initializer(`${name}.bias`, noise([32], 500, name.length));
    return g.node('Conv', {
      name,
      inputs: [input, `${name}.weight`, `${name}.bias`],
      outputs: [`${name}.out`],
    });
  };
  const scalar = (value: number) => g.initializer('shift', floats([1], [value]));
  g.node('Sub', { name: 'below', inputs: ['x', scalar(1000)], outputs: ['negative'] });
  const zero = g.node('Relu', { name: 'zero', inputs: ['negative'], outputs: ['zeros'] });
  const sum = g.node('Add', {
    name: 'add',
    inputs: [conv('longer', zero), conv('other', 'x')],
    outputs: ['sum'],
  });
  const last = conv('after', g.node('Relu', { name: 'relu', inputs: [sum], outputs: ['r'] }));
  g.node('Neg', { name: 'negative', inputs: [last], outputs: ['y'] });
  g.output('y', 'float32', ['n', 32, 8, 8]);
  const made = await quantized(g, 'int8', { x });
  expect(decisions(made)).toEqual({
    longer: 'not range',
    other: 'weighted',
    add: 'not range',
    after: 'weighted',
  });
  const paired = made.result.quantization?.activations.map(({ tensor }) => tensor);
  expect(paired).toEqual(['x', 'r']);
  expect(await sqnr(made.input, made.output, { x })).toBeGreaterThan(30);
});

it.each([
  [undefined, []],
  [1024, ['add', 'relu2']],
])(
  '--data-max %s beside pairs: activations without one count where it is requested',
  async (dataMax, kept) => {
    const range = { min: 0, max: 5000 };
    const calibration = { ...calibrationOn([{ x }]), observe: async () => new Map([['add.out', range]]) };
    const { result } = await quantized(network(), 'int8', {}, { calibration, rest: 'fp16', dataMax });
    const nodes = result.kept.filter(({ rule }) => rule === 'data-range').map(({ node }) => node);
    expect(nodes).toEqual(kept);
  },
);

describe('FP8', () => {
  it('quantizes products and convolutions, and no addition', async () => {
    const made = await quantized(network(), 'fp8', { x });
    expect(decisions(made)).toEqual({
      first: 'weighted',
      second: 'weighted',
      up: 'weighted',
      head: 'not last-layer',
    });
    expect(made.result.opset.after).toBe(19);
    expect(await sqnr(made.input, made.output, { x })).toBeGreaterThan(22);
  });

  it('gives weights of convolutions one scale and a QuantizeLinear behind their codes, those of products a scale per channel', async () => {
    const made = await quantized(network(), 'fp8', { x });
    const model = openModel(made.output);
    const { node: nodes = [], initializer = [] } = model.proto.graph ?? {};
    model.close();
    const weight = (reader: string) => {
      const path = [];
      let name = nodes.find((node) => node.name === reader)?.input[1];
      for (
        let node = nodes.find(({ output }) => output[0] === name);
        node;
        node = nodes.find(({ output }) => output[0] === name)
      ) {
        path.unshift([
          node.opType,
          initializer.find((tensor) => tensor.name === node!.input[1])?.dims.map(Number),
        ]);
        name = node.input[0];
      }
      return path;
    };
    const pair = [
      ['QuantizeLinear', []],
      ['DequantizeLinear', []],
    ];
    expect(weight('first')).toEqual([['DequantizeLinear', []], ...pair]);
    expect(weight('up')).toEqual([['DequantizeLinear', [64]]]);
  });
});

/** A head as detectors have it: distances as distributions, whose mean a convolution to one channel takes, become edges of boxes. */
function head(): GraphBuilder {
  const g = new GraphBuilder('head');
  g.input('x', 'float32', [1, 32, 8, 8]);
  const conv = (name: string, input: string, channels: number) => {
    g.initializer(`${name}.weight`, noise([channels, 32, 1, 1], 0.1, name.length));
    return g.node('Conv', { name, inputs: [input, `${name}.weight`], outputs: [`${name}.out`] });
  };
  const shape = (name: string, ...dims: number[]) => {
    g.initializer(name, integers([dims.length], dims));
    return name;
  };
  const sigmoid = g.node('Sigmoid', { name: 'sigmoid', inputs: [conv('stem', 'x', 32)], outputs: ['s'] });
  const silu = g.node('Mul', { name: 'silu', inputs: ['stem.out', sigmoid], outputs: ['silu.out'] });
  const residual = g.node('Add', {
    name: 'residual',
    inputs: [conv('block', silu, 32), silu],
    outputs: ['r'],
  });
  g.node('Softmax', {
    name: 'softmax',
    inputs: [
      g.node('Reshape', {
        name: 'parts',
        inputs: [conv('distances', residual, 64), shape('parts.shape', 1, 16, 4, 64)],
        outputs: ['parts.out'],
      }),
    ],
    outputs: ['p'],
    attributes: { axis: a.int(1) },
  });
  g.initializer('mean.weight', noise([1, 16, 1, 1], 1, 3));
  g.node('Conv', { name: 'mean', inputs: ['p', 'mean.weight'], outputs: ['mean.out'] });
  g.node('Split', {
    name: 'split',
    inputs: ['mean.out', shape('two', 2, 2)],
    outputs: ['near', 'far'],
    attributes: { axis: a.int(2) },
  });
  g.node('Sub', { name: 'size', inputs: ['far', 'near'], outputs: ['boxes'] });
  g.output('boxes', 'float32', [1, 1, 2, 64]);
  g.node('Sigmoid', { name: 'scores', inputs: [conv('classes', residual, 24)], outputs: ['y'] });
  g.output('y', 'float32', [1, 24, 8, 8]);
  return g;
}

it("a detector's last layers stay, whatever decodes them, and nothing before them", async () => {
  const made = await quantized(head(), 'fp8', { x: noise([1, 32, 8, 8], 1, 3) });
  expect(decisions(made)).toEqual({
    stem: 'weighted',
    block: 'weighted',
    distances: 'not last-layer',
    mean: 'not few-channels',
    classes: 'not last-layer',
  });
});

it('what is an output and read by the next layer too is no last layer; indices of a choice do not count', async () => {
  const g = new GraphBuilder('features');
  g.input('x', 'float32', ['n', 32]);
  const product = (name: string, input: string) => {
    g.initializer(`${name}.weight`, noise([32, 32], 0.2, name.length));
    return g.node('MatMul', { name, inputs: [input, `${name}.weight`], outputs: [`${name}.out`] });
  };
  const features = product('features', 'x');
  g.output('features.out', 'float32', ['n', 32]);
  const scores = product('scores', g.node('Relu', { inputs: [features], outputs: ['r'] }));
  g.output('scores.out', 'float32', ['n', 32]);
  g.node('ArgMax', { inputs: [scores], outputs: ['best'], attributes: { axis: a.int(1) } });
  g.node('Mod', { inputs: ['best', g.initializer('four', integers([1], [4]))], outputs: ['class'] });
  g.output('class', 'int64', ['n', 1]);
  expect(decisions(await quantized(g, 'int8', { x: noise([4, 32], 1, 3) }))).toEqual({
    features: 'weighted',
    scores: 'not last-layer',
  });
});

it.each([
  ['16 channels', [32, 16, 1, 1], 1, { int8: 'weighted', fp8: 'not few-channels' }],
  ['groups of 16 channels', [32, 16, 1, 1], 2, { int8: 'weighted', fp8: 'not groups' }],
  ['groups of 8 channels', [32, 8, 1, 1], 4, { int8: 'not groups', fp8: 'not groups' }],
  ['a kernel of 25 positions', [32, 32, 5, 5], 1, { int8: 'weighted', fp8: 'weighted' }],
  ['a kernel of 49 positions', [32, 32, 7, 7], 1, { int8: 'weighted', fp8: 'not large-kernel' }],
] as const)('a convolution of %s', async (_, weight, group, expected) => {
  const channels = weight[1] * group;
  for (const precision of ['int8', 'fp8'] as const) {
    const g = new GraphBuilder('one');
    g.input('x', 'float32', ['n', channels, 8, 8]);
    g.initializer('w', noise([...weight], 0.2, 2));
    g.node('Conv', {
      name: 'conv',
      inputs: ['x', 'w'],
      outputs: ['a'],
      attributes: { group: a.int(group) },
    });
    g.node('Neg', { name: 'negative', inputs: ['a'], outputs: ['y'] });
    g.output('y', 'float32', ['n', weight[0], 9 - weight[2], 9 - weight[3]]);
    const feeds = { x: noise([2, channels, 8, 8], 1, 3) };
    const made = await quantized(g, precision, feeds, { allowUnconverted: true });
    expect(decisions(made), precision).toEqual({ conv: expected[precision] });
  }
});

describe('weights of 4 bits', () => {
  it('INT4: blocks along the sum, without a calibration, for products alone', async () => {
    const made = await quantized(network(), 'int4', {}, { calibration: undefined });
    expect(decisions(made)).toEqual({
      first: 'not no-kernel',
      second: 'not no-kernel',
      up: 'weighted',
      head: 'not last-layer',
    });
    expect(made.result.quantization).toMatchObject({ method: null, activations: [], weights: 1 });
    expect(await sqnr(made.input, made.output, { x })).toBeGreaterThan(18);
  });

  it('INT4 with a calibration: scales and biases by what the inputs were', async () => {
    const g = new GraphBuilder('biased');
    g.input('x', 'float32', ['n', 128]);
    g.initializer('w', noise([128, 64], 0.2, 2));
    g.initializer('b', noise([64], 0.2, 3));
    g.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['a'] });
    g.node('Add', { name: 'bias', inputs: ['b', 'a'], outputs: ['c'] });
    g.node('Relu', { name: 'relu', inputs: ['c'], outputs: ['d'] });
    g.initializer('v', noise([64, 64], 0.2, 4));
    g.node('MatMul', { name: 'head', inputs: ['d', 'v'], outputs: ['y'] });
    g.output('y', 'float32', ['n', 64]);
    const input = await written(g);
    // Inputs as a ReLU makes them: their mean is as large as their spread.
    const shifted = (seed: number) => {
      const { bytes, ...rest } = noise([64, 128], 1, seed);
      const values = new Float32Array(bytes.slice().buffer).map((value) => Math.max(0, value + 0.3));
      return { ...rest, bytes: new Uint8Array(values.buffer) };
    };
    const options = { precision: 'int4', rest: 'fp32', keepNodes: [/^head$/] } as const;
    const feeds = { x: shifted(5) };
    const blind = await converted(input, options);
    const seen = await converted(input, { ...options, calibration: calibrationOn([{ x: shifted(6) }]) });
    expect(seen.result.quantization).toMatchObject({ activations: [], method: null, weights: 1 });
    const names = seen.model.proto.graph?.initializer.map(({ name }) => name);
    expect(names).toEqual(['v', 'w_quantized', 'w_scale', 'b_corrected']);
    const gain = (await sqnr(input, seen.output, feeds)) - (await sqnr(input, blind.output, feeds));
    expect(gain).toBeGreaterThan(2);
  });

  it('NVFP4: scales of blocks are E4M3 with a scale of the tensor', async () => {
    const made = await quantized(products(), 'nvfp4', {}, { calibration: undefined });
    const types = made.model.proto.graph?.initializer.map(({ name, dataType, dims }) => [
      name,
      dataType,
      dims.map(Number),
    ]);
    expect(types).toEqual([
      ['w_quantized', 23, [64, 64]],
      ['w_scale_quantized', 17, [4, 64]],
      ['w_scale_scale', 1, []],
    ]);
    expect(made.result.opset.after).toBe(23);
  });

  it.each([
    [32, 16],
    [64, 32],
    [96, 32],
    [128, 64],
    [192, 64],
    [256, 128],
  ])('INT4: a sum of %i terms has two blocks of %i or more', async (terms, block) => {
    const made = await quantized(products(terms), 'int4', {}, { calibration: undefined });
    const dequantize = made.nodes.find(({ opType }) => opType === 'DequantizeLinear');
    expect(dequantize?.attribute.map(({ name, i }) => [name, Number(i)])).toContainEqual([
      'block_size',
      block,
    ]);
  });

  it.each([16, 40])('a weight of %i terms, which no block divides into two or more, stays', async (terms) => {
    const options = { calibration: undefined, allowUnconverted: true };
    const made = await quantized(products(terms), 'int4', {}, options);
    expect(decisions(made)).toEqual({ one: 'not blocks', two: 'not blocks' });
    expect(made.result.warnings).toHaveLength(1);
  });
});

it('an error of the calibration is the error of the conversion', async () => {
  const calibration = calibrationBy(() => Promise.reject(new TrtforgeError('TF_CANCELLED', 'Stopped.')));
  await expect(quantized(products(), 'int8', {}, { calibration })).rejects.toMatchObject({
    code: 'TF_CANCELLED',
  });
});

describe('a model of which no node is quantized', () => {
  const fixed = () => {
    const g = new GraphBuilder('fixed');
    g.input('x', 'float32', ['n', 32, 8, 8]);
    g.initializer('w', noise([32, 32, 3, 3], 0.2, 2));
    g.node('Conv', { name: 'conv', inputs: ['x', 'w'], outputs: ['a'] });
    g.node('Neg', { name: 'negative', inputs: ['a'], outputs: ['y'] });
    g.output('y', 'float32', ['n', 32, 6, 6]);
    return g;
  };
  const nothing = () => {
    const g = new GraphBuilder('nothing');
    g.input('x', 'float32', ['n']);
    g.node('Relu', { name: 'relu', inputs: ['x'], outputs: ['y'] });
    g.output('y', 'float32', ['n']);
    return g;
  };
  const zeros = { x: floats([1, 32, 8, 8], new Array(2048).fill(0)) };

  it.each([
    ['a type without kernels for it', fixed(), 'nvfp4', {}, { 'no-kernel': 1 }, ['int8', 'fp8']],
    ['no product at all', nothing(), 'int4', {}, {}, []],
    ['activations that are zero', fixed(), 'int8', zeros, { range: 1 }, ['fp8']],
  ] as const)('%s is an error', async (_what, graph, precision, feeds, rules, precisions) => {
    await expect(quantized(graph, precision, feeds)).rejects.toMatchObject({
      code: 'TF_NOT_QUANTIZABLE',
      details: { rules, precisions },
    });
  });

  it.each(['fp16', 'bf16'] as const)('is one in %s: the error has its type', async (precision) => {
    const { output } = await converted(await written(products()), { precision });
    const calibration = calibrationOn([{ x: noise([5, 64], 1, 4) }]);
    await expect(converted(output, { precision: 'int8', calibration })).rejects.toMatchObject({
      code: 'TF_NOT_QUANTIZABLE',
      details: { dtype: precision === 'fp16' ? 'float16' : 'bfloat16' },
    });
  });

  it('is an error where nodes were named, too', async () => {
    const feeds = { x: noise([1, 32, 8, 8], 1, 3) };
    await expect(quantized(fixed(), 'int8', feeds, { keepNodes: [/conv/] })).rejects.toMatchObject({
      code: 'TF_NOT_QUANTIZABLE',
      details: { rules: { 'keep-node': 1 } },
    });
  });
});
