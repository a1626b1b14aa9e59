import { existsSync } from 'node:fs';
import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { TrtforgeError } from '../../errors.js';
import { type Baseline, type BaselineValue, mergeBaseline, readBaseline, writeBaseline } from './baseline.js';
import { type GateInput, readResults } from './gate-input.js';
import { judgeCheck, severity } from './judge-check.js';
import { ownOutcome } from './own-outcome.js';
import { loadPolicy, type Policy } from './policy.js';
import {
  type GateFinding,
  type GateOutcome,
  type GateResult,
  type GateWaiver,
  OWN_OUTCOME,
} from './result.js';
import { applyWaivers, today } from './waivers.js';

export const gateOptions = {
  /** The policy file. */
  policy: needed(is.text),
  /** `FILE` or `NAME=FILE`. */
  results: needed(is.list<string>()),
  baseline: optional(is.text, {
    flags: '--baseline <file>',
    describe: 'what regression checks compare with',
    writes: true,
  }),
  /** Writes what this run measured into the baseline, when nothing else fails. */
  updateBaseline: optional(is.flag, {
    flags: '--update-baseline',
    describe: 'make the values of these results the baseline, unless one breaks a limit',
  }),
  /** The day that waivers are judged by: `2026-11-21`, UTC (default: today). */
  day: optional(is.text),
};

export interface GateRequest extends OptionsOf<typeof gateOptions> {}

/**
 * Judges results by a policy. Reads files only; no GPU, no model. With `updateBaseline` limits still count: values that break one do not become the
 * baseline. Errors: TF_GATE_POLICY_INVALID, TF_GATE_RESULT_INVALID, TF_GATE_BASELINE_INVALID, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_USAGE,
 * TF_WRITE_FAILED.
 */
export function runGate({ day = today(), ...request }: GateRequest): GateResult {
  const policy = loadPolicy(request.policy);
  const results = readResults(request.results);
  const updating = request.updateBaseline === true;
  const baseline = openBaseline(request.baseline, updating);
  const judged = judge(policy, results, { baseline, updating, day });
  const { measured, ...facts } = judged;
  const outcome = worstOf(facts.findings, facts.waivers);
  const updated = updating && request.baseline !== undefined && isGood(outcome);
  if (updated && request.baseline !== undefined)
    writeBaseline(
      request.baseline,
      mergeBaseline(baseline, measured, new Set(policy.checks.map(({ id }) => id))),
    );
  return {
    schema: 'trtforge.gate/1',
    policy: policy.path,
    extended: [...policy.extended],
    dropped: [...policy.dropped],
    baseline: request.baseline ?? null,
    baselineUpdated: updated,
    day,
    outcome,
    ...facts,
    reasons: reasonsOf(outcome, facts.findings, facts.waivers, updating && !updated),
    repeat: null,
  };
}

/** The last of the reasons of a run that was to update the baseline and did not. */
export const BASELINE_LEFT = 'The baseline was left as it is: values that miss a limit cannot become one.';

function openBaseline(path: string | undefined, updating: boolean): Baseline | null {
  if (path === undefined) {
    if (!updating) return null;
    throw new TrtforgeError('TF_USAGE', 'No baseline was named to update.', {
      remedy: 'Name it: --baseline FILE.',
    });
  }
  if (existsSync(path)) return readBaseline(path);
  if (updating) return null;
  throw new TrtforgeError('TF_FILE_NOT_FOUND', `The baseline ${path} does not exist.`, {
    remedy: 'Check the path, or make the first one from these results with --update-baseline.',
  });
}

interface Judgement extends Pick<GateResult, 'findings' | 'waivers' | 'counts' | 'results'> {
  readonly measured: readonly BaselineValue[];
}

function judge(
  policy: Policy,
  results: readonly GateInput[],
  { baseline, updating, day }: { baseline: Baseline | null; updating: boolean; day: string },
): Judgement {
  const checks = policy.checks.map((check) => judgeCheck(check, { results, baseline, updating }));
  const reads = checks.flatMap(({ read }) => read);
  const all = [...results.flatMap(ownOutcome), ...checks.flatMap(({ findings }) => findings)];
  const { findings, waivers } = applyWaivers(all, policy, day);
  const count = (outcome: GateFinding['outcome']) =>
    findings.filter((each) => each.outcome === outcome).length;
  return {
    results: results.map(({ name, path, schema }) => ({
      name,
      path,
      schema,
      checks: reads.filter((each) => each === name).length,
    })),
    findings: [...findings].sort((a, b) => severity(a.outcome) - severity(b.outcome)),
    waivers: [...waivers],
    counts: {
      pass: count('pass'),
      waived: count('waived'),
      warn: count('warn'),
      inconclusive: count('inconclusive'),
      fail: count('fail'),
      skipped: count('skipped'),
    },
    measured: checks.flatMap((check) => check.measured),
  };
}

function worstOf(findings: readonly GateFinding[], waivers: readonly GateWaiver[]): GateOutcome {
  const outcomes = new Set([...findings, ...waivers].map(({ outcome }) => outcome));
  for (const outcome of ['fail', 'inconclusive', 'warn'] as const) if (outcomes.has(outcome)) return outcome;
  // Where all that the policy asks was skipped nothing was judged, and that is not a pass.
  const asked = findings.filter(({ check }) => check !== OWN_OUTCOME);
  return (asked.length > 0 ? asked : findings).every(({ outcome }) => outcome === 'skipped')
    ? 'inconclusive'
    : 'pass';
}

const isGood = (outcome: GateOutcome): boolean => outcome === 'pass' || outcome === 'warn';

function reasonsOf(
  outcome: GateOutcome,
  findings: readonly GateFinding[],
  waivers: readonly GateWaiver[],
  isBaselineLeft: boolean,
): string[] {
  const decided = [
    ...findings
      .filter((each) => each.outcome === outcome)
      .map(({ check, message }) => `${check ?? 'result'}: ${message}`),
    ...waivers.filter((each) => each.outcome === outcome && outcome !== 'pass').map(({ message }) => message),
  ];
  const judged = findings.filter((each) => each.outcome !== 'skipped');
  const counts =
    outcome === 'pass'
      ? [`All ${judged.length} values are within their limits${waivedText(findings)}.`]
      : decided.length > 0
        ? decided
        : ['Every check was skipped, so nothing was judged.'];
  return isBaselineLeft ? [...counts, BASELINE_LEFT] : counts;
}

function waivedText(findings: readonly GateFinding[]): string {
  const waived = findings.filter(({ outcome }) => outcome === 'waived').length;
  return waived === 0 ? '' : ` or waived (${waived})`;
}
