import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EngineScenarios, generations, INNER, refused } from './engine-scenarios.js';

/** GPU 0 has 16 GiB, GPU 1 has 8; one thread does all jobs, so that what it worked on last is the other GPU. */
const two = { FAKE_GPUS: '2', FAKE_GPU_BYTES: '17179869184,8589934592', UV_THREADPOOL_SIZE: '1' };
const totals = [2 ** 34, 2 ** 33];

let scenarios: EngineScenarios;
beforeAll(async () => {
  scenarios = await EngineScenarios.prepare();
});
afterAll(() => scenarios.remove());

describe.each(generations)('engines on two GPUs of one process, generation %s', (fake) => {
  let found: Record<string, unknown> = {};
  beforeAll(() => {
    found = scenarios.playAll(
      fake,
      [
        ['atOnce', [], {}],
        ['exports', [], {}],
        ['largeOnes', [INNER], {}],
        ['collectedOnBoth', [], {}],
        ['threadsOnBoth', [], {}],
        ['builds', [], {}],
        ['refusals', [], {}],
      ],
      two,
    );
  });
  const nothingLeft = [0, 0];

  test('run side by side, each in the memory of its own GPU', () => {
    expect(found.atOnce).toEqual({
      totals,
      graphs: [true, true],
      wrong: [],
      takes: [true, true],
      alone: 11,
      left: nothingLeft,
    });
  });

  test('every export works on its GPU after the thread worked on the other', () => {
    const runs = (name: string) => ({ [name]: 'done', [`${name} runs`]: 7, [`${name} runs later`]: 9 });
    const measured = [totals[1], true];
    expect(found.exports).toEqual({
      found: {
        open: 'done',
        context: 'done',
        outputsFor: 512,
        ...runs('plain'),
        ...runs('graph'),
        ...runs('mapped'),
        ...runs('measured'),
        memory: 'done',
        write: 'done',
        read: 6,
        onDevice: 'done',
        'onDevice runs': 13,
        places: 'done',
        'places are found': [3],
        'places are read': true,
        'places go': 'done',
        layers: true,
        fixed: 'done',
        'layer times': 2,
        'measure together without transfers': measured,
        'measure together with transfers': measured,
        'measure apart without transfers': measured,
        'measure apart with transfers': measured,
        'call goes': 'done',
        'memory goes': 'done',
        'context goes': 'done',
        'engine goes': 'done',
        'fixed goes': 'done',
      },
      left: nothingLeft,
    });
  });

  test('large tensors are copied in turns by the threads that both share', () => {
    expect(found.largeOnes).toEqual({ wrong: [], left: nothingLeft });
  });

  test('what was never closed is freed on its own GPU by the garbage collector', () => {
    expect(found.collectedOnBoth).toEqual({ others: 0, left: nothingLeft });
  });

  test('a thread of JavaScript that ends frees its GPU, not that of the thread that goes on', () => {
    expect(found.threadsOnBoth).toEqual({ codes: [0, 1], left: nothingLeft });
  });

  test('a build is on the first GPU, whichever the thread worked on', () => {
    expect(found.builds).toBe('builds on NVIDIA Fake');
  });

  test('a GPU that is not there, memory of the other GPU and memory it has not are rejected', () => {
    const other = (name: string, memory: number, engine: number) =>
      refused(
        'TF_SESSION_INPUT',
        `memory passed for ${name} is on GPU ${memory}, and the engine on GPU ${engine}.`,
      );
    expect(found.refusals).toMatchObject({
      absent: refused('TF_GPU_UNAVAILABLE', 'there is no GPU 2: the CUDA driver shows 2, counted from 0'),
      foreign: other('state', 1, 0),
      foreignToo: other('state', 0, 1),
      room: { code: 'TF_GPU_MEMORY', details: { totalBytes: totals[1] } },
      run: 8,
      left: nothingLeft,
    });
  });
});
