import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { calibrationOf } from '../../../src/engines/calibration/calibration.js';
import type { WorkEvent } from '../../../src/events.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import type { VerifyRequest } from '../../../src/quality/verify/options.js';
import { SampleRuns } from '../../../src/quality/verify/sample-runs.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { freshPath } from '../../formats/precision/judge.js';
import { inProcessBackEnd } from '../../support/in-process-back-end.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';

/** y = x + z */
const model = () =>
  modelFile((graph) => {
    graph.input('x', 'float32', ['n', 2]);
    graph.input('z', 'float32', ['n', 2]);
    graph.node('Add', { inputs: ['x', 'z'], outputs: ['y'] });
    graph.output('y', 'float32', ['n', 2]);
  });

function rows(count: number): string {
  const path = freshPath('.npy');
  writeNpy(
    path,
    tensorFrom(
      'float32',
      [count, 2],
      Float32Array.from({ length: 2 * count }, (_, at) => at),
    ),
  );
  return path;
}

async function verified(more: Partial<VerifyRequest>) {
  const path = await model();
  const warnings: WorkEvent[] = [];
  const result = await verifyModel(
    { reference: path, candidate: path, threads: 1, ...more },
    {
      backEnds: [inProcessBackEnd()],
      emit: (event) => event.type === 'log' && event.severity === 'warning' && warnings.push(event),
    },
  );
  const { samples = [], available } = result.samplesFrom ?? {};
  return { result, kinds: samples.map(({ kind }) => kind), available, warnings };
}

it('takes samples of the user in their order, all of them up to 32', async () => {
  const whole = (count: number) => ({ files: [`x=@${rows(count)}`, `z=@${rows(count)}`] });
  const five = await verified({ data: whole(5) });
  expect(five).toMatchObject({ available: 5, warnings: [] });
  expect(five.kinds).toEqual(Array.from({ length: 5 }, () => 'data'));
  expect(await verified({ data: whole(40) })).toMatchObject({ available: 40, result: { samples: 32 } });
  expect(await verified({ data: whole(5), samples: 2 })).toMatchObject({ result: { samples: 2 } });
  expect((await verified({ data: whole(1) })).warnings).toHaveLength(1);
});

describe('samples are stacked to the batch that is requested', () => {
  const shapes = new Map(['x', 'z'].map((name) => [name, [4, 2]] as const));
  const of = (count: number) => ({ files: [`x=@${rows(count)}`, `z=@${rows(count)}`] });
  const range = { min: [4, 2], opt: [4, 2], max: [8, 2], values: false };
  const profiles = [{ x: range, z: range }];

  it.each<[string, number, Partial<VerifyRequest>, number[], number]>([
    ['the last batch has what is left', 6, { data: of(6), shapes }, [4, 2], 0],
    [
      'or is left out where the engine takes no smaller one',
      6,
      { data: { ...of(6), profiles }, shapes },
      [4],
      1,
    ],
    [
      'where it is all there is, its samples are in it again',
      3,
      { data: { ...of(3), profiles }, shapes },
      [3],
      1,
    ],
  ])('%s', async (_, available, request, sizes, warnings) => {
    const found = await verified(request);
    expect(found).toMatchObject({ available, result: { outcome: 'pass', samples: sizes.length } });
    expect(found.result.samplesFrom?.samples.map((each) => each.items)).toEqual(sizes);
    expect(found.warnings).toHaveLength(warnings);
    for (const { from, shape } of found.result.inputs) {
      expect(shape).toEqual([4, 2]);
      expect(from).toContain(`${sizes.reduce((sum, size) => sum + size)} of the ${available} samples`);
    }
  });
});

it('draws what the samples lack, and everything without samples', async () => {
  const part = await verified({ data: { files: [`x=@${rows(2)}`, 'random'] } });
  // An output of few elements asks for more.
  expect(part.kinds).toHaveLength(16);
  expect(new Set(part.kinds)).toEqual(new Set(['data']));
  const { kinds } = await verified({ data: { files: ['random'] } });
  expect(kinds.slice(0, 4)).toEqual(['edge', 'edge', 'edge', 'edge']);
  expect(new Set(kinds.slice(4))).toEqual(new Set(['drawn']));
  expect(await verified({})).toMatchObject({ available: null });
});

it('leaves out what no profile of the engine takes, and draws where none is left', async () => {
  const data = { files: [`x=@${rows(3)}`, `z=@${rows(3)}`] };
  const range = { min: [2, 2], opt: [2, 2], max: [4, 2], values: false };
  const { kinds, warnings } = await verified({ data: { ...data, profiles: [{ x: range, z: range }] } });
  expect(kinds).not.toContain('data');
  expect(warnings).toHaveLength(1);
});

