import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { EngineBinding } from '../../../src/engines/runtime/tensorrt/engine-interface.js';
import { benchEngine } from '../../../src/quality/bench/bench-engine.js';
import { benchCompare } from '../../../src/quality/bench/compare.js';
import type { Measurer } from '../../../src/quality/bench/measurer.js';
import {
  type BenchCompareRequest,
  type BenchRequest,
  defaultMode,
  defaultRequest,
  type ShapeRequest,
} from '../../../src/quality/bench/options.js';
import { audio, measuring } from '../../fakes/measurer.js';
import { planBytes } from '../../fakes/tensorrt/engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-against-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
for (const name of ['a', 'b']) writeFileSync(at(`${name}.engine`), planBytes('10', { kind: 'affine' }));

/** The shapes that each engine was measured at, once each. */
async function measuredShapes(
  wish: ShapeRequest,
  engines: Readonly<Record<string, readonly EngineBinding[]>>,
  wishOfReference = wish,
) {
  const shapes = new Map<string, unknown>();
  const start = measuring(engines, (request) => {
    shapes.set(
      request.engine,
      request.shapes.map(({ name, shape }) => [name, shape]),
    );
  });
  const side = (name: string, shapes: ShapeRequest) => ({ ...defaultRequest(at(`${name}.engine`)), shapes });
  const result = await benchCompare(
    { candidate: side('a', wish), reference: side('b', wishOfReference), rounds: 3, failAbove: undefined },
    context(),
    start,
  );
  return { a: shapes.get(at('a.engine')), b: shapes.get(at('b.engine')), warnings: result.warnings };
}

const context = () => ({
  emit: () => {},
  signal: new AbortController().signal,
  environment: { XDG_CACHE_HOME: at('cache') },
});

/** How a comparison is refused before anything is opened. */
const refusal = (
  wishes: Partial<BenchCompareRequest> & Pick<BenchCompareRequest, 'candidate' | 'reference'>,
) =>
  benchCompare({ rounds: 3, failAbove: undefined, ...wishes }, context(), () => expect.unreachable()).catch(
    (error: unknown) => error,
  );

