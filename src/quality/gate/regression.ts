import { readable } from './limit.js';
import type { Margin, Regression } from './policy-schema.js';

/** How a value moved against its baseline, when it moved further in the bad direction than a margin allows. */
export interface Slip {
  readonly level: 'fail' | 'warn';
  /** «12.5 % worse than 20 (allowed 10%)». */
  readonly said: string;
  readonly worse: 'higher' | 'lower';
}

/** Rounding of the margin itself must not decide: a rise of exactly 10 % is within 10 %. */
const ROUNDING = 1e-12;

/** Holds a finite value against its baseline; null when it is within every margin. */
export function slipOf(value: number, baseline: number, rule: Regression): Slip | null {
  const worse = rule.better === 'lower' ? 'higher' : 'lower';
  const loss = rule.better === 'lower' ? value - baseline : baseline - value;
  for (const level of ['fail', 'warn'] as const) {
    const margin = rule[level];
    if (margin === undefined || loss <= allowance(margin, baseline) + ROUNDING * Math.abs(baseline)) continue;
    return {
      level,
      worse,
      said: `${lossText(loss, baseline)} worse than ${readable(baseline)} (allowed ${marginText(margin)})`,
    };
  }
  return null;
}

/** The margin in the unit of the value. */
function allowance(margin: Margin, baseline: number): number {
  if (typeof margin === 'number') return margin;
  if (typeof margin === 'string') return share(margin) * Math.abs(baseline);
  return Math.max(share(margin.relative) * Math.abs(baseline), margin.absolute);
}

const share = (percent: string): number => Number.parseFloat(percent) / 100;

const marginText = (margin: Margin): string =>
  typeof margin === 'object' ? `${margin.relative} or ${margin.absolute}` : String(margin);

const lossText = (loss: number, baseline: number): string =>
  baseline === 0 || !Number.isFinite(loss)
    ? String(readable(loss))
    : `${Number(((100 * loss) / Math.abs(baseline)).toPrecision(3))} %`;
