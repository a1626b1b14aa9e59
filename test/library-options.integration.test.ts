import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Group } from '../src/base/options/kinds.js';
import type { Argument } from '../src/base/options/library-arguments.js';
import type { WorkEvent } from '../src/events.js';
import { writeNpz } from '../src/formats/tensor/npz.js';
import { modelFile } from './engines/runtime/onnxruntime/models.js';
import { noise } from './formats/precision/judge.js';
import { noteUsed } from './support/judged-commands.js';
import { describeWith } from './support/needs.js';
import { libraryFunctions as functions, noted } from './support/noted-library.js';

/** What the function that was called last takes. */
const seen = vi.hoisted(() => ({ taken: [] as readonly Argument[] }));
vi.mock('../src/base/options/library-arguments.js', async (original) => {
  const real = await original<typeof import('../src/base/options/library-arguments.js')>();
  return {
    ...real,
    checkArguments: (args: readonly unknown[], taken: readonly Argument[]) => {
      seen.taken = taken;
      return real.checkArguments(args, taken);
    },
  };
});
const { checkArguments } = await import('../src/base/options/library-arguments.js');

/** What each function takes, as it tells the one that checks; nothing that is passed is taken by any. */
const declared = new Map<string, readonly Argument[]>();
for (const [name, call] of Object.entries(functions)) {
  seen.taken = [];
  await Promise.resolve((call as (...args: unknown[]) => unknown)(Symbol('none'))).catch(() => {});
  declared.set(name, seen.taken);
}

/** Empty for a plain value. */
const groupOf = (argument: Argument): Group => (typeof argument.name === 'string' ? {} : (argument as Group));
/** Options by their functions, those in objects by the objects' names: `forge.conversion.keepOps`. */
const namesIn = (path: string, group: Group): readonly string[] =>
  Object.entries(group).flatMap(([name, { kind }]) => {
    const here = `${path}.${name}`;
    return [here, ...kind.forms.flatMap(({ options = {} }) => namesIn(here, options))];
  });
const offered = [...declared].flatMap(([name, taken]) =>
  taken.flatMap((argument) => namesIn(name, groupOf(argument))),
);

test('every option is checked: a value that it cannot have is named', async () => {
  noteUsed('offered', offered);
  expect(declared.size).toBeGreaterThan(20);
  for (const [name, taken] of declared)
    for (const [at, argument] of taken.entries())
      for (const [option, declaration] of Object.entries(groupOf(argument))) {
        // Alone it is judged, whatever else the function needs.
        const call = () => checkArguments([{ [option]: Symbol('none') }], [{ [option]: declaration }]);
        expect(call, `${name}, argument ${at}`).toThrow(
          expect.objectContaining({ code: 'TF_USAGE', details: { option } }),
        );
      }
});

