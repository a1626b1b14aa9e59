import { describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../src/errors.js';
import { type WorkEvent, workOf } from '../../src/events.js';
import { type Phase, PhaseRun } from '../../src/forge/phase-run.js';

interface Found {
  readonly first: number;
  readonly second: string;
}

/** A clock that moves by ten milliseconds whenever someone looks. */
function steppingClock(): () => number {
  let now = 0;
  return () => {
    now += 10;
    return now;
  };
}

const first: Phase<Found> = {
  name: 'first',
  skip: () => null,
  run: async (_, { emit }) => {
    emit({ type: 'phase-start', phase: 'inner' });
    emit({ type: 'log', source: 'library', severity: 'warning', message: 'careful' });
    emit({ type: 'phase-end', phase: 'inner', ms: 10 });
    return { found: { first: 7 }, detail: 'found 7' };
  },
};
const second: Phase<Found> = {
  name: 'second',
  skip: () => null,
  run: async ({ first: seven }) => ({ found: { second: `from ${seven}` }, detail: 'done' }),
};
const skipped: Phase<Found> = { ...second, name: 'needs a GPU', skip: () => 'there is none' };
const failing = (error: unknown): Phase<Found> => ({
  name: 'failing',
  skip: () => null,
  run: () => Promise.reject(error),
});

async function run(phases: readonly Phase<Found>[], signal?: AbortSignal) {
  const events: WorkEvent[] = [];
  const logged: [string, WorkEvent][] = [];
  const run = new PhaseRun<Found>(
    workOf({ emit: (event) => events.push(event), signal }),
    (phase, event) => logged.push([phase, event]),
    steppingClock(),
  );
  await run.advance(phases);
  return { ...run, events, logged };
}

describe('phases', () => {
  test('each sees what those before it found', async () => {
    const { found, phases, error } = await run([first, second]);
    expect(found).toEqual({ first: 7, second: 'from 7' });
    expect(phases.map(({ status, detail }) => [status, detail])).toEqual([
      ['done', 'found 7'],
      ['done', 'done'],
    ]);
    expect(error).toBeNull();
  });

  test('their times and those of their inner phases are on one clock', async () => {
    const { phases } = await run([first]);
    expect(phases[0]).toMatchObject({ startMs: 10, ms: 30, steps: [{ name: 'inner', startMs: 20, ms: 10 }] });
  });

  test('one that cannot run is skipped by name and reason, and those after it go on', async () => {
    const { phases, events, found } = await run([skipped, first]);
    expect(phases[0]).toMatchObject({
      name: 'needs a GPU',
      status: 'skipped',
      detail: 'there is none',
      startMs: null,
    });
    expect(events).toContainEqual({ type: 'phase-skipped', phase: 'needs a GPU', reason: 'there is none' });
    expect(found).toEqual({ first: 7 });
  });

  test('one that fails stops the run: code and remedy are kept, what was found before too', async () => {
    const thrown = new TrtforgeError('TF_TOOLCHAIN_NOT_FOUND', 'There is none.', { remedy: 'Install one.' });
    const { phases, error, found } = await run([first, failing(thrown), second, skipped]);
    expect(error).toEqual({
      phase: 'failing',
      code: 'TF_TOOLCHAIN_NOT_FOUND',
      message: 'There is none.',
      remedy: 'Install one.',
      exitCode: 3,
    });
    expect(phases.map(({ status }) => status)).toEqual(['done', 'failed', 'not-reached', 'not-reached']);
    expect(found).toEqual({ first: 7 });
  });

  test('a fault of our own is TF_INTERNAL with its stack, never a crash without a report', async () => {
    const { error } = await run([failing(new TypeError('undefined is not a function'))]);
    expect(error).toMatchObject({ code: 'TF_INTERNAL', exitCode: 5 });
    expect(error?.message).toContain('phase.test.ts');
  });

  test('go on from what was found, until they are stopped from outside', async () => {
    const run = new PhaseRun<Found>(workOf(), () => {}, steppingClock());
    await run.advance([first]);
    await run.advance([second]);
    expect(run.found).toEqual({ first: 7, second: 'from 7' });
    run.stop('the run stopped in predictor: build');
    await run.advance([first]);
    expect(run.phases.map(({ status, detail }) => [status, detail])).toEqual([
      ['done', 'found 7'],
      ['done', 'done'],
      ['not-reached', 'the run stopped in predictor: build'],
    ]);
    expect(run.error).toBeNull();
  });

  test('after Ctrl-C no further phase starts', async () => {
    const { phases, error } = await run([first, second], AbortSignal.abort());
    expect(error).toMatchObject({ phase: 'first', code: 'TF_CANCELLED' });
    expect(phases.map(({ status }) => status)).toEqual(['failed', 'not-reached']);
  });

  test('what a library logs reaches the log of its phase and the listener', async () => {
    const { logged, events } = await run([first]);
    const line = { type: 'log', source: 'library', severity: 'warning', message: 'careful' };
    expect(logged).toContainEqual(['first', line]);
    expect(events).toContainEqual(line);
  });

  test('that fails reports the known issues that its lines show, and one that passes which it hides', async () => {
    const line = 'Requested amount of GPU memory (1024 bytes) could not be allocated.';
    const says = (ending: () => Promise<never>): Phase<Found> => ({
      ...second,
      run: (_, { emit }) => {
        emit({ type: 'log', source: 'tensorrt', severity: 'error', message: line });
        return ending();
      },
    });
    const failed = await run([says(() => Promise.reject(new TrtforgeError('TF_BUILD_FAILED', 'No.')))]);
    expect(failed.error).toMatchObject({
      code: 'TF_BUILD_FAILED',
      remedy: expect.stringMatching(/The GPU has no room/),
      issues: [{ id: 'gpu-out-of-memory', count: 1 }],
    });
    const tiny: Phase<Found> = {
      ...second,
      run: async (_, { emit }) => {
        emit({
          type: 'log',
          source: 'trtexec',
          severity: 'info',
          message: 'Memory Pools: workspace: 0.03 MiB',
        });
        return { found: {}, detail: 'done' };
      },
    };
    const passed = await run([tiny]);
    expect([passed.error, passed.issues]).toMatchObject([null, [{ id: 'workspace-parsed-tiny' }]]);
  });
});
