import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { floats, modelFile } from '../engines/runtime/onnxruntime/models.js';
import { realLibrary } from '../fakes/onnxruntime/library.js';
import { FakeBench, sanitizerLibrary } from '../fakes/tensorrt/library.js';
import { describeWith } from '../support/needs.js';

const script = fileURLToPath(new URL('./scenarios/onnxruntime.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'trtforge-native-ort-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeWith('onnxruntime', 'the addon over ONNX Runtime, with AddressSanitizer', () => {
  let play: (scenario: string) => { result: unknown; status: number | null };
  beforeAll(async () => {
    const { addon } = await FakeBench.sanitized(folder);
    const adder = await modelFile((graph) => {
      graph.input('x', 'float32', [2]);
      graph.input('sum', 'float32', [2]);
      graph.node('Add', { inputs: ['x', 'sum'], outputs: ['next'] });
      graph.node('Neg', { inputs: ['next'], outputs: ['y'] });
      graph.output('next', 'float32', [2]);
      graph.output('y', 'float32', [2]);
    });
    const slow = await modelFile((graph) => {
      graph.input('x', 'float32', [400, 400]);
      graph.initializer('one', floats('float32', [], [1]));
      let value = 'x';
      for (let at = 0; at < 3000; at++)
        value = graph.node('MatMul', { inputs: [value, 'x'], outputs: [`m${at}`] });
      graph.node('Add', { inputs: [value, 'one'], outputs: ['y'] });
      graph.output('y', 'float32', [400, 400]);
    });
    const sanitizer = sanitizerLibrary();
    play = (scenario) => {
      const { status, signal, stdout, stderr } = spawnSync(
        process.execPath,
        ['--expose-gc', script, addon, realLibrary() ?? '', adder, slow, scenario],
        {
          encoding: 'utf8',
          env: {
            PATH: process.env.PATH,
            ORT_DISABLE_TELEMETRY: '1',
            ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=1:alloc_dealloc_mismatch=0',
            ...(sanitizer === undefined ? {} : { LD_PRELOAD: sanitizer }),
          },
        },
      );
      expect({ signal, stderr: stderr.includes('AddressSanitizer') ? stderr : '' }).toEqual({
        signal: null,
        stderr: '',
      });
      return { result: stdout === '' ? undefined : JSON.parse(stdout), status };
    };
  }, 300_000);

  test('runs follow one another, and state goes from one to the next', () => {
    expect(play('runs')).toEqual({ status: 0, result: { seen: [-1, -51, -71], kept: 0 } });
  });

  test('what does not fit is rejected, and the session goes on', () => {
    const failed = 'TF_ONNXRUNTIME_FAILED';
    expect(play('refusals').result).toEqual({
      ...{ shape: failed, missing: failed, input: failed, output: failed, bytes: failed, file: failed },
      ...{
        library: 'TF_LIBRARY_LOAD_FAILED',
        handle: 'TF_INTERNAL',
        after: 'done',
        closed: 'TF_SESSION_CLOSED',
      },
    });
  });

  test('a run that is cancelled ends, and others of its session do not', () => {
    const cancelled = 'TF_CANCELLED';
    expect(play('cancelled').result).toEqual({ stopped: cancelled, again: cancelled, other: 'done' });
  });

  test('closing stops what runs, and what was to run', () => {
    expect(play('closing').result).toEqual({ flying: Array(3).fill('TF_CANCELLED') });
  });

  test('what was never closed goes with the garbage, the session after its calls', () => {
    expect(play('collected')).toEqual({ status: 0, result: { collected: true } });
  });

  test('a process and a thread end in the middle of a run', () => {
    expect(play('exits').status).toBe(7);
    expect(play('threads')).toEqual({ status: 0, result: { codes: [1, 1, 1] } });
  });
});
