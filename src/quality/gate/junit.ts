import type { GateFinding, GateResult, GateWaiver } from './gate-result.js';

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
