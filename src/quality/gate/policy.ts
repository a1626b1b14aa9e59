import { dirname, isAbsolute, join } from 'node:path';
import { faultText } from '../../base/text/schema-error.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { firstProblem, readYaml } from '../../base/text/yaml.js';
import { TrtforgeError } from '../../errors.js';
import { matchesGlob } from './glob.js';
import {
  type Check,
  checkSchema,
  limitSchema,
  type PolicyFile,
  policyFileSchema,
  regressionSchema,
  type Selector,
  selectorSchema,
  type Waiver,
  waiverSchema,
  writtenCheckSchema,
} from './policy-schema.js';
import { presets } from './presets.js';
import { OWN_OUTCOME } from './result.js';

/** A policy file's content, and the line at which each check and waiver begins. */
interface PolicyText {
  readonly policy: PolicyFile;
  lineOf(kind: 'checks' | 'waivers', index: number): number | null;
}

/** Reads and checks one policy file. Errors: TF_GATE_POLICY_INVALID (with the line), TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
function readPolicyText(path: string): PolicyText {
  const code = 'TF_GATE_POLICY_INVALID';
  const { content, lineOf } = readYaml(path, code);
  const parsed = policyFileSchema.safeParse(content);
  if (!parsed.success) throw firstProblem(parsed.error, { path, code, lineOf }, keysAt);
  return { policy: parsed.data, lineOf: (kind, index) => lineOf([kind, index]) };
}

/** The keys that an object of the policy may have, by where it stands. */
function keysAt(place: readonly PropertyKey[]): readonly string[] {
  const [section, , part, inner] = place;
  if (section === 'waivers') return Object.keys(waiverSchema.shape);
  if (section === 'results') return Object.keys(selectorSchema.shape);
  if (section !== 'checks') return Object.keys(policyFileSchema.shape);
  if (part === undefined) return Object.keys(writtenCheckSchema.shape);
  if (part === 'result') return Object.keys(selectorSchema.shape);
  if (part === 'regression')
    return inner === undefined ? Object.keys(regressionSchema.shape) : ['relative', 'absolute'];
  return Object.keys(limitSchema.shape);
}

/** A check with its selection resolved, and where it stands. */
export interface PolicyCheck extends Omit<Check, 'result'> {
  /** The selection's name in the policy, for messages; null for one written in place. */
  readonly resultName: string | null;
  readonly select: Selector;
  /** Line of the policy file that was passed; null where the check comes from what it extends. */
  readonly line: number | null;
}

export interface PolicyWaiver extends Waiver {
  readonly line: number | null;
}

/** A policy as it is judged by: everything it extends is in it. */
export interface Policy {
  readonly path: string;
  /** Names of ready rules and files that it extends, directly or not. */
  readonly extended: readonly string[];
  readonly checks: readonly PolicyCheck[];
  /** Ids of checks that `without` took out. */
  readonly dropped: readonly string[];
  readonly waivers: readonly PolicyWaiver[];
  readonly expiresSoonDays: number;
}

/** Whether a check may judge results of this schema: `trtforge.bench/1`. */
export const reads = ({ checks }: Policy, schema: string): boolean =>
  checks.some(({ select }) => matchesGlob(schema, select.schema ?? '*'));

const EXPIRES_SOON_DAYS = 14;

type WrittenCheck = NonNullable<PolicyFile['checks']>[number] & { readonly line: number | null };

/** The sum of a policy and all it extends, before references are resolved. */
interface Draft {
  readonly checks: Map<string, WrittenCheck>;
  readonly results: Map<string, Selector>;
  readonly waivers: PolicyWaiver[];
  readonly dropped: Set<string>;
  readonly extended: string[];
  soonDays: number;
}

/**
 * Reads a policy file and what it extends: ready rules by name (`streaming-parity`), other files by path, relative to the file that names them. A check
 * with an id that an extended policy has changes the parts it has; new checks follow. Errors: TF_GATE_POLICY_INVALID, TF_FILE_NOT_FOUND,
 * TF_FILE_UNREADABLE.
 */
