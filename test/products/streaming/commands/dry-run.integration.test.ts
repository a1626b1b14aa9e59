import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dryRunIn, refusedIn } from '../../../support/dry-run.js';
import { trtforge } from '../../../support/trtforge.js';
import { encoderModel } from '../streaming-encoder.js';

const CONTRACT = join(import.meta.dirname, '../../../fixtures/contracts/batch-first.contract.json');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-stream-dry-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let model = '';
beforeAll(async () => {
  model = await encoderModel();
  writeFileSync(at('broken.json'), '{}');
});

const record = (...args: readonly string[]) => ['stream', 'record', model, '-o', at('ref.jsonl'), ...args];

test('stream record states chunks and frames', async () => {
  const { does, steps, resolved } = await dryRunIn(folder, record('--contract', CONTRACT, '--chunks', '4'));
  expect(does).toEqual(['read', 'run', 'write']);
  expect(steps[1]?.detail).toMatch(/4 chunks/);
  expect(resolved).toMatchObject({ chunks: 4, schedule: expect.any(Array) });
});

test('stream verify states how many chunks it runs', async () => {
  const compact = record('--contract', CONTRACT, '--chunks', '3', '-o', at('ref'));
  expect((await trtforge(compact)).exitCode).toBe(0);
  const line = ['stream', 'verify', model, '--reference', at('ref')];
  const { does, resolved } = await dryRunIn(folder, [...line, '--chunks', '2', '--report', at('page.html')]);
  expect(does).toEqual(['read', 'run', 'write']);
  expect(resolved).toMatchObject({ chunks: 2 });
  expect(await refusedIn(folder, [...line, '--atol', 'no-output:1'])).toBe('TF_USAGE');
});

test.each([
  ['a contract that is none', () => record('--contract', at('broken.json')), 'TF_CONTRACT_INVALID'],
  ['frames that are not known', () => record(), 'TF_USAGE'],
  [
    'a reference that is not there',
    () => ['stream', 'verify', model, '--reference', at('x')],
    'TF_FILE_NOT_FOUND',
  ],
  [
    'an option of engines',
    () => ['stream', 'verify', model, '--reference', CONTRACT, '--batches', '2'],
    'TF_USAGE',
  ],
])('rejects %s as a run does', async (_, line, code) => {
  expect(await refusedIn(folder, line())).toBe(code);
});
