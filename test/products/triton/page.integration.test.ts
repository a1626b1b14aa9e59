import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { printModelConfig } from '../../../src/products/triton/model-config.js';
import { tritonSections } from '../../../src/products/triton/page.js';
import { sampleResult } from '../../report/sample.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-triton-report-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => {
  const model = join(folder, 'root', 'deploy', 'detector');
  mkdirSync(model, { recursive: true });
  const text = printModelConfig({
    name: 'detector',
    backend: 'tensorrt',
    max_batch_size: 16,
    cc_model_filenames: { '8.9': 'sm_89.plan' },
    parameters: { 'trtforge.identity.8.9': { string_value: 'abcdef0123456789' } },
    sequence_batching: { state: [{ input_name: 'cache', output_name: 'cache_next' }] },
  });
  writeFileSync(join(model, 'config.pbtxt'), text);
  mkdirSync(join(folder, 'root', 'deploy', 'broken'));
  writeFileSync(join(folder, 'root', 'deploy', 'broken', 'config.pbtxt'), 'nam: "x"');
  writeFileSync(join(folder, 'root', 'report.json'), JSON.stringify(sampleResult()));
  const finding = {
    code: 'cc-file-missing',
    where: 'detector/config.pbtxt',
    message: 'sm_89.plan is missing',
  };
  const check = { schema: 'trtforge.triton-check/1', ok: false, outcome: 'fail', findings: [finding] };
  writeFileSync(join(folder, 'root', 'deploy', 'check.json'), JSON.stringify(check));
});

it('a report has the model repository of its run root, and what was found about it', async () => {
  const { exitCode } = await trtforge(['report', join(folder, 'root'), '--format', 'markdown']);
  expect(exitCode).toBe(0);
  const report = readFileSync(join(folder, 'root', 'report.md'), 'utf8').replaceAll('\\', '');
  expect(report).toContain('## Triton');
  expect(report).toMatch(/\| `deploy\/detector` \| 16 \| 8\.9 +abcdef012345 \| `cache` \| tensorrt \|/);
  expect(report).toContain('sm_89.plan is missing');
});

it('a run root without one has no such section', () => {
  const root = join(folder, 'empty');
  mkdirSync(root);
  expect(tritonSections([{ root, result: sampleResult() }])).toEqual([]);
});
