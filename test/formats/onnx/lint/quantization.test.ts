import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { attribute, GraphBuilder, writeModel } from '../../../../src/formats/onnx/index.js';
import { factsOfModel } from '../../../../src/formats/onnx/inspect.js';
import { float32, int64, scratchFolder } from '../support/models.js';
import { attention, convolution, perChannel, product, QuantizedNet } from '../support/quantized.js';

const folder = scratchFolder();
let files = 0;

async function findingsOf(net: QuantizedNet, opset?: number): Promise<string[]> {
  const path = join(folder, `${files++}.onnx`);
  await writeModel(net.model(opset), path);
  return factsOfModel(path).findings.map(({ code, where }) => `${code} ${where.replace(/^graph\//, '')}`);
}

/** x → Q → DQ → Relu reads → pair of another value. */
function elementwise(change: (net: QuantizedNet) => string): QuantizedNet {
  const net = new QuantizedNet();
  net.input('x', 'float32', [8, 64]);
  net.op('Relu', [change(net)], 'y');
  net.output('y', 'float32', [8, 64]);
  return net;
}

/** Pairs with clipped codes around x and a float weight → product `y_MatMul`; the scales of the weight are along `axis`. */
function clipped(axis: 0 | 1): QuantizedNet {
  const net = new QuantizedNet();
  net.input('x', 'float32', [64, 256]);
  const scales = perChannel(axis === 0 ? 256 : 128);
  const weights = net.pair(net.floats('w', [256, 128]), { scales, axis, isClipped: true });
  net.op('MatMul', [net.pair('x', { isClipped: true }), weights], 'y');
  net.output('y', 'float32', [64, 128]);
  return net;
}

/** x → pair → Pad → what reads it. */
function padded(pads: readonly number[], value: number, mode = 'constant', reader = 'Conv'): QuantizedNet {
  const net = new QuantizedNet();
  net.input('x', 'float32', [1, 16, 8, 8]);
  const sizes = net.initializer('pads', int64([8], pads));
  const inputs = [net.pair('x'), sizes, net.initializer('value', float32([], [value]))];
  net.op('Pad', inputs, 'padded', { mode: attribute.string(mode) });
  const weights = net.weight('w', reader === 'Conv' ? [16, 16, 3, 3] : [8, 8]);
  net.op(reader, ['padded', weights], 'y');
  net.output('y', 'float32', [1, 16, 'h', 'w']);
  return net;
}
const space = [0, 0, 1, 1, 0, 0, 1, 1];
const unreached = ['quantized-one-operand Conv "y_Conv"', 'quantized-unused QuantizeLinear "x_Q"'];

/** A product → pair → (what moves codes) → Relu → pair → product. */
function activation(between?: string): QuantizedNet {
  const net = new QuantizedNet();
  net.input('x', 'float32', [1, 16, 8, 8]);
  net.op('Conv', [net.pair('x'), net.weight('v', [16, 16, 1, 1])], 'a');
  const paired = net.pair('a');
  const read =
    between === undefined ? paired : net.op(between, [paired], 'b', { kernel_shape: attribute.ints([2, 2]) });
  const relu = net.op('Relu', [read], 'c');
  net.op('Conv', [net.pair(relu), net.weight('w', [16, 16, 1, 1])], 'y');
  net.output('y', 'float32', [1, 16, 'h', 'w']);
  return net;
}

const conv = 'Conv "y0_Conv"';
const channels = perChannel(64);

describe('pairs that TensorRT computes by have no finding', () => {
  it.each([
    ['a convolution per channel', convolution()],
    ['a convolution per tensor', convolution({ weights: {} })],
    ['behind what moves values', convolution({ between: 'Identity' })],
    ['a product', product({}, { scales: perChannel(128), axis: 1 })],
    ['a product by a negative axis', product({}, { scales: perChannel(128), axis: -1 })],
    ['a Gemm', product({}, { scales: perChannel(128), axis: 1 }, 'Gemm')],
    ['a transposed Gemm', product({}, { scales: perChannel(128), axis: 0 }, 'Gemm', true)],
    ['weights of a product alone', product(null, { scales: perChannel(128), axis: 1 })],
    ['attention in floating point', attention([])],
    ['a pooling of codes in front of an activation', activation('MaxPool')],
    ['clipped codes', clipped(1)],
    ['zeros around space', padded(space, 0)],
    ['copies around space', padded(space, 1, 'edge')],
  ])('%s', async (_name, net) => {
    expect(await findingsOf(net)).toEqual([]);
  });
});

