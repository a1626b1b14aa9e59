import { valuesAt } from './field-path.js';
import type { GateInput } from './gate-input.js';
import { type GateFinding, OWN_OUTCOME } from './result.js';
import type { JudgedFinding } from './waivers.js';

const WHY =
  'What the command that wrote the result found. It counts in every policy; only a waiver excuses it.';

/** Spellings in results: commands that judge, then runs that build and explained logs. An engine built and compared with nothing is skipped here. */
const OUTCOMES: ReadonlyMap<unknown, Statement['outcome']> = new Map([
  ['pass', 'pass'],
  ['passed', 'pass'],
  ['inconclusive', 'inconclusive'],
  ['fail', 'fail'],
  ['failed', 'fail'],
  ['built', 'skipped'],
  ['error', 'fail'],
  ['died', 'fail'],
]);

interface Statement {
  readonly at: string;
  readonly outcome: 'pass' | 'skipped' | 'inconclusive' | 'fail';
}

/**
 * One finding for each verdict that is not a pass, so that a waiver can name it by its place; one for the whole where no verdict is as bad. A result that
 * reports nothing of itself has none.
 */
export function ownOutcome(result: GateInput): readonly JudgedFinding[] {
  const { content } = result;
  if (result.schema?.startsWith('trtforge.error/') === true) return [errorFinding(result)];
  const parts = Object.entries(content.verdicts ?? {})
    .flatMap(([key, value]) => stated(`verdicts.${key}`, value))
    .filter(({ outcome }) => outcome !== 'pass')
    .sort(bySeverity);
  const [whole] = [
    ...endOf(content),
    ...stated('outcome', content.outcome),
    ...stated('verdict.outcome', fieldOf(result, 'verdict.outcome')),
  ].sort(bySeverity);
  const [worst] = parts;
  const isExplained = whole === undefined || (worst !== undefined && bySeverity(worst, whole) <= 0);
  return (isExplained ? parts : [whole, ...parts]).map((each) => ownFinding(result, each));
}

/** Worst first: no comparison is no pass, whatever the exit code. */
const order: readonly Statement['outcome'][] = ['fail', 'inconclusive', 'skipped', 'pass'];
const bySeverity = (a: Statement, b: Statement): number =>
  order.indexOf(a.outcome) - order.indexOf(b.outcome);

function stated(at: string, value: unknown): readonly Statement[] {
  const outcome = OUTCOMES.get(typeof value === 'string' ? value.toLowerCase() : value);
  return outcome === undefined ? [] : [{ at, outcome }];
}

/** The outcome that the command ended with; `ok` is for results that have no exit code, since inconclusive is not ok either. */
function endOf({ exitCode, ok }: GateInput['content']): readonly Statement[] {
  if (typeof exitCode === 'number')
    return [{ at: 'exitCode', outcome: exitCode === 0 ? 'pass' : exitCode === 4 ? 'inconclusive' : 'fail' }];
  return typeof ok === 'boolean' ? [{ at: 'ok', outcome: ok ? 'pass' : 'fail' }] : [];
}

const fieldOf = ({ content }: GateInput, path: string): unknown => valuesAt(content, path)[0]?.value;

function ownFinding(result: GateInput, { at, outcome }: Statement): JudgedFinding {
  const first = (...paths: readonly string[]) =>
    paths.map((path) => fieldOf(result, path)).find((text) => typeof text === 'string');
  const headline = first('headline', 'verdict.headline');
  const detail =
    outcome === 'pass' || outcome === 'skipped' ? headline : first('reasons[0]', 'verdict.reasons[0]');
  const what = outcome === 'skipped' ? 'built' : outcome;
  return finding({
    check: OWN_OUTCOME,
    why: WHY,
    result: result.name,
    field: at,
    at,
    rule: outcome === 'pass' ? 'within' : OWN_OUTCOME,
    outcome,
    message: `${result.name} itself reports ${what} (${at})${detail === undefined ? '.' : `: ${detail}`}`,
  });
}

/** A command that ended in an error has no result: that fails, and no waiver excuses it. */
function errorFinding(result: GateInput): JudgedFinding {
  const texts = [fieldOf(result, 'error.code'), fieldOf(result, 'error.message')];
  return finding({
    check: null,
    why: null,
    result: result.name,
    field: null,
    at: null,
    rule: 'error-result',
    outcome: 'fail',
    message: `${result.name} is an error, not a result: ${texts.filter((each) => typeof each === 'string').join(' ')}`,
  });
}

const finding = (
  facts: Pick<GateFinding, 'check' | 'why' | 'result' | 'field' | 'at' | 'rule' | 'outcome' | 'message'>,
): JudgedFinding => ({
  worse: null,
  finding: { ...facts, unwaived: facts.outcome, unit: null, baseline: null, waiver: null, line: null },
});
