import { describe, expect, it } from 'vitest';
import { attributeOf } from '../../../src/formats/onnx/attributes.js';
import { inferDtypes } from '../../../src/formats/onnx/dtype-inference.js';
import { openModel } from '../../../src/formats/onnx/model.js';
import { conversionSchema } from '../../../src/formats/precision/result.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { type Converted, converted, difference, floats, freshPath, loads, run, written } from './judge.js';
import { type Trap, traps } from './models.js';

/** Half a percent of the largest value: NVIDIA's own bound for a typed model against its original. */
const FP16_TOLERANCE = 5e-3;

const trap = (name: string): Trap => {
  const found = traps.find((candidate) => candidate.name.startsWith(name));
  if (found === undefined) throw new Error(`There is no model "${name}".`);
  return found;
};

const convertTrap = async (
  name: string,
  options: Parameters<typeof converted>[1] = {},
): Promise<Converted> => {
  const { graph, spec } = trap(name);
  return converted(await written(graph(), spec), options);
};

describe.each(traps)('$name', ({ graph, spec, feeds }) => {
  it.each(['keep', 'convert'] as const)(
    'runs on ONNX Runtime and agrees with FP32 (I/O types: %s)',
    async (ioTypes) => {
      const input = await written(graph(), spec);
      const { output, result } = await converted(input, { ioTypes, keepNodes: [/^keep_/] });
      expect(conversionSchema.parse(result)).toEqual(result);
      expect(result.nodes.converted).toBeGreaterThan(0);
      expect(difference(await run(input, feeds), await run(output, feeds))).toBeLessThan(FP16_TOLERANCE);
    },
  );

  it('stays as it is when converted again', async () => {
    const once = await converted(await written(graph(), spec), { keepNodes: [/^keep_/] });
    const twice = await converted(once.output, { keepNodes: [/^keep_/] });
    expect(twice.result.casts).toEqual({ added: 0, removed: 0 });
    expect(twice.result.weights.converted).toBe(0);
    expect(twice.nodes.map(({ opType }) => opType)).toEqual(once.nodes.map(({ opType }) => opType));
  });
});

it('a declared shape that contradicts the graph is overlooked in the result as in the model', async () => {
  const { graph, spec } = trap('an LSTM with lengths');
  const declared = graph();
  declared.value('h', 'float32', [2, 8]);
  const input = await written(declared, spec);
  expect(await loads(input)).toBe(true);
  for (const precision of ['fp16', 'bf16'] as const) {
    const { output, nodes } = await converted(input, { precision, keepOps: new Set(['LSTM']) });
    expect(nodes.some(({ opType }) => opType === 'Cast')).toBe(true);
    expect(inferDtypes(openModel(output).proto).violations).toEqual([]);
    if (precision === 'fp16') expect(await loads(output)).toBe(true);
  }
});

describe('what stays FP32', () => {
  it('is the arithmetic of sizes, whatever it is written in', async () => {
    const { keptBy, nodes } = await convertTrap('shape arithmetic');
    for (const node of ['to_float', 'scale', 'floor']) expect(keptBy(node)).toBe('shape-arithmetic');
    expect(keptBy('conv')).toBeUndefined();
    expect(keptBy('resize')).toBeUndefined();
    expect(nodes.filter(({ opType }) => opType === 'Cast')).toHaveLength(4);
  });

  it('is the squared part of a normalisation, so that a constant row is not divided by zero', async () => {
    const { keptBy } = await convertTrap('layer normalisation');
    for (const node of ['square', 'variance', 'add_epsilon', 'root', 'normalise'])
      expect(keptBy(node)).toBe('variance');
    expect(keptBy('y.matmul')).toBeUndefined();
  });

  it("is the same with the mean's square and with moves on the way to the root", async () => {
    const { keptBy } = await convertTrap('layer normalisation as JAX');
    const steps =
      `sum mean mean_square squares sum_of_squares mean_of_squares difference variance variances broadcast safe
      deviation scale`.split(/\s+/);
    for (const node of steps) expect([node, keptBy(node)]).toEqual([node, 'variance']);
    for (const node of ['normal', 'y.matmul']) expect(keptBy(node)).toBeUndefined();
  });

  it('is what lies between a value beyond FP16 and what makes it small again; BF16 has the range', async () => {
    const fp16 = await convertTrap('values beyond FP16');
    for (const node of ['expand', 'divide', 'add', 'log'])
      expect([node, fp16.keptBy(node)]).toEqual([node, 'range']);
    for (const node of ['grow', 'both', 'y.matmul']) expect(fp16.keptBy(node)).toBeUndefined();
    const { result } = await convertTrap('values beyond FP16', { precision: 'bf16' });
    expect(result.rules.map(({ id }) => id)).not.toContain('range');
    const convertOps = new Set(['ReduceSum', 'Exp']);
    expect((await convertTrap('values beyond FP16', { convertOps })).result.kept).toEqual([]);
  });

  it.each(['layer normalisation as JAX', 'values beyond FP16'])('makes verify pass: %s', async (name) => {
    const { input, output } = await convertTrap(name);
    const path = freshPath('.npy');
    writeNpy(path, trap(name).feeds.x ?? floats([], []));
    const request = { reference: input, candidate: output, samples: 1, threads: 1 };
    const verdict = await verifyModel({ ...request, data: { files: [`x=@${path}`] } });
    expect(verdict).toMatchObject({ outcome: 'pass', precision: 'fp16' });
  });

  it('is the angle before a cosine, up to the positions', async () => {
    const { keptBy } = await convertTrap('rotary');
    expect(keptBy('angles')).toBe('angle');
    expect(keptBy('float_positions')).toBe('angle');
    expect(keptBy('cos')).toBe('op-default');
    expect(keptBy('rotate')).toBeUndefined();
  });

  it('is what chooses among FP32 values', async () => {
    const { keptBy } = await convertTrap('TopK');
    expect(keptBy('exp')).toBe('op-default');
    expect(keptBy('topk')).toBe('between');
    expect(keptBy('argmax')).toBe('between');
  });

  it('is the state of a loop; what a turn computes is converted', async () => {
    const { nodes, keptBy } = await convertTrap('a Loop');
    expect(keptBy('body.matmul')).toBeUndefined();
    const body = nodes.find(({ opType }) => opType === 'Loop');
    const graph = body === undefined ? undefined : attributeOf(body, 'body')?.g;
    const types = graph?.output.map(({ type }) =>
      type?.value.case === 'tensorType' ? type.value.value.elemType : 0,
    );
    expect(types).toEqual([9, 1, 10]);
  });
});

