import { formatBytes, formatMs, plural } from '../base/text/quantity.js';
import { shellLine } from '../base/text/shell-line.js';
import { SimilarLines } from '../base/text/similar-lines.js';
import { operatorTable } from '../engines/layers/operator-times.js';
import type { OperatorTime } from '../engines/layers/result.js';
import type { ExplainedIssue } from '../quality/explain/explained-issue.js';
import { placeSentences, REASON } from '../quality/explain/known-issues/issue.js';
import type { TextOutput } from './command.js';
import type { PlanResult } from './plan.js';

/** The line of trtforge that usually follows. */
export const renderNext = (words: readonly string[], { line, colors }: TextOutput): void =>
  line(`${colors.dim('Next:')} ${shellLine(['trtforge', ...words])}`);

/** Reasons that are shown of one issue; the result lists more. */
const LISTED_REASONS = 3;

/** Layers and time by ONNX operator, a line each, and one of all; with two sides what B takes more. */
export function operatorLines(operators: readonly OperatorTime[]): readonly string[] {
  const { heads, rows } = operatorTable(operators);
  return table(heads, rows);
}

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

/** Warnings, those that are alike once with their number; --json has them all. */
export function renderWarnings(warnings: readonly string[], { line, colors }: TextOutput, indent = ''): void {
  const similar = new SimilarLines();
  for (const warning of warnings) similar.add(warning);
  for (const { line: warning, count } of similar.groups) {
    const more = count === 1 ? '' : colors.dim(` (and ${count - 1} more like it)`);
    line(`${indent}${colors.yellow('warning')} ${warning}${more}`);
  }
}

/** A message behind its mark; the lines of a library that it quotes follow, so that none passes for a line of ours. */
export function messageLines(mark: string, message: string, { line, colors }: TextOutput): void {
  const [first = '', ...quoted] = message.split('\n');
  line(`${mark} ${first}`);
  for (const each of quoted) line(`  ${colors.dim('|')} ${each}`);
}

/** Text and numbers that were decided, the steps, then warnings. */
export function renderPlan({ steps, resolved }: PlanResult, output: TextOutput): void {
  const { line, colors } = output;
  const { bold, cyan, dim } = colors;
  const facts = Object.entries(resolved).flatMap(([name, value]) => factsOf(name, value));
  const label = widest(facts.map(([name]) => name));
  for (const [name, value] of facts) line(`${cyan(name.padEnd(label))}  ${value}`);
  const verb = widest(steps.map(({ does }) => does));
  for (const [at, { does, what, detail, bytes, ms, skipped }] of steps.entries()) {
    const amounts = [
      bytes === null ? null : formatBytes(bytes),
      ms === null ? null : `about ${formatMs(ms)}`,
    ];
    const notes = [detail, ...amounts].filter((note) => note !== null);
    const more = notes.length === 0 ? '' : `  ${dim(notes.join(', '))}`;
    if (skipped === null) line(`  ${bold(does.padEnd(verb))}  ${what}${more}`);
    else {
      const why = skipped === steps[at - 1]?.skipped ? 'for the same reason' : skipped;
      line(dim(`  ${does.padEnd(verb)}  ${what}  skipped: ${why}`));
    }
  }
  renderWarnings(resolved.warnings ?? [], output);
  const total = steps.reduce((sum, { bytes, skipped }) => sum + (skipped === null ? (bytes ?? 0) : 0), 0);
  const size = total === 0 ? '' : ` (${formatBytes(total)})`;
  const done = steps.filter(({ skipped }) => skipped === null).length;
  line(`Dry run: ${plural(done, 'step')}${size}, none of them done.`);
}

/** A text or number, or a text for each of several names. */
function factsOf(name: string, value: unknown): readonly (readonly [string, string])[] {
  if (typeof value === 'string' || typeof value === 'number') return [[name, String(value)]];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const texts = Object.entries(value);
  return texts.every(([, text]) => typeof text === 'string')
    ? texts.map(([key, text]) => [`${key} ${name}`, String(text)])
    : [];
}

const widest = (texts: readonly string[]): number => Math.max(0, ...texts.map(({ length }) => length));

/** Titles and rows of cells, each column as wide as its widest cell. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const all = [titles, ...rows];
  const widths = titles.map((_, column) => widest(all.map((row) => row[column] ?? '')));
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
