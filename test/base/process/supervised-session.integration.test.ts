import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { deathOf, startSupervised } from '../../../src/base/process/supervise.js';
import type { WorkEvent } from '../../../src/events.js';

const module = new URL('./children/session.mjs', import.meta.url);

function start(events: WorkEvent[] = []) {
  return startSupervised(module, { emit: (event) => events.push(event), doing: 'adding up', graceMs: 200 });
}

/** Until the child has written this line. */
const said = (events: readonly WorkEvent[], line: string) =>
  expect.poll(() => events.some((event) => event.type === 'log' && event.message === line)).toBe(true);

describe('a child process that answers many requests', () => {
  it('keeps its state between requests, answers in order and passes typed arrays and events', async () => {
    const events: WorkEvent[] = [];
    const session = start(events);
    const answers = await Promise.all([
      session.request(Float32Array.of(1, 2)),
      session.request([3]),
      session.request([]),
    ]);
    expect(answers).toEqual([3, 6, 6]);
    expect(events).toContainEqual({
      type: 'log',
      source: 'child',
      severity: 'info',
      message: 'adding 2 numbers',
    });
    expect(session.peakBytes()).toBeGreaterThan(10e6);
    await session.close();
    expect(session.peakBytes()).toBeNull();
    await session.close();
  });

  it('lets the process end while idle, without being closed, and not while it answers', async () => {
    const program = `
      import { startSupervised } from '${new URL('../../../dist/base/process/supervise.js', import.meta.url)}';
      const session = startSupervised(new URL('${module}'), { emit: () => {}, doing: 'adding up' });
      session.request('wait').then((answer) => process.stdout.write(answer));
    `;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      timeout: 240_000,
    });
    expect(stdout).toBe('waited');
  });

  it('keeps the reason of an abort as the cause', async () => {
    const session = start();
    const reason = new Error('the user left');
    await expect(session.request('wait', AbortSignal.abort(reason))).rejects.toMatchObject({
      code: 'TF_CANCELLED',
      cause: reason,
    });
    await session.close();
  });

  it('gives the last lines of a child that took no request and did not end', async () => {
    const session = start();
    const pid = Number(await session.request('pid'));
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-session-'));
    const deaf = join(folder, 'deaf');
    expect(await session.request(`deafen ${deaf}`)).toBe('deaf');
    await expect.poll(() => existsSync(deaf)).toBe(true);
    rmSync(folder, { recursive: true });
    await expect(session.request([1])).rejects.toMatchObject({
      code: 'TF_CHILD_DIED',
      message: expect.stringContaining('the driver hangs'),
      details: { lastLines: ['the driver hangs'] },
    });
    process.kill(pid, 'SIGKILL');
    await session.close();
  });

  it('goes on after a request that failed', async () => {
    const session = start();
    await expect(session.request('fail')).rejects.toThrow(/not today/);
    expect(await session.request([1])).toBe(1);
    await session.close();
  });

  it('reports a crash, now and to every later request', async () => {
    const session = start();
    const death = expect.objectContaining({
      code: 'TF_CHILD_DIED',
      message: expect.stringMatching(/SIGABRT/),
    });
    await expect(session.request('crash')).rejects.toThrow(death);
    await expect(session.request([1])).rejects.toThrow(death);
    await session.close();
  });

  it('leaves Ctrl-C, which the whole group gets, to its parent', async () => {
    const session = start();
    const pid = Number(await session.request('pid'));
    process.kill(pid, 'SIGINT');
    expect(await session.request([3])).toBe(3);
    await session.close();
    expect(deathOf('adding up', [], null, 'SIGINT').code).toBe('TF_CANCELLED');
  });

  it('reports a death that a request meets on its way', async () => {
    const session = start();
    const pid = Number(await session.request('pid'));
    process.kill(pid, 'SIGKILL');
    // Its end is told by the event loop, which does not turn here; until then it is a zombie with a closed channel.
    while (!/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')));
    await expect(session.request([1])).rejects.toMatchObject({
      code: 'TF_CHILD_DIED',
      details: { signal: 'SIGKILL' },
    });
    await session.close();
  });

  it('kills a child that does not listen, on cancelling and on closing', async () => {
    const cancelled = start();
    await expect(cancelled.request('block', AbortSignal.timeout(100))).rejects.toThrow(
      expect.objectContaining({ code: 'TF_CANCELLED' }),
    );
    await cancelled.close();
    const events: WorkEvent[] = [];
    const closed = start(events);
    const blocked = expect(closed.request('block')).rejects.toThrow(/SIGKILL/);
    await said(events, 'blocking');
    await closed.close();
    await blocked;
  });

  it('drops a request that is cancelled while another one is answered', async () => {
    const events: WorkEvent[] = [];
    const session = start(events);
    const pid = await session.request('pid');
    const cancelling = new AbortController();
    const [first, second, third] = [
      session.request('hold'),
      session.request([5], cancelling.signal),
      session.request([1]),
    ];
    await said(events, 'holding');
    cancelling.abort();
    await expect(second).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    process.kill(Number(pid), 'SIGUSR2');
    expect(await first).toBe('waited');
    // It was with the child already, so it counts.
    expect(await third).toBe(6);
    expect(await session.request('pid')).toBe(pid);
    await session.close();
  });

  it('rejects requests once it is closed', async () => {
    const session = start();
    await session.close();
    await expect(session.request([1])).rejects.toMatchObject({ code: 'TF_SESSION_CLOSED', exitCode: 2 });
  });
});