describe('pairs that gain nothing, or that TensorRT rejects', () => {
  it.each([
    [
      'a zero point',
      convolution({ activations: { zeroPoint: 3 } }),
      ['quantized-zero-point QuantizeLinear "x_Q"'],
    ],
    [
      'UINT8 codes',
      convolution({ activations: { dtype: 'uint8' } }),
      ['quantized-uint8 QuantizeLinear "x_Q"'],
    ],
    [
      'codes without a zero point, which are UINT8',
      convolution({ activations: { zeroPoint: null } }),
      ['quantized-uint8 QuantizeLinear "x_Q"'],
    ],
    [
      'INT16 codes',
      convolution({ activations: { dtype: 'int16' } }),
      ['quantized-type QuantizeLinear "x_Q"'],
    ],
    ['weights alone', convolution({ activations: null }), [`quantized-one-operand ${conv}`]],
    ['activations alone', convolution({ weights: null }), [`quantized-one-operand ${conv}`]],
    [
      'an activation that does not reach it',
      convolution({ between: 'Relu' }),
      [`quantized-one-operand ${conv}`, 'quantized-unused QuantizeLinear "x_Q"'],
    ],
    [
      'the input channels of weights',
      convolution({ weights: { scales: channels, axis: 1 } }),
      [`quantized-weight-axis ${conv}`],
    ],
    [
      'activations per channel',
      convolution({ activations: { scales: channels, axis: 1 } }),
      [`quantized-activation-channels ${conv}`],
    ],
    [
      'ConvTranspose',
      convolution({ opType: 'ConvTranspose' }),
      ['quantized-conv-transpose ConvTranspose "y0_ConvTranspose"'],
    ],
    [
      'the sum of a product',
      product({}, { scales: perChannel(256), axis: 0 }),
      ['quantized-weight-axis MatMul "y_MatMul"'],
    ],
    [
      'the sum of a transposed Gemm',
      product({}, { scales: perChannel(256), axis: 1 }, 'Gemm', true),
      ['quantized-weight-axis Gemm "y_Gemm"'],
    ],
    [
      'INT8 activations with blocks',
      product({}, { scaleShape: [8, 128], axis: 0, block: 32 }),
      ['quantized-blocks MatMul "y_MatMul"'],
    ],
    [
      'INT4 per channel',
      product(null, { dtype: 'int4', scales: perChannel(128), axis: 1 }),
      ['quantized-int4-scales MatMul "y_MatMul"', 'quantized-target DequantizeLinear "w_DQ"'],
    ],
    [
      'INT4 in blocks',
      product(null, { dtype: 'int4', scaleShape: [4, 128], axis: 0, block: 64 }),
      ['quantized-target DequantizeLinear "w_DQ"'],
    ],
    [
      'FP8',
      convolution({ activations: { dtype: 'float8_e4m3fn' }, weights: { dtype: 'float8_e4m3fn' } }),
      ['quantized-target QuantizeLinear "x_Q"'],
    ],
    ['a scale of 0', convolution({ activations: { scales: [0] } }), ['quantized-scale QuantizeLinear "x_Q"']],
    [
      'a negative scale',
      convolution({ activations: { scales: [-1] } }),
      ['quantized-scale QuantizeLinear "x_Q"'],
    ],
    ['NaN', convolution({ activations: { scales: [Number.NaN] } }), ['quantized-scale QuantizeLinear "x_Q"']],
    [
      'an infinite scale',
      convolution({ weights: { scales: [...channels.slice(1), Number.POSITIVE_INFINITY], axis: 0 } }),
      ['quantized-scale DequantizeLinear "w_DQ"'],
    ],
    [
      '0 in FP16',
      convolution({ activations: { scales: [1e-8] } }),
      ['quantized-scale-fp16 QuantizeLinear "x_Q"'],
    ],
    [
      'infinity in FP16',
      convolution({ activations: { scales: [1e5] } }),
      ['quantized-scale-fp16 QuantizeLinear "x_Q"'],
    ],
    [
      'attention without Softmax',
      attention(['q', 'k', 'v', 'result']),
      ['quantized-attention Softmax "probabilities_Softmax"'],
    ],
    ['a lone Softmax', attention(['probabilities']), ['quantized-attention Softmax "probabilities_Softmax"']],
    [
      'scores',
      attention(['q', 'k', 'v', 'scores', 'probabilities', 'result']),
      ['quantized-attention Softmax "probabilities_Softmax"'],
    ],
    [
      'INT8 attention',
      attention(['q', 'k', 'v', 'probabilities', 'result']),
      ['quantized-attention Softmax "probabilities_Softmax"'],
    ],
    [
      'FP8 attention',
      attention(['q', 'k', 'v', 'probabilities'], 'float8_e4m3fn'),
      ['quantized-attention Softmax "probabilities_Softmax"', 'quantized-target QuantizeLinear "q_Q"'],
    ],
    ['clipped codes', clipped(0), ['quantized-weight-axis MatMul "y_MatMul"']],
    [
      'stored codes that are clipped',
      convolution({ weights: { scales: channels, axis: 0, isClipped: true } }),
      ['quantized-constant DequantizeLinear "w_DQ"'],
    ],
    ['ones around space', padded(space, 1), unreached],
    ['zeros around channels', padded([0, 1, 0, 0, 0, 1, 0, 0], 0), unreached],
    [
      'zeros around space in front of a product',
      padded(space, 0, 'constant', 'MatMul'),
      ['quantized-unused QuantizeLinear "x_Q"'],
    ],
    [
      'a pair that only Relu reads',
      elementwise((net) => net.pair('x')),
      ['quantized-unused QuantizeLinear "x_Q"'],
    ],
    ['a pair in front of an activation with a pair', activation(), ['quantized-unused QuantizeLinear "a_Q"']],
    [
      'a constant without dimensions',
      elementwise((net) => net.op('Add', ['x', net.weight('c', [])], 'sum')),
      ['quantized-scalar DequantizeLinear "c_DQ"'],
    ],
  ])('%s', async (_name, net, expected) => {
    expect(await findingsOf(net)).toEqual(expected);
  });

  it('a bias in INT32', async () => {
    const net = convolution({ weights: {} });
    net.op('Add', ['y', net.weight('bias', [64, 1, 1], { dtype: 'int32' })], 'z');
    net.output('z', 'float32', [4, 64, 16, 16]);
    expect(await findingsOf(net)).toEqual(['quantized-bias DequantizeLinear "bias_DQ"']);
  });

  it('a scale that the graph computes', async () => {
    const net = new QuantizedNet();
    net.input('x', 'float32', [64, 256]);
    net.op('ReduceMax', ['x'], 'largest', { keepdims: attribute.int(0) });
    const data = net.pair('x', { scale: 'largest' });
    net.op('MatMul', [data, net.weight('w', [256, 128])], 'y');
    net.output('y', 'float32', [64, 128]);
    expect(await findingsOf(net)).toEqual(['quantized-scale-computed MatMul "y_MatMul"']);
  });

  it.each(['QLinearConv', 'MatMulInteger', 'DynamicQuantizeLinear'])('the operator %s', async (opType) => {
    const net = new QuantizedNet();
    net.input('x', 'float32', [8, 64]);
    net.op('Relu', ['x'], 'y');
    net.output('y', 'float32', [8, 64]);
    net.node(opType, { name: 'n', inputs: [], outputs: ['z'] });
    const found = await findingsOf(net);
    expect(found).toContain(`quantized-operator ${opType} "n"`);
    expect(found.join()).not.toContain('op-unknown');
  });

  it('axes are followed through transposed weights', async () => {
    const transposed = (axis: number) => {
      const net = new QuantizedNet();
      net.input('x', 'float32', [64, 256]);
      const weights = net.weight('w', [128, 256], { scales: perChannel(axis === 0 ? 128 : 256), axis });
      net.op('Transpose', [weights], 't', { perm: attribute.ints([1, 0]) });
      net.op('MatMul', [net.pair('x'), 't'], 'y');
      net.output('y', 'float32', [64, 128]);
      return net;
    };
    expect(await findingsOf(transposed(0))).toEqual([]);
    expect(await findingsOf(transposed(1))).toEqual(['quantized-weight-axis MatMul "y_MatMul"']);
  });

  it('in bodies too, by what the graph around them defines', async () => {
    const net = new QuantizedNet();
    net.input('x', 'float32', [4, 64, 16, 16]);
    net.input('flag', 'bool', []);
    const weights = net.weight('w', [64, 64, 3, 3], { scales: channels, axis: 1 });
    const data = net.pair('x');
    const branch = (name: string) => {
      const body = new GraphBuilder(name);
      body.node('Conv', { name: `${name}_conv`, inputs: [data, weights], outputs: [`${name}_y`] });
      body.output(`${name}_y`, 'float32', null);
      return body;
    };
    net.node('If', {
      name: 'if',
      inputs: ['flag'],
      outputs: ['y'],
      attributes: { then_branch: attribute.body(branch('a')), else_branch: attribute.body(branch('b')) },
    });
    net.output('y', 'float32', null);
    expect(await findingsOf(net)).toEqual(
      [
        'quantized-weight-axis graph/If "if".then_branch/Conv "a_conv"',
        'quantized-weight-axis graph/If "if".else_branch/Conv "b_conv"',
      ].map((text) => text.replace('graph/', '')),
    );
  });

  it('cost no more than linear time for graphs that lead everywhere', async () => {
    const net = new QuantizedNet();
    net.input('x', 'float32', [1, 2]);
    let at = net.pair('x');
    for (let index = 0; index < 2000; index++)
      at = net.op('Concat', [at, at, at, at], `c${index}`, { axis: attribute.int(0) });
    net.op('MatMul', [at, net.initializer('m', float32([2, 2], [1, 0, 0, 1]))], 'y');
    net.op('Softmax', ['y'], 'z');
    net.output('z', 'float32', null);
    await findingsOf(net);
  });
});
