import { conv, layerNorm, linear, silu } from '../layers.js';
import type { Network } from '../network.js';
import type { PaddingMasks } from './mask.js';
import { relativeAttention } from './relative-attention.js';
import type { ParakeetShape } from './shapes.js';

/** What every layer of one encoder shares. */
export interface SharedTensors {
  /** float32 [1, 2·time − 1, width] */
  readonly positions: string;
  readonly masks: PaddingMasks;
}

/** Half a feed-forward, self-attention, convolution, the other half, a norm: each added to its input `x` [batch, time, width] (Gulati et al. 2020). */
export function conformerLayer(
  network: Network,
  name: string,
  x: string,
  shared: SharedTensors,
  shape: ParakeetShape,
): string {
  const { width } = shape;
  const added = (which: string, part: string) => network.node('Add', `${name}.${which}.add`, [x, part]);
  const normed = (which: string) => layerNorm(network, `${name}.norm_${which}`, x, width);
  x = added('feed_forward1', feedForward(network, `${name}.feed_forward1`, normed('feed_forward1'), width));
  x = added('self_attn', relativeAttention(network, `${name}.self_attn`, normed('self_attn'), shared, shape));
  x = added('conv', convolution(network, `${name}.conv`, normed('conv'), shared.masks, shape));
  x = added('feed_forward2', feedForward(network, `${name}.feed_forward2`, normed('feed_forward2'), width));
  return normed('out');
}

/** Half of a feed-forward block of `x` [..., width], four times as wide inside. */
export function feedForward(network: Network, name: string, x: string, width: number): string {
  const wide = silu(network, `${name}.silu`, linear(network, `${name}.linear1`, x, width, 4 * width));
  const narrow = linear(network, `${name}.linear2`, wide, 4 * width, width, { gain: 2 });
  return network.node('Mul', `${name}.half`, [narrow, network.scalar(0.5)]);
}

/** Pointwise and gated, depthwise along time with batch normalization folded in, pointwise. */
function convolution(
  network: Network,
  name: string,
  x: string,
  masks: PaddingMasks,
  { width, convolutionKernel }: ParakeetShape,
): string {
  const point = { kernel: [1], padding: 0 } as const;
  const channelsFirst = network.node('Transpose', `${name}.channels_first`, [x], { perm: [0, 2, 1] });
  const doubled = conv(network, `${name}.pointwise_conv1`, channelsFirst, {
    from: width,
    to: 2 * width,
    ...point,
    gain: 1,
  });
  const [values, gates] = network.nodes(
    'Split',
    `${name}.glu.split`,
    [doubled],
    { axis: 1, num_outputs: 2 },
    2,
  );
  const open = network.node('Sigmoid', `${name}.glu.gate`, [gates!]);
  const gated = network.node('Mul', `${name}.glu`, [values!, open]);
  const kept = network.node('Where', `${name}.masked`, [masks.steps, network.scalar(0), gated]);
  const mixed = conv(network, `${name}.depthwise_conv`, kept, {
    from: width,
    to: width,
    kernel: [convolutionKernel],
    padding: (convolutionKernel - 1) / 2,
    groups: width,
    gain: 2,
  });
  const active = silu(network, `${name}.silu`, mixed);
  const narrow = conv(network, `${name}.pointwise_conv2`, active, {
    from: width,
    to: width,
    ...point,
    gain: 2,
  });
  return network.node('Transpose', `${name}.time_first`, [narrow], { perm: [0, 2, 1] });
}
