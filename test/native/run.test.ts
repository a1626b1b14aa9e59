import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type NetworkPlan, planBytes } from '../support/standin-engine.js';
import { type Standin, StandinBench, sanitizerLibrary } from './standin-library.js';

/** Engines of the addon over the stand-ins of three generations, under AddressSanitizer where it is installed; a process for each scenario. */
const generations = ['8', '10', '11'] as const satisfies readonly Standin[];
const folder = mkdtempSync(join(tmpdir(), 'trtforge-runs-'));
const scenarios = fileURLToPath(new URL('./standin/run-scenarios.mjs', import.meta.url));
const wrapper = fileURLToPath(new URL('../../dist/toolchain/addon.js', import.meta.url));
const INNER = 40_009;
let bench: StandinBench;

const plans: Readonly<Record<string, NetworkPlan>> = {
  affine: { kind: 'affine' },
  state: { kind: 'state' },
  nonzero: { kind: 'nonzero' },
  shape: { kind: 'shape' },
  large: { kind: 'affine', inner: INNER },
  hostcode: { kind: 'affine', hostCode: true },
  streaming: { kind: 'affine', streamable: 4096 },
  profiles: {
    kind: 'affine',
    profiles: [
      [1, 4, 8],
      [33, 40, 64],
    ],
  },
  ...Object.fromEntries(
    Array.from({ length: 12 }, (_, dtype) => [`copy${dtype}`, { kind: 'copy', dtype, inner: 5 } as const]),
  ),
};

