import { matchesGlob } from './glob.js';
import { numberOf, readable } from './limit.js';
import type { Policy, PolicyWaiver } from './policy.js';
import { type GateFinding, type GateWaiver, OWN_OUTCOME } from './result.js';

const DAY_MS = 86_400_000;

/** Findings a waiver can excuse: a measured miss, and a result's own report. A missing value, one that is no number, or an error is never excused. */
const EXCUSABLE: ReadonlySet<GateFinding['rule']> = new Set(['limit', 'regression', OWN_OUTCOME]);
const MISSES: ReadonlySet<GateFinding['outcome']> = new Set(['fail', 'inconclusive', 'warn']);

/** A finding, and which way its value would be worse; null where values only differ. */
export interface JudgedFinding {
  readonly finding: GateFinding;
  readonly worse: 'higher' | 'lower' | null;
}

/**
 * Applies the policy's waivers on a day (`2026-11-21`, UTC; a waiver is valid through its last day). An expired waiver excuses nothing and fails by itself;
 * one that ends soon, that nothing needs any more, or that a miss goes beyond, is a warning.
 */
export function applyWaivers(
  judged: readonly JudgedFinding[],
  policy: Policy,
  day: string,
): { readonly findings: readonly GateFinding[]; readonly waivers: readonly GateWaiver[] } {
  const used = new Set<PolicyWaiver>();
  const tooWeak = new Map<PolicyWaiver, string>();
  const active = policy.waivers.filter((waiver) => daysLeft(waiver, day) >= 0);
  const findings = judged.map((each) => {
    const meant = active.filter((candidate) => isFor(candidate, each.finding));
    const waiver = meant.find((candidate) => shortfall(candidate, each) === null);
    if (waiver === undefined) {
      for (const candidate of meant) tooWeak.set(candidate, shortfall(candidate, each) ?? '');
      return each.finding;
    }
    used.add(waiver);
    const { reason, expires, owner = null } = waiver;
    return { ...each.finding, outcome: 'waived' as const, waiver: { reason, expires, owner } };
  });
  return {
    findings,
    waivers: policy.waivers.map((waiver) =>
      judgeWaiver(
        waiver,
        { isUsed: used.has(waiver), tooWeak: tooWeak.get(waiver) ?? null },
        policy.expiresSoonDays,
        day,
      ),
    ),
  };
}

/** Whether a finding is a miss of what the waiver names. */
const isFor = (waiver: PolicyWaiver, finding: GateFinding): boolean =>
  waiver.check === finding.check &&
  MISSES.has(finding.outcome) &&
  (waiver.result === undefined || matchesGlob(finding.result ?? '', waiver.result)) &&
  (waiver.at === undefined || matchesGlob(finding.at ?? '', waiver.at));

/** Why a waiver does not excuse a miss that it is for; null where it does. */
function shortfall({ 'up-to': bound }: PolicyWaiver, { finding, worse }: JudgedFinding): string | null {
  const { at, result, rule } = finding;
  const place = `${at ?? finding.field ?? 'the value'} of ${result ?? 'the results'}`;
  if (!EXCUSABLE.has(rule))
    return `${place} is not a measured miss (${rule}), and nothing else can be waived`;
  if (bound === undefined) return null;
  const value = numberOf(finding.value);
  if (value === undefined || worse === null)
    return `it reaches up to ${bound}, and ${place} is judged by its text, not by its size`;
  const isWithin = worse === 'higher' ? value <= bound : value >= bound;
  return isWithin ? null : `it reaches up to ${bound}, and ${place} is ${readable(value, [bound])}`;
}

function judgeWaiver(
  waiver: PolicyWaiver,
  { isUsed, tooWeak }: { readonly isUsed: boolean; readonly tooWeak: string | null },
  soonDays: number,
  day: string,
): GateWaiver {
  const { check, reason, expires, owner = null, line } = waiver;
  const left = daysLeft(waiver, day);
  const about = { check, reason, owner, expires, daysLeft: left, line };
  if (left < 0)
    return {
      ...about,
      state: 'expired',
      outcome: 'fail',
      message: `The waiver for ${check} ended on ${expires}: remove it, or renew it with a reason. It was for "${reason}".`,
    };
  if (tooWeak !== null)
    return {
      ...about,
      state: 'too-weak',
      outcome: 'warn',
      message: `The waiver for ${check} does not excuse every miss: ${tooWeak}. It is for "${reason}".`,
    };
  if (!isUsed)
    return {
      ...about,
      state: 'unused',
      outcome: 'warn',
      message: `Nothing needs the waiver for ${check} in this run: remove it, or correct what it is for ("${reason}").`,
    };
  if (left <= soonDays)
    return {
      ...about,
      state: 'expiring',
      outcome: 'warn',
      message: `The waiver for ${check} ends on ${expires}, ${inDays(left)}; from then on ${check} counts again ("${reason}").`,
    };
  return {
    ...about,
    state: 'used',
    outcome: 'pass',
    message: `${check} is waived until ${expires}: ${reason}`,
  };
}

/** Days are those of UTC, wherever CI runs. */
export const today = (): string => new Date().toISOString().slice(0, 10);

/** Whole days from a day to the waiver's last; 0 on that day. */
const daysLeft = ({ expires }: PolicyWaiver, day: string): number =>
  Math.round((Date.parse(`${expires}T00:00:00Z`) - Date.parse(`${day}T00:00:00Z`)) / DAY_MS);

const inDays = (days: number): string => (days === 0 ? 'today' : days === 1 ? 'tomorrow' : `in ${days} days`);
