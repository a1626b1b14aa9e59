import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { knownAnswerSchema } from '../../../src/engines/identity/passport.js';
import { readPlanHeader } from '../../../src/engines/plan/header.js';
import { loadEngine } from '../../../src/engines/runtime/tensorrt/load-engine.js';
import type { WorkEvent } from '../../../src/events.js';
import {
  type AnsweredOutput,
  type KnownAnswer,
  readAnswer,
  writeAnswer,
} from '../../../src/quality/known-answer/answer.js';
import { openCheckedSession } from '../../../src/quality/known-answer/at-load.js';
import { observeLoaded } from '../../../src/quality/known-answer/observe-loaded.js';
import { recallCheck, rememberCheck } from '../../../src/quality/known-answer/past-checks.js';
import { proofOfPlan, resultOf } from '../../../src/quality/known-answer/proof.js';
import { recordAnswer } from '../../../src/quality/known-answer/record.js';
import { samplePassport, samplePlan, sampleToolchain, writeSample } from '../../support/sample-engine.js';
import {
  detectorEngine,
  detectorFaults,
  detectorProfiles,
  detectorShape,
  type EngineFault,
  faults,
  layerEngine,
  lendingOnce,
  profiles,
  rareClassZeroed,
  writeDetector,
  writeLayer,
} from './faulty-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-known-answer-'));
const planPath = writeSample(folder);
const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') };
let answer: KnownAnswer;

