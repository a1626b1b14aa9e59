import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { text } from '../src/base/options/kinds.js';
import { inLibraryWords } from '../src/base/options/library-arguments.js';
import { catalogue } from '../src/errors.js';
import { forgeOptions } from '../src/forge/options.js';
import {
  benchCompare,
  benchWith,
  buildOrLoad,
  calibrationOf,
  compareOutputs,
  convertModel,
  defaultRequest,
  diffEngines,
  draftPolicy,
  explaining,
  explainLog,
  findToolchains,
  forge,
  inspectModel,
  installToolchain,
  layersOf,
  openEngineSession,
  openSession,
  readPassport,
  runFile,
  runGate,
  tensor,
  verifyModel,
} from '../src/index.js';
import { compareOptions, verifyOptions } from '../src/quality/verify/options.js';
import { dynamicModel, staticModel } from './native/tiny-models.js';
import { assertLibraryWords } from './support/parsed-lines.js';
import { codeOf } from './support/refusal.js';
import { trtforge } from './support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-index-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['forge', forge],
  ['buildOrLoad', buildOrLoad],
])(
  '%s rejects an option that does not exist before it begins, and names the nearest',
  async (_name, call) => {
    const misspelt = { model: 'nothing-here.onnx', presicion: 'fp16' };
    await expect(call(misspelt)).rejects.toMatchObject({
      code: 'TF_USAGE',
      message: expect.stringContaining('precision'),
    });
    await expect(call({ model: 'nothing-here.onnx' })).rejects.toMatchObject({ code: 'TF_FILE_NOT_FOUND' });
  },
);

const model = 'nothing-here.onnx';

test.each<[string, (options: never) => Promise<unknown>, unknown]>([
  ['a number for a path', buildOrLoad, { model: 5 }],
  ['a text for a list', buildOrLoad, { model, profiles: 'x:1x3' }],
  ['a text for a number', forge, { model, device: '0' }],
  ['a text for a switch', buildOrLoad, { model, weaklyTyped: 'no' }],
  ['nothing', verifyModel, {}],
  ['no options', verifyModel, undefined],
  ['an option that does not exist', verifyModel, { candidate: model, reference: model, sample: 3 }],
  ['a text for values by name', verifyModel, { candidate: model, reference: model, shapes: 'x:1' }],
  ['no sources', runFile, { file: model }],
  ['a path that is none', (options) => inspectModel(options), 5],
  ['a text for an expression', (options) => inspectModel(model, options), { nodes: '.' }],
  ['a device that is a text', (options) => openSession(model, options), { device: '0' }],
  ['no precision', (options) => convertModel(model, 'out.onnx', options), {}],
])('%s is TF_USAGE, in words of the library', async (_what, call, passed) => {
  const remedy = expect.not.stringContaining('--');
  await expect(call(passed as never)).rejects.toMatchObject({ code: 'TF_USAGE', remedy });
});

type Call = (...args: never[]) => unknown;
const sides = { candidate: model, reference: model };
const measured = await defaultRequest('nothing-here.engine');

