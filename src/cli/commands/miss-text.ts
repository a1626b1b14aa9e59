import type { Miss } from '../../engines/store/store-miss.js';

/** Fields listed of a miss; --json has them all. */
const LISTED = 6;

/** A miss as lines of text. */
export function missLines({ from, reason, nearest, differences }: Omit<Miss, 'code'>): readonly string[] {
  const lines = [`not from ${from}: ${reason}`];
  if (nearest === null) return lines;
  lines.push(`nearest there: ${nearest.name} (${nearest.identity.slice(0, 12)})`);
  for (const { field, wanted, stored } of differences.slice(0, LISTED)) {
    lines.push(`  ${field}: wanted ${valueText(wanted)}, stored ${valueText(stored)}`);
  }
  if (differences.length > LISTED) lines.push(`  and ${differences.length - LISTED} more fields`);
  return lines;
}

const valueText = (value: unknown): string => {
  if (value === undefined) return 'nothing';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[0-9a-f]{64}$/.test(text) ? `${text.slice(0, 12)}…` : text;
};
