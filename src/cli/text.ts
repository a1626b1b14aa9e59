import type { Miss } from '../engines/store/lookup.js';
import type { ExplainedIssue } from '../quality/explain/explained-issue.js';
import { REASON } from '../quality/explain/issue-finder.js';
import { placeSentences } from '../quality/explain/place-text.js';
import type { TextOutput } from './command.js';

/** Reasons that are shown of one issue; the result lists more. */
const LISTED_REASONS = 3;

/** The text view of known issues: what each is, where it shows, why, what helps. */
export function renderIssues(issues: readonly ExplainedIssue[], output: TextOutput): void {
  const { colors } = output;
  const mark = {
    error: colors.red('error  '),
    warning: colors.yellow('warning'),
    note: colors.dim('note   '),
  };
  for (const issue of issues) {
    const [first] = issue.lines;
    const times = issue.count > 1 ? `, ${issue.count} times` : '';
    output.line();
    output.line(
      `${mark[issue.severity]} ${colors.bold(issue.id)}${first === undefined ? '' : colors.dim(` line ${first.line}${times}`)}`,
    );
    output.line(`  ${issue.cause}`);
    for (const sentence of placeSentences(issue.model)) output.line(`  ${sentence}`);
    const reasons = issue.lines.filter(({ text }) => REASON.test(text)).slice(0, LISTED_REASONS);
    for (const { text } of reasons) output.line(`  ${colors.dim(text)}`);
    output.line(`  ${colors.cyan('→')} ${issue.remedy}`);
  }
}

/** Fields listed of a miss; --json has them all. */
const LISTED = 6;

/** A miss as lines of text. */
export function missLines({ from, reason, nearest, differences }: Omit<Miss, 'code'>): readonly string[] {
  const lines = [`${from} store: miss (${reason})`];
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
