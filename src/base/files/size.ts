import { TrtforgeError } from '../../errors.js';

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1 << 20,
  b: 1,
  k: 2 ** 10,
  m: 2 ** 20,
  g: 2 ** 30,
  t: 2 ** 40,
};

/**
 * Reads a size into bytes: `4G`, `4GiB`, `4096M`, `512k`, `1048576B`; base 2 throughout, decimals allowed.
 * A bare number is MiB, as trtexec means it. Any other suffix is refused instead of guessed.
 */
export function parseSize(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:ib?|b)?|(b))?$/i.exec(text.trim());
  const unit = SIZE_UNITS[(match?.[2] ?? match?.[3] ?? '').toLowerCase()];
  const bytes = match === null || unit === undefined ? Number.NaN : Math.round(Number(match[1]) * unit);
  if (!Number.isSafeInteger(bytes) || bytes <= 0) {
    throw new TrtforgeError('TF_SIZE_INVALID', `«${text}» is not a size.`);
  }
  return bytes;
}
