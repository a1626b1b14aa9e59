import { add, isAtLeast, type MaybeSize, maximum, multiply, type Size } from './size.js';

/** A moment of high use: how many bytes are alive while a node runs. */
export interface Moment {
  readonly bytes: Size;
  /** The node's label. */
  readonly node: string;
}

/** What a graph, a body or one node costs. */
export interface Cost {
  /** FLOPs by operator; undefined where the expression is too long. */
  readonly flops: ReadonlyMap<string, MaybeSize>;
  /** How many nodes are not in it, since something of theirs is not known. */
  readonly uncounted: number;
  /** Bytes of inner tensors at their highest: several moments where the open sizes decide between them, undefined where there are too many. */
  readonly peaks: readonly Moment[] | undefined;
  /** How many tensors have no known size and are not in `peaks`. */
  readonly unmeasured: number;
}

export const noCost: Cost = { flops: new Map(), uncounted: 0, peaks: [], unmeasured: 0 };

const MOST_MOMENTS = 16;

/** The moments, and one more; without those that are certainly lower than another. */
export function withMoment(peaks: Cost['peaks'], moment: Moment): Cost['peaks'] {
  if (peaks === undefined || peaks.some(({ bytes }) => isAtLeast(bytes, moment.bytes) === true)) return peaks;
  const left = peaks.filter(({ bytes }) => isAtLeast(moment.bytes, bytes) !== true);
  return left.length < MOST_MOMENTS ? [...left, moment] : undefined;
}

export function addFlops(sum: Map<string, MaybeSize>, flops: ReadonlyMap<string, MaybeSize>): void {
  for (const [op, count] of flops) sum.set(op, sum.has(op) ? add(sum.get(op), count) : count);
}

/** What a body costs that runs so often. */
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
