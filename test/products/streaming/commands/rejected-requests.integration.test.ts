import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeOfLine, trtforge } from '../../../support/trtforge.js';
import { encoderModel } from '../streaming-encoder.js';

const CONTRACT = join(import.meta.dirname, '../../../fixtures/contracts/batch-first.contract.json');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-stream-rejected-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let model = '';
beforeAll(async () => {
  model = await encoderModel();
  writeFileSync(at('broken.json'), '{}');
});

const record = (...args: readonly string[]) => ['stream', 'record', model, '-o', at('ref.jsonl'), ...args];

test('stream verify is rejected for a tolerance of no output', async () => {
  const recorded = record('--contract', CONTRACT, '--chunks', '3');
  expect((await trtforge(recorded)).exitCode).toBe(0);
  const line = ['stream', 'verify', model, '--reference', at('ref.jsonl')];
  expect(await codeOfLine([...line, '--atol', 'no-output:1'])).toBe('TF_USAGE');
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
])('rejects %s', async (_, line, code) => {
  expect(await codeOfLine(line())).toBe(code);
});
