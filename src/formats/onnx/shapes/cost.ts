import { usedNames } from '../graph.js';
import type { NodeProto } from '../onnx_pb.js';
import { add, isAtLeast, type MaybeSize, maximum, multiply, type Size, subtract } from './size.js';

/** A moment of high use: how many bytes are alive while a node runs. */
export interface Moment {
  readonly bytes: Size;
  /** The node's label. */
  readonly node: string;
}

/** The cost of a graph, a body or one node. */
export interface Cost {
  /** FLOPs by operator; undefined where the expression is too long. */
  readonly flops: ReadonlyMap<string, MaybeSize>;
  /** Number of nodes that are not in it, since something of theirs is not known. */
  readonly uncounted: number;
  /** Bytes of inner tensors at their highest: several moments where the open sizes decide between them, undefined where there are too many. */
  readonly peaks: readonly Moment[] | undefined;
  /** Number of tensors that have no known size and are not in `peaks`. */
  readonly unmeasured: number;
}

export const noCost: Cost = { flops: new Map(), uncounted: 0, peaks: [], unmeasured: 0 };

const MOST_MOMENTS = 16;

/** The moments, and one more; without those that are certainly lower than another. */
function withMoment(peaks: Cost['peaks'], moment: Moment): Cost['peaks'] {
  if (peaks === undefined || peaks.some(({ bytes }) => isAtLeast(bytes, moment.bytes) === true)) return peaks;
  const left = peaks.filter(({ bytes }) => isAtLeast(moment.bytes, bytes) !== true);
  return left.length < MOST_MOMENTS ? [...left, moment] : undefined;
}

export function addFlops(sum: Map<string, MaybeSize>, flops: ReadonlyMap<string, MaybeSize>): void {
  for (const [op, count] of flops) sum.set(op, sum.has(op) ? add(sum.get(op), count) : count);
}

/** The cost of a body that runs `times` times. */
export const repeated = (cost: Cost, times: MaybeSize): Cost => ({
  ...cost,
  flops: new Map([...cost.flops].map(([op, count]) => [op, multiply(count, times)])),
});

export const totalFlops = ({ flops }: Cost): MaybeSize => add(...flops.values());

/** Of two branches the one that costs more FLOPs, where that is certain; memory is the higher of both. */
export function costlier(a: Cost, b: Cost): Cost {
  const [one, other] = [totalFlops(a), totalFlops(b)];
  const order = isAtLeast(one, other);
  return {
    flops: order === undefined ? new Map([['If', maximum(one, other)]]) : order ? a.flops : b.flops,
    uncounted: a.uncounted + b.uncounted,
    peaks: b.peaks?.reduce(withMoment, a.peaks),
    unmeasured: a.unmeasured + b.unmeasured,
  };
}

/** A node in the order of execution. */
export interface Step {
  readonly node: NodeProto;
  readonly label: string;
  /** Bytes that its bodies, or the function that it calls, keep alive meanwhile. */
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
