import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { staticModel } from '../native/tiny-models.js';
import { trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-log-'));
afterAll(() => rmSync(folder, { recursive: true }));

const model = staticModel(folder);
const log = join(folder, 'run.log');
const lines = (): readonly Record<string, unknown>[] =>
  readFileSync(log, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
const convert = (...args: readonly string[]) =>
  trtforge(['convert', model, '--precision', 'fp16', '-o', join(folder, 'typed.onnx'), ...args]);

describe('--log-file', () => {
  test('has the command line, every event and the end, also of a quiet command, and of the next one alone', async () => {
    for (const time of [1, 2]) {
      const { exitCode, err } = await convert('--log-file', log, '-q');
      expect([time, exitCode, err]).toEqual([time, 0, '']);
    }
    const types = lines().map(({ type }) => type);
    expect(types[0]).toBe('start');
    expect(types).toContain('phase-end');
    expect(types.filter((type) => type === 'start')).toHaveLength(1);
    expect(lines().at(-1)).toMatchObject({ type: 'end', exitCode: 0, error: null });
    expect(lines().every(({ time }) => !Number.isNaN(Date.parse(String(time))))).toBe(true);
  });

  test('ends with the code of the error', async () => {
    const broken = join(folder, 'broken.onnx');
    writeFileSync(broken, 'no model');
    const { exitCode } = await trtforge(['inspect', broken, '--log-file', log]);
    expect(lines().at(-1)).toMatchObject({ type: 'end', exitCode, error: { code: 'TF_ONNX_NOT_A_MODEL' } });
  });

  test('never replaces what the command reads, nor a file of another kind', async () => {
    const bytes = readFileSync(model);
    expect((await convert('--log-file', model, '--json')).json().error?.code).toBe('TF_OUTPUT_IS_INPUT');
    const other = join(folder, 'other.onnx');
    writeFileSync(other, bytes);
    expect((await convert('--log-file', other, '--json')).json().error?.code).toBe('TF_OUTPUT_OF_OTHER_KIND');
    expect(readFileSync(other).equals(bytes)).toBe(true);
  });
});

test('a value that is not one of its choices is answered with the nearest', async () => {
  const { err } = await trtforge(['convert', model, '--precision', 'fp61', '-o', join(folder, 'x.onnx')]);
  expect(err).toContain('Did you mean "fp16"?');
});
