import { measure } from '../verify/result.js';
import { type Baseline, type BaselineValue, baselineValue } from './baseline.js';
import { type FoundValue, fieldHint, valuesAt } from './field-path.js';
import { type GateInput, isSelected } from './gate-input.js';
import { breachOf, misfit, numberOf, readable, speaksOfNull, text } from './limit.js';
import type { PolicyCheck } from './policy.js';
import type { Margin, Regression, Scalar } from './policy-schema.js';
import type { FindingOutcome, GateFinding } from './result.js';
import type { JudgedFinding } from './waivers.js';

/** A value's move against its baseline, further in the bad direction than a margin allows. */
interface Slip {
  readonly level: 'fail' | 'warn';
  /** "12.5 % worse than 20 (allowed 10%)". */
  readonly text: string;
  readonly worse: 'higher' | 'lower';
}

/** Rounding of the margin itself must not decide: a rise of exactly 10 % is within 10 %. */
const ROUNDING = 1e-12;

/** Holds a finite value against its baseline; null when it is within every margin. */
function slipOf(value: number, baseline: number, rule: Regression): Slip | null {
  const worse = rule.better === 'lower' ? 'higher' : 'lower';
  const loss = rule.better === 'lower' ? value - baseline : baseline - value;
  for (const level of ['fail', 'warn'] as const) {
    const margin = rule[level];
    if (margin === undefined || loss <= allowance(margin, baseline) + ROUNDING * Math.abs(baseline)) continue;
    return {
      level,
      worse,
      text: `${lossText(Math.abs(loss), baseline)} ${loss < 0 ? 'better' : 'worse'} than ${readable(baseline)} (${isDemand(margin) ? 'required' : 'allowed'} ${marginText(margin)})`,
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

/** A margin below zero: only what is better passes. */
const isDemand = (margin: Margin): boolean => typeof margin === 'string' && margin.startsWith('-');

const share = (percent: string): number => Number.parseFloat(percent) / 100;

const marginText = (margin: Margin): string =>
  typeof margin === 'object' ? `${margin.relative} or ${margin.absolute}` : String(margin);

const lossText = (loss: number, baseline: number): string =>
  baseline === 0 || !Number.isFinite(loss)
    ? String(readable(loss))
    : `${Number(((100 * loss) / Math.abs(baseline)).toPrecision(3))} %`;

/** The evidence that checks are judged against. */
export interface Evidence {
  readonly results: readonly GateInput[];
  /** null: none was passed. */
  readonly baseline: Baseline | null;
  /** The values of this run become the baseline: nothing is compared with the old one. */
  readonly updating: boolean;
}

export interface JudgedCheck {
  readonly findings: readonly JudgedFinding[];
  /** Names of the results it read. */
  readonly read: readonly string[];
  /** Its values for a baseline made now. */
  readonly measured: readonly BaselineValue[];
}

type Verdict = Pick<GateFinding, 'rule' | 'outcome' | 'message'> & {
  readonly worse?: 'higher' | 'lower' | null;
  readonly baseline?: number;
};

const LEVELS = ['fail', 'inconclusive', 'warn'] as const;

/** Judges one check on every result it selects and every place its field leads to there. Absence is `missing`, by default a failure. */
export function judgeCheck(check: PolicyCheck, evidence: Evidence): JudgedCheck {
  const selected = evidence.results.filter((result) => isSelected(result, check.select));
  if (selected.length === 0) {
    const message = `No result is ${selectorText(check)}.`;
    return {
      read: [],
      measured: [],
      findings: [
        finding(check, null, null, { rule: 'missing-result', outcome: absence(check.missing), message }),
      ],
    };
  }
  const parts = selected.map((result) => judgeResult(check, result, evidence));
  return {
    read: selected.map(({ name }) => name),
    findings: parts.flatMap(({ findings }) => findings),
    measured: parts.flatMap(({ measured }) => measured),
  };
}

function judgeResult(check: PolicyCheck, result: GateInput, evidence: Evidence): Omit<JudgedCheck, 'read'> {
  const nullCounts = LEVELS.some((level) => speaksOfNull(check[level]));
  const found = valuesAt(result.content, check.field);
  const present = found.filter(({ value }) => value !== null || nullCounts);
  if (present.length === 0 || present.length < found.length) {
    const absent = found.find(({ value }) => value === null)?.at ?? check.field;
    const message = `${result.name} has no ${absent}${found.length > 0 ? ': it is null.' : `.${fieldHint(result.content, check.field)}`}`;
    const missing = finding(check, result, null, {
      rule: 'missing-field',
      outcome: absence(check.missing ?? (isUncompared(result, check.field) ? 'inconclusive' : 'fail')),
      message,
    });
    return { findings: [missing], measured: [] };
  }
  const same = sameFields(check, result);
  const findings = present.map((each) =>
    finding(check, result, each, judgeValue(check, result, each, same, evidence)),
  );
  const measured = present.flatMap(({ at, value }) => {
    const number = numberOf(value);
    return check.regression === undefined || number === undefined
      ? []
      : [{ check: check.id, result: result.name, field: check.field, at, value: number, same }];
  });
  return { findings, measured };
}

function judgeValue(
  check: PolicyCheck,
  result: GateInput,
  { at, value }: FoundValue,
  same: Readonly<Record<string, Scalar>>,
  evidence: Evidence,
): Verdict {
  const is = `${at} of ${result.name} is ${shown(value, check)}`;
  if (Number.isNaN(numberOf(value)))
    return { rule: 'not-a-number', outcome: 'fail', message: `${is}, which never passes.` };
  for (const level of LEVELS) {
    const wrong = check[level] === undefined ? null : misfit(value, check[level]);
    if (wrong !== null)
      return { rule: 'wrong-type', outcome: 'fail', message: `${at} of ${result.name} ${wrong}.` };
  }
  const limit = limitVerdict(check, value as Scalar, is);
  const regression = regressionVerdict(check, result, at, value, is, same, evidence);
  const worst = [limit, regression].filter((each) => each !== null).sort(bySeverity)[0];
  if (worst !== undefined) return worst;
  return { rule: 'within', outcome: 'pass', message: `${is}.` };
}

function limitVerdict(check: PolicyCheck, value: Scalar, is: string): Verdict | null {
  for (const level of LEVELS) {
    const breach = check[level] === undefined ? null : breachOf(value, check[level]);
    if (breach !== null)
      return { rule: 'limit', outcome: level, message: `${is}, ${breach.text}.`, worse: breach.worse };
  }
  return null;
}

function regressionVerdict(
  check: PolicyCheck,
  result: GateInput,
  at: string,
  value: unknown,
  is: string,
  same: Readonly<Record<string, Scalar>>,
  { baseline, updating }: Evidence,
): Verdict | null {
  const rule = check.regression;
  if (rule === undefined) return null;
  const number = numberOf(value);
  if (number === undefined)
    return {
      rule: 'wrong-type',
      outcome: 'fail',
      message: `${is}, which is not a number: it cannot be compared with a baseline.`,
    };
  if (updating)
    return Number.isFinite(number)
      ? null
      : { rule: 'not-a-number', outcome: 'fail', message: `${is}, which cannot be a baseline.` };
  const place = { check: check.id, result: result.name, field: check.field, at };
  const before = baseline === null ? undefined : baselineValue(baseline, place);
  if (before === undefined) {
    const why = baseline === null ? 'there is no baseline' : 'the baseline does not have it';
    const outcome = absence(rule['missing-baseline']);
    return outcome === 'skipped'
      ? null
      : { rule: 'missing-baseline', outcome, message: `${is}, and ${why}.` };
  }
  const other = (rule.same ?? []).find((path) => before.same[path] !== same[path]);
  if (other !== undefined)
    return {
      rule: 'not-comparable',
      outcome: 'inconclusive',
      baseline: before.value,
      message: `${is}, but its baseline is from another ${other}: ${text(before.same[other] ?? null)}, now ${text(same[other] ?? null)}.`,
    };
  const slip = slipOf(number, before.value, rule);
  if (slip === null)
    return {
      rule: 'within',
      outcome: 'pass',
      message: `${is}; its baseline is ${readable(before.value)}.`,
      baseline: before.value,
    };
  return {
    rule: 'regression',
    outcome: slip.level,
    message: `${is}, ${slip.text}.`,
    worse: slip.worse,
    baseline: before.value,
  };
}

const SEVERITY: readonly FindingOutcome[] = ['fail', 'inconclusive', 'warn', 'waived', 'pass', 'skipped'];

export const severity = (outcome: FindingOutcome): number => SEVERITY.indexOf(outcome);

const bySeverity = (a: Verdict, b: Verdict): number => severity(a.outcome) - severity(b.outcome);

/** The fields that make a baseline comparable, as they are now; null where the result has none. */
function sameFields(check: PolicyCheck, { content }: GateInput): Readonly<Record<string, Scalar>> {
  return Object.fromEntries(
    (check.regression?.same ?? []).map((path) => {
      const value = valuesAt(content, path)[0]?.value ?? null;
      return [path, typeof value === 'object' ? JSON.stringify(value) : (value as Scalar)];
    }),
  );
}

function finding(
  check: PolicyCheck,
  result: GateInput | null,
  found: FoundValue | null,
  verdict: Verdict,
): JudgedFinding {
  const { rule, outcome, message, worse = null, baseline = null } = verdict;
  const value = found === null ? undefined : scalarOf(found.value);
  return {
    worse,
    finding: {
      check: check.id,
      why: check.why ?? null,
      result: result?.name ?? null,
      field: check.field,
      at: found?.at ?? null,
      ...(value === undefined ? {} : { value }),
      unit: check.unit ?? null,
      baseline,
      rule,
      outcome,
      unwaived: outcome,
      message,
      waiver: null,
      line: check.line,
    },
  };
}

/** Lists and objects are not repeated in the result; numbers that JSON lacks are there by name. */
function scalarOf(value: unknown): Scalar | undefined {
  if (typeof value === 'number') return measure(value);
  return value === null || ['string', 'boolean'].includes(typeof value) ? (value as Scalar) : undefined;
}

/** Whether a field of a comparison is asked of a run that built an engine and compared nothing. */
const isUncompared = (result: GateInput, field: string): boolean =>
  ['outcome', 'verdict.outcome'].some((path) => valuesAt(result.content, path)[0]?.value === 'built') &&
  /^(?:verification|engineVerification|checks)\b/.test(field);

function absence(level: 'fail' | 'inconclusive' | 'warn' | 'skip' | undefined): FindingOutcome {
  return level === 'skip' ? 'skipped' : (level ?? 'fail');
}

function shown(value: unknown, { unit, fail, inconclusive, warn }: PolicyCheck): string {
  const limits = [fail, inconclusive, warn].flatMap((limit) => Object.values(limit ?? {}));
  const number = numberOf(value);
  if (number !== undefined) return `${readable(number, limits)}${unit === undefined ? '' : ` ${unit}`}`;
  return value !== null && typeof value === 'object' ? 'a structure' : text(value);
}

function selectorText({ resultName, select }: PolicyCheck): string {
  const { schema, name, where } = select;
  const parts = [
    schema && `of the schema ${schema}`,
    name && `called ${name}`,
    ...Object.entries(where ?? {}).map(([path, value]) => `with ${path} ${text(value)}`),
  ].filter((part) => typeof part === 'string');
  return `${resultName === null ? '' : `"${resultName}", `}${parts.join(', ')}`;
}