describe('two engines measured in turns', () => {
  const optima = { [at('a.engine')]: [audio('x', 100)], [at('b.engine')]: [audio('x', 200)] };

  it.each<[string, ShapeRequest, readonly number[]]>([
    ['their optima differ', { kind: 'optimum' }, [4, 100]],
    ['a batch is asked for', { kind: 'batches', batches: [8] }, [8, 100]],
    ['shapes are asked for', { kind: 'shapes', shapes: new Map([['x', [2, 50]]]) }, [2, 50]],
  ])('do the same work when %s', async (_case, wish, shape) => {
    const { a, b, warnings } = await measuredShapes(wish, optima);
    const unknown = (name: string) =>
      `${at(name)} has no passport: its model, recipe and target are unknown.`;
    expect(warnings).toEqual(expect.arrayContaining([unknown('a.engine'), unknown('b.engine')]));
    expect([a, b]).toEqual([[['x', shape]], [['x', shape]]]);
  });

  it.each<[string, ShapeRequest, readonly number[]]>([
    [
      'a batch of its own is measured at it, and the result says so',
      { kind: 'batches', batches: [2] },
      [2, 200],
    ],
    ['shapes of its own is measured at them', { kind: 'shapes', shapes: new Map([['x', [3, 7]]]) }, [3, 7]],
    ['nothing is measured at the other one’s', { kind: 'optimum' }, [8, 100]],
  ])('a reference that asks for %s', async (_case, own, shape) => {
    const { a, b, warnings } = await measuredShapes({ kind: 'batches', batches: [8] }, optima, own);
    expect([a, b]).toEqual([[['x', [8, 100]]], [['x', shape]]]);
    const differ = warnings.filter((warning) => warning.startsWith('The batches differ'));
    expect(differ).toHaveLength(shape[0] === 8 ? 0 : 1);
  });

  it.each([0, 1, 2.5, Number.NaN])('are rejected with %s rounds, which have no interval', async (rounds) => {
    const side = defaultRequest(at('a.engine'));
    const comparison = benchCompare(
      { candidate: side, reference: side, rounds, failAbove: undefined },
      { emit: () => {}, signal: new AbortController().signal, environment: {} },
      () => expect.unreachable(),
    );
    await expect(comparison).rejects.toMatchObject({ code: 'TF_USAGE' });
  });

  it('are rejected on two GPUs: that is not a ratio of engines', async () => {
    const [candidate, reference] = ['a', 'b'].map((name) => defaultRequest(at(`${name}.engine`)));
    await expect(
      refusal({ candidate: candidate!, reference: { ...reference!, device: 1 } }),
    ).resolves.toMatchObject({
      code: 'TF_USAGE',
      message: `${at('a.engine')} would be measured on GPU 0 and ${at('b.engine')} on GPU 1: a ratio across two GPUs compares the GPUs too.`,
    });
  });

  it.each<[Partial<BenchRequest>, RegExp]>([
    [{ samples: at('times.npz') }, /cannot honour --samples\./],
    [{ shapes: { kind: 'batches', batches: [1, 8] } }, /measures one batch/],
    [{ device: -1 }, /device is -1/],
  ])('are rejected with %o, of either side', async (wish, why) => {
    const side = defaultRequest(at('a.engine'));
    const asking = { ...side, ...wish };
    for (const sides of [
      { candidate: asking, reference: side },
      { candidate: side, reference: asking },
    ])
      expect(await refusal(sides)).toMatchObject({ code: 'TF_USAGE', message: expect.stringMatching(why) });
  });

  it.each([0, Number.NaN, Number.POSITIVE_INFINITY])('are rejected with a limit of %s', async (failAbove) => {
    const side = defaultRequest(at('a.engine'));
    expect(await refusal({ candidate: side, reference: side, failAbove })).toMatchObject({
      code: 'TF_USAGE',
    });
  });

  it('in two modes are measured at the same shapes with the same numbers', async () => {
    const asked: Parameters<Measurer['measure']>[0][] = [];
    const start = measuring(optima, (request) => asked.push(request));
    const candidate: BenchRequest = {
      ...defaultRequest(at('a.engine')),
      shapes: { kind: 'batches', batches: [8] },
      inputs: { seed: 7, ranges: [{ name: null, low: -1, high: 1 }], files: [] },
    };
    const reference = { ...candidate, mode: { ...defaultMode, graph: true } };
    await benchCompare({ candidate, reference, rounds: 2, failAbove: undefined }, context(), start);
    expect(new Set(asked.map(({ mode }) => mode.graph))).toEqual(new Set([true, false]));
    for (const { shapes, fill } of asked)
      expect([shapes[0]?.shape, fill]).toEqual([[8, 100], candidate.inputs]);
  });

  it('report the time of each round, and that an engine differs from itself between rounds', async () => {
    const times = { [at('a.engine')]: [2, 2.01, 1.99, 2], [at('b.engine')]: [2, 2.16, 2, 2.08] };
    const inferenceMs = (engine: string) => times[engine]?.shift() ?? Number.NaN;
    const [candidate, reference] = ['a', 'b'].map((name) => defaultRequest(at(`${name}.engine`)));
    const result = await benchCompare(
      { candidate: candidate!, reference: reference!, rounds: 4, failAbove: undefined },
      context(),
      measuring(optima, () => {}, inferenceMs),
    );
    const rounded = ({ roundMs }: (typeof result)['candidate']) => roundMs.map((ms) => Number(ms.toFixed(6)));
    expect(rounded(result.candidate)).toEqual([2, 2.01, 1.99, 2]);
    expect(rounded(result.reference)).toEqual([2, 2.16, 2, 2.08]);
    const doubted = (name: string) =>
      result.warnings.filter((text) => text.startsWith(`Do not trust ${at(name)}`));
    expect(doubted('a.engine').filter((text) => text.includes('rounds'))).toEqual([]);
    expect(doubted('b.engine')).toContain(
      `Do not trust ${at('b.engine')} because its rounds differ by 8 % (2 ms to 2.16 ms): clocks, or what the GPU did before; measure more rounds (--rounds).`,
    );
  });

  it.each([
    { streams: 0 },
    { iterations: 0 },
    { durationMs: Number.NaN },
    { warmUpMs: -1 },
    { idleMs: Number.POSITIVE_INFINITY },
  ])('are rejected in a mode that gives no sample: %o', async (wrong) => {
    const side = { ...defaultRequest(at('a.engine')), mode: { ...defaultMode, ...wrong } };
    const context = { emit: () => {}, signal: new AbortController().signal, environment: {} };
    const refused = { code: 'TF_USAGE', message: expect.stringContaining(Object.keys(wrong)[0] ?? '') };
    await expect(benchEngine(side, context, () => expect.unreachable())).rejects.toMatchObject(refused);
  });

  it('have the batch alone in common where their inputs have other names', async () => {
    const renamed = { [at('a.engine')]: [audio('x', 100)], [at('b.engine')]: [audio('z', 200)] };
    const { a, b } = await measuredShapes({ kind: 'batches', batches: [8] }, renamed);
    expect([a, b]).toEqual([[['x', [8, 100]]], [['z', [8, 200]]]]);
  });
});
