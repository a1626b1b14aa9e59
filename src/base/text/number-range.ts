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