describe('with the profiles of an engine drawn samples are at every end', () => {
  const range = (min: number, opt: number, max: number) => {
    const of = (rows: number) => [rows, 2];
    return { min: of(min), opt: of(opt), max: of(max), values: false };
  };
  const both = (...ends: [number, number, number]) => ({ x: range(...ends), z: range(...ends) });
  const shapes = new Map(['x', 'z'].map((name) => [name, [4, 2]] as const));

  it.each<[string, Partial<VerifyRequest>, number[], number]>([
    ['the optimum, then the others', { profiles: [both(1, 4, 8)] }, [4, 1, 8], 9],
    ['shapes of the optimum state nothing else', { profiles: [both(1, 4, 8)], shapes }, [4, 1, 8], 9],
    ['other shapes go first', { profiles: [both(1, 2, 8)], shapes }, [4], 7],
    ['no size twice', { profiles: [both(2, 2, 2), both(2, 2, 3)] }, [2, 3], 8],
  ])('%s', async (_, more, sizes, count) => {
    const path = await model();
    const runs = new SampleRuns({ reference: path, candidate: path, threads: 1, ...more }, {});
    const { outputs, samples, plan } = await runs.reference(() => {});
    expect(outputs).toHaveLength(count);
    expect([...new Set(outputs.map((each) => each.get('y')?.shape[0]))]).toEqual(sizes);
    expect(samples.filter(({ kind }) => kind === 'drawn')).toHaveLength(count - 4);
    expect(plan.inputs[0]).toMatchObject({ shape: [sizes[0], 2] });
    expect(await verified({ samples: 1, ...more })).toMatchObject({
      result: { outcome: 'pass', leftOut: [] },
    });
  });

  it('those in the passport of an engine, and without one no batch is guessed', async () => {
    const [path, engine] = [await model(), freshPath('.engine')];
    writeFileSync(engine, samplePlan());
    const runs = () => new SampleRuns({ reference: path, candidate: engine, threads: 1, samples: 1 }, {});
    const sizes = async () =>
      (await runs().reference(() => {})).outputs.map((each) => each.get('y')?.shape[0]);
    expect(new Set(await sizes())).toEqual(new Set([1]));
    const { recipe, ...identity } = sampleIdentity();
    const document = { ...identity, recipe: { ...recipe, profiles: [both(2, 4, 8)] } };
    writeFileSync(`${engine}.passport.json`, JSON.stringify(samplePassport(samplePlan(), document)));
    expect(new Set(await sizes())).toEqual(new Set([4, 2, 8]));
  });

  it('an end that is too large for the CPU is left out by name', async () => {
    const { result } = await verified({ profiles: [both(1, 4, 2 ** 23)] });
    expect(result).toMatchObject({ outcome: 'pass', leftOut: [{ kind: 'drawn' }] });
    expect(result.leftOut?.[0]?.origin).toMatch(/^maximum of profile 0/);
  });
});

it.each([
  ['another name', (path: string) => `w=@${path}`, 'TF_SESSION_INPUT'],
  ['no such file', () => 'x=@missing.npy', 'TF_FILE_NOT_FOUND'],
  ['images without a preparation', () => 'cat.png', 'TF_USAGE'],
])('rejects %s', async (_, file, code) => {
  await expect(verified({ data: { files: [file(rows(2))] } })).rejects.toMatchObject({ code });
});

it('runs ranges of samples, at the sizes of the first run', async () => {
  const path = await model();
  const runs = new SampleRuns({ reference: path, candidate: path, threads: 1 }, {});
  const first = await runs.reference(() => {});
  expect(first.outputs).toHaveLength(7);
  expect(first.plan).toMatchObject({ firstRound: 7, most: 20 });
  const seen: number[] = [];
  const more = await runs.reference((sample) => seen.push(sample), { from: 7, to: 30 });
  expect(more.plan).toBe(first.plan);
  expect(seen).toEqual(Array.from({ length: 13 }, (_, at) => at + 7));
  expect((await runs.candidate(path, first, () => {}, { from: 1, to: 7 })).outputs).toEqual(
    first.outputs.slice(1),
  );
});

it('judges a calibration by what it holds out, or with a warning by all of it', async () => {
  const judging = (count: number, part?: 'calibration') =>
    calibrationOf({ data: [`x=@${rows(count)}`, `z=@${rows(count)}`], part }).judging!;
  const heldOut = await verified({ data: judging(8, 'calibration') });
  expect(heldOut).toMatchObject({ available: 2, warnings: [] });
  expect((await verified({ data: judging(3, 'calibration') })).warnings).toHaveLength(1);
  expect(await verified({ data: judging(8) })).toMatchObject({ available: 8 });
});
