import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { command as bench } from '../../../src/cli/commands/bench.js';
import { command as build } from '../../../src/cli/commands/build.js';
import { command as forge } from '../../../src/cli/commands/forge.js';
import { withinTime } from '../../../src/cli/options/timeout.js';
import type { TrtforgeError } from '../../../src/errors.js';
import { ignoreEvents } from '../../../src/events.js';
import { command as size } from '../../../src/products/deepstream/commands/size.js';
import { runTrtexec } from '../../../src/tensorrt/trtexec/run.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { isAlive } from '../../support/processes.js';
import { writeSampleModel } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-timeout-'));
afterAll(() => rmSync(folder, { recursive: true }));

const context = (signal = new AbortController().signal) => ({
  commandLine: 'trtforge build',
  emit: ignoreEvents,
  signal,
  environment: process.env,
  products: [],
});
const failure = (attempt: Promise<unknown>): Promise<TrtforgeError> =>
  attempt.then(
    () => expect.unreachable('an error was expected'),
    (error: TrtforgeError) => error,
  );

const hang = (signal: AbortSignal, pidFile: string) =>
  runTrtexec(
    {
      trtexec: fakeTrtexec(folder, { version: '10.6', fault: 'hangs', pidFile }),
      arguments: ['--onnx=m.onnx', `--saveEngine=${join(folder, 'm.plan')}`, '--skipInference'],
      expectedVersion: null,
      environment: process.env,
      logPath: join(folder, 'hangs.log'),
      doing: 'building m.onnx',
    },
    { emit: ignoreEvents, signal },
  );

describe('--timeout', () => {
  test.each([
    ['build', build],
    ['forge', forge],
    ['bench', bench],
    ['deepstream size', size],
  ])('%s takes it', (_, { options }) => {
    expect(options.timeout?.flags).toBe('--timeout <s>');
  });

  test('ends a trtexec that hangs, with everything it had started, and reports how far it had come', async () => {
    const pidFile = join(folder, 'pids.json');
    // The time is over when all that hangs is there, however long this machine takes to start it.
    const late = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(late.signal);
    const ended = failure(withinTime(1.5, context(), ({ signal }) => hang(signal, pidFile)));
    await expect.poll(() => existsSync(pidFile)).toBe(true);
    late.abort();
    const error = await ended;
    expect(timeout).toHaveBeenCalledWith(1500);
    timeout.mockRestore();
    expect(error.code).toBe('TF_TIMEOUT');
    expect(error.message).toMatch(
      /^Not finished after 1\.5 s\. Cancelled while building m\.onnx\. Its log is .*hangs\.log\./,
    );
    expect(error.message).toMatch(/Its last lines:\n\S/);
    const pids = JSON.parse(readFileSync(pidFile, 'utf8')) as number[];
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
  });

  test('leaves Ctrl-C what it is, and other errors too', async () => {
    const stopping = new AbortController();
    setTimeout(() => stopping.abort(), 300);
    const stopped = withinTime(60, context(stopping.signal), ({ signal }) => hang(signal, join(folder, 'p')));
    expect((await failure(stopped)).code).toBe('TF_CANCELLED');
    const wrong = new Error('something else');
    expect(await failure(withinTime(60, context(), () => Promise.reject(wrong)))).toBe(wrong);
  });

  test('ends a measurement from the command line with exit code 4', async () => {
    const model = join(folder, 'sample.onnx');
    await writeSampleModel(model);
    const line = ['bench', 'model', model, '--duration', '60', '--timeout', '4', '--json'];
    const { exitCode, json } = await trtforge(line);
    expect(json()).toMatchObject({ ok: false, exitCode: 4, error: { code: 'TF_TIMEOUT' } });
    expect(exitCode).toBe(4);
  });

  test('of nothing is rejected', async () => {
    const { exitCode, err } = await trtforge(['bench', 'model', 'x.onnx', '--timeout', '0']);
    expect(err).toMatch(/--timeout: .0. is not a number from 0\.001/);
    expect(exitCode).toBe(2);
  });
});
