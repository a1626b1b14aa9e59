import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { runGate } from '../../../src/quality/gate/gate.js';
import { mutations } from '../../support/mutations.js';
import { runs } from '../../support/runs.js';
import { folderOf, policyOf, TODAY } from './gate-case.js';

const result = readFileSync(fileURLToPath(new URL('../../fixtures/gate/parity-fp16.json', import.meta.url)));
const baseline = Buffer.from(
  JSON.stringify({
    schema: 'trtforge.gate-baseline/1',
    values: [{ check: 'p95', result: 'parity', field: 'drift.p95', at: 'drift.p95', value: 0.004, same: {} }],
  }),
);
const policy = policyOf({
  extends: 'streaming-acceptance',
  checks: [
    {
      id: 'p95',
      result: { name: 'parity' },
      field: 'drift.p95',
      regression: { better: 'lower', fail: '5%', same: ['candidateBackend'] },
    },
  ],
});

/** Every damaged copy is judged or refused; a judgement never passes what the whole file fails. */
function judgeAll(name: string, original: Buffer, count: number): void {
  const folder = folderOf({ 'policy.yaml': policy });
  writeFileSync(join(folder, 'parity.json'), result);
  writeFileSync(join(folder, 'baseline.json'), baseline);
  for (const bytes of mutations(original, count, 11)) {
    writeFileSync(join(folder, name), bytes);
    try {
      const { outcome } = runGate({
        policy: join(folder, 'policy.yaml'),
        results: [join(folder, 'parity.json')],
        baseline: join(folder, 'baseline.json'),
        day: TODAY,
      });
      expect(outcome).toBe('fail');
    } catch (error) {
      expect(error).toBeInstanceOf(TrtforgeError);
    }
  }
}

describe('damaged files', () => {
  it('results are judged or rejected', () => judgeAll('parity.json', result, runs(400)));
  it('baselines are read or rejected', () => judgeAll('baseline.json', baseline, runs(400)));

  it('long texts with literals that JSON does not have are read in one pass, not once a literal, which would take hours', () => {
    const folder = folderOf({
      'policy.yaml': policyOf({
        checks: [{ id: 'it', result: { name: 'r' }, field: 'v', fail: { above: 1 } }],
      }),
      'r.json': `{"text":"${'\\"x'.repeat(3_000_000)}","v":0,"other":NaN}`,
    });
    const { outcome } = runGate({
      policy: join(folder, 'policy.yaml'),
      results: [join(folder, 'r.json')],
      day: TODAY,
    });
    expect(outcome).toBe('pass');
  });
});
