import { axisSize, linear, mergeHeads, splitHeads } from '../layers.js';
import type { Network } from '../network.js';
import type { SharedTensors } from './conformer-layer.js';
import type { ParakeetShape } from './shapes.js';

/** Takes the place of the scores of padding; inside the FP16 range. */
export const MASKED = -10_000;

/** How exporters write "to the end of the axis": the largest int64. */
export const END = 2n ** 63n - 1n;

/** Self-attention over `x` [batch, time, width] whose scores also depend on the distance of two steps (Dai et al. 2019, section 3.3). */
export function relativeAttention(
  network: Network,
  name: string,
  x: string,
  { positions, masks }: SharedTensors,
  { width, heads }: ParakeetShape,
): string {
  const size = width / heads;
  const projected = (which: string, from: string, permutation: readonly number[], bias = true) =>
    splitHeads(
      network,
      `${name}.${which}`,
      linear(network, `${name}.${which}`, from, width, width, { bias }),
      heads,
      size,
      permutation,
    );
  const key = projected('linear_k', x, [0, 2, 3, 1]);
  const value = projected('linear_v', x, [0, 2, 1, 3]);
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
  const byDistance = shifted(
    network,
    `${name}.shift`,
    network.node('MatMul', `${name}.distance`, [biased('v'), position]),
    x,
  );
  const sum = network.node('Add', `${name}.scores`, [byContent, byDistance]);
  const scaled = network.node('Div', `${name}.scaled`, [sum, network.scalar(Math.sqrt(size))]);
  const masked = network.node('Where', `${name}.masked`, [masks.pairs, network.scalar(MASKED), scaled]);
  const softmax = network.node('Softmax', `${name}.softmax`, [masked], { axis: -1 });
  const weights = network.node('Where', `${name}.weights`, [masks.pairs, network.scalar(0), softmax]);
  const mixed = network.node('MatMul', `${name}.mixed`, [weights, value]);
  return linear(network, `${name}.linear_out`, mergeHeads(network, name, mixed, width), width, width);
}

/**
 * Scores by distance [batch, heads, time, keys + time − 1] to scores by key [batch, heads, time, keys]: row i begins `time − 1 − i` further right.
 * One zero column in front and two reshapes do it for all rows (Dai et al. 2019, appendix B). `x` [batch, time, …] gives the time; `keys` is their
 * number, an int64 tensor of shape [1], where it is another than the time.
 */
export function shifted(network: Network, name: string, scores: string, x: string, keys?: string): string {
  const pads = network.integers([0, 0, 0, 1, 0, 0, 0, 0]);
  const padded = network.node('Pad', `${name}.pad`, [scores, pads, network.scalar(0)], { mode: 'constant' });
  const time = axisSize(network, `${name}.time`, x, 1);
  const turned = reshaped(network, `${name}.turn`, padded, [network.integers([0, 0, -1]), time]);
  const last = network.integers([END]);
  const dropped = network.node('Slice', `${name}.drop`, [
    turned,
    network.integers([1]),
    last,
    network.integers([2]),
  ]);
  const back = reshaped(network, `${name}.back`, dropped, [
    network.integers([0, 0]),
    time,
    network.integers([-1]),
  ]);
  return network.node('Slice', `${name}.near`, [
    back,
    network.integers([0]),
    keys ?? time,
    network.integers([3]),
  ]);
}

/** `x` reshaped to the concatenation of int64 pieces (0 keeps a dimension, −1 is what is left). */
function reshaped(network: Network, name: string, x: string, pieces: readonly string[]): string {
  const target = network.node('Concat', `${name}.shape`, [...pieces], { axis: 0 });
  return network.node('Reshape', name, [x, target]);
}
