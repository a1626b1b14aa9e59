import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fakes } from '../fakes/tensorrt/library.js';
import { EngineScenarios, generations, INNER, refused } from './engine-scenarios.js';

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
      ['runs', [], {}],
      ['dtypes', Array.from({ length: wide ? 12 : 7 }, (_, dtype) => dtype), {}],
      ['state', [], {}],
      ['nonzero', [], {}],
      ['shapes', [], {}],
      ['profiles', [], {}],
      ['turns', [], {}],
      ['large', [INNER], {}],
      ['pastCaches', [INNER], {}],
      ['givenAway', [INNER, fakes[fake].version], { FAKE_COMPUTE_US: '3000' }],
      ['givenAwayToMemory', [], {}],
      ['layerTimes', [], {}],
    ]);
  });

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

  test('are described as the library describes them, with their profiles and auxiliary streams, and their plug-ins go when they do', () => {
    const calls = scenarios.path(`described-${fake}`);
    const { result } = scenarios.play<Record<string, unknown>>(fake, 'described', [], {
      FAKE_CALLS: calls,
    });
    const profiles = [
      { min: [1, 64], opt: [4, 64], max: [8, 64] },
      { min: [33, 64], opt: [40, 64], max: [64, 64] },
    ];
    expect(result).toMatchObject({
      facts: {
        name: 'affine',
        layers: 2,
        profiles: 2,
        auxStreams: 2,
        deviceMemoryBytes: 8192,
        tensors: [
          { name: 'x', dtype: 0, shape: [-1, 64], mode: 'input', shapeTensor: false, profiles },
          { name: 'y', dtype: 0, shape: [-1, 64], mode: 'output', shapeTensor: false, profiles: [] },
        ],
      },
      ran: [true, 7],
    });
    const lines = readFileSync(calls, 'utf8').split('\n');
    const ofPlugins = lines.filter((line) =>
      /loadLibrary|deregister|(?:create|destroy) I(?:Runtime|CudaEngine)/.test(line),
    );
    expect(ofPlugins).toEqual([
      'create IRuntime',
      'loadLibrary /plugins/a.so',
      'create ICudaEngine',
      'destroy ICudaEngine',
      'deregisterLibrary',
      'destroy IRuntime',
    ]);
  });

  test('arrays that their owner gives away in mid-run are not touched any more, and their content counts', () => {
    const lost = 'TF_SESSION_INPUT';
    expect(found.givenAway).toEqual({
      inputs: [1, 3, 5, 7, 21, 23, 25, 27, 41, 43, 45, 47],
      outputs: [1, lost, lost, 3, lost, lost, 5, lost, lost],
    });
    expect(found.givenAwayToMemory).toBe(true);
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
      misaligned: refused('TF_SESSION_INPUT', 'not a multiple of 256'),
      outside: refused('TF_SESSION_INPUT', 'not all in device memory'),
      unbound: refused('TF_SESSION_INPUT', 'No binding was passed for state'),
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
      few: refused('TF_SESSION_INPUT', 'got 1 values'),
      none: refused('TF_SESSION_INPUT', 'its values must be passed'),
      outputsFor: [{ shape: [9, 9] }, {}],
      large: wide ? { code: 'TF_GPU_MEMORY' } : refused('TF_SESSION_INPUT', 'does not fit int32'),
    });
  });

  test('run several contexts at once, each with a profile; a shape outside is rejected and harms nothing', () => {
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

  test.each([
    { where: 'copies are slow', times: { FAKE_COPY_US: '100' }, best: 'mapped', slow: 'copied' },
    {
      where: 'memory behind the bus is slow',
      times: { FAKE_BUS_US: '100' },
      best: 'copied',
      slow: 'mapped',
    },
    {
      where: 'a run is so long that neither matters',
      times: { FAKE_COPY_US: '100', FAKE_COMPUTE_US: '600' },
      best: 'copied',
      slow: 'copied',
    },
  ])('small tensors are copied or used in pinned memory, as measured: $where', ({ times, best, slow }) => {
    const { result } = scenarios.play(fake, 'small', [], times);
    const are = (way: string) => ({ graph: true, given: [7, 11, 15], are: way, ms: expect.any(Number) });
    expect(result).toEqual({ copied: are('copied'), mapped: are('mapped'), measured: are(best) });
    // One tensor in and one out, each 100 microseconds late.
    expect((result as Record<string, { ms: number }>)[slow]?.ms).toBeGreaterThan(0.2);
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
});
