import { TrtforgeError } from '../../errors.js';
import { checkRequest } from './check-request.js';
import type { AgainstRequest, BenchRequest } from './request.js';

/**
 * Refuses a comparison that gives no ratio of engines, before the first of them is opened: the second is opened when the GPU is in use already. Throws
 * TF_USAGE and what `checkRequest` throws.
 */
export function checkAgainst({ candidate, reference, rounds, failAbove }: AgainstRequest): void {
  if (!(Number.isSafeInteger(rounds) && rounds >= 2))
    throw new TrtforgeError('TF_USAGE', `${rounds} rounds give no interval: a comparison takes two or more.`);
  if (failAbove !== undefined && !(Number.isFinite(failAbove) && failAbove > 0))
    throw new TrtforgeError('TF_USAGE', `failAbove is ${failAbove}, and must be a multiple above 0.`);
  for (const side of [candidate, reference]) {
    checkRequest(side);
    refuseViews(side);
  }
  if (candidate.device === reference.device) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${candidate.engine} is to be measured on GPU ${candidate.device} and ${reference.engine} on GPU ${reference.device}: a ratio across two GPUs says nothing of the engines.`,
    { remedy: 'Give both the same device; to compare GPUs, measure one engine on each.' },
  );
}

/** What a measurement of one engine can show, and a comparison has no place for. */
function refuseViews({ layers, samples, shapes }: BenchRequest): void {
  const without = [...(layers ? ['--layers'] : []), ...(samples === undefined ? [] : ['--samples'])];
  const isList = shapes.kind === 'batches' && shapes.batches.length > 1;
  if (without.length === 0 && !isList) return;
  throw new TrtforgeError(
    'TF_USAGE',
    isList
      ? 'A comparison of two engines measures one batch; a list of them is given.'
      : `A comparison of two engines cannot honour ${without.join(' and ')}.`,
    { remedy: 'Leave it out here and measure each engine with it.' },
  );
}
