import type { ModelFacts } from '../model-facts.js';
import type { Shape } from './call.js';
import { totalFlops } from './cost.js';
import type { ModelShapes } from './infer.js';
import { isAtLeast, isNumber, type MaybeSize, sizeText, symbolsOf } from './size.js';

type CostFacts = NonNullable<ModelFacts['cost']>;

/** The cost of one run of a model, as `inspect` reports it. */
export function costFacts({ inputs, gaps, cost, openSizes }: ModelShapes): CostFacts {
  const flops = totalFlops(cost);
  const [peak, ...others] = cost.peaks ?? [];
  const bytes = cost.peaks === undefined || others.length > 0 ? undefined : (peak?.bytes ?? 0);
  const named = new Set([flops, bytes].flatMap((size) => (size === undefined ? [] : symbolsOf(size))));
  const byOp = [...cost.flops].sort(([, a], [, b]) => (isAtLeast(a, b) === true ? -1 : 1));
  return {
    inputs: Object.fromEntries([...inputs].map(([name, shape]) => [name, dimensionsText(shape)])),
    openSizes: [...openSizes],
    otherSizes: [...named].filter((name) => !openSizes.has(name)),
    flops: amountText(flops),
    flopsByOp: Object.fromEntries(byOp.map(([op, count]) => [op, amountText(count)])),
    uncountedNodes: cost.uncounted,
    peakActivationBytes: amountText(bytes),
    peakNode: bytes === undefined ? null : (peak?.node ?? null),
    unmeasuredTensors: cost.unmeasured,
    gaps: [...gaps],
  };
}

/** A number as it is, an expression in the syntax of Python. */
export const amountText = (size: MaybeSize): number | string | null =>
  size === undefined ? null : isNumber(size) ? size : sizeText(size);

export const dimensionsText = (shape: Shape | undefined): (number | string | null)[] | null =>
  shape?.map(amountText) ?? null;
