import { axisSize, counting } from '../layers.js';
import type { Network } from '../network.js';
import { DROP, type StreamingShape } from './shapes.js';

/** What every layer of one encoder shares; int64 where nothing else is said. */
export interface CacheIndices {
  /** [1]: steps of the chunk, and of cache and chunk together. */
  readonly steps: string;
  readonly keys: string;
  /** [batch, cache, 1]: moves a cache that is filled from the left so that its last step stands before the chunk's first. */
  readonly toRight: string;
  /** [batch, cache, 1]: the next cache, from that cache and the chunk one after the other; what does not fit falls out in front. */
  readonly next: string;
  /** float32 [batch, cache, 1]: 1 where the next cache holds a step. */
  readonly kept: string;
  /** bool [batch, 1, 1, keys]: true for keys that hold nothing: the empty part of the cache, padding of the chunk. */
  readonly hidden: string;
  /** bool [batch, 1, steps]: true for padding of the chunk. */
  readonly padding: string;
  /** [batch]: steps in the next cache: min(cache, now + steps of the chunk − DROP). */
  readonly nextLength: string;
}

/**
 * Where cached steps stand. A cache of `cacheSize` positions is filled from the left; `cacheLength` [batch] says how many count. `chunkLength` [batch] is
 * the chunk's steps without padding; `x` [batch, steps, width].
 */
export function cacheIndices(
  network: Network,
  x: string,
  chunkLength: string,
  cacheLength: string,
  { cacheSize }: StreamingShape,
): CacheIndices {
  const size = network.integers([cacheSize]);
  const last = network.integers([1]);
  const op = (type: string, name: string, ...inputs: string[]) => network.node(type, `cache.${name}`, inputs);
  const steps = axisSize(network, 'cache.steps', x, 1);
  const keys = op('Add', 'keys', steps, size);

  const length = op('Unsqueeze', 'length', cacheLength, last);
  const chunk = op('Unsqueeze', 'chunk_length', chunkLength, last);
  const empty = op('Sub', 'empty', size, length);
  const places = counting(network, 'cache.places', size);
  const moved = op('Max', 'moved', op('Sub', 'moved.signed', places, empty), network.integers([0]));

  const added = op(
    'Max',
    'added',
    op('Sub', 'added.signed', chunk, network.integers([DROP])),
    network.integers([0]),
  );
  const total = op('Add', 'total', length, added);
  const nextLength = op('Min', 'next_length', total, size);
  const fallen = op('Sub', 'fallen', total, nextLength);
  const from = op('Add', 'next.from', op('Add', 'next.moved', places, fallen), empty);
  const source = op('Min', 'next.within', from, op('Sub', 'next.most', keys, last));

  const keyPlaces = counting(network, 'cache.key_places', keys);
  const before = op('Less', 'hidden.before', keyPlaces, empty);
  const beyond = op('GreaterOrEqual', 'hidden.beyond', keyPlaces, op('Add', 'hidden.end', chunk, size));
  const chunkPlaces = counting(network, 'cache.chunk_places', steps);
  const axes = network.integers([2]);
  return {
    steps,
    keys,
    toRight: op('Unsqueeze', 'to_right', moved, axes),
    next: op('Unsqueeze', 'next', source, axes),
    kept: op(
      'Unsqueeze',
      'kept',
      network.cast('cache.kept.float', op('Less', 'kept.places', places, nextLength), 'float32'),
      axes,
    ),
    hidden: op('Unsqueeze', 'hidden', op('Or', 'hidden.keys', before, beyond), network.integers([1, 2])),
    padding: op('Unsqueeze', 'padding', op('GreaterOrEqual', 'padding.steps', chunkPlaces, chunk), last),
    nextLength: op('Squeeze', 'next_length.batch', nextLength, last),
  };
}

/** Rows of `x` [batch, rows, width] by `indices` [batch, places, 1]: [batch, places, width]. */
export const rowsAt = (network: Network, name: string, x: string, indices: string): string =>
  network.node('GatherND', name, [x, indices], { batch_dims: 1 });
