import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openEngineSession } from '../../../../src/engines/runtime/tensorrt/engine-session.js';
import type { EngineSessionOptions } from '../../../../src/engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { float32Values, type NamedTensors, type Tensor } from '../../../../src/formats/tensor/tensor.js';
import { doubling, FakeAddon, type FakeSpec, range, tensor } from '../../../fakes/addon.js';
import { codeOfWork } from '../../../support/refusal.js';
import { sampleToolchain, writeSample } from '../../../support/sample-engine.js';
import { floats, ids } from '../onnxruntime/models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-session-'));
const planPath = writeSample(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function open(spec: FakeSpec = doubling, options: EngineSessionOptions = {}) {
  const addon = new FakeAddon(spec);
  const session = await openEngineSession(planPath, { addon, toolchain: sampleToolchain, ...options });
  return { addon, session };
}

const x = (rows: number, from = 0) =>
  floats(
    'float32',
    [rows, 3],
    Array.from({ length: 3 * rows }, (_, index) => from + index),
  );
const named = (tensors: Record<string, Tensor>): NamedTensors => new Map(Object.entries(tensors));
const y = (outputs: NamedTensors) => [...float32Values(outputs.get('y')!)];
const twice = (input: Tensor) => [...float32Values(input)].map((value) => 2 * value);

const code = (attempt: () => unknown) => codeOfWork(Promise.resolve().then(attempt));

describe('a session over an engine', () => {
  it('runs named tensors; other shapes get buffers of their own', async () => {
    const { session } = await open();
    for (const rows of [1, 4, 2, 4, 16]) {
      const input = x(rows);
      const outputs = await session.run(named({ x: input }));
      expect(outputs.get('y')).toMatchObject({ dtype: 'float32', shape: [rows, 3] });
      expect(y(outputs)).toEqual(twice(input));
    }
    await session.close();
    expect(await code(() => session.run(named({ x: x(1) })))).toBe('TF_SESSION_CLOSED');
    expect(await code(() => session.prepare({ x: [1, 3] }))).toBe('TF_SESSION_CLOSED');
    expect(await code(() => session.context())).toBe('TF_SESSION_CLOSED');
  });

  it('keeps what runs at the same time apart', async () => {
    const { addon, session } = await open();
    const inputs = Array.from({ length: 40 }, (_, index) => x(1 + (index % 4), index));
    const outputs = await Promise.all(inputs.map((input) => session.run(named({ x: input }))));
    expect(outputs.map(y)).toEqual(inputs.map(twice));
    await session.close();
    expect(addon.log.filter((line) => line.startsWith('context'))).toEqual(['context 0']);
  });

  it('chooses the smallest profile that takes the shapes, or the one asked for', async () => {
    const { addon, session } = await open(doubling, { cudaGraph: 'never' });
    await session.run(named({ x: x(3) }));
    await session.run(named({ x: x(3) }), { profile: 1 });
    await session.run(named({ x: x(9) }));
    expect(addon.log.filter((line) => /context|prepare/.test(line))).toEqual([
      'context 0',
      'prepare x[3,3]',
      'context 1',
      'prepare x[3,3]',
      'prepare x[9,3]',
    ]);
    await session.close();
  });

  it.each<[string, Record<string, Tensor>, object, string, RegExp]>([
    ['no tensor', {}, {}, 'TF_SESSION_INPUT', /no tensor for the input "x"/],
    ['another name', { x: x(1), z: x(1) }, {}, 'TF_SESSION_INPUT', /no input "z"; the inputs are x/],
    ['another dtype', { x: ids([1, 3], [1, 2, 3]) }, {}, 'TF_SESSION_INPUT', /x is float32.*int64/],
    [
      'another rank',
      { x: floats('float32', [3], [1, 2, 3]) },
      {},
      'TF_SESSION_INPUT',
      /x is \[\?, 3\].*\[3\]/,
    ],
    [
      'another fixed dimension',
      { x: floats('float32', [1, 4], [1, 2, 3, 4]) },
      {},
      'TF_SESSION_INPUT',
      /x is \[\?, 3\].*\[1, 4\]/,
    ],
    [
      'too few bytes',
      { x: { dtype: 'float32', shape: [2, 3], bytes: new Uint8Array(20) } },
      {},
      'TF_SESSION_INPUT',
      /needs 24 bytes.*has 20/,
    ],
    [
      'a shape that no profile takes',
      { x: x(17) },
      {},
      'TF_PROFILE_MISFIT',
      /x has the shape \[17, 3\], but profile 0 takes \[1\.\.4, 3\], profile 1 takes \[2\.\.16, 3\]/,
    ],
    [
      'a shape that the profile asked for does not take',
      { x: x(1) },
      { profile: 1 },
      'TF_PROFILE_MISFIT',
      /x has the shape \[1, 3\], but profile 1 takes \[2\.\.16, 3\]/,
    ],
    ['a profile that is not there', { x: x(1) }, { profile: 2 }, 'TF_SESSION_INPUT', /profiles 0 to 1/],
  ])('%s is rejected before the library is asked', async (_, tensors, options, expected, message) => {
    const { addon, session } = await open();
    for (const attempt of [
      () => session.run(named(tensors), options),
      async () => session.runSync(named(tensors), options),
    ]) {
      const error: TrtforgeError = await attempt().then(
        () => expect.unreachable(),
        (reason) => reason,
      );
      expect(error.code).toBe(expected);
      expect(error.message).toMatch(message);
    }
    expect(addon.log).toEqual([]);
    await session.close();
  });

  it('takes tensors, and those that it writes into, in a plain object, prepared or not', async () => {
    const { session } = await open();
    const first = await session.run({ x: x(1) });
    expect(await session.run(new Map([['x', x(1)]]))).toEqual(first);
    expect(session.runSync({ x: x(1) })).toEqual(first);
    const y = { ...first.get('y')!, bytes: new Uint8Array(first.get('y')!.bytes.length) };
    await session.run({ x: x(1) }, { outputs: { y } });
    expect(y).toEqual(first.get('y'));
    for (const passed of [x(1), null, undefined, 'x', [x(1)]])
      await expect(session.run(passed as never)).rejects.toMatchObject({ code: 'TF_SESSION_INPUT' });
    await session.close();
  });

  it('checks the values of shape tensors against the profile, and keeps calls apart by them', async () => {
    const spec: FakeSpec = {
      tensors: [
        tensor('size', 'input', [2], {
          dtype: 'int32',
          location: 'host',
          shapeTensor: true,
          profiles: [range([1, 1], [2, 2], [4, 4])],
        }),
        tensor('y', 'output', [-1, -1]),
      ],
      outputShape: (_, shapes) => shapes.get('size')?.values ?? null,
      kernel: ({ y: out }) => out!.fill(0),
    };
    const { addon, session } = await open(spec, { cudaGraph: 'never' });
    const size = (a: number, b: number): Tensor => ({
      dtype: 'int32',
      shape: [2],
      bytes: new Uint8Array(Int32Array.of(a, b).buffer),
    });
    for (const [a, b] of [
      [2, 3],
      [4, 1],
      [2, 3],
    ] as const)
      expect((await session.run(named({ size: size(a, b) }))).get('y')?.shape).toEqual([a, b]);
    expect(addon.log.filter((line) => line.startsWith('prepare'))).toEqual([
      'prepare size[2,3]',
      'prepare size[4,1]',
    ]);
    await expect(session.run(named({ size: size(2, 5) }))).rejects.toThrow(
      /size has the values \[2, 5\], but profile 0 takes \[1\.\.4, 1\.\.4\]/,
    );
    await expect(session.prepare({ size: [2] })).rejects.toThrow(/pass a tensor/);
    const call = await session.prepare({ size: size(3, 3) });
    expect(call.output('y').shape).toEqual([3, 3]);
    await session.close();
  });

  it('puts outputs where they are wanted', async () => {
    const { session } = await open();
    const first = await session.run(named({ x: x(2) }), { outputs: 'pinned' });
    const kept = first.get('y')!;
    const own = await session.run(named({ x: x(2, 10) }));
    expect(y(own)).toEqual(twice(x(2, 10)));
    const target: Tensor = { dtype: 'float32', shape: [2, 3], bytes: new Uint8Array(24) };
    const written = await session.run(named({ x: x(2, 20) }), { outputs: named({ y: target }) });
    expect(written.get('y')).toBe(target);
    expect([...float32Values(target)]).toEqual(twice(x(2, 20)));
    expect(kept.shape).toEqual([2, 3]);
    for (const wrong of [
      named({ y: { ...target, shape: [6] } }),
      named({ y: { ...target, bytes: new Uint8Array(23) } }),
      named({ z: target }),
    ])
      expect(await code(() => session.run(named({ x: x(2) }), { outputs: wrong }))).toBe('TF_SESSION_INPUT');
    await session.close();
  });

  it('gives outputs whose shape depends on the data as they are, also when runs overlap', async () => {
    let last: readonly number[] = [];
    const spec: FakeSpec = {
      tensors: [tensor('x', 'input', [4]), tensor('y', 'output', [-1])],
      outputShape: () => null,
      kernel: ({ x: input }) => {
        const values = new Float32Array(input!.buffer, input!.byteOffset, 4);
        last = [...values].filter((value) => value !== 0);
      },
      found: () => ({ shape: [last.length], bytes: new Uint8Array(Float32Array.from(last).buffer) }),
    };
    const { session } = await open(spec);
    const inputs = [
      [1, 0, 2, 0],
      [0, 0, 0, 0],
      [5, 6, 7, 8],
      [0, 9, 0, 0],
    ];
    const outputs = await Promise.all(
      inputs.map((values) => session.run(named({ x: floats('float32', [4], values) }))),
    );
    expect(outputs.map((each) => each.get('y')!.shape)).toEqual([[2], [0], [4], [1]]);
    expect(outputs.map(y)).toEqual(inputs.map((values) => values.filter((value) => value !== 0)));
    await session.close();
  });
});

describe('calls that are kept', () => {
  const prepared = (addon: FakeAddon) => addon.log.filter((line) => line.startsWith('prepare'));

  it('get a CUDA graph as soon as shapes repeat, and only then', async () => {
    const { addon, session } = await open();
    await session.run(named({ x: x(1) }));
    expect(prepared(addon)).toEqual(['prepare x[1,3]']);
    for (let run = 0; run < 3; run++) expect(y(await session.run(named({ x: x(1) })))).toEqual(twice(x(1)));
    expect(prepared(addon)).toEqual(['prepare x[1,3]', 'prepare x[1,3] graph']);
    expect(addon.live).toBe(1);
    await session.close();
  });

  it.each([
    ['always', ['prepare x[1,3] graph']],
    ['never', ['prepare x[1,3]']],
  ] as const)('cudaGraph %s', async (cudaGraph, expected) => {
    const { addon, session } = await open(doubling, { cudaGraph });
    for (let run = 0; run < 3; run++) await session.run(named({ x: x(1) }));
    expect(prepared(addon)).toEqual(expected);
    await session.close();
  });

  it('state once why a graph is rejected, and run without', async () => {
    const said: string[] = [];
    const { session } = await open(
      { ...doubling, graphFallback: 'A layer waits for the host.' },
      { emit: (event) => event.type === 'log' && said.push(event.message) },
    );
    for (const rows of [1, 1, 2, 2, 1, 2])
      expect(y(await session.run(named({ x: x(rows) })))).toEqual(twice(x(rows)));
    expect(said).toEqual(['Runs go on without a CUDA graph: A layer waits for the host.']);
    expect(session.facts.cudaGraphFallbacks).toEqual(['A layer waits for the host.']);
    await session.close();
  });

  it.each([
    ['number', { count: 3 }],
    ['pinned memory', { bytes: 3 * 2 * 4 * 3 * 4 }],
  ])('are bounded in %s: the least recent goes, and comes back when needed', async (_, keepCalls) => {
    const { addon, session } = await open(doubling, { cudaGraph: 'never', keepCalls });
    for (let rows = 1; rows <= 16; rows++) await session.run(named({ x: x(rows) }));
    expect(addon.live).toBeLessThanOrEqual(3);
    expect(y(await session.run(named({ x: x(1) })))).toEqual(twice(x(1)));
    expect(prepared(addon)).toHaveLength(17);
    await session.close();
  });

  it('that could not be made are made anew', async () => {
    const { addon, session } = await open();
    addon.failures.set('prepare', new TrtforgeError('TF_GPU_MEMORY', 'no room'));
    const runs = [1, 2].map(() => code(() => session.run(named({ x: x(1) }))));
    expect(await Promise.all(runs)).toEqual(['TF_GPU_MEMORY', 'TF_GPU_MEMORY']);
    addon.failures.clear();
    expect(y(await session.run(named({ x: x(1) })))).toEqual(twice(x(1)));
    await session.close();
  });

  it('a context that could not be made is tried again', async () => {
    const { addon, session } = await open();
    addon.failures.set('context', new TrtforgeError('TF_GPU_MEMORY', 'no room'));
    expect(await code(() => session.run(named({ x: x(1) })))).toBe('TF_GPU_MEMORY');
    addon.failures.clear();
    expect(y(await session.run(named({ x: x(1) })))).toEqual(twice(x(1)));
    await session.close();
  });

  it('a failed run leaves the session usable', async () => {
    const { addon, session } = await open();
    await session.run(named({ x: x(1) }));
    addon.failures.set('run', new TrtforgeError('TF_RUN_FAILED', 'an illegal address'));
    expect(await code(() => session.run(named({ x: x(1) })))).toBe('TF_RUN_FAILED');
    expect(await code(() => session.runSync(named({ x: x(1) })))).toBe('TF_RUN_FAILED');
    addon.failures.clear();
    expect(y(session.runSync(named({ x: x(1, 5) })))).toEqual(twice(x(1, 5)));
    await session.close();
  });
});

describe('blocking runs', () => {
  it('need shapes that were run or prepared before', async () => {
    const { session } = await open();
    expect(await code(() => session.runSync(named({ x: x(1) })))).toBe('TF_SESSION_NOT_PREPARED');
    await session.run(named({ x: x(1) }));
    expect(y(session.runSync(named({ x: x(1, 7) })))).toEqual(twice(x(1, 7)));
    const pinned = session.runSync(named({ x: x(1, 9) }), { outputs: 'pinned' });
    expect(y(pinned)).toEqual(twice(x(1, 9)));
    expect(await code(() => session.runSync(named({ x: x(2) })))).toBe('TF_SESSION_NOT_PREPARED');
    await session.close();
  });

  it('get their graph in the background', async () => {
    const { addon, session } = await open();
    await session.run(named({ x: x(1) }));
    expect(y(session.runSync(named({ x: x(1) })))).toEqual(twice(x(1)));
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    expect(addon.log).toContain('prepare x[1,3] graph');
    expect(y(session.runSync(named({ x: x(1, 3) })))).toEqual(twice(x(1, 3)));
    await session.close();
  });
});

describe('a prepared call', () => {
  it('is arrays to write, a run, arrays to read', async () => {
    const { session } = await open();
    const call = await session.prepare({ x: [2, 3] });
    expect(call).toMatchObject({ profile: 0, cudaGraph: true, cudaGraphFallback: null });
    const { x: input, y: output } = { ...call.inputs, ...call.outputs } as Record<string, Float32Array>;
    for (let step = 0; step < 5; step++) {
      input!.set([step, 1, 2, 3, 4, 5]);
      if (step % 2 === 0) call.runSync();
      else await call.run();
      expect([...output!]).toEqual([2 * step, 2, 4, 6, 8, 10]);
    }
    expect(call.input('x')).toMatchObject({ dtype: 'float32', shape: [2, 3] });
    expect([...float32Values(call.output('y'))]).toEqual([...output!]);
    expect(await code(() => call.output('z'))).toBe('TF_SESSION_INPUT');
    call.close();
    call.close();
    expect(await code(() => call.runSync())).toBe('TF_SESSION_CLOSED');
    expect(await code(() => call.run())).toBe('TF_SESSION_CLOSED');
    await session.close();
  });

  it('is the caller’s: what the session keeps or drops does not touch it', async () => {
    const { addon, session } = await open(doubling, { keepCalls: { count: 1 }, cudaGraph: 'never' });
    const call = await session.prepare({ x: [2, 3] }, { cudaGraph: 'always' });
    call.inputs.x!.fill(3 as never);
    for (const rows of [2, 3, 2]) await session.run(named({ x: x(rows) }));
    call.runSync();
    expect([...(call.outputs.y as Float32Array)]).toEqual([6, 6, 6, 6, 6, 6]);
    expect(addon.log).toContain('prepare x[2,3] graph');
    await session.close();
  });

  it.each<[string, Record<string, readonly number[]>, string]>([
    ['no shape for an open dimension', {}, 'TF_SESSION_INPUT'],
    ['another name', { z: [1] }, 'TF_SESSION_INPUT'],
    ['another rank', { x: [3] }, 'TF_SESSION_INPUT'],
    ['a fraction', { x: [1.5, 3] }, 'TF_SESSION_INPUT'],
    ['a negative size', { x: [-1, 3] }, 'TF_SESSION_INPUT'],
    ['out of range', { x: [99, 3] }, 'TF_PROFILE_MISFIT'],
  ])('%s is rejected', async (_, shapes, expected) => {
    const { addon, session } = await open();
    expect(await code(() => session.prepare(shapes))).toBe(expected);
    expect(addon.log).toEqual([]);
    await session.close();
  });
});

describe('several contexts', () => {
  it('run at the same time, each its own', async () => {
    const { addon, session } = await open(doubling, { contexts: 3 });
    addon.runMs = 20;
    const inputs = Array.from({ length: 9 }, (_, index) => x(1, index));
    const outputs = await Promise.all(inputs.map((input) => session.run(named({ x: input }))));
    expect(outputs.map(y)).toEqual(inputs.map(twice));
    expect(addon.log.filter((line) => line.startsWith('context'))).toHaveLength(3);
    expect(y(session.runSync(named({ x: x(1) })))).toEqual(twice(x(1)));
    await session.close();
    expect(addon.log.filter((line) => line === 'close context')).toHaveLength(3);
  });

  it('of the caller’s own are closed by the caller or with the session', async () => {
    const { addon, session } = await open();
    const [one, two] = [session.context(), session.context()];
    for (const context of [one, two]) expect(y(await context.run(named({ x: x(2) })))).toEqual(twice(x(2)));
    await one.close();
    expect(await code(() => one.run(named({ x: x(2) })))).toBe('TF_SESSION_CLOSED');
    expect(y(await two.run(named({ x: x(2) })))).toEqual(twice(x(2)));
    await session.close();
    expect(addon.log.filter((line) => line === 'close context')).toHaveLength(2);
    expect(addon.log.at(-1)).toBe('close engine');
  });
});

describe('ending', () => {
  it('closing waits for the runs under way, and is harmless twice', async () => {
    const { addon, session } = await open();
    addon.runMs = 30;
    const run = session.run(named({ x: x(4) }));
    const closing = [session.close(), session.close()];
    expect(y(await run)).toEqual(twice(x(4)));
    await Promise.all(closing);
    expect(addon.log.at(-1)).toBe('close engine');
    expect(addon.log.indexOf('run')).toBeLessThan(addon.log.indexOf('close engine'));
  });

  it('an aborted run is TF_CANCELLED, and the session goes on', async () => {
    const { addon, session } = await open();
    await session.run(named({ x: x(1) }));
    const stopping = new AbortController();
    addon.runLasts = new Promise((resolve) => stopping.signal.addEventListener('abort', resolve));
    const run = code(() => session.run(named({ x: x(1) }), { signal: stopping.signal }));
    await new Promise(setImmediate);
    stopping.abort();
    expect(await run).toBe('TF_CANCELLED');
    expect(await code(() => session.run(named({ x: x(1) }), { signal: stopping.signal }))).toBe(
      'TF_CANCELLED',
    );
    addon.runLasts = undefined;
    expect(y(await session.run(named({ x: x(1) })))).toEqual(twice(x(1)));
    await session.close();
  });
});
