import type { ComparedTensor } from './result.js';

/** How much of a tensor is error: the RMS of the error over that of the reference; infinite where values are not finite on one side only, 0 where nothing was compared. */
export function lossOf({ error, nonFinite }: Pick<ComparedTensor, 'error' | 'nonFinite'>): number {
  if (nonFinite.mismatching > 0) return Number.POSITIVE_INFINITY;
  const loss = 10 ** (-Number(error?.sqnr) / 20);
  return Number.isNaN(loss) ? 0 : loss;
}