test.each<[string, Call, unknown[], string]>([
  ['forge', forge, [{ model, device: -1 }], 'device'],
  ['forge', forge, [{ model, verify: { samples: 0 } }], 'verify.samples'],
  ['forge', forge, [{ model }, { sginal: undefined }], 'sginal'],
  ['buildOrLoad', buildOrLoad, [{ model, conversion: { keepNode: [] } }], 'conversion.keepNode'],
  ['buildOrLoad', buildOrLoad, [{ model }, { signal: 5 }], 'signal'],
  ['inspectModel', inspectModel, [model, {}, { emit: 'x' }], 'emit'],
  ['convertModel', convertModel, [model, 'o.onnx', { precision: 'fp16', initMax: -1 }], 'initMax'],
  ['calibrationOf', calibrationOf, [{ data: ['x.npz'], imgsz: 3 }], 'imgsz'],
  ['calibrationOf', calibrationOf, [{ data: 'x.npz' }], 'data'],
  ['runFile', runFile, [{ file: model, sources: [], iterations: 0 }], 'iterations'],
  ['openSession', openSession, [model, { threads: Number.NaN }], 'threads'],
  ['openSession', openSession, [model, { cudaGraph: 'sometimes' }], 'cudaGraph'],
  ['openEngineSession', openEngineSession, ['x.engine', { contexts: 0 }], 'contexts'],
  ['openEngineSession', openEngineSession, ['x.engine', { keepCalls: { count: -1 } }], 'keepCalls.count'],
  ['verifyModel', verifyModel, [{ ...sides, samples: -3 }], 'samples'],
  ['verifyModel', verifyModel, [{ ...sides, data: { file: [] } }], 'data.file'],
  ['compareOutputs', compareOutputs, [{ ...sides, atl: [] }], 'atl'],
  ['compareOutputs', compareOutputs, [{ ...sides, names: 'a:b' }], 'names'],
  ['benchWith', benchWith, ['trtforge', { ...measured, device: 0.5 }, { emit: () => {} }], 'device'],
  [
    'benchWith',
    benchWith,
    ['trtforge', { ...measured, mode: { ...measured.mode, streams: 0 } }],
    'mode.streams',
  ],
  ['benchWith', benchWith, ['trtforge', { ...measured, mode: { streams: 1 } }], 'mode.transfers'],
  [
    'benchCompare',
    benchCompare,
    [{ candidate: measured, reference: { ...measured, engine: '' }, rounds: 3 }],
    'reference.engine',
  ],
  ['benchCompare', benchCompare, [{ candidate: measured, reference: measured, rounds: 1 }], 'rounds'],
  ['defaultRequest', defaultRequest, [], 'file'],
  ['runGate', runGate, [{ policy: 'p.yaml', results: 'r.json', day: '2026-01-01' }], 'results'],
  ['draftPolicy', draftPolicy, ['r.json'], 'results'],
  ['explainLog', explainLog, ['build.log', { models: model }], 'models'],
  ['explaining', explaining, [() => Promise.resolve(), {}], 'emit'],
  ['findToolchains', findToolchains, ['PATH'], 'environment'],
  ['installToolchain', installToolchain, [{ acceptLicence: true }], 'acceptLicence'],
  ['installToolchain', installToolchain, [{}], 'acceptLicense'],
  ['readPassport', readPassport, [7], 'file'],
  ['layersOf', layersOf, ['x.engine', { emit: () => {}, device: -1 }], 'device'],
  ['diffEngines', diffEngines, [{ layers: [] }, {}], 'b'],
])('%s with %j names the option', async (_name, call, args, option) => {
  const refused = async () => call(...(args as never[]));
  await expect(refused()).rejects.toMatchObject({ code: 'TF_USAGE', details: { option } });
});

test.each<[string, () => Promise<unknown>, string, string]>([
  [
    'an open size',
    () => buildOrLoad({ model: dynamicModel(folder), target: 'tensorrt-rtx:sm_89', store: false }),
    '--',
    '`batch`',
  ],
  [
    'no samples',
    () => convertModel(staticModel(folder), join(folder, 'q.onnx'), { precision: 'int8' }),
    '--calibration',
    '`calibration`',
  ],
  ['no inputs', () => runFile({ file: dynamicModel(folder), sources: [] }), '--inputs', '`sources`'],
])('%s: the remedy names the option of the function', async (_what, call, flag, option) => {
  const error = await call().then(
    () => ({ remedy: '' }),
    (thrown: { readonly remedy: string }) => thrown,
  );
  expect(error.remedy).toContain(option);
  expect(error.remedy).not.toContain(flag);
});

test.each([
  ['Remove --keep-nodes, or pass --profile x:1.', 'Remove `keepNodes`, or pass `profiles` x:1.'],
  ['Run: trtforge verify a --against b', 'Run: trtforge verify a --against b'],
  ['`trtforge run x --inputs random`, or --inputs.', '`trtforge run x --inputs random`, or `data`.'],
  ['trtexec --exportTimes writes it.', 'trtexec --exportTimes writes it.'],
])('%s', (line, words) => {
  expect(inLibraryWords(line, [{ data: { kind: text } }])).toBe(words);
});

test.each([
  ['--map', 'names', compareOptions],
  ['--provider-option', 'providerOptions', verifyOptions],
  ['--inputs', 'data.files', verifyOptions],
  ['--atol', 'verify.atol', forgeOptions],
])('a flag is the option that declares it: %s is %s', (flag, name, group) => {
  expect(inLibraryWords(`Pass ${flag} x.`, [group])).toBe(`Pass \`${name}\` x.`);
});

test('no remedy of the catalogue names a flag to a caller of the library', () => {
  for (const { remedy } of Object.values(catalogue))
    assertLibraryWords(JSON.stringify({ error: { remedy } }));
});