export function loadPolicy(path: string): Policy {
  const draft: Draft = {
    checks: new Map(),
    results: new Map(),
    waivers: [],
    dropped: new Set(),
    extended: [],
    soonDays: EXPIRES_SOON_DAYS,
  };
  addFile(draft, path, [path], true);
  const checks = [...draft.checks.values()].map((check) => resolveCheck(check, draft, path));
  const ids = [OWN_OUTCOME, ...checks.map(({ id }) => id)];
  for (const waiver of draft.waivers) {
    if (!ids.includes(waiver.check))
      throw invalid(
        path,
        `a waiver is for the check "${waiver.check}", which is not there`,
        didYouMean(waiver.check, ids),
      );
  }
  return {
    path,
    extended: draft.extended,
    checks,
    dropped: [...draft.dropped],
    waivers: draft.waivers,
    expiresSoonDays: draft.soonDays,
  };
}

function addFile(draft: Draft, path: string, chain: readonly string[], own: boolean): void {
  const { policy, lineOf } = readPolicyText(path);
  add(draft, policy, path, chain, own ? lineOf : () => null);
}

function add(
  draft: Draft,
  policy: PolicyFile,
  path: string,
  chain: readonly string[],
  lineOf: (kind: 'checks' | 'waivers', index: number) => number | null,
): void {
  for (const base of [policy.extends ?? []].flat()) extend(draft, base, path, chain);
  for (const id of policy.without ?? []) {
    if (!draft.checks.delete(id))
      throw invalid(
        path,
        `"without" names the check "${id}", which nothing it extends has`,
        didYouMean(id, draft.checks.keys()),
      );
    draft.dropped.add(id);
  }
  for (const [name, selector] of Object.entries(policy.results ?? {})) draft.results.set(name, selector);
  const seen = new Set<string>();
  for (const [index, check] of (policy.checks ?? []).entries()) {
    if (check.id === OWN_OUTCOME)
      throw invalid(
        path,
        `"${OWN_OUTCOME}" is the id of the check that every policy has, and no other may have it`,
      );
    if (seen.has(check.id)) throw invalid(path, `two checks have the id "${check.id}"`);
    seen.add(check.id);
    draft.checks.set(check.id, { ...draft.checks.get(check.id), ...check, line: lineOf('checks', index) });
  }
  for (const [index, waiver] of (policy.waivers ?? []).entries())
    draft.waivers.push({ ...waiver, line: lineOf('waivers', index) });
  draft.soonDays = policy['expires-soon-days'] ?? draft.soonDays;
}

function extend(draft: Draft, base: string, from: string, chain: readonly string[]): void {
  const preset = Object.hasOwn(presets, base) ? presets[base] : undefined;
  const path = preset !== undefined || isAbsolute(base) ? base : join(dirname(from), base);
  if (preset === undefined && !/\.ya?ml$/i.test(base)) {
    const names = Object.keys(presets);
    throw invalid(
      from,
      `it extends "${base}", which is neither ready rules nor a .yaml file`,
      didYouMean(base, names) || ` Ready rules are ${names.join(', ')}.`,
    );
  }
  if (chain.includes(path)) throw invalid(from, `it extends itself, by ${[...chain, path].join(' → ')}`);
  if (!draft.extended.includes(path)) draft.extended.push(path);
  if (preset === undefined) addFile(draft, path, [...chain, path], false);
  else add(draft, preset, base, [...chain, path], () => null);
}

function resolveCheck({ line, ...written }: WrittenCheck, draft: Draft, path: string): PolicyCheck {
  const whole = checkSchema.safeParse(written);
  if (!whole.success) throw invalid(path, `check "${written.id}": ${faultText(whole.error)}`);
  const { result, ...check } = whole.data;
  if ([check.fail, check.inconclusive, check.warn, check.regression].every((rule) => rule === undefined))
    throw invalid(path, `check "${check.id}" forbids nothing: add fail, warn, inconclusive or regression`);
  if (typeof result !== 'string') return { ...check, select: result, resultName: null, line };
  const select = draft.results.get(result);
  if (select === undefined)
    throw invalid(
      path,
      `check "${check.id}" is for the result "${result}", which "results" does not describe`,
      didYouMean(result, draft.results.keys()),
    );
  return { ...check, select, resultName: result, line };
}

const invalid = (path: string, what: string, hint = ''): TrtforgeError =>
  new TrtforgeError('TF_GATE_POLICY_INVALID', `${path} is not a valid policy: ${what}.${hint}`);
