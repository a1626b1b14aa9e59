import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sanitizerLibrary } from '../fakes/tensorrt/library.js';
import { EngineScenarios, generations, refused } from './engine-scenarios.js';

let scenarios: EngineScenarios;
beforeAll(async () => {
  scenarios = await EngineScenarios.prepare();
});
afterAll(() => scenarios.remove());

describe.each(generations)('engines over a library of generation %s', (fake) => {
  const wide = fake !== '8';
  let found: Record<string, unknown> = {};
  beforeAll(() => {
    found = scenarios.playAll(fake, [
      ['paces', [], {}],
      ['order', [], { FAKE_COMPUTE_US: '1000' }],
      ['closing', [], { FAKE_COMPUTE_US: '300' }],
      ['collected', [], {}],
      ['allocations', [], {}],
      ['faults', [], {}],
      ['pressure', [], {}],
    ]);
  });

  test('runs whose length jumps settle when they are over, while the event loop turns; then it rests', () => {
    const settled = { right: true, early: false };
    expect(found.paces).toEqual({ paces: Array(11).fill(settled), turned: true, rests: true });
  });

  test('runs are answered in order, a sync one after those before it; a cancelled one does not begin', () => {
    const result = found.order as { seen: unknown[]; sync: number };
    expect(result.seen).toEqual([...Array.from({ length: 49 }, (_, i) => i), 'TF_CANCELLED']);
    expect(result.sync).toBe(201);
  });

  test('close in any order, twice and with runs in flight; use afterwards is an error', () => {
    const result = found.closing;
    const closed = { code: 'TF_SESSION_CLOSED' };
    expect(result).toMatchObject({
      detached: 0,
      runs: 10,
      run: closed,
      buffer: closed,
      flying: 'done',
      prepare: closed,
      context: closed,
      second: closed,
      layers: closed,
      making: closed,
      allocate: closed,
      free: 0,
    });
  });

  test('what was never closed goes with the garbage, and a view of pinned memory outlives its call', () => {
    // Of streams, events, graphs and memory that piece alone is left, and takes a byte.
    expect(found.collected).toEqual({ still: 39, free: -1 });
  });

  test('GPU memory that runs out anywhere is TF_GPU_MEMORY, and nothing is left behind', () => {
    const result = found.allocations as { outcomes: unknown[]; free: number };
    const [ofLibrary, first, details, ...others] = result.outcomes;
    expect([ofLibrary, first]).toEqual(['TF_GPU_MEMORY', 'TF_GPU_MEMORY']);
    expect(details).toMatchObject({ neededBytes: 4096, totalBytes: 161061273600 });
    expect(others.slice(0, 4)).toEqual(Array(4).fill('TF_GPU_MEMORY'));
    expect(others.at(-1)).toBe('done');
    expect(result.free).toBe(0);
  });

  test('memory kept for later calls is let go when another one needs it', () => {
    expect(found.pressure).toEqual({ y: 7 });
  });

  test('faults of plans, library and GPU are errors that name them, and the engine runs on', () => {
    const result = found.faults;
    expect(result).toMatchObject({
      load: refused('TF_PLAN_LOAD_FAILED', 'stdVersionRead'),
      loadMemory: { code: 'TF_GPU_MEMORY', details: { neededBytes: 2 ** 30 } },
      forgotten: refused('TF_PLAN_LOAD_FAILED', 'does not know the shape of the input x of the engine'),
      text: refused('TF_PLAN_INVALID', 'text.plan'),
      missing: refused('TF_FILE_UNREADABLE', 'absent.plan'),
      // Without a whole header the library, which might end the process, does not see them.
      cut: Array.from({ length: 34 }, (_, bytes) => (bytes < 28 ? 'TF_PLAN_INVALID' : 'TF_PLAN_LOAD_FAILED')),
      device: refused('TF_GPU_UNAVAILABLE', 'no GPU 3'),
      hostCode: refused('TF_PLAN_LOAD_FAILED', 'getEngineHostCodeAllowed() is false'),
      context: refused('TF_CONTEXT_FAILED', 'could not be made'),
      contextMemory: { code: 'TF_GPU_MEMORY' },
      capture: [false, expect.stringContaining('not permitted when stream is capturing'), 3],
      afterCapture: [true, 5],
      enqueue: refused('TF_RUN_FAILED', 'illegal memory access'),
      enqueueAsync: refused('TF_RUN_FAILED', 'illegal memory access'),
      prepare: refused('TF_RUN_FAILED', 'illegal memory access'),
      astray: Array(5).fill(
        refused('TF_RUN_FAILED', 'an illegal memory access was encountered (CUDA error 700)'),
      ),
      pinned: refused('TF_GPU_MEMORY', 'cannot pin 1.50 KiB of host memory'),
      afterwards: 'done',
      size: refused('TF_SESSION_INPUT', 'x has 768 bytes, and 20 were passed'),
      name: refused('TF_SESSION_INPUT', 'no tensor z'),
      direction: refused('TF_SESSION_INPUT', 'no tensor x'),
      budget: { code: 'TF_OPTION_UNSUPPORTED' },
      noBudget: { code: 'TF_OPTION_UNSUPPORTED' },
    });
    const streaming = (bytes: unknown) => [false, expect.stringContaining('streams its weights'), bytes];
    const refusal = { code: 'TF_OPTION_UNSUPPORTED' };
    expect((result as Record<string, unknown>).budgets).toMatchObject(
      wide
        ? { all: [true, null, 4096], automatic: streaming(2048), bytes: streaming(100) }
        : { all: [true, null, 0], automatic: refusal, bytes: refusal },
    );
  });

  test('threads of JavaScript have engines of their own, and may end in the middle of a run', () => {
    const { result, status } = scenarios.play<{ codes: number[]; main: number[] }>(fake, 'threads');
    expect(status).toBe(0);
    expect(result).toEqual({ codes: [0, 0, 1], main: [7, 9, 21, 41] });
  });

  test.each([
    ['at once', ['now']],
    ['by itself', []],
  ])('a process with runs in flight ends %s without a crash', (_, args) => {
    const { result, status } = scenarios.play(fake, 'exits', args, { FAKE_COMPUTE_US: '500' });
    expect([result, status]).toEqual(['left', 0]);
  });
});