beforeAll(async () => {
  const reference = await writeLayer(join(folder, 'layer.onnx'));
  answer = await recordAnswer({ reference, precision: 'fp16', profiles });
  writePassport(answer);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function writePassport(knownAnswer: KnownAnswer | undefined) {
  const passport = { ...samplePassport(samplePlan()), knownAnswer };
  writeFileSync(`${planPath}.passport.json`, JSON.stringify(passport));
}

async function checked(fault: EngineFault | null) {
  const engine = await loadEngine(planPath, { addon: layerEngine(fault), toolchain: sampleToolchain });
  try {
    const proof = proofOfPlan(engine.plan, false);
    return resultOf(proof, await observeLoaded(engine, proof));
  } finally {
    await engine.close();
  }
}

describe('a recorded answer', () => {
  it('has every end of the profile, its batch, and fits into a passport', () => {
    expect(answer.cases.map(({ name }) => name)).toEqual([
      'profile 0, opt',
      'profile 0, min',
      'profile 0, max',
    ]);
    expect(answer.cases[answer.rows!]?.inputs[0]?.shape[0]).toBe(4);
    expect(answer.cases[0]?.outputs[0]).toMatchObject({ name: 'y', shape: [4, 40], as: 'values', nan: 0 });
    expect(answer.cases[0]?.outputs[0]?.values).toHaveLength(64);
    expect(JSON.stringify(answer).length).toBeLessThan(20_000);
    expect(answer.left).toEqual([]);
  });

  it('is the same whenever it is recorded', async () => {
    const again = await recordAnswer({ reference: join(folder, 'layer.onnx'), precision: 'fp16', profiles });
    expect(again).toEqual(answer);
  });

  it('lies beside a plan without passport, and is of no other plan', () => {
    writeAnswer(planPath, 'a'.repeat(64), answer);
    expect(readAnswer(planPath, null, 'a'.repeat(64), false)).toEqual(answer);
    expect(() => readAnswer(planPath, null, 'b'.repeat(64), false)).toThrow(
      expect.objectContaining({ code: 'TF_PASSPORT_INVALID' }),
    );
    const path = `${planPath}.known-answer.json`;
    const text = readFileSync(path, 'utf8');
    for (let length = 0; length < text.length; length += 997) {
      writeFileSync(path, text.slice(0, length));
      expect(() => readAnswer(planPath, null, 'a'.repeat(64), false)).toThrow(
        expect.objectContaining({ code: 'TF_PASSPORT_INVALID' }),
      );
    }
    // Nobody signed it: neither its answer nor its damage counts.
    expect(readAnswer(planPath, null, 'a'.repeat(64), true)).toBeUndefined();
    rmSync(path);
  });

  const widened: readonly [string, (output: AnsweredOutput) => Partial<AnsweredOutput>][] = [
    ['a limit of its RMS that nothing exceeds', ({ limit }) => ({ limit: { ...limit, rms: 1e300 } })],
    ['a limit of its elements that nothing exceeds', ({ limit }) => ({ limit: { ...limit, max: 1e300 } })],
    ['limits as large as what the reference gives', ({ l2, max }) => ({ limit: { rms: l2, max } })],
    ['a set without values', () => ({ as: 'set', values: [] })],
    ['values that are not kept', () => ({ values: [] })],
    ['exact values of which all may differ', () => ({ as: 'exact', limit: { rms: 1, max: 0 } })],
    ['exact values that may be off', () => ({ as: 'exact', limit: { rms: 0, max: 1e9 } })],
  ];
  it.each(widened)('with %s is none, in a passport and beside a plan', (_what, change) => {
    const [first, ...more] = answer.cases;
    const outputs = first!.outputs.map((output) => ({ ...output, ...change(output) }));
    const knownAnswer = { ...answer, cases: [...more, { ...first!, outputs }] };
    const invalid = expect.objectContaining({ code: 'TF_PASSPORT_INVALID' });
    expect(() => readAnswer(planPath, { knownAnswer }, 'a'.repeat(64), true)).toThrow(invalid);
    const path = writeAnswer(planPath, 'a'.repeat(64), knownAnswer);
    expect(() => readAnswer(planPath, null, 'a'.repeat(64), false)).toThrow(invalid);
    rmSync(path);
  });

  it('of an earlier check is not taken from a folder or file that others may write', () => {
    const environment = { XDG_CACHE_HOME: mkdtempSync(join(folder, 'cache-')) };
    const gpu = { uuid: 'GPU-1', name: 'a GPU' };
    const place = {
      planSha256: 'a'.repeat(64),
      answerSha256: 'b'.repeat(64),
      driver: '1',
      library: 'tensorrt 10',
    };
    const proof = proofOfPlan({ path: planPath, header: readPlanHeader(planPath), passport: null }, true);
    const result = { ...resultOf(proof, null), ...place, gpu, outcome: 'pass' as const };
    rememberCheck(result, environment);
    const recalled = () => recallCheck({ ...place, gpu }, environment)?.outcome;
    expect(recalled()).toBe('pass');
    const checks = join(environment.XDG_CACHE_HOME, 'trtforge', 'checks');
    const [file] = readdirSync(checks).map((name) => join(checks, name));
    chmodSync(checks, 0o777);
    expect(recalled()).toBeUndefined();
    chmodSync(checks, 0o755);
    chmodSync(file!, 0o666);
    expect(recalled()).toBeUndefined();
    chmodSync(file!, 0o644);
    expect(recalled()).toBe('pass');
    if (process.getuid?.() !== 0) return;
    for (const path of [checks, file!]) {
      chownSync(path, 65534, 65534);
      expect(recalled()).toBeUndefined();
      chownSync(path, 0, 0);
    }
  });
});

describe('an engine that proves itself', () => {
  it('passes with every check where it is right, and closes what it opened', async () => {
    const addon = layerEngine(null);
    const engine = await loadEngine(planPath, { addon, toolchain: sampleToolchain });
    const proof = proofOfPlan(engine.plan, false);
    const result = resultOf(proof, await observeLoaded(engine, proof));
    expect(result).toMatchObject({ outcome: 'pass', answer: 'passport', reasons: [], next: null });
    expect(result.checks.map(({ id, outcome }) => [id, outcome])).toEqual([
      ...answer.cases.map(() => ['answer', 'pass']),
      ['repeat', 'pass'],
      ['rows', 'pass'],
      ['graph', 'pass'],
      ['contexts', 'pass'],
    ]);
    expect(addon.fake.live).toBe(0);
    await engine.close();
  });

  it.each(faults)('fails: %s', async (fault) => {
    const result = await checked(fault);
    expect(result.outcome).toBe('fail');
    expect(result.next).toContain('bisect');
  });

  it.each<[EngineFault, string]>([
    ['stale graph', 'graph'],
    ['race between contexts', 'contexts'],
    ['rows that differ', 'rows'],
  ])('finds a %s by the check that is for it alone', async (fault, id) => {
    const { checks } = await checked(fault);
    expect(checks.filter(({ outcome }) => outcome === 'fail').map((check) => check.id)).toEqual([id]);
  });

  it('passes where a TensorRT lends a profile to one context at a time', async () => {
    const addon = layerEngine(null);
    const engine = await loadEngine(planPath, { addon: lendingOnce(addon), toolchain: sampleToolchain });
    const proof = proofOfPlan(engine.plan, false);
    const { outcome, checks } = resultOf(proof, await observeLoaded(engine, proof));
    expect(outcome).toBe('pass');
    expect(checks.find(({ id }) => id === 'contexts')).toMatchObject({ outcome: null });
    await engine.close();
  });

  it('names what is wrong where', async () => {
    const { checks } = await checked('wrong profile');
    const failed = checks.filter(({ outcome }) => outcome === 'fail');
    expect(failed).toMatchObject([
      {
        id: 'answer',
        case: 'profile 0, max',
        wrong: { output: 'y', actual: 0.25, expected: expect.any(Number) },
      },
    ]);
  });
});

describe('an output of boxes in pixels beside scores', () => {
  let detector: KnownAnswer;
  beforeAll(async () => {
    const reference = await writeDetector(join(folder, 'detector.onnx'));
    detector = await recordAnswer({ reference, precision: 'fp16', profiles: detectorProfiles });
  });

  async function checkedDetector(answer: KnownAnswer, change?: (output: Float32Array) => void) {
    const engine = await loadEngine(planPath, { addon: detectorEngine(change), toolchain: sampleToolchain });
    try {
      const proof = proofOfPlan(engine.plan, false, answer);
      return resultOf(proof, await observeLoaded(engine, proof));
    } finally {
      await engine.close();
    }
  }

  it('has a limit for every channel, and its answer fits into a passport', () => {
    const [output] = detector.cases[0]!.outputs;
    expect(output).toMatchObject({ shape: detectorShape, slices: { axis: 1 } });
    expect(output?.slices?.rms).toHaveLength(22);
    expect(output?.limit.slices).toHaveLength(22);
    expect(knownAnswerSchema.parse(JSON.parse(JSON.stringify(detector)))).toEqual(detector);
    expect(JSON.stringify(detector).length).toBeLessThan(20_000);
    expect(detector.left).toHaveLength(1);
  });

  it('passes where it is right', async () => {
    expect(await checkedDetector(detector)).toMatchObject({ outcome: 'pass', reasons: [] });
  });

  it.each(Object.entries(detectorFaults))('fails for %s, by position', async (_, fault) => {
    const { outcome, checks } = await checkedDetector(detector, fault);
    expect(outcome).toBe('fail');
    const wrong = checks.flatMap((check) => check.wrong ?? []);
    expect(wrong[0]).toMatchObject({ output: 'output0', axis: 1 });
    expect(wrong[0]!.place).toBeGreaterThanOrEqual(4);
  });

  it('counts the classes that drawn inputs do not show, in which zeros pass', async () => {
    const { outcome, left } = await checkedDetector(detector, rareClassZeroed);
    expect({ outcome, left }).toEqual({ outcome: 'pass', left: [expect.stringContaining('output0')] });
  });

  it('is rejected by a session, with the position', async () => {
    writePassport(detector);
    rmSync(join(folder, 'cache'), { recursive: true, force: true });
    const addon = detectorEngine(detectorFaults['scores that are 0']);
    const options = { addon, toolchain: sampleToolchain, environment, check: 'refuse' } as const;
    await expect(openCheckedSession(planPath, options)).rejects.toMatchObject({
      code: 'TF_ENGINE_WRONG_ANSWER',
      details: { output: 'output0', axis: 1 },
    });
    writePassport(answer);
  });

  it('is judged as before by an older answer, which the result states', async () => {
    const cases = detector.cases.map((each) => ({
      ...each,
      outputs: each.outputs.map(({ slices: _, limit: { slices: __, ...limit }, ...output }) => ({
        ...output,
        limit,
      })),
    }));
    const older = knownAnswerSchema.parse(JSON.parse(JSON.stringify({ ...detector, cases })));
    const { outcome, left } = await checkedDetector(older, detectorFaults['scores that are 0']);
    expect({ outcome, left: left?.length }).toEqual({ outcome: 'pass', left: 2 });
    expect((await checkedDetector(older, (output) => void output.fill(0))).outcome).toBe('fail');
  });
});

describe('a session that is opened with a check', () => {
  const open = (
    fault: EngineFault | null,
    check: 'refuse' | 'warn' | 'off',
    emit?: (event: WorkEvent) => void,
  ) => {
    const addon = layerEngine(fault);
    const options = { addon, toolchain: sampleToolchain, environment, check, emit };
    return { addon, opened: openCheckedSession(planPath, options) };
  };
  const forget = () => rmSync(join(folder, 'cache'), { recursive: true, force: true });

  it('rejects an engine with a wrong answer, by output, place, values and the line that searches the cause', async () => {
    forget();
    await expect(open('other weights', 'refuse').opened).rejects.toMatchObject({
      code: 'TF_ENGINE_WRONG_ANSWER',
      details: {
        output: 'y',
        place: expect.any(Number),
        expected: expect.any(Number),
        actual: expect.any(Number),
        bisect: expect.stringContaining('bisect'),
      },
    });
  });

  it('costs once for each plan, GPU, driver and library', async () => {
    forget();
    const runs = async (prepare: (addon: ReturnType<typeof layerEngine>) => void = () => {}) => {
      const addon = layerEngine(null);
      prepare(addon);
      const session = await openCheckedSession(planPath, {
        addon,
        toolchain: sampleToolchain,
        environment,
        check: 'refuse',
      });
      await session.close();
      return addon.fake.log.filter((line) => line === 'run').length;
    };
    expect(await runs()).toBeGreaterThan(0);
    expect(await runs()).toBe(0);
    expect(
      await runs(({ fake }) => {
        fake.gpuList = fake.gpuList.map((gpu) => ({ ...gpu, uuid: 'GPU-1' }));
      }),
    ).toBeGreaterThan(0);
  });

  it('warns, also from what is remembered, and opens', async () => {
    forget();
    for (let time = 0; time < 2; time++) {
      const events: WorkEvent[] = [];
      const session = await open('near-zero output', 'warn', (event) => events.push(event)).opened;
      await session.close();
      expect(events).toContainEqual(expect.objectContaining({ type: 'log', severity: 'warning' }));
    }
  });

  it('looks at nothing where it is off', async () => {
    forget();
    const { addon, opened } = open('other weights', 'off');
    await (await opened).close();
    expect(addon.fake.log.filter((line) => line === 'run')).toEqual([]);
    expect(existsSync(join(folder, 'cache'))).toBe(false);
  });

  it('does not reject what has no answer, and reports it', async () => {
    forget();
    writePassport(undefined);
    const events: WorkEvent[] = [];
    const session = await open('other weights', 'refuse', (event) => events.push(event)).opened;
    await session.close();
    expect(events).toContainEqual(expect.objectContaining({ type: 'log', severity: 'warning' }));
    writePassport(answer);
  });
});
