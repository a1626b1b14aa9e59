import { code, fence, table, text } from '../../base/text/markdown-text.js';
import { plural } from '../../base/text/quantity.js';
import type { GateFinding, GateResult, GateWaiver } from './gate-result.js';

const marks = { pass: '✅', warn: '⚠️', inconclusive: '❔', fail: '❌', waived: '🟦', skipped: '➖' } as const;

const words = {
  pass: 'Pass',
  warn: 'Pass with warnings',
  inconclusive: 'Inconclusive',
  fail: 'Fail',
} as const;

/** GitHub rejects a job summary over 1 MiB; rows beyond this are counted instead. */
const MOST_ROWS = 500;

/** The gate as GitHub-flavoured Markdown, for a job summary or a comment on a pull request. */
export function renderGateMarkdown(result: GateResult): string {
  return [
    `## Gate: ${marks[result.outcome]} ${words[result.outcome]}`,
    `${code(result.policy)} over ${plural(result.results.length, 'result')}: ${countsText(result)}.`,
    result.outcome === 'pass'
      ? null
      : result.reasons
          .slice(0, 20)
          .map((reason) => `- ${text(reason)}`)
          .join('\n'),
    findingsTable(result.findings),
    waiversTable(result.waivers),
    result.baselineUpdated && result.baseline !== null
      ? `The baseline ${code(result.baseline)} has these values now.`
      : null,
    result.dropped.length === 0 ? null : text(droppedText(result)),
    unreadText(result),
    result.repeat === null ? null : fence(result.repeat),
  ]
    .filter((block) => block !== null)
    .join('\n\n')
    .concat('\n');
}

/** Checks that `without` took out of the rules: the caller that reads a pass must know them. */
export const droppedText = ({ dropped }: GateResult): string =>
  `The policy leaves out ${dropped.join(', ')}.`;

/** "1 failed, 2 warnings, 12 passed". */
export function countsText({ counts, waivers }: GateResult): string {
  const ended = waivers.filter(({ outcome }) => outcome === 'fail').length;
  const warned = counts.warn + waivers.filter(({ outcome }) => outcome === 'warn').length;
  const parts = [
    [counts.fail, `${counts.fail} failed`],
    [ended, plural(ended, 'expired waiver')],
    [counts.inconclusive, `${counts.inconclusive} inconclusive`],
    [warned, plural(warned, 'warning')],
    [counts.waived, `${counts.waived} waived`],
    [counts.skipped, `${counts.skipped} skipped`],
    [counts.pass, `${counts.pass} passed`],
  ] as const;
  const some = parts.filter(([count]) => count > 0).map(([, text]) => text);
  return some.length === 0 ? 'nothing judged' : some.join(', ');
}

function findingsTable(findings: readonly GateFinding[]): string {
  const rows = findings
    .slice(0, MOST_ROWS)
    .map(({ outcome, check, result, message, why, waiver }) => [
      `${marks[outcome]} ${outcome}`,
      check === null ? '–' : code(check),
      result === null ? '–' : text(result),
      [
        text(message),
        why === null ? '' : `*${text(why)}*`,
        waiver === null ? '' : `Waived until ${waiver.expires}: ${text(waiver.reason)}`,
      ]
        .filter((part) => part !== '')
        .join('<br>'),
    ]);
  const rest = findings.length - rows.length;
  const more = rest > 0 ? `\n\nand ${plural(rest, 'value')} more, none worse than the last shown.` : '';
  return `${table(['', 'check', 'result', 'what was found'], rows)}${more}`;
}

function waiversTable(waivers: readonly GateWaiver[]): string | null {
  if (waivers.length === 0) return null;
  const rows = waivers.map(({ outcome, check, state, expires, reason, owner }) => [
    marks[outcome],
    code(check),
    state,
    expires,
    `${text(reason)}${owner === null ? '' : ` (${text(owner)})`}`,
  ]);
  return `### Waivers\n\n${table(['', 'check', 'state', 'until', 'reason'], rows)}`;
}

function unreadText({ results }: GateResult): string | null {
  const unread = results.filter(({ checks }) => checks === 0).map(({ name }) => code(name));
  return unread.length === 0 ? null : `No check reads ${unread.join(', ')}.`;
}
