import type { Network } from '../network.js';
import { END } from '../parakeet/relative-attention.js';
import { subsampling } from '../parakeet/subsampling.js';
import { streamPositions } from './attention.js';
import { cacheIndices } from './cache.js';
import { type LayerResult, streamingLayer } from './layer.js';
import { DROP_EXTRA, RESULT_STEPS, type StreamingShape, timeContext } from './shapes.js';

/**
 * A cache-aware FastConformer encoder (Rekesh et al. 2023, Noroozi et al. 2024), one chunk of a stream at a time. Beside `audio_signal`
 * [batch, mels, time] and `length` [batch] it takes its state and gives the next one: `cache_last_channel` [batch, layers, cache, width], what attention
 * looks back at, filled from the left; `cache_last_time` [batch, layers, width, context], what the convolutions do; `cache_last_channel_len` [batch].
 * Chunks are of 32 frames or more, all of a batch without padding.
 */
export function streamingEncoder(network: Network, shape: StreamingShape): void {
  const { mels, layers, width, cacheSize } = shape;
  const channelShape = ['batch', layers, cacheSize, width];
  const timeShape = ['batch', layers, width, timeContext(shape)];
  const audio = network.input('audio_signal', 'float32', ['batch', mels, 'time']);
  const length = network.input('length', 'int64', ['batch']);
  const channelCaches = network.input('cache_last_channel', 'float32', channelShape);
  const timeCaches = network.input('cache_last_time', 'float32', timeShape);
  const cacheLength = network.input('cache_last_channel_len', 'int64', ['batch']);

  const sub = subsampling(network, audio, length, shape);
  let x = network.node('Slice', 'pre_encode.drop_extra', [
    sub.x,
    network.integers([DROP_EXTRA]),
    network.integers([END]),
    network.integers([1]),
  ]);
  const chunkLength = network.node('Sub', 'chunk_length', [
    network.cast('pre_encode.steps', sub.length, 'int64'),
    network.integers([DROP_EXTRA]),
  ]);
  const cache = cacheIndices(network, x, chunkLength, cacheLength, shape);
  const positions = streamPositions(network, cache, shape);
  const results: LayerResult[] = [];
  for (let layer = 0; layer < layers; layer++) {
    const own = (name: string, all: string) =>
      network.node('Gather', `layers.${layer}.${name}`, [all, network.integer(layer)], { axis: 1 });
    const state = {
      channelCache: own('channel_cache', channelCaches),
      timeCache: own('time_cache', timeCaches),
    };
    const result = streamingLayer(network, `layers.${layer}`, x, { ...state, positions, cache }, shape);
    results.push(result);
    x = result.x;
  }

  const valid = network.node('Slice', 'valid', [
    x,
    network.integers([0]),
    network.integers([RESULT_STEPS]),
    network.integers([1]),
  ]);
  network.node('Transpose', 'output', [valid], { perm: [0, 2, 1] }, 'encoder_output');
  network.node('Min', 'lengths', [chunkLength, network.integers([RESULT_STEPS])], {}, 'encoded_lengths');
  stacked(
    network,
    'cache_last_channel_out',
    results.map((result) => result.channelCache),
  );
  stacked(
    network,
    'cache_last_time_out',
    results.map((result) => result.timeCache),
  );
  network.node('Identity', 'cache_length', [cache.nextLength], {}, 'cache_last_channel_len_out');
  network.output('encoder_output', 'float32', ['batch', width, RESULT_STEPS]);
  network.output('encoded_lengths', 'int64', ['batch']);
  network.output('cache_last_channel_out', 'float32', channelShape);
  network.output('cache_last_time_out', 'float32', timeShape);
  network.output('cache_last_channel_len_out', 'int64', ['batch']);
}

/** One state tensor of all layers, along axis 1. */
function stacked(network: Network, output: string, parts: readonly string[]): void {
  const unsqueezed = parts.map((part, layer) =>
    network.node('Unsqueeze', `${output}.layer${layer}`, [part, network.integers([1])]),
  );
  network.node('Concat', `${output}.layers`, unsqueezed, { axis: 1 }, output);
}