const folder = mkdtempSync(join(tmpdir(), 'trtforge-library-options-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let model: string;
beforeAll(async () => {
  model = await modelFile((graph) => {
    graph.input('x', 'float32', ['batch', 64]);
    for (const [index, name] of ['first', 'second', 'y'].entries()) {
      graph.initializer(`w${index}`, noise([64, 64], 0.1, index));
      graph.node('MatMul', {
        name,
        inputs: [['x', 'first', 'second'][index]!, `w${index}`],
        outputs: [name],
      });
    }
    graph.output('y', 'float32', ['batch', 64]);
  });
  writeNpz(at('x.npz'), new Map([['x', noise([4, 64], 1, 5)]]));
});

const context = () => {
  const events: WorkEvent[] = [];
  const signal = new AbortController().signal;
  return { events, work: { emit: (event: WorkEvent) => void events.push(event), signal } };
};

test('inspectModel, convertModel and calibrationOf take theirs', async () => {
  const { work } = context();
  const facts = await noted.inspectModel(
    model,
    { shapes: { x: [2, 64] }, nodes: /first/, weights: /w1/, checkWeights: true },
    work,
  );
  expect(JSON.stringify(facts)).toContain('first');
  const calibration = await noted.calibrationOf({
    ...{ data: [at('x.npz')], method: 'max', cache: at('ranges.json'), part: 'calibration' },
    provider: 'cpu',
  });
  const int8 = await noted.convertModel(
    model,
    at('int8.onnx'),
    { precision: 'int8', calibration, rest: 'bf16', unquantizedNodes: [/second/], externalData: 'never' },
    work,
  );
  expect(int8).toMatchObject({ precision: 'int8' });
  expect(existsSync(at('ranges.json'))).toBe(true);
  const fp16 = await noted.convertModel(model, at('fp16.onnx'), {
    ...{ precision: 'fp16', ioTypes: 'convert', keepNodes: [/second/], keepOps: ['Softmax'] },
    ...{ convertOps: ['Exp'], initMax: 100, maxReductionDepth: 1000, calibration, dataMax: 1000 },
    allowUnconverted: true,
  });
  expect(fp16).toMatchObject({ precision: 'fp16' });
});

test('what runs and compares takes its own', async () => {
  const { work, events } = context();
  const { env: environment } = process;
  const place = { threads: 1, provider: 'cpu' } as const;
  const ran = await noted.runFile(
    {
      ...{ file: model, sources: [{ kind: 'random' }], seed: 3, output: at('y.npz'), iterations: 2 },
      ...{ shapes: { x: [2, 64] }, ranges: [], ...place },
    },
    { ...work, environment },
  );
  expect(ran.outputs[0]?.shape).toEqual([2, 64]);
  await using session = await noted.openSession(model, place, { ...work, environment });
  expect(session.outputs.map(({ name }) => name)).toEqual(['y']);
  const verified = await noted.verifyModel(
    {
      ...{
        reference: model,
        candidate: at('fp16.onnx'),
        precision: 'fp16',
        errorMap: true,
        seed: 1,
        samples: 2,
      },
      ...{ shapes: { x: [2, 64] }, ranges: [], atol: [], rtol: [], ...place },
    },
    { ...work, environment },
  );
  expect(verified).toMatchObject({ outcome: 'pass', seed: 1 });
  const read = await noted.verifyModel({
    ...{
      reference: model,
      candidate: at('fp16.onnx'),
      data: { files: [at('x.npz')], part: 'held-out' },
      threads: 1,
    },
  });
  expect(read.outcome).toBe('pass');
  const compared = await noted.compareOutputs(
    {
      ...{
        reference: at('y.npz'),
        candidate: at('y.npz'),
        precision: 'fp16',
        atol: [],
        rtol: [],
        errorMap: true,
      },
      ...{
        outputs: ['y'],
        names: { y: 'y' },
        allowDtypeDifference: true,
        strictNonFinite: true,
        allowLoose: true,
      },
    },
    work,
  );
  expect(compared.outcome).toBe('pass');
  expect(events.length).toBeGreaterThan(0);
});

test('what judges and explains takes its own', async () => {
  const log = at('build.log');
  writeFileSync(
    log,
    '[11/28/2026-10:00:00] [E] Error[4]: network has dynamic or shape inputs, but no optimization profile has been defined\n',
  );
  expect(await noted.explainLog(log, { model, knownIssues: [] })).toMatchObject({
    schema: expect.any(String),
  });
  const failing = noted.explaining(() => Promise.reject(new Error('none')), {
    ...{ emit: () => {}, model, knownIssues: async () => [] },
  });
  await expect(failing).rejects.toThrow('none');
  const policy = at('policy.yaml');
  writeFileSync(
    policy,
    'schema: trtforge.gate-policy/1\nchecks: [{ id: size, result: { schema: trtforge.verify/1 }, field: samples, fail: { above: 1 } }]\n',
  );
  const results = at('result.json');
  writeFileSync(
    results,
    JSON.stringify(await noted.verifyModel({ reference: model, candidate: model, threads: 1 })),
  );
  const request = {
    policy,
    results: [results],
    baseline: at('baseline.json'),
    updateBaseline: true,
    day: '2026-11-28',
  };
  expect(await noted.runGate(request)).toMatchObject({ outcome: 'fail' });
  const none = noted.runGate({ ...request, baseline: null as never });
  await expect(none).rejects.toMatchObject({ code: 'TF_USAGE', details: { option: 'baseline' } });
});

describeWith('toolchain', 'what builds', () => {
  test('takes its own', async () => {
    const { work, events } = context();
    const request: Parameters<typeof functions.buildOrLoad>[0] = {
      ...{
        model,
        target: 'tensorrt-rtx:sm_89',
        precision: 'fp16',
        batch: '1/2/4',
        modelName: 'net',
        modelVersion: '3',
      },
      ...{ conversion: { keepOps: ['Softmax'] }, settings: { optimizationLevel: 1 }, plugins: [], device: 0 },
      ...{ timingCache: null, builder: 'native', verbose: true, forceRebuild: true, knownAnswer: true },
      ...{
        store: at('store'),
        layers: [],
        remote: false,
        maxBytes: 1 << 30,
        trustKeys: [],
        logFolder: at('logs'),
      },
    };
    const built = await noted.buildOrLoad(
      { ...request, output: at('net.engine') },
      { ...work, environment: process.env, graceMs: 1 },
    );
    const passport = await noted.readPassport(built.engine);
    expect(passport).toMatchObject({ model: { name: 'net', version: '3' } });
    expect(passport.identity.document.recipe).toMatchObject({ precision: 'fp16', optimizationLevel: 1 });
    const forged = await noted.forge(
      { ...request, runRoot: at('run'), skip: ['verify', 'bench'], verify: { seed: 2, samples: 1 } },
      { ...work, environment: process.env, commandLine: 'trtforge forge' },
    );
    expect(forged.verdict).not.toBe('error');
    expect(events.some(({ type }) => type === 'log')).toBe(true);
  });
});
