import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parityResultSchema } from '../../../src/products/streaming/verify/result.js';
import { gate, policyOf } from './gate-case.js';

/** What `verify --reference --json` wrote of the tiny streaming encoder and of its FP16 conversion, 12 chunks in a closed loop. */
const recorded = (name: string): Record<string, unknown> =>
  JSON.parse(
    readFileSync(fileURLToPath(new URL(`../../fixtures/gate/${name}.json`, import.meta.url)), 'utf8'),
  ) as Record<string, unknown>;
const fp32 = recorded('parity-fp32');
const fp16 = recorded('parity-fp16');

const under = (rules: string, result: Readonly<Record<string, unknown>>, more = {}) =>
  gate({ 'policy.yaml': policyOf({ extends: rules, ...more }), 'parity.json': result });
const failing = (result: ReturnType<typeof gate>) =>
  result.findings.filter(({ outcome }) => outcome === 'fail').map(({ check }) => check);

describe('recorded parity results', () => {
  it.each([fp32, fp16])('are of their schema', (result) => {
    expect(parityResultSchema.safeParse(result).error).toBeUndefined();
  });

  it.each(['streaming-parity', 'streaming-acceptance'])('FP32 passes %s', (rules) => {
    expect(under(rules, fp32).outcome).toBe('pass');
  });

  it('FP16 fails by its numbers, and not by its contract', () => {
    const result = under('streaming-acceptance', fp16, { without: ['chunk-latency'] });
    expect(failing(result)).toEqual([
      'own-outcome',
      'encoder-error',
      'encoder-pass-rate',
      'encoder-error-p95',
      'encoder-error-mean',
    ]);
    expect(result.findings[0]?.at).toBe('verdicts.numeric');
    expect(result.findings[1]?.message).toMatch(/drift\.max of parity is 0\.00455\d+, above 0\.001\./);
  });

  it.each([
    [2e9 - 1, 'pass'],
    [2e9, 'fail'],
    [null, 'skipped'],
  ] as const)('a plan of %s bytes: %s', (planBytes, outcome) => {
    const memory = { planBytes, peakHostBytes: null, gpuBytes: null };
    const { findings } = under('streaming-acceptance', { ...fp32, memory });
    expect(findings.find(({ check }) => check === 'engine-size')?.outcome).toBe(outcome);
  });

  it('FP16 passes where the policy allows it what FP16 costs, and waives what verify found by its own limits', () => {
    const checks = [{ id: 'encoder-error', fail: { above: 1e-2 }, warn: { above: 5e-3 } }];
    const waivers = [
      { check: 'own-outcome', at: 'verdicts.numeric', reason: 'limits of FP32', expires: '2027-03-01' },
    ];
    expect(failing(under('streaming-parity', fp16, { checks }))).toEqual(['own-outcome']);
    expect(under('streaming-parity', fp16, { checks, waivers }).outcome).toBe('pass');
  });

  it.each([
    [
      'a broken contract',
      { verdicts: { contract: 'fail', numeric: 'pass', task: null } },
      ['own-outcome', 'cache-contract'],
    ],
    [
      'another decision',
      { verdicts: { contract: 'pass', numeric: 'pass', task: 'fail' } },
      ['own-outcome', 'task'],
    ],
    ['numbers that verify failed', { outcome: 'fail', exitCode: 1 }, ['own-outcome']],
    ['no drift at all', { drift: null }, ['encoder-error']],
    [
      'an error that is not a number',
      { drift: { ...(fp32.drift as object), max: 'NaN' } },
      ['encoder-error'],
    ],
    [
      'outputs that are not finite',
      { outputs: [{ nonFinite: { candidate: 3, reference: 0 } }] },
      ['finite-outputs'],
    ],
  ])('%s fails, however good the rest is', (_, change, checks) => {
    expect(failing(under('streaming-parity', { ...fp32, ...change }))).toEqual(checks);
  });

  it('warns between the two limits of the rules', () => {
    const drift = { ...(fp32.drift as object), max: 7e-4 };
    expect(under('streaming-parity', { ...fp32, drift }).outcome).toBe('warn');
  });
});
