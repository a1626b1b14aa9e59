import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { TrtforgeError } from '../../../src/errors.js';
import type { WorkEvent } from '../../../src/events.js';
import { runTrtexec } from '../../../src/tensorrt/trtexec/run.js';
import { type FakeVersion, fakeTrtexec, fakeVersions } from '../../fakes/trtexec.js';
import { isAlive } from '../../support/processes.js';

type TrtexecRunRequest = NonNullable<Parameters<typeof runTrtexec>[0]>;

const folder = mkdtempSync(join(tmpdir(), 'trtforge-trtexec-run-'));
afterAll(() => rmSync(folder, { recursive: true }));
const pidFile = join(folder, 'pids.json');

function start(
  version: FakeVersion,
  fault: string,
  request: Partial<TrtexecRunRequest> = {},
  options: Parameters<typeof runTrtexec>[1] = {},
) {
  return runTrtexec(
    {
      trtexec: fakeTrtexec(folder, { version, fault, pidFile }),
      arguments: ['--onnx=m.onnx', `--saveEngine=${join(folder, 'm.plan')}`, '--skipInference'],
      expectedVersion: fakeVersions[version],
      environment: process.env,
      logPath: join(folder, 'logs', `${version}-${fault}.log`),
      doing: 'building m.onnx',
      ...request,
    },
    { emit: () => {}, ...options },
  );
}

const failure = (attempt: Promise<unknown>): Promise<TrtforgeError> =>
  attempt.then(
    () => expect.unreachable('an error was expected'),
    (error: TrtforgeError) => error,
  );

async function expectGone(): Promise<void> {
  const pids = JSON.parse(readFileSync(pidFile, 'utf8')) as number[];
  await expect.poll(() => pids.filter(isAlive)).toEqual([]);
}

describe('a run', () => {
  test.each(['8.6', '10.6', '11.1'] as const)('%s: exit code, log and memory', async (version) => {
    const run = await start(version, 'sound');
    expect(run).toMatchObject({ exitCode: 0, signal: null, log: { outcome: 'passed' } });
    // The two streams arrive in no fixed order.
    expect(run.lastLines.some((line) => line.startsWith('&&&& PASSED'))).toBe(true);
    expect(existsSync(join(folder, 'm.plan'))).toBe(true);
  });

  test('both streams are in its log, line by line', async () => {
    const run = await start('10.6', 'refuses-model');
    const log = readFileSync(run.logPath ?? '', 'utf8');
    expect(log).toContain('[E] Failed to parse onnx file\n');
    expect(log).toContain('&&&& RUNNING TensorRT.trtexec');
    expect(run.exitCode).toBe(1);
    expect(run.log.errors.map(({ message }) => message)).toContain('Parsing model failed');
  });

  test('its phases and lines are events', async () => {
    const events: WorkEvent[] = [];
    await start('10.6', 'sound', {}, { emit: (event) => events.push(event) });
    const started = events.flatMap((event) => (event.type === 'phase-start' ? [event.phase] : []));
    const ended = events.flatMap((event) => (event.type === 'phase-end' ? [event.phase] : []));
    expect(started).toEqual([
      'load libraries',
      'parse',
      'optimize graph',
      'choose kernels',
      'generate engine',
      'load engine',
      'report',
    ]);
    expect(ended).toEqual(started);
    expect(events).toContainEqual({
      type: 'log',
      source: 'trtexec',
      severity: 'info',
      message: 'Engine built in 20.8187 sec.',
    });
  });

  test('another version than expected goes no further than its first line', async () => {
    const error = await failure(start('8.6', 'hangs', { expectedVersion: '10.6.0.26' }));
    expect(error.code).toBe('TF_TRTEXEC_VERSION');
    expect(error.message).toMatch(/is version 8\.6\.1; 10\.6\.0\.26 was expected/);
  });

  test('a program that is not there', async () => {
    const error = await failure(start('10.6', 'sound', { trtexec: '/nowhere/trtexec' }));
    expect(error.code).toBe('TF_TRTEXEC_NOT_FOUND');
  });

  test('a log that cannot be written', async () => {
    const error = await failure(
      start('10.6', 'sound', { logPath: join(fakeTrtexec(folder, { version: '10.6' }), 'no.log') }),
    );
    expect(error.code).toBe('TF_WRITE_FAILED');
  });

  test('death by signal is reported', async () => {
    expect(await start('10.6', 'killed')).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
    const aborted = await start('10.6', 'aborts');
    expect(aborted).toMatchObject({ signal: 'SIGABRT', log: { outcome: 'unfinished' } });
    expect(aborted.log.errors.map(({ message }) => message)).toEqual(['LLVM ERROR: out of memory']);
  });
});

describe('a run that must end', () => {
  /** Stops a run that hangs, once all that it starts is there. */
  async function stopped(fault: string, graceMs?: number): Promise<TrtforgeError> {
    rmSync(pidFile, { force: true });
    const stopping = new AbortController();
    const ended = failure(start('10.6', fault, {}, { signal: stopping.signal, graceMs }));
    await expect.poll(() => existsSync(pidFile)).toBe(true);
    stopping.abort();
    return await ended;
  }

  test('ends with everything it had started', async () => {
    const error = await stopped('hangs');
    expect(error.code).toBe('TF_CANCELLED');
    expect(error.details?.log).toMatch(/10\.6-hangs\.log$/);
    expect(error.details?.lastLines).toContainEqual(expect.stringContaining('[I] '));
    await expectGone();
  });

  test('by SIGKILL when it does not listen', async () => {
    expect((await stopped('ignores-sigterm', 300)).code).toBe('TF_CANCELLED');
    await expectGone();
  });

  test('before it begins', async () => {
    const error = await failure(start('10.6', 'sound', {}, { signal: AbortSignal.abort() }));
    expect(error.code).toBe('TF_CANCELLED');
  });

  test('with us, even when we are killed', async () => {
    rmSync(pidFile, { force: true });
    const module = new URL('../../../dist/tensorrt/trtexec/run.js', import.meta.url);
    const request = {
      trtexec: fakeTrtexec(folder, { version: '10.6', fault: 'hangs', pidFile }),
      arguments: ['--saveEngine=m.plan'],
      expectedVersion: null,
      environment: process.env,
      logPath: null,
      doing: 'building',
    };
    const script = `import { runTrtexec } from '${module}'; runTrtexec(${JSON.stringify(request)}, { emit: () => {} });`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' });
    await expect.poll(() => existsSync(pidFile)).toBe(true);
    parent.kill('SIGKILL');
    await expectGone();
  });
});
