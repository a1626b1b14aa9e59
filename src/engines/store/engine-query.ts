import { TrtforgeError } from '../../errors.js';

/**
 * Whether an engine is meant by a part of its readable name, in which `*` stands for anything (`resnet*fp16`) and the model's digest may be left out
 * (`resnet50_fp16`), or by the start (six digits and more) of its identity or digest.
 */
export const isCalled = (wanted: string, digest: string, name: string): boolean =>
  [name, name.replace(/_[\da-f]{8}(?=_)/, '')].some((each) => hasParts(each, wanted.split('*'))) ||
  (wanted.length >= 6 && digest.startsWith(wanted));

/** Whether a text has the parts, one after the other. */
function hasParts(text: string, parts: readonly string[]): boolean {
  let from = 0;
  return parts.every((part) => {
    const at = text.indexOf(part, from);
    from = at + part.length;
    return at >= 0;
  });
}

export const nothingCalled = (place: string, name: string): TrtforgeError =>
  new TrtforgeError('TF_USAGE', `No engine of ${place} has the name "${name}".`, {
    remedy:
      'trtforge cache ls shows names and identities; part of a name or the start of an identity will do.',
  });
