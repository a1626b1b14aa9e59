import { describe, expect, test } from 'vitest';
import { runSupervised } from '../../../src/base/process/supervise.js';
import { TrtforgeError } from '../../../src/errors.js';
import type { WorkEvent } from '../../../src/events.js';

const child = new URL('./children/behaviour.mjs', import.meta.url);

async function run(behave: string, more: object = {}, signal?: AbortSignal) {
  const events: WorkEvent[] = [];
  const options = { emit: (event: WorkEvent) => events.push(event), doing: `trying ${behave}`, graceMs: 200 };
  const outcome = await runSupervised(
    child,
    { behave, ...more },
    signal === undefined ? options : { ...options, signal },
  ).catch((error: unknown) => error);
  return { outcome, events };
}

describe('a supervised child', () => {
  test('takes a request and gives a result, typed arrays included', async () => {
    expect((await run('double', { values: new Float32Array([1, 2]) })).outcome).toEqual(
      new Float32Array([2, 4]),
    );
  });

  test('reports what it does while it works', async () => {
    const { outcome, events } = await run('events');
    expect(outcome).toBe('done');
    expect(events).toEqual([{ type: 'log', source: 'library', severity: 'warning', message: 'careful' }]);
  });

  test('that fails gives its own error, code, remedy and details', async () => {
    const { outcome } = await run('error');
    expect(outcome).toBeInstanceOf(TrtforgeError);
    expect(outcome).toMatchObject({
      code: 'TF_FILE_NOT_FOUND',
      remedy: 'Look again.',
      details: { path: 'x.onnx' },
    });
  });

  test('with a bug of its own ends as TF_INTERNAL with the stack', async () => {
    const { outcome } = await run('bug');
    expect(outcome).toMatchObject({ code: 'TF_INTERNAL' });
    expect((outcome as Error).message).toContain('behaviour.mjs');
  });

  test('that aborts ends as an error with the signal and its last lines', async () => {
    const { outcome, events } = await run('abort');
    expect(outcome).toMatchObject({ code: 'TF_CHILD_DIED', details: { signal: 'SIGABRT' } });
    expect((outcome as Error).message).toContain('SIGABRT');
    expect((outcome as Error).message).toContain('terminate called: tactic exploded');
    expect(events.some((event) => event.type === 'log' && event.message.includes('tactic exploded'))).toBe(
      true,
    );
  });

  test('that exits without an answer ends as an error with the exit code; what we printed is not the library’s', async () => {
    expect((await run('exit')).outcome).toMatchObject({
      code: 'TF_CHILD_DIED',
      message: 'The process trying exit ended with exit code 7.',
      remedy: expect.stringMatching(/printed nothing.*--verbose/),
      details: { exitCode: 7, lastLines: [] },
    });
  });

  test.each([
    ['exit', { exitCode: 3, signal: null }],
    ['kill', { exitCode: null, signal: 'SIGKILL' }],
  ])(
    'that dies before it takes its request ends with its last lines, however large the request is: %s',
    async (how, details) => {
      const doing = runSupervised(
        new URL('./children/early.mjs', import.meta.url),
        { values: new Float32Array(8_000_000) },
        { emit: () => {}, doing: 'trying early', env: { ...process.env, EARLY: how } },
      );
      await expect(doing).rejects.toMatchObject({
        code: 'TF_CHILD_DIED',
        message: expect.stringContaining('the library cannot be mapped'),
        details: { ...details, lastLines: ['the library cannot be mapped'] },
      });
    },
  );

  test('that is killed names what kills processes so', async () => {
    expect((await run('kill')).outcome).toMatchObject({
      code: 'TF_CHILD_DIED',
      remedy: expect.stringMatching(/out-of-memory killer.*or a user who ended the process/),
      details: { signal: 'SIGKILL' },
    });
  });

  test('stops when asked', async () => {
    expect((await run('wait', {}, AbortSignal.timeout(300))).outcome).toMatchObject({ code: 'TF_CANCELLED' });
  });

  test('that will not stop is killed', async () => {
    expect((await run('stubborn', {}, AbortSignal.timeout(300))).outcome).toMatchObject({
      code: 'TF_CANCELLED',
    });
  });

  test('of a request that was cancelled before it began does no work', async () => {
    expect((await run('double', { values: [1] }, AbortSignal.abort())).outcome).toMatchObject({
      code: 'TF_CANCELLED',
    });
  });
});
