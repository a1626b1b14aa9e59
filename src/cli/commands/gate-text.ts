import { code, fence, table, text } from '../../base/text/markdown-text.js';
import { plural } from '../../base/text/quantity.js';
import type { GateFinding, GateResult, GateWaiver } from '../../quality/gate/result.js';

/** GitHub keeps ten annotations of each level per step; the rest would be dropped without a word. */
const MOST_OF_A_LEVEL = 10;

type Level = 'error' | 'warning' | 'notice';

/**
 * Problems as GitHub's workflow commands, one a line: `::error file=…,line=…,title=…::message`, escaped so that no value can begin a command of its
 * own. Failures and inconclusive checks are errors, warnings warnings; what does not fit GitHub's ten of a level is counted in the last one.
 */
export function githubAnnotations(result: GateResult): readonly string[] {
  const noted = [
    ...result.findings.map(({ outcome, check, result: name, message, line }) => ({
      level: levelOf(outcome),
      title: `${check ?? 'result'}${name === null ? '' : ` (${name})`}`,
      message,
      line,
    })),
    ...result.waivers.map(({ outcome, check, message, line }) => ({
      level: levelOf(outcome),
      title: `waiver for ${check}`,
      message,
      line,
    })),
  ];
  return (['error', 'warning', 'notice'] as const).flatMap((level) => {
    const all = noted.filter((each) => each.level === level);
    const shown = all.length > MOST_OF_A_LEVEL ? all.slice(0, MOST_OF_A_LEVEL - 1) : all;
    const lines = shown.map(({ title, message, line }) =>
      command(level, place(result.policy, line, title), message),
    );
    const rest = all.length - shown.length;
    return rest === 0
      ? lines
      : [
          ...lines,
          command(
            level,
            place(result.policy, null, 'trtforge gate'),
            `and ${rest} more; the summary has all.`,
          ),
        ];
  });
}

function levelOf(outcome: string): Level | null {
  if (outcome === 'fail' || outcome === 'inconclusive') return 'error';
  if (outcome === 'warn') return 'warning';
  return outcome === 'waived' ? 'notice' : null;
}

function place(policy: string, line: number | null, title: string): Readonly<Record<string, string>> {
  return { file: policy, ...(line === null ? {} : { line: String(line) }), title };
}

function command(level: Level, properties: Readonly<Record<string, string>>, message: string): string {
  const list = Object.entries(properties).map(([name, value]) => `${name}=${escapeProperty(value)}`);
  return `::${level} ${list.join(',')}::${escapeData(message)}`;
}

/** GitHub's own escapes for what follows the second `::`. */
const escapeData = (text: string): string =>
  text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');

/** The same for a property, which a comma or colon would end. */
const escapeProperty = (text: string): string =>
  escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');

/**
 * The gate as JUnit XML, as GitLab, Jenkins and others read it: one test case a value, failed, in error (inconclusive), skipped (waived, or allowed to be
 * absent) or passed; warnings pass, and are stated in `system-out`. Waivers that ended fail as cases of their own.
 */
export function junitXml(result: GateResult): string {
  const cases = [...result.findings.map(findingCase), ...result.waivers.map(waiverCase)];
  const count = (element: string) => cases.filter((each) => each.includes(`<${element}`)).length;
  const totals = `tests="${cases.length}" failures="${count('failure')}" errors="${count('error')}" skipped="${count('skipped')}" time="0"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="trtforge gate" ${totals}>`,
    `  <testsuite name="${attribute(result.policy)}" ${totals}>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

function findingCase(finding: GateFinding): string {
  const { check, result, at, field, message, outcome, rule, waiver } = finding;
  const name = `${check ?? 'result'}: ${at ?? field ?? rule}`;
  const text = waiver === null ? message : `${message} Waived until ${waiver.expires}: ${waiver.reason}`;
  return testCase(result ?? 'no result', name, outcome, rule, text);
}

const waiverCase = ({ check, outcome, state, message }: GateWaiver): string =>
  testCase('waivers', `waiver for ${check}`, outcome, `waiver-${state}`, message);

function testCase(group: string, name: string, outcome: string, kind: string, message: string): string {
  const head = `    <testcase classname="${attribute(group)}" name="${attribute(name)}" time="0"`;
  const body = {
    fail: `<failure type="${attribute(kind)}" message="${attribute(message)}">${content(message)}</failure>`,
    inconclusive: `<error type="${attribute(kind)}" message="${attribute(message)}">${content(message)}</error>`,
    waived: `<skipped message="${attribute(message)}"/>`,
    skipped: `<skipped message="${attribute(message)}"/>`,
    warn: `<system-out>${content(`warning: ${message}`)}</system-out>`,
  }[outcome];
  return body === undefined ? `${head}/>` : `${head}>\n      ${body}\n    </testcase>`;
}

/** Text between tags. Characters that XML 1.0 cannot have become U+FFFD; `>` is escaped too, so that `]]>` cannot occur. */
const content = (text: string): string =>
  text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');

const attribute = (text: string): string =>
  content(text)
    .replaceAll('"', '&quot;')
    .replace(/[\t\n\r]/g, (character) => `&#${character.charCodeAt(0)};`);

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
