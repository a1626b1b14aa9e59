import { errorShare } from '../verify/error-map.js';
import type { ComparedTensor } from './result.js';

/** How much of a tensor is error: the RMS of the error over that of the reference; infinite where values are not finite on one side only, 0 where nothing was compared. */
export const lossOf = ({ error, nonFinite }: Pick<ComparedTensor, 'error' | 'nonFinite'>): number =>
  errorShare(error?.sqnr, nonFinite.mismatching);