beforeAll(async () => {
  bench = await StandinBench.compile(folder, { only: [...generations] });
  for (const standin of generations) {
    mkdirSync(join(folder, `plans-${standin}`));
    for (const [name, network] of Object.entries(plans))
      writeFileSync(join(folder, `plans-${standin}`, `${name}.plan`), planBytes(standin, network));
    writeFileSync(join(folder, `plans-${standin}`, 'text.plan'), 'not a plan, whatever its name says\n');
  }
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Scenario<T> {
  readonly result: T;
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

function scenario<T>(
  standin: Standin,
  name: string,
  args: readonly (string | number)[] = [],
  wishes: Record<string, string> = {},
): Scenario<T> {
  const sanitizer = sanitizerLibrary();
  const done = spawnSync(
    process.execPath,
    [
      '--expose-gc',
      scenarios,
      wrapper,
      bench.path('trtforge.node'),
      bench.library(standin),
      join(folder, `plans-${standin}`),
      name,
      ...args.map(String),
    ],
    {
      encoding: 'utf8',
      timeout: 120_000,
      env: {
        ...bench.environment(wishes),
        ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=1:alloc_dealloc_mismatch=1',
        ...(sanitizer === undefined ? {} : { LD_PRELOAD: sanitizer }),
      },
    },
  );
  expect(done.stderr).not.toContain('AddressSanitizer');
  const { result } = (done.stdout === '' ? {} : JSON.parse(done.stdout)) as { result: T };
  return { result, status: done.status, signal: done.signal, stderr: done.stderr };
}

/** What one process finds in all scenarios that need none of their own. */
function played(standin: Standin): Record<string, unknown> {
  const dtypes = standin === '8' ? 7 : 12;
  const script = [
    ['runs', [], {}],
    ['dtypes', Array.from({ length: dtypes }, (_, dtype) => dtype), {}],
    ['state', [], {}],
    ['nonzero', [], {}],
    ['shapes', [], {}],
    ['profiles', [], {}],
    ['turns', [], {}],
    ['large', [INNER], {}],
    ['pastCaches', [INNER], {}],
    ['paces', [], {}],
    ['order', [], { STANDIN_COMPUTE_US: '1000' }],
    ['closing', [], { STANDIN_COMPUTE_US: '300' }],
    ['collected', [], {}],
    ['allocations', [], {}],
    ['faults', [], {}],
    ['layerTimes', [], {}],
  ];
  return scenario<Record<string, unknown>>(standin, JSON.stringify(script)).result;
}

interface Refused {
  readonly code: string;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}
const refused = (code: string, message: string) => ({ code, message: expect.stringContaining(message) });

describe.each(generations)('engines over a library of generation %s', (standin) => {
  const wide = standin !== '8';
  let found: Record<string, unknown> = {};
  beforeAll(() => {
    found = played(standin);
  }, 120_000);

  test('are opened, described, prepared with a graph and run, from pinned and from ordinary memory', () => {
    const result = found.runs;
    expect(result).toMatchObject({
      facts: {
        name: 'affine',
        layers: 2,
        profiles: 1,
        deviceMemoryBytes: 4096,
        deviceMemoryBytesPerProfile: [4096],
        tensors: [
          {
            name: 'x',
            mode: 'input',
            location: 'device',
            shape: [-1, 64],
            profiles: [{ min: [1, 64], opt: [8, 64], max: [64, 64] }],
          },
          { name: 'y', mode: 'output', shape: [-1, 64], profiles: [] },
        ],
      },
      outputsFor: [{ name: 'y', shape: [7, 64], bytes: 7 * 64 * 4 }],
      prepared: [true, null, [{ name: 'y', shape: [2, 64], bytes: 512 }]],
      results: [7, 9, 21, 41],
      layers: { Layers: ['affine'] },
      sameBuffer: true,
    });
  });

  test('pass every width of element through, packed below a byte', () => {
    const bytes = [60, 30, 15, 60, 15, 15, 15, 30, 120, 8, 8, 15].slice(0, wide ? 12 : 7);
    const result = found.dtypes;
    expect(result).toEqual(
      Object.fromEntries(bytes.map((size, dtype) => [dtype, { bytes: size, same: true }])),
    );
  });

  test('keep state on the GPU for 300 steps; preparing leaves it as it was', () => {
    const result = found.state;
    expect(result).toMatchObject({ untouched: 5, ended: 305, y: 610, graphs: [true, true], inPlace: 306 });
    expect((result as Record<string, unknown>).refusals).toMatchObject({
      small: refused('TF_SESSION_INPUT', 'state_out has from byte 5888 on 256 bytes, and 1024 are needed'),
      misaligned: refused('TF_SESSION_INPUT', 'no multiple of 256'),
      outside: refused('TF_SESSION_INPUT', 'not all in device memory'),
      unbound: refused('TF_SESSION_INPUT', 'No binding was given for state'),
      unknown: refused('TF_SESSION_INPUT', 'no tensor z; it has x, state, y, state_out'),
    });
    expect((result as Record<string, unknown>).closed).toMatchObject({ code: 'TF_SESSION_CLOSED' });
  });

  test('give outputs whose shape depends on the data', () => {
    const result = found.nonzero;
    expect(result).toMatchObject({
      prepared: [false, expect.stringContaining('depends on the data'), [{ name: 'y', shape: null }]],
      runs: [
        [[{ name: 'y', shape: [3] }], [1, 3, 4]],
        [[{ name: 'y', shape: [0] }], []],
        [[{ name: 'y', shape: [6] }], [0, 1, 2, 3, 4, 5]],
      ],
      inMemory: 2,
      tooSmall: { code: 'TF_GPU_MEMORY', details: { neededBytes: wide ? 48 : 24 } },
      noBuffer: refused('TF_SESSION_INPUT', 'y has no pinned memory'),
      afterwards: [{ name: 'y', shape: [6] }],
    });
  });

  test('take values of shape tensors on the host and give host outputs', () => {
    const result = found.shapes;
    expect(result).toMatchObject({
      tensors: [
        ['x', 'device', expect.anything()],
        ['s', 'host', [{ min: [1, 64], opt: [8, 64], max: [64, 64] }]],
        ['y', 'device', []],
        ['t', 'host', []],
      ],
      outputs: [
        { name: 'y', shape: [3, 5], bytes: 60 },
        { name: 't', shape: [2], bytes: wide ? 16 : 8 },
      ],
      last: 14,
      wide: 63,
      t: [6, 10],
      few: refused('TF_SESSION_INPUT', 'was given 1 values'),
      none: refused('TF_SESSION_INPUT', 'its values must be given'),
      outputsFor: [{ shape: [9, 9] }, {}],
      large: wide ? { code: 'TF_GPU_MEMORY' } : refused('TF_SESSION_INPUT', 'does not fit int32'),
    });
  });

  test('run several contexts at once, each with a profile; a shape outside is refused and harms nothing', () => {
    const result = found.profiles;
    expect(result).toMatchObject({
      again: wide ? 'made' : refused('TF_CONTEXT_FAILED', 'Profile 0 has been chosen'),
      beyond: refused('TF_SESSION_INPUT', 'no profile 2'),
      both: [3, 3],
      outside: refused('TF_SESSION_INPUT', '40x64'),
      outsidePrepared: refused('TF_SESSION_INPUT', '40x64'),
      afterwards: 3,
      rank: refused('TF_SESSION_INPUT', 'the shape 4 for its input x'),
      open: { code: 'TF_SESSION_INPUT' },
    });
  });

  test('several calls of one context run in turns, with and without graphs, as shapes are asked about between them', () => {
    expect(found.turns).toEqual({ wrong: 0, graphs: [true, false, true] });
  });

  test('large tensors are staged by several threads and arrive whole', () => {
    expect(found.large).toEqual({ wrong: [] });
  });

  test('tensors larger than the caches arrive whole, from memory aligned to nothing', () => {
    expect(found.pastCaches).toEqual({ wrong: [] });
  });

  test('runs whose length jumps settle when they are over, while the event loop turns; then it rests', () => {
    const settled = { right: true, early: false, turned: true };
    expect(found.paces).toEqual({ paces: Array(11).fill(settled), rests: true });
  });

  test('small tensors are used in pinned memory, without copies, where a call asks for that', () => {
    const { result } = scenario(standin, 'mapped', [], { STANDIN_COPY_US: '5000' });
    expect(result).toEqual({
      copied: { graph: true, given: [7, 11, 15], waitsForCopies: true },
      mapped: { graph: true, given: [7, 11, 15], waitsForCopies: false },
    });
  });

  test('runs are answered in order, a sync one after those before it; a cancelled one does not begin', () => {
    const result = found.order as { seen: unknown[]; sync: number };
    expect(result.seen).toEqual([...Array.from({ length: 49 }, (_, i) => i), 'TF_CANCELLED']);
    expect(result.sync).toBe(201);
  });

  test('close in any order, twice and with runs in flight; what is used afterwards says so', () => {
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
      allocate: closed,
      free: 0,
    });
  });

  test('what was never closed goes with the garbage, and a view of pinned memory outlives its call', () => {
    expect(found.collected).toEqual({ still: 39, free: 0 });
  });

  test('GPU memory that runs out anywhere is TF_GPU_MEMORY, and nothing is left behind', () => {
    const result = found.allocations as { outcomes: unknown[]; free: number };
    const [first, details, ...others] = result.outcomes;
    expect(first).toBe('TF_GPU_MEMORY');
    expect(details).toMatchObject({ neededBytes: 4096, totalBytes: 161061273600 });
    expect(others.slice(0, 4)).toEqual(Array(4).fill('TF_GPU_MEMORY'));
    expect(others.at(-1)).toBe('done');
    expect(result.free).toBe(0);
  });

  test('faults of plans, library and GPU are errors that name them, and the engine runs on', () => {
    const result = found.faults;
    expect(result).toMatchObject({
      load: refused('TF_PLAN_LOAD_FAILED', 'stdVersionRead'),
      loadMemory: { code: 'TF_GPU_MEMORY', details: { neededBytes: 2 ** 30 } },
      text: refused('TF_PLAN_INVALID', 'text.plan'),
      missing: refused('TF_FILE_UNREADABLE', 'absent.plan'),
      device: refused('TF_GPU_UNAVAILABLE', 'no GPU 3'),
      hostCode: refused('TF_PLAN_LOAD_FAILED', 'host code is not allowed'),
      context: refused('TF_CONTEXT_FAILED', 'could not be made'),
      contextMemory: { code: 'TF_GPU_MEMORY' },
      capture: [false, expect.stringContaining('not permitted when stream is capturing'), 3],
      afterCapture: [true, 5],
      enqueue: refused('TF_RUN_FAILED', 'illegal memory access'),
      enqueueAsync: refused('TF_RUN_FAILED', 'illegal memory access'),
      prepare: refused('TF_RUN_FAILED', 'illegal memory access'),
      afterwards: 'done',
      size: refused('TF_SESSION_INPUT', 'x has 768 bytes, and 20 were given'),
      name: refused('TF_SESSION_INPUT', 'no tensor z'),
      direction: refused('TF_SESSION_INPUT', 'no tensor x'),
      budget: { code: 'TF_OPTION_UNSUPPORTED' } satisfies Partial<Refused>,
    });
    const streaming = [false, expect.stringContaining('streams its weights')];
    expect((result as Record<string, unknown>).budgets).toMatchObject(
      wide
        ? { all: [true, null], automatic: streaming, bytes: streaming }
        : { all: [true, null], automatic: [true, null], bytes: { code: 'TF_OPTION_UNSUPPORTED' } },
    );
  });

  test('a context with profiling gives the times of its layers, without the rehearsal', () => {
    const result = found.layerTimes;
    expect(result).toMatchObject({
      times: [
        { name: 'first', ms: 1, runs: 4 },
        { name: 'second', ms: 2, runs: 4 },
      ],
      graph: [false, expect.stringContaining('times of layers')],
      without: { code: 'TF_SESSION_INPUT' },
    });
  });

  test('threads of JavaScript have engines of their own, and may end in the middle of a run', () => {
    const { result, status } = scenario<{ codes: number[]; main: number[] }>(standin, 'threads');
    expect(status).toBe(0);
    expect(result).toEqual({ codes: [0, 0, 1], main: [7, 9, 21, 41] });
  });

  test.each([
    ['at once', ['now']],
    ['by itself', []],
  ])('a process with runs in flight ends %s without a crash', (_, args) => {
    const { result, status } = scenario(standin, 'exits', args, { STANDIN_COMPUTE_US: '500' });
    expect([result, status]).toEqual(['left', 0]);
  });
});

test('an abort inside the library ends the process by its signal', () => {
  expect(scenario('10', 'aborts').signal).toBe('SIGABRT');
});

test('without a GPU nothing is opened', () => {
  const { result } = scenario('10', 'runs', [], { STANDIN_GPU: 'none' });
  expect(result).toMatchObject(refused('TF_GPU_UNAVAILABLE', 'shows no GPU'));
});

test('three hundred rounds of opening, running and closing leave memory where it was', () => {
  const { result } = scenario<{ free: number; resident: number }[]>('10', 'rounds', [300]);
  expect(result.map(({ free }) => free)).toEqual(Array(result.length).fill(result[0]?.free));
  const [warm, last] = [result[1], result.at(-1)];
  if (warm === undefined || last === undefined) throw new Error('rounds are missing');
  // AddressSanitizer keeps freed memory in quarantine.
  expect(last.resident - warm.resident).toBeLessThan(sanitizerLibrary() === undefined ? 8 << 20 : 96 << 20);
});