test('whatever is passed to an export of the addon, an error comes back and nothing crashes', () => {
  const { result } = scenarios.play('10', 'foreign');
  expect(result).toEqual({ strange: [], refused: true, y: 9, foreign: 'TF_INTERNAL' });
});

test('an abort inside the library ends the process by its signal', () => {
  expect(scenarios.play('10', 'aborts').signal).toBe('SIGABRT');
});

test.each([
  ['there is none', { FAKE_GPU: 'none' }, 'TF_GPU_UNAVAILABLE', 'shows no GPU.'],
  [
    'CUDA_VISIBLE_DEVICES is empty',
    { CUDA_VISIBLE_DEVICES: '' },
    'TF_GPU_UNAVAILABLE',
    'is empty, which hides every GPU',
  ],
  [
    'the driver does not start',
    { FAKE_GPU: 'broken' },
    'TF_GPU_UNAVAILABLE',
    'does not start: unknown error (CUDA error 999)',
  ],
  [
    'its memory is full',
    { FAKE_GPU: 'full' },
    'TF_GPU_MEMORY',
    'has no room left, not even for a CUDA context',
  ],
])('without a GPU nothing is opened: %s', (_, environment, code, why) => {
  const { result } = scenarios.play('10', 'runs', [], environment);
  expect(result).toMatchObject(refused(code, why));
});

test('a thousand rounds of opening, running and closing leave memory, streams, events and graphs where they were', () => {
  const { result } = scenarios.play<{ free: number; resident: number }[]>('10', 'rounds', [1000]);
  expect(result).toHaveLength(10);
  expect(result.map(({ free }) => free)).toEqual(Array(result.length).fill(result[0]?.free));
  const [warm, last] = [result[1], result.at(-1)];
  if (warm === undefined || last === undefined) throw new Error('rounds are missing');
  // AddressSanitizer keeps freed memory in quarantine.
  expect(last.resident - warm.resident).toBeLessThan(sanitizerLibrary() === undefined ? 8 << 20 : 96 << 20);
});
