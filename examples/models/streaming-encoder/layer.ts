import { conv, layerNorm, silu } from '../layers.js';
import type { Network } from '../network.js';
import { feedForward } from '../parakeet/conformer-layer.js';
import { streamAttention } from './attention.js';
import { type CacheIndices, rowsAt } from './cache.js';
import { DROP, type StreamingShape, timeContext } from './shapes.js';

/** What a layer is given besides its input: its own part of the state, and what all layers share. */
export interface LayerContext {
  /** [batch, cache, width], filled from the left. */
  readonly channelCache: string;
  /** [batch, width, timeContext] */
  readonly timeCache: string;
  readonly positions: string;
  readonly cache: CacheIndices;
}

/** A layer's output [batch, steps, width] and its part of the next state, of the shapes it was given. */
export interface LayerResult {
  readonly x: string;
  readonly channelCache: string;
  readonly timeCache: string;
}

/** A conformer layer (Gulati et al. 2020) over a chunk: attention sees the steps cached, the convolution the last ones before the chunk. */
export function streamingLayer(
  network: Network,
  name: string,
  x: string,
  { channelCache, timeCache, positions, cache }: LayerContext,
  shape: StreamingShape,
): LayerResult {
  const { width } = shape;
  const added = (which: string, part: string) => network.node('Add', `${name}.${which}.add`, [x, part]);
  const normed = (which: string) => layerNorm(network, `${name}.norm_${which}`, x, width);
  x = added('feed_forward1', feedForward(network, `${name}.feed_forward1`, normed('feed_forward1'), width));

  const chunk = normed('self_attn');
  const before = rowsAt(network, `${name}.cache`, channelCache, cache.toRight);
  const context = network.node('Concat', `${name}.context`, [before, chunk], { axis: 1 });
  const nextRows = rowsAt(network, `${name}.cache.next`, context, cache.next);
  const channelNext = network.node('Mul', `${name}.cache.kept`, [nextRows, cache.kept]);
  x = added(
    'self_attn',
    streamAttention(network, `${name}.self_attn`, { x: chunk, context, positions }, cache, shape),
  );

  const { mixed, next } = convolution(network, `${name}.conv`, normed('conv'), timeCache, cache, shape);
  x = added('conv', mixed);
  x = added('feed_forward2', feedForward(network, `${name}.feed_forward2`, normed('feed_forward2'), width));
  return { x: normed('out'), channelCache: channelNext, timeCache: next };
}

/** Pointwise and gated, depthwise over the cached and the chunk's steps, pointwise; the next cache ends where the steps that are kept end. */
function convolution(
  network: Network,
  name: string,
  x: string,
  timeCache: string,
  cache: CacheIndices,
  shape: StreamingShape,
): { readonly mixed: string; readonly next: string } {
  const { width, convolutionKernel } = shape;
  const context = timeContext(shape);
  const point = { kernel: [1], padding: 0 } as const;
  const channelsFirst = network.node('Transpose', `${name}.channels_first`, [x], { perm: [0, 2, 1] });
  const wide = { from: width, to: 2 * width, ...point, gain: 1 };
  const doubled = conv(network, `${name}.pointwise_conv1`, channelsFirst, wide);
  const halves = { axis: 1, num_outputs: 2 };
  const [values, gates] = network.nodes('Split', `${name}.glu.split`, [doubled], halves, 2);
  const open = network.node('Sigmoid', `${name}.glu.gate`, [gates!]);
  const gated = network.node('Mul', `${name}.glu`, [values!, open]);
  const kept = network.node('Where', `${name}.masked`, [cache.padding, network.scalar(0), gated]);
  const joined = network.node('Concat', `${name}.context`, [timeCache, kept], { axis: 2 });

  const pads = network.integers([0, 0, 0, 0, 0, context]);
  const padded = network.node('Pad', `${name}.ahead`, [joined, pads, network.scalar(0)], {
    mode: 'constant',
  });
  const depthwise = {
    from: width,
    to: width,
    kernel: [convolutionKernel],
    padding: 0,
    groups: width,
    gain: 2,
  };
  const active = silu(network, `${name}.silu`, conv(network, `${name}.depthwise_conv`, padded, depthwise));
  const narrow = conv(network, `${name}.pointwise_conv2`, active, {
    from: width,
    to: width,
    ...point,
    gain: 2,
  });

  const start = network.node('Sub', `${name}.next.start`, [cache.steps, network.integers([DROP])]);
  const end = network.node('Add', `${name}.next.end`, [start, network.integers([context])]);
  return {
    mixed: network.node('Transpose', `${name}.time_first`, [narrow], { perm: [0, 2, 1] }),
    next: network.node('Slice', `${name}.next`, [joined, start, end, network.integers([2])]),
  };
}
