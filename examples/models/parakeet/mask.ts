import { axisSize, counting } from '../layers.js';
import type { Network } from '../network.js';

export interface PaddingMasks {
  /** bool [batch, 1, time]: true where a step is padding. */
  readonly steps: string;
  /** bool [batch, 1, time, time]: true where either of two steps is padding. */
  readonly pairs: string;
}

/** bool [batch, time]: true for the steps of `x` [batch, time along `axis`, …] before `length` (float32 [batch]). */
export function validSteps(network: Network, name: string, x: string, axis: number, length: string): string {
  const steps = counting(network, `${name}.steps`, axisSize(network, name, x, axis));
  const positions = network.cast(`${name}.float`, steps, 'float32');
  const limit = network.node('Unsqueeze', `${name}.limit`, [length, network.integers([1])]);
  return network.node('Less', name, [positions, limit]);
}

/** The masks of `x` [batch, time, width] that every layer uses. */
export function padding(network: Network, x: string, length: string): PaddingMasks {
  const valid = validSteps(network, 'mask', x, 1, length);
  const rows = network.node('Unsqueeze', 'mask.rows', [valid, network.integers([1])]);
  const columns = network.node('Unsqueeze', 'mask.columns', [valid, network.integers([2])]);
  const both = network.node('And', 'mask.both', [rows, columns]);
  const pairs = network.node('Not', 'mask.pairs', [both]);
  return {
    steps: network.node('Not', 'mask.padding', [rows]),
    pairs: network.node('Unsqueeze', 'mask.heads', [pairs, network.integers([1])]),
  };
}
