import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { pythonJson } from '../../../../src/base/files/json.js';
import { readRun } from '../../../../src/products/streaming/verify/compare-runs.js';
import { legacySummaryText } from '../../../../src/products/streaming/verify/legacy-summary.js';
import { refusal } from '../../../support/refusal.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-runs-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('a summary holds NaN and Infinity as Python writes them', () => {
  const timing_ms = { mean: 20.1, p50: 19, p95: Number.POSITIVE_INFINITY, p99: Number.NaN };
  const summary = { mode: 'functional', ref: 'r.jsonl', timing_ms, failures: [{ error: 'NaN, -Infinity' }] };
  const written = legacySummaryText(summary as unknown as Parameters<typeof legacySummaryText>[0]);
  expect(written).toMatch(/"p99": NaN/);
  expect(pythonJson(written)).toEqual(summary);
});

describe('another run', () => {
  it.each([
    ['nothing', '', /not JSON/],
    ['a list', '[]', /expected/],
    ['a result of another command', '{"schema":"trtforge.error/1","error":{}}', /schema/],
    [
      'a result that is not whole',
      '{"schema":"trtforge.stream-verify/1"}',
      /is not a result of stream verify: \S/,
    ],
    ['a summary for scripts', '{"total_chunks":2,"passed":1,"failed":1,"failures":[]}', /schema/],
  ])('is not %s', (_, text, why) => {
    const path = join(folder, 'run.json');
    writeFileSync(path, text);
    const { code, message } = refusal(() => readRun(path));
    expect(code).toBe('TF_PARITY_SUMMARY_INVALID');
    expect(message).toMatch(why);
  });
});
