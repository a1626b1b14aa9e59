import { usedNames } from '../graph.js';
import type { NodeProto } from '../onnx_pb.js';
import { type Cost, withMoment } from './cost.js';
import { add, type MaybeSize, subtract } from './size.js';

/** A node in the order of execution. */
export interface Step {
  readonly node: NodeProto;
  readonly label: string;
  /** What its bodies, or the function that it calls, keep alive meanwhile. */
  readonly inner: Cost['peaks'];
}

/**
 * The highest sums of the tensors that are alive at once. A tensor is alive from the node that makes it to the last that uses it. `bytes` has
 * those that count, which are neither weights nor inputs and outputs, which the caller owns.
 */
export function peaksOf(steps: readonly Step[], bytes: ReadonlyMap<string, MaybeSize>): Cost['peaks'] {
  const lastUse = new Map<string, number>();
  for (const [index, { node }] of steps.entries())
    for (const name of [...node.output, ...usedNames(node)]) lastUse.set(name, index);
  const ending = steps.map((): string[] => []);
  for (const [name, index] of lastUse) ending[index]?.push(name);
  let peaks: Cost['peaks'] = [];
  let alive: MaybeSize = 0;
  const made = new Set<string>();
  for (const [index, { node, label, inner }] of steps.entries()) {
    for (const name of node.output) {
      const size = made.has(name) ? undefined : bytes.get(name);
      if (size === undefined) continue;
      made.add(name);
      alive = add(alive, size);
    }
    if (alive === undefined || inner === undefined) return undefined;
    const moments: NonNullable<Cost['peaks']> = inner.length === 0 ? [{ bytes: 0, node: label }] : inner;
    for (const moment of moments) {
      const total = add(alive, moment.bytes);
      if (total === undefined) return undefined;
      peaks = withMoment(peaks, { bytes: total, node: moment.node });
      if (peaks === undefined) return undefined;
    }
    for (const name of ending[index] ?? []) if (made.has(name)) alive = subtract(alive, bytes.get(name));
  }
  return peaks;
}
