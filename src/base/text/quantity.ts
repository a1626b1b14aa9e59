import { TrtforgeError } from '../../errors.js';

/** Numbers as people read them; the views share these so that the page, the Markdown and the terminal agree. */

/** Bytes in binary units: 102400000 is "97.7 MiB". */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
  let amount = bytes;
  let unit = 0;
  // 1023.95 would print as 1024.0, so it already belongs to the next unit.
  while (amount >= 1023.95 && unit < units.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? amount : amount.toFixed(amount < 9.995 ? 2 : 1)} ${units[unit]}`;
}

/** A duration in milliseconds: "840 µs", "42 ms", "4.38 s", "2 min 05 s". */
export function formatMs(ms: number): string {
  if (ms < 0.9995) return `${Math.round(ms * 1000)} µs`;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** A duration as an axis prints it: "0", "500 ms", "2 s", "2.5 s". */
export const formatMsTick = (ms: number): string =>
  ms === 0
    ? '0'
    : formatMs(ms).replace(/\.(\d*?)0+(?= )/, (_, digits: string) => (digits === '' ? '' : `.${digits}`));

/** Whole numbers with thin groups: 25557032 is "25 557 032" (no-break spaces). */
export const formatCount = (count: number): string =>
  String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');

/** A statistic with three significant digits: "0.0123", "4.56e-7", "1230". NaN and infinities by name. */
export function formatStatistic(number: number | null): string {
  if (number === null) return '–';
  if (number === 0 || !Number.isFinite(number)) return String(number);
  const magnitude = Math.abs(number);
  if (magnitude >= 1e-3 && magnitude < 1e5) return String(Number(number.toPrecision(3)));
  return number.toExponential(2).replace('e+', 'e');
}

/** A share of one: 0.9712 is "97.1 %". A share that is not whole never rounds to 0 or 100. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return '<\u202f0.1\u00a0%';
  if (percent < 100 && percent > 99.9) return '>\u202f99.9\u00a0%';
  return `${Number(percent.toFixed(1))}\u00a0%`;
}

/** "1 node", "3 nodes". */
export const plural = (count: number, noun: string): string =>
  `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;

/** The superscript spelling of a power of ten, as axes print it: 10⁻³. */
export const powerOfTen = (exponent: number): string =>
  `10${[...String(exponent)].map((character) => superscripts[character] ?? '').join('')}`;

const superscripts: Readonly<Record<string, string>> = {
  '-': '⁻',
  '0': '⁰',
  '1': '¹',
  '2': '²',
  '3': '³',
  '4': '⁴',
  '5': '⁵',
  '6': '⁶',
  '7': '⁷',
  '8': '⁸',
  '9': '⁹',
};

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
 * A bare number is MiB, as trtexec means it. Any other suffix is rejected instead of guessed.
 */
export function parseSize(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:ib?|b)?|(b))?$/i.exec(text.trim());
  const unit = SIZE_UNITS[(match?.[2] ?? match?.[3] ?? '').toLowerCase()];
  const bytes = match === null || unit === undefined ? Number.NaN : Math.round(Number(match[1]) * unit);
  if (!Number.isSafeInteger(bytes) || bytes <= 0) {
    throw new TrtforgeError('TF_SIZE_INVALID', `"${text}" is not a size.`);
  }
  return bytes;
}

/** Which numbers are accepted, both bounds included. */
export interface NumberRange {
  readonly whole: boolean;
  readonly from: number;
  readonly to: number;
}

export const isWithin = ({ whole, from, to }: NumberRange, value: unknown): value is number =>
  (whole ? Number.isSafeInteger(value) : Number.isFinite(value)) &&
  Number(value) >= from &&
  Number(value) <= to;

/** `a whole number from 1 to 256`. */
export function rangeText({ whole, from, to }: NumberRange): string {
  const upper = to === Number.MAX_SAFE_INTEGER || to === Number.MAX_VALUE ? '' : ` to ${to}`;
  return `${whole ? 'a whole number' : 'a number'}${from === -Number.MAX_VALUE ? '' : ` from ${from}${upper}`}`;
}

/** A number as people write it: `1e-3`. */
export function decimalOf(text: string): number | undefined {
  const value = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? value : undefined;
}
