import type { Flow, Value } from '../flow.js';

/** Operators through which TensorRT moves a QuantizeLinear: their results hold the values of their inputs. */
const copies: ReadonlySet<string> = new Set(
  'Concat MaxPool Reshape Transpose Flatten Squeeze Unsqueeze Slice Split Identity Dropout'.split(' '),
);

/**
 * The magnitudes of activations with pairs, where all that are copies of each other have the largest among them. With two scales a QuantizeLinear cannot move
 * through a Concat or a pooling, and codes are computed again in between.
 */
export function scaleGroups(flow: Flow, magnitudes: ReadonlyMap<Value, number>): ReadonlyMap<Value, number> {
  const leaders = new Map([...magnitudes.keys()].map((value) => [value, value]));
  const leader = (value: Value): Value => {
    const next = leaders.get(value) ?? value;
    return next === value ? value : leader(next);
  };
  for (const { node, inputs, outputs } of flow.operations) {
    if (!copies.has(node.opType)) continue;
    const paired = [...inputs, ...outputs].flatMap((value) =>
      value !== undefined && leaders.has(value) ? [value] : [],
    );
    const [first, ...others] = paired;
    if (first !== undefined) for (const value of others) leaders.set(leader(value), leader(first));
  }
  const largest = new Map<Value, number>();
  for (const [value, magnitude] of magnitudes)
    largest.set(leader(value), Math.max(largest.get(leader(value)) ?? 0, magnitude));
  return new Map([...magnitudes.keys()].map((value) => [value, largest.get(leader(value))!]));
}