it('is what updates the state of a scan', async () => {
  const { keptBy } = await convertTrap('a Scan');
  expect([keptBy('body.add'), keptBy('body.gate'), keptBy('in')]).toEqual(['between', undefined, undefined]);
});

describe('casts', () => {
  it('come one per value and type, and pairs that were there vanish', async () => {
    const { result, nodes } = await convertTrap('casts that were there');
    expect(result.casts).toEqual({ added: 2, removed: 3 });
    expect(nodes.map(({ opType }) => opType)).toEqual(['Cast', 'MatMul', 'MatMul', 'MatMul', 'Cast']);
  });

  it('keep the names of the outputs', async () => {
    const { model, declared } = await convertTrap('a value that is an output');
    expect(model.proto.graph?.output.map(({ name }) => name)).toEqual(['h', 'y']);
    expect(declared('h')).toBe('float32');
    expect(declared('h_float16')).toBe('float16');
  });

  it('do not stand before inputs that are left out', async () => {
    const { nodes } = await convertTrap('Clip with only');
    const clip = nodes.find(({ opType }) => opType === 'Clip');
    expect(clip?.input).toEqual(['h', '', 'high']);
  });

  it('leave no trace where I/O types are converted too', async () => {
    const { nodes, declared } = await convertTrap('Clip with only', { ioTypes: 'convert' });
    expect(nodes.some(({ opType }) => opType === 'Cast')).toBe(false);
    expect([declared('x'), declared('y')]).toEqual(['float16', 'float16']);
  });
});

describe('weights', () => {
  it('read in both precisions are stored once in each', async () => {
    const { model, result } = await convertTrap('one weight', { keepNodes: [/^keep_/] });
    expect(model.proto.graph?.initializer.map(({ name, dataType }) => [name, dataType])).toEqual([
      ['w', 1],
      ['w_float16', 10],
    ]);
    expect(result.kept).toEqual([
      { node: 'keep_this', op: 'MatMul', rule: 'keep-node', reason: 'its name matches /^keep_/' },
    ]);
  });

  it('of a mask are clamped to the largest value and counted', async () => {
    const { result } = await convertTrap('a mask');
    expect(result.kept).toEqual([]);
    expect(result.weights).toMatchObject({
      saturated: 1,
      losses: [{ name: 'never', elements: 1, saturated: 1 }],
    });
  });

  it('that are settings stay FP32: scales of Resize', async () => {
    const { model } = await convertTrap('Resize with scales');
    const types = Object.fromEntries(
      model.proto.graph?.initializer.map(({ name, dataType }) => [name, dataType]) ?? [],
    );
    expect(types).toEqual({ scales: 1, w: 10 });
  });
});

it('replaces calls of functions by their steps and drops the functions', async () => {
  const { result, model, nodes } = await convertTrap('a function of the model');
  expect(result.functionsInlined).toBe(4);
  expect(model.proto.functions).toEqual([]);
  expect(nodes.map(({ opType }) => opType).sort()).toEqual([
    'Cast',
    'Cast',
    'Constant',
    'Constant',
    'MatMul',
    'Mul',
    'Mul',
    'Mul',
    'Mul',
    'Sigmoid',
    'Sigmoid',
  ]);
});

it('raises the opset where typed Q/DQ needs it, so that INT8 products stay fused', async () => {
  const { result, nodes } = await convertTrap('a quantised');
  expect(result.opset).toEqual({
    before: 13,
    after: 19,
    reason: 'QuantizeLinear takes FP16 from opset 19 on',
  });
  expect(nodes.filter(({ opType }) => opType === 'Cast')).toHaveLength(2);
});
