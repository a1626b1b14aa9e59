import { TrtforgeError } from '../../errors.js';

/** Which numbers are accepted, both bounds included. */
export interface NumberRange {
  readonly whole: boolean;
  readonly from: number;
  readonly to: number;
}

export const whole = (from: number, to = Number.MAX_SAFE_INTEGER): NumberRange => ({ whole: true, from, to });

export const decimal = (from = -Number.MAX_VALUE, to = Number.MAX_VALUE): NumberRange => ({
  whole: false,
  from,
  to,
});

/** What the numbers of a request may be, by their names: the command line and the library accept the same. */
export const numberRanges = {
  allowMissing: whole(0),
  batch: whole(1),
  bytes: whole(0),
  chunks: whole(1, 10_000_000),
  conf: decimal(0, 1),
  contexts: whole(1),
  count: whole(1),
  dataMax: decimal(0),
  device: whole(0),
  durationMs: decimal(0, 86_400_000),
  failAbove: decimal(0.01, 100),
  graceMs: decimal(0),
  idleMs: decimal(0, 60_000),
  imgsz: whole(16, 8192),
  initMax: decimal(0),
  iou: decimal(0, 1),
  iterations: whole(1, 10_000_000),
  maxBytes: whole(1),
  maxDet: whole(1, 100_000),
  maxImages: whole(1),
  maxMeanL2: decimal(0, 2),
  maxReductionDepth: whole(1),
  minAgreement: decimal(0, 1),
  minCosine: decimal(-1, 1),
  minMeanCosine: decimal(-1, 1),
  preNmsTopk: whole(1, 1_000_000),
  profile: whole(0),
  repeat: whole(2, 10_000),
  rounds: whole(3, 1000),
  samples: whole(1, 10_000),
  seed: whole(0),
  skipLatency: whole(0),
  streams: whole(1, 256),
  threads: whole(1, 1024),
  warmUpMs: decimal(0, 3_600_000),
  warmupRuns: whole(0, 10_000),
  weightBudget: whole(0),
} as const satisfies Readonly<Record<string, NumberRange>>;

export type RangedName = keyof typeof numberRanges;

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

/** Throws TF_USAGE for the first of these numbers that is out of its range; what has no range is accepted. */
export function assertWithin(request: object): void {
  for (const [name, range] of Object.entries(numberRanges)) {
    const value = (request as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined && !isWithin(range, value))
      throw new TrtforgeError('TF_USAGE', `${name} is ${String(value)}, and must be ${rangeText(range)}.`, {
        details: { option: name },
      });
  }
}
