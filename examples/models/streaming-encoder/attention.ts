import { linear, mergeHeads, splitHeads } from '../layers.js';
import type { Network } from '../network.js';
import { MASKED, shifted } from '../parakeet/relative-attention.js';
import type { CacheIndices } from './cache.js';
import type { StreamingShape } from './shapes.js';

/**
 * Sinusoids of the distances keys − 1 down to 1 − steps, as [1, keys + steps − 1, width] (Dai et al. 2019): the middle of a table for the longest chunk.
 */
export function streamPositions(
  network: Network,
  { steps, keys }: CacheIndices,
  { cacheSize, width }: StreamingShape,
): string {
  const longest = cacheSize + LONGEST_CHUNK;
  const table = network.computed('pos_enc.table', [1, 2 * longest - 1, width], (index) => {
    const distance = longest - 1 - Math.floor(index / width);
    const column = index % width;
    const angle = distance * 10_000 ** (-(column - (column % 2)) / width);
    return column % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
  });
  const start = network.node('Sub', 'pos_enc.start', [network.integers([longest]), keys]);
  const end = network.node('Add', 'pos_enc.end', [network.integers([longest - 1]), steps]);
  return network.node('Slice', 'pos_enc', [table, start, end, network.integers([1])]);
}

/** Steps of a chunk that the table of positions serves. */
const LONGEST_CHUNK = 64;

/** Attention of a chunk `x` [batch, steps, width] over cache and chunk `context` [batch, keys, width], by content and by distance. */
export function streamAttention(
  network: Network,
  name: string,
  { x, context, positions }: { readonly x: string; readonly context: string; readonly positions: string },
  cache: CacheIndices,
  { width, heads }: StreamingShape,
): string {
  const size = width / heads;
  const projected = (which: string, from: string, permutation: readonly number[], bias = true) => {
    const line = linear(network, `${name}.${which}`, from, width, width, { bias });
    return splitHeads(network, `${name}.${which}`, line, heads, size, permutation);
  };
  const key = projected('linear_k', context, [0, 2, 3, 1]);
  const value = projected('linear_v', context, [0, 2, 1, 3]);
  const position = projected('linear_pos', positions, [0, 2, 3, 1], false);
  const query = network.node('Reshape', `${name}.query`, [
    linear(network, `${name}.linear_q`, x, width, width),
    network.integers([0, 0, heads, size]),
  ]);
  const biased = (which: string) => {
    const bias = network.weight(`${name}.pos_bias_${which}`, [heads, size], { deviation: 0.02 });
    const sum = network.node('Add', `${name}.query_${which}`, [query, bias]);
    return network.node('Transpose', `${name}.query_${which}.heads`, [sum], { perm: [0, 2, 1, 3] });
  };

  const byContent = network.node('MatMul', `${name}.content`, [biased('u'), key]);
  const distances = network.node('MatMul', `${name}.distance`, [biased('v'), position]);
  const byDistance = shifted(network, `${name}.shift`, distances, x, cache.keys);
  const sum = network.node('Add', `${name}.scores`, [byContent, byDistance]);
  const scaled = network.node('Div', `${name}.scaled`, [sum, network.scalar(Math.sqrt(size))]);
  const masked = network.node('Where', `${name}.masked`, [cache.hidden, network.scalar(MASKED), scaled]);
  const weights = network.node('Softmax', `${name}.softmax`, [masked], { axis: -1 });
  const mixed = network.node('MatMul', `${name}.mixed`, [weights, value]);
  return linear(network, `${name}.linear_out`, mergeHeads(network, name, mixed, width), width, width);
}
