import { attribute } from 'trtforge/onnx';
import type { Network } from './network.js';

/** Biases and the spread of normalization gains are small beside activations of order one. */
const SMALL = 0.02;

export interface ConvolutionShape {
  readonly from: number;
  readonly to: number;
  /** One number for each spatial axis. */
  readonly kernel: readonly number[];
  readonly stride?: number;
  /** The same on both sides of every spatial axis. */
  readonly padding: number;
  readonly groups?: number;
  /** Variance of the output over that of the input: 2 before a ReLU (He et al. 2015), 1 elsewhere (Glorot and Bengio 2010, by fan-in). */
  readonly gain: number;
}

/** A convolution with bias; the weight is [to, from / groups, ...kernel]. */
export function conv(network: Network, name: string, x: string, shape: ConvolutionShape): string {
  const { from, to, kernel, stride = 1, padding, groups = 1, gain } = shape;
  const fanIn = (from / groups) * kernel.reduce((product, size) => product * size, 1);
  const weight = network.weight(`${name}.weight`, [to, from / groups, ...kernel], {
    deviation: Math.sqrt(gain / fanIn),
  });
  return network.node('Conv', name, [x, weight, biasOf(network, name, to)], {
    kernel_shape: [...kernel],
    strides: kernel.map(() => stride),
    pads: [...kernel, ...kernel].map(() => padding),
    dilations: kernel.map(() => 1),
    group: groups,
  });
}

/** `x` [..., from] times a [from, to] matrix plus bias, as exporters write a linear layer; `gain` as for a convolution. */
export function linear(
  network: Network,
  name: string,
  x: string,
  from: number,
  to: number,
  { gain = 1, bias = true }: { readonly gain?: number; readonly bias?: boolean } = {},
): string {
  const weight = network.weight(`${name}.weight`, [from, to], { deviation: Math.sqrt(gain / from) });
  const product = network.node('MatMul', name, [x, weight]);
  return bias ? network.node('Add', `${name}.bias`, [product, biasOf(network, name, to)]) : product;
}

/** Normalization over the last axis, of `width` values; gains around one; `output` names the result. */
export function layerNorm(network: Network, name: string, x: string, width: number, output?: string): string {
  const gain = network.weight(`${name}.weight`, [width], { mean: 1, deviation: SMALL });
  const inputs = [x, gain, biasOf(network, name, width)];
  return network.node(
    'LayerNormalization',
    name,
    inputs,
    { axis: -1, epsilon: attribute.float(1e-5) },
    output,
  );
}

export function biasOf(network: Network, name: string, width: number): string {
  return network.weight(`${name}.bias`, [width], { deviation: SMALL });
}

/** x·½(1 + erf(x/√2)), in the five nodes that exporters write below opset 20. */
export function gelu(network: Network, name: string, x: string): string {
  const scaled = network.node('Div', `${name}.scale`, [x, network.scalar(Math.SQRT2)]);
  const erf = network.node('Erf', name, [scaled]);
  const shifted = network.node('Add', `${name}.shift`, [erf, network.scalar(1)]);
  const product = network.node('Mul', `${name}.product`, [x, shifted]);
  return network.node('Mul', `${name}.half`, [product, network.scalar(0.5)]);
}

/** x·sigmoid(x). */
export function silu(network: Network, name: string, x: string): string {
  return network.node('Mul', name, [x, network.node('Sigmoid', `${name}.gate`, [x])]);
}

/** [batch, time, heads·size] to [batch, heads, time, size]; with `permutation` [0, 2, 3, 1] to [batch, heads, size, time]. */
export function splitHeads(
  network: Network,
  name: string,
  x: string,
  heads: number,
  size: number,
  permutation: readonly number[] = [0, 2, 1, 3],
): string {
  const split = network.node('Reshape', `${name}.split`, [x, network.integers([0, 0, heads, size])]);
  return network.node('Transpose', `${name}.heads`, [split], { perm: [...permutation] });
}

/** [batch, heads, time, size] back to [batch, time, heads·size]. */
export function mergeHeads(network: Network, name: string, x: string, width: number): string {
  const moved = network.node('Transpose', `${name}.time`, [x], { perm: [0, 2, 1, 3] });
  return network.node('Reshape', `${name}.merge`, [moved, network.integers([0, 0, width])]);
}

/** The size of one axis of `x`, as an int64 tensor of shape [1]. */
export function axisSize(network: Network, name: string, x: string, axis: number): string {
  const shape = network.node('Shape', `${name}.shape`, [x]);
  return network.node('Gather', `${name}.size`, [shape, network.integers([axis])], { axis: 0 });
}

/** `length` of the values 0, 1, 2 … as int64; `length` is an int64 tensor of shape [1]. */
export function counting(network: Network, name: string, length: string): string {
  const end = network.node('Squeeze', `${name}.end`, [length, network.integers([0])]);
  return network.node('Range', name, [network.integer(0), end, network.integer(1)]);
}
