import { axisSize } from '../layers.js';
import type { Network } from '../network.js';
import type { ParakeetShape } from './shapes.js';

/**
 * Sinusoids of the relative positions time − 1 down to 1 − time of `x` [batch, time, width], as [1, 2·time − 1, width]
 * (Dai et al. 2019): the middle of a table for the longest sequence.
 */
export function relativePositions(network: Network, x: string, { positions, width }: ParakeetShape): string {
  const table = network.computed('pos_enc.table', [1, 2 * positions - 1, width], (index) => {
    const position = positions - 1 - Math.floor(index / width);
    const column = index % width;
    const angle = position * 10_000 ** (-(column - (column % 2)) / width);
    return column % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
  });
  const time = axisSize(network, 'pos_enc.time', x, 1);
  const start = network.node('Sub', 'pos_enc.start', [network.integers([positions]), time]);
  const end = network.node('Add', 'pos_enc.end', [network.integers([positions - 1]), time]);
  return network.node('Slice', 'pos_enc', [table, start, end, network.integers([1])]);
}
