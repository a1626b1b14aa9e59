import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GateRequest, runGate } from '../../../src/quality/gate/gate.js';
import type { GateResult } from '../../../src/quality/gate/result.js';

/** The day of every case, unless it names another. */
export const TODAY = '2026-11-21';

/** A folder with files of one case: texts as they are, everything else as JSON. */
export function folderOf(files: Readonly<Record<string, unknown>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-gate-'));
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  return folder;
}

/** A policy file around its checks (YAML, or JSON, which is YAML). */
export const policyOf = (rest: Readonly<Record<string, unknown>>): string =>
  JSON.stringify({ schema: 'trtforge.gate-policy/1', ...rest });

/** Runs the gate on `policy.yaml` and every other file of the case that ends in .json, in order. */
export function gate(
  files: Readonly<Record<string, unknown>>,
  more: Partial<Omit<GateRequest, 'policy' | 'baseline'>> & { readonly baseline?: string } = {},
): GateResult & { readonly folder: string } {
  const folder = folderOf(files);
  const { baseline, ...rest } = more;
  const results = Object.keys(files).filter((name) => name.endsWith('.json') && name !== baseline);
  const result = runGate({
    policy: join(folder, 'policy.yaml'),
    results: results.map((name) => join(folder, name)),
    day: TODAY,
    ...(baseline === undefined ? {} : { baseline: join(folder, baseline) }),
    ...rest,
  });
  return { ...result, folder };
}

/** A check of the field `value` of the result `r.json`, with a rule. */
export const checkOf = (rule: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  id: 'it',
  result: { name: 'r' },
  field: 'value',
  ...rule,
});

/** The gate on one value under one rule. */
export const gateOn = (value: unknown, rule: Readonly<Record<string, unknown>>): GateResult =>
  gate({
    'policy.yaml': policyOf({ checks: [checkOf(rule)] }),
    'r.json': { schema: 'trtforge.bench/1', value },
  });
