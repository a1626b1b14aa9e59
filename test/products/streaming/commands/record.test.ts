import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  draftedContractSchema,
  recordResultSchema,
} from '../../../../src/products/streaming/record/result.js';
import { trtforge } from '../../../support/trtforge.js';
import { encoderModel } from '../streaming-encoder.js';

const CONTRACT = join(import.meta.dirname, '../../../fixtures/contracts/batch-first.contract.json');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-record-command-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let model = '';
beforeAll(async () => {
  model = await encoderModel();
});
const place = (name: string) => join(folder, name);

async function stream(...words: string[]) {
  const { exitCode, out, err } = await trtforge(['stream', ...words]);
  return { status: exitCode, stdout: out, stderr: err };
}
const json = async (...words: string[]) => {
  const { status, stdout } = await stream(...words, '--json');
  const { ok: _, exitCode, command: __, ...result } = JSON.parse(stdout);
  return { status, exitCode, result };
};

describe('trtforge stream record and draft', async () => {
  test('records, and prints the line that repeats it', async () => {
    const first = await json(
      'record',
      model,
      '--contract',
      CONTRACT,
      '--chunks',
      '4',
      '--seed',
      '42',
      '-o',
      place('ref.jsonl'),
    );
    expect(first.status).toBe(0);
    expect(recordResultSchema.parse(first.result)).toMatchObject({
      chunks: 4,
      violations: [],
    });
    const two = ['record', model, '--contract', CONTRACT, '--chunks', '1', '--batch', '2'];
    expect((await json(...two, '-o', place('two.jsonl'))).status).toBe(0);
    const { inputs } = JSON.parse(readFileSync(place('two.jsonl'), 'utf8').split('\n')[0]!);
    expect(inputs.audio_signal.shape).toEqual([2, 8, 41]);
  });

  test('shows what it recorded', async () => {
    const { status, stdout } = await stream(
      'record',
      model,
      '--schedule',
      '41,57',
      '--chunks',
      '3',
      '-o',
      place('shown.jsonl'),
    );
    expect(status).toBe(0);
    expect(stdout).toContain('shown.jsonl  3 chunks');
    expect(stdout).toContain('chunks of 41, then 57 frames');
    expect(stdout).toMatch(/To repeat: trtforge (?:stream )?record/);
  });

  test('rejects a place that does not end as samples of a stream do', async () => {
    const rejected = await stream('record', model, '--schedule', '41,57', '-o', place('ref/'));
    expect(rejected).toMatchObject({ status: 2, stderr: expect.stringContaining('-o ref.jsonl') });
    expect(existsSync(place('ref'))).toBe(false);
  });

  test('ends with 1 when the model breaks its contract', async () => {
    const { status, stdout } = await stream(
      'record',
      await encoderModel({ drop: 10 }),
      '--contract',
      CONTRACT,
      '--chunks',
      '2',
      '-o',
      place('bad.jsonl'),
    );
    expect(status).toBe(1);
    expect(stdout).toContain('contract violation cache_last_channel_len_out, chunk 0: [-6]');
  });

  test('drafts a contract', async () => {
    const { status, result } = await json('draft', model, '-o', place('draft.json'), '--schedule', '41,57');
    expect(status).toBe(0);
    expect(draftedContractSchema.parse(result).contract.schedule).toMatchObject({ first: 41, rest: 57 });
    expect(existsSync(place('draft.json'))).toBe(true);
  });

  test('drafts over no contract that was edited, except with --force', async () => {
    const draft = (...more: string[]) => stream('draft', model, '-o', place('edited.json'), ...more);
    expect([(await draft()).status, (await draft()).status]).toEqual([0, 0]);
    const drafted = readFileSync(place('edited.json'), 'utf8');
    writeFileSync(place('edited.json'), drafted.replace('{', '{ '));
    expect(await draft()).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('TF_OUTPUT_OF_OTHER_KIND'),
    });
    expect(readFileSync(place('edited.json'), 'utf8')).not.toBe(drafted);
    expect((await draft('--force')).status).toBe(0);
    expect(readFileSync(place('edited.json'), 'utf8')).toBe(drafted);
  });

  test.each([
    ['nothing to record', ['record', '-o', 'x']],
    ['no place', ['record', 'model.onnx']],
    ['no place of a draft', ['draft', 'model.onnx']],
    ['a schedule of words', ['record', 'model.onnx', '--schedule', 'long', '-o', 'b']],
    ['a schedule of nothing', ['record', 'model.onnx', '--schedule', '0', '-o', 'b']],
    ['a seed of a draft', ['draft', 'model.onnx', '-o', 'a', '--seed', '1']],
  ])('rejects %s before any work', async (_, words) => {
    expect(await stream(...words)).toMatchObject({ status: 2, stderr: expect.stringContaining('TF_USAGE') });
  });
});