test('values by name are an object or a Map, and a list may be a Set', async () => {
  const file = dynamicModel(folder);
  const facts = await inspectModel(file, { shapes: { x: [2, 64] } });
  expect(facts).toEqual(await inspectModel(file, { shapes: new Map([['x', [2, 64]]]) }));
  expect(facts).not.toEqual(await inspectModel(file, { shapes: { x: [5, 64] } }));
  const kept = async (keepOps: readonly string[] | ReadonlySet<string>) =>
    (await convertModel(file, join(folder, 'kept.onnx'), { precision: 'fp16', keepOps })).kept;
  expect(await kept(['Relu'])).toEqual(await kept(new Set(['Relu'])));
  await using session = await openSession(staticModel(folder));
  const [input] = session.inputs;
  const shape = input!.shape as number[];
  const passed = tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(1), shape);
  const byMap = await session.run(new Map([[input!.name, passed]]));
  expect(await session.run({ [input!.name]: passed })).toEqual(byMap);
  await expect(session.run(passed as never)).rejects.toMatchObject({ code: 'TF_SESSION_INPUT' });
  await expect(session.run({ other: passed })).rejects.toMatchObject({ code: 'TF_SESSION_INPUT' });
});

test('options inside options are accepted by their names', async () => {
  const kept = { keepCalls: { count: 1, bytes: 0 }, weightBudget: 'automatic', cudaGraph: 'never' } as const;
  await expect(openEngineSession('nothing-here.engine', kept)).rejects.not.toMatchObject({
    code: 'TF_USAGE',
  });
  const judged = { ...sides, data: { files: ['x.npz'], imgsz: 64 }, samples: 1 };
  await expect(verifyModel(judged)).rejects.not.toMatchObject({ code: 'TF_USAGE' });
  await expect(calibrationOf({ data: ['x.npz'], imgsz: 64 })).resolves.toHaveProperty('digest');
});

test('what a number may be is the same on the command line and in the library', async () => {
  for (const [line, call] of [
    [['--device', '-1'], () => buildOrLoad({ model, device: -1 } as never, { emit: () => {} })],
    [['--batch', '0'], () => buildOrLoad({ model, batch: 0 } as never, { emit: () => {} })],
  ] as const) {
    const { error } = (await trtforge(['build', model, ...line, '--json'])).json() as {
      error: { code: string };
    };
    await expect(call()).rejects.toMatchObject({ code: error.code });
  }
});

test.each([32, '32', '1/32/32', { min: 1, opt: 32, max: 32 }])('a batch may be %j', async (batch) => {
  await expect(buildOrLoad({ model, batch })).rejects.toMatchObject({ code: 'TF_FILE_NOT_FOUND' });
});

test('inspectModel returns what the command line prints as JSON', async () => {
  const a = dynamicModel(folder);
  const options = { shapes: new Map([['x', [8, 64]]]), nodes: /./, weights: /./, checkWeights: true };
  const facts = await inspectModel(a, options);
  expect(facts.cost?.flops).toBe(2 * 8 * 64 * 32 + 8 * 32);
  expect([facts.nodeList?.length, facts.weightList?.length]).toEqual([2, 1]);
  const line = ['--shapes', 'x:8x64', '--nodes', '.', '--weights', '.', '--check-weights', '--json'];
  expect((await trtforge(['inspect', a, ...line])).json()).toMatchObject({ ...facts });
});

test('the error of a type that nothing is converted to names those that are, and the one of a graph as it is', async () => {
  const asked = { precision: 'fp32' as never };
  await expect(convertModel(staticModel(folder), join(folder, 'o.onnx'), asked)).rejects.toMatchObject({
    code: 'TF_USAGE',
    remedy: expect.stringContaining('as-is'),
  });
});

test('a tensor is made of a typed array, and what a session returns has its data', () => {
  const made = tensor(Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]);
  expect([made.dtype, made.shape, made.data]).toEqual(['float32', [2, 3], Float32Array.of(1, 2, 3, 4, 5, 6)]);
  const { dtype, shape, bytes } = tensor(BigInt64Array.of(7n), [1]);
  expect(tensor({ dtype, shape, bytes }).data).toEqual(BigInt64Array.of(7n));
  expect(tensor(Uint16Array.of(0x3c00), [1], 'float16').dtype).toBe('float16');
  expect(tensor({ dtype: 'int4', shape: [2], bytes: Uint8Array.of(0x21) }).data).toBe(null);
  for (const values of [Float32Array.of(1), [1, 2] as never])
    expect(codeOf(() => tensor(values, [2]))).toBe('TF_USAGE');
});
