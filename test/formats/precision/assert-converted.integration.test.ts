import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { attribute as a, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { type ConvertOptions, convertModel } from '../../../src/formats/precision/convert.js';
import { converted, floats, freshPath, integers, noise, written } from './judge.js';
import { calibrationOn } from './quantize/calibration.js';

const graphOf = (build: (g: GraphBuilder) => void) => {
  const g = new GraphBuilder('g');
  g.input('x', 'float32', [1, 4, 8, 8]);
  build(g);
  g.output('y', 'float32', null);
  return g;
};

const product = (g: GraphBuilder) => {
  g.initializer('w', noise([8, 8], 0.4));
  g.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['y'] });
};

/** BF16 needs opset 22, which a GroupNormalization of opset 18 keeps the model from. */
const obstructed = (g: GraphBuilder) => {
  g.initializer('k', noise([4, 4, 3, 3], 0.2));
  g.initializer('s', floats([2], [1, 1]));
  g.initializer('b', floats([2], [0, 0]));
  g.node('Conv', { name: 'conv', inputs: ['x', 'k'], outputs: ['h'] });
  const attributes = { num_groups: a.int(2) };
  g.node('GroupNormalization', { name: 'norm', inputs: ['h', 's', 'b'], outputs: ['y'], attributes });
};

const exponent = (g: GraphBuilder) => g.node('Exp', { name: 'exp', inputs: ['x'], outputs: ['y'] });

const whole = () => {
  const g = new GraphBuilder('whole');
  g.input('n', 'int64', [4]);
  g.initializer('one', integers([1], [1]));
  g.node('Add', { name: 'add', inputs: ['n', 'one'], outputs: ['m'] });
  g.output('m', 'int64', [4]);
  return g;
};

const strict = (input: string, output: string, options: Partial<ConvertOptions>) =>
  convertModel(input, output, { precision: 'fp16', ...options });

describe('a conversion that gives no node its type', () => {
  it.each([
    ['whose opset cannot be raised', graphOf(obstructed), 18, 'bf16', {}, { opset: 1 }, ['fp16']],
    ['of operators that stay FP32', graphOf(exponent), 18, 'fp16', {}, { 'op-default': 1 }, []],
    ['of integers', whole(), 18, 'fp16', {}, {}, []],
    ['of named nodes', graphOf(product), 18, 'fp16', { keepNodes: [/prod/] }, { 'keep-node': 1 }, []],
    ['of too large weights', graphOf(product), 18, 'fp16', { initMax: 0.1 }, { 'weight-range': 1 }, []],
  ] as const)('%s is an error', async (_, graph, opset, precision, options, rules, precisions) => {
    const input = await written(graph, { opset });
    const output = freshPath();
    await expect(strict(input, output, { precision, ...options })).rejects.toMatchObject({
      code: 'TF_NOT_CONVERTIBLE',
      details: { rules: expect.objectContaining(rules), precisions },
      remedy: expect.stringMatching(/--precision (fp16|as-is)|Remove/),
    });
    expect(existsSync(output)).toBe(false);
    const allowed = await strict(input, output, { precision, ...options, allowUnconverted: true });
    expect(allowed.nodes.converted).toBe(0);
    expect(allowed.warnings.length).toBeGreaterThan(0);
  });

  it('is one where only a quantization was named away, though the rest is FP16', async () => {
    const calibration = calibrationOn([{ x: noise([1, 4, 8, 8], 1, 4) }]);
    const input = await written(graphOf(product));
    for (const options of [{ keepNodes: [/prod/] }, { unquantizedNodes: [/prod/] }])
      await expect(
        strict(input, freshPath(), { precision: 'int8', calibration, ...options }),
      ).rejects.toMatchObject({ code: 'TF_NOT_QUANTIZABLE' });
  });

  it('a model that has the type already has none, and one for the other type', async () => {
    const { output } = await converted(await written(graphOf(product)));
    expect((await strict(output, freshPath(), {})).nodes).toMatchObject({ converted: 0 });
    await expect(strict(output, freshPath(), { precision: 'bf16' })).rejects.toMatchObject({
      code: 'TF_NOT_CONVERTIBLE',
    });
  });

  it('is one where only a Cast has the type', async () => {
    const g = graphOf((builder) => {
      builder.node('Cast', { inputs: ['x'], outputs: ['low'], attributes: { to: a.int(10) } });
      builder.output('low', 'float16', null);
      exponent(builder);
    });
    await expect(strict(await written(g), freshPath(), {})).rejects.toMatchObject({
      code: 'TF_NOT_CONVERTIBLE',
    });
  });
});
