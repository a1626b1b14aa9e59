import { TrtforgeError } from '../../errors.js';

/** Whether an engine is meant by a part of its readable name or the start (six digits and more) of its identity or digest. */
export const isCalled = (wanted: string, digest: string, name: string): boolean =>
  name.includes(wanted) || (wanted.length >= 6 && digest.startsWith(wanted));

export const nothingCalled = (place: string, name: string): TrtforgeError =>
  new TrtforgeError('TF_USAGE', `No engine of ${place} has the name "${name}".`, {
    remedy:
      'trtforge cache ls shows names and identities; part of a name or the start of an identity will do.',
  });
