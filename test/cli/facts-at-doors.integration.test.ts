import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildModel, GraphBuilder, writeModel } from '../../src/formats/onnx/index.js';
import type { ModelFacts } from '../../src/formats/onnx/model-facts.js';
import type { Which } from '../../src/products/fleet/which/result.js';
import type { DoctorResult } from '../../src/quality/doctor/doctor.js';
import { writeBundle } from '../support/bundle.js';
import { codeIn, trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-doors-'));
const at = (name: string) => join(folder, name);
const environment = { ...process.env, TENSORRT_CACHE_DIR: at('engines'), ARTIFACTS_BUCKET: '' };
let bundle = '';

/** One node of an operator over inputs of the same type. */
async function single(name: string, operator: string, shapes: readonly (readonly number[])[], opset: number) {
  const graph = new GraphBuilder(name);
  const inputs = shapes.map((shape, index) => graph.input(`x${index}`, 'float32', shape));
  graph.node(operator, { inputs, outputs: ['y'], name: 'n' });
  graph.output('y', 'float32', null);
  await writeModel(buildModel(graph, { opset }), at(name));
}

beforeAll(async () => {
  const heads = [1, 4, 8, 16];
  const [volume, grid] = [
    [1, 2, 4, 4, 4],
    [1, 4, 4, 4, 3],
  ];
  bundle = await writeBundle(at('speech'));
  await single('relu.onnx', 'Relu', [[1, 8]], 17);
  await single('attention.onnx', 'Attention', [heads, heads, heads], 23);
  await single('swish.onnx', 'Swish', [[1, 8]], 24);
  await single('volume.onnx', 'GridSample', [volume, grid], 20);
  await single('plane.onnx', 'GridSample', [heads, [1, 4, 4, 2]], 20);
  await single('dft.onnx', 'DFT', [[1, 16, 1]], 17);
  await single('nonzero.onnx', 'NonZero', [[1, 8]], 17);
  await single('removed.onnx', 'NMS_TRT', [[1, 8]], 17);
  await single('new.onnx', 'Relu', [[1, 8]], 25);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Fact {
  readonly what: string;
  readonly target: string;
  readonly model?: string;
  /** Of a recipe: as `build` takes them. */
  readonly options?: readonly string[];
  /** null: it is planned, with a warning. */
  readonly code: 'TF_TARGET_UNSUPPORTED' | 'TF_OPTION_UNSUPPORTED' | 'TF_LIBRARY_UNSUPPORTED' | null;
  /** What the remedy names in its place: such a build is planned. */
  readonly instead: { readonly target?: string; readonly options?: readonly string[] } | null;
}

const target = 'TF_TARGET_UNSUPPORTED';
const option = 'TF_OPTION_UNSUPPORTED';
const reach = ['--builder-config', 'hardware-compatibility=ampere-plus'];
const forward = ['--builder-config', 'flags=version-compatible'];
const of = (precision: string) => ['--precision', precision];
const rtx120 = { target: 'tensorrt-rtx@1.7.1.116:sm_120' };

const facts: readonly Fact[] = [
  ...['10.7.0.23', '10.2.0.19', '8.6.1.6'].map((version) => ({
    ...{ what: 'a GPU newer than it', target: `tensorrt@${version}:sm_120`, code: target, instead: rtx120 },
  })),
  ...[
    ['a GPU older than it', 'tensorrt@10.13.3.9:sm_70', 'tensorrt@10.4.0.26:sm_70'],
    ['Hopper for TensorRT-RTX', 'tensorrt-rtx@1.7.1.116:sm_90', 'tensorrt@10.13.3.9:sm_90'],
  ].map(
    ([what = '', at = '', other]) =>
      ({ what, target: at, code: target, instead: { target: other } }) as const,
  ),
  { what: 'a GPU nobody knows', target: 'tensorrt@11.3.0.99:sm_130', code: null, instead: null },
  { what: 'a GPU nobody knows', target: 'tensorrt-rtx@1.7.1.116:sm_130', code: null, instead: null },
  { what: 'a GPU its matrix decides', target: 'tensorrt@11.3.0.99:sm_110', code: null, instead: null },
  ...['tensorrt@11.1.0.106:sm_89', 'tensorrt-rtx@1.7.1.116:sm_89'].map((each) => ({
    ...{ what: 'weak typing', target: each, options: ['--weakly-typed'], code: option, instead: {} },
  })),
  ...['tensorrt@10.13.3.9:sm_87', 'tensorrt@10.13.3.9:sm_75'].map((each) => ({
    ...{ what: 'Ampere and newer', target: each, options: reach, code: option, instead: {} },
  })),
  {
    ...{ what: 'a version before the tables', target: 'tensorrt@8.5.3.1:sm_80', options: forward },
    ...{ code: 'TF_LIBRARY_UNSUPPORTED', instead: { target: 'tensorrt@8.6.1.6:sm_80', options: forward } },
  },
  ...['int4', 'fp8', 'nvfp4', 'bf16'].map((precision) => ({
    ...{ what: precision, target: 'tensorrt@8.6.1.6:sm_89', options: of(precision), code: option },
    instead: { options: of('fp16') },
  })),
  ...[
    ['nvfp4', '86', '120'],
    ['int4', '75', '80'],
    ['bf16', '75', '80'],
  ].map(([precision = '', lacks, has]) => ({
    ...{ what: precision, target: `tensorrt@10.13.3.9:sm_${lacks}`, options: of(precision), code: target },
    instead: { target: `tensorrt@10.13.3.9:sm_${has}`, options: of(precision) },
  })),
  ...[
    ['attention', '10.3.0.26', '10.14.1.48'],
    ['swish', '10.16.1.11', '11.0.0.114'],
    ['volume', '11.1.0.106', '11.2.1.2'],
    ['dft', '11.1.0.106', '11.4.0.106'],
    ['removed', '11.0.0.114', '10.16.1.11'],
  ].map(([name, lacks, has]) => ({
    ...{ what: 'an operator', target: `tensorrt@${lacks}:sm_89`, model: `${name}.onnx`, code: target },
    instead: { target: `tensorrt@${has}:sm_89` },
  })),
  ...['dft', 'nonzero'].map((name) => ({
    ...{ what: 'an operator', target: 'tensorrt-rtx@1.7.1.116:sm_89', model: `${name}.onnx`, code: target },
    instead: { target: 'tensorrt@11.4.0.106:sm_89' },
  })),
  {
    ...{ what: 'an opset', target: 'tensorrt@10.3.0.26:sm_89', model: 'new.onnx', code: null },
    instead: null,
  },
].map((fact) => ({ ...fact }) as Fact);

/** Builds of a line: its error code and remedy, and whether a warning was printed. */
async function answer(words: readonly string[]) {
  const { exitCode, err, json } = await trtforge([...words, '--json'], environment);
  const printed = json();
  return {
    exitCode,
    code: codeIn(printed),
    remedy: printed.error?.remedy ?? '',
    warns: / warning /.test(err),
  };
}

const lineOf = (
  verb: string,
  { target: on, options = [], model = 'relu.onnx' }: Omit<Fact, 'what' | 'code' | 'instead'>,
) => [...[verb, at(model), '--target', on, ...options]];

/** An engines file with the same; builder settings and flags are keys. */
function fleetOf({ target: on, options = [], model = 'relu.onnx' }: Fact): string {
  const keys = options.flatMap((word, index) => {
    if (!word.startsWith('--')) return [];
    const value = options[index + 1];
    return [`${word.slice(2)}: ${value === undefined ? true : JSON.stringify(value)}`];
  });
  const path = at('engines.yaml');
  const entry = [`model: ${at(model)}`, ...keys].join(', ');
  writeFileSync(path, `store: store\ntargets:\n  one: { target: '${on}' }\nmodels:\n  - { ${entry} }\n`);
  return path;
}

/** Every door at which a recipe is passed. */
const doors: Readonly<Record<string, (fact: Fact) => readonly string[]>> = {
  'build --dry-run': (fact) => [...lineOf('build', fact), '--dry-run'],
  'cache why': (fact) => ['cache', 'why', ...lineOf('', fact).slice(1)],
  'forge --dry-run': (fact) => [...lineOf('forge', fact), '--dry-run', '--run-root', at('run')],
  'fleet plan': (fact) => ['fleet', 'plan', fleetOf(fact)],
  'fleet submit --dry-run': (fact) => ['fleet', 'submit', fleetOf(fact), '--dry-run'],
};

/** What has nothing to plan builds, and fails before it. */
const building: Readonly<Record<string, (fact: Fact) => readonly string[]>> = {
  build: (fact) => lineOf('build', fact),
  forge: (fact) => [...lineOf('forge', fact), '--run-root', at('run')],
};

describe.each(facts)('$what: $target $options $model', (fact) => {
  const { code, instead, target: on } = fact;

  // forge converts and verifies: it has no weak typing.
  const isTyped = fact.options?.includes('--weakly-typed') !== true;
  const open = (table: typeof doors) =>
    Object.entries(table).filter(([door]) => isTyped || !door.startsWith('forge'));

  test.each(open(doors))('%s', async (_, words) => {
    const told = await answer(words(fact));
    expect(told.code).toBe(code);
    if (code === null) expect(told).toMatchObject({ exitCode: 0, warns: true });
    else expect(told.remedy).not.toBe('');
  });

  if (code !== null)
    test.each(open(building))('%s', async (_, words) => {
      expect((await answer(words(fact))).code).toBe(code);
    });

  if (instead !== null)
    test('what the remedy names is planned', async () => {
      const { options, ...rest } = { ...fact, options: undefined, ...instead };
      const words = [...lineOf('build', { ...rest, ...(options && { options }) }), '--dry-run'];
      expect(await answer(words)).toMatchObject({ exitCode: 0, code: null });
    });

  if (fact.model === undefined && isTyped)
    test('bundle forge --dry-run', async () => {
      const words = ['bundle', 'forge', bundle, '--target', on, ...(fact.options ?? []), '--dry-run'];
      const told = await answer([...words, '--outdir', at('bundle')]);
      expect(told.code).toBe(code);
      if (code === null) expect(told.warns).toBe(true);
    });

  if (fact.options === undefined)
    test('inspect --target', async () => {
      const { exitCode, json } = await trtforge(
        ['inspect', at(fact.model ?? 'relu.onnx'), '--target', on, '--json'],
        environment,
      );
      const found = json<ModelFacts>().findings.find((each) => each.code === 'target-unsupported');
      expect([exitCode, found?.severity]).toEqual([0, code === null ? 'warning' : 'error']);
    });

  if (fact.options === undefined)
    test('which suggests no line that ends so', async () => {
      const [, product = '', version = '', gpu = ''] = /^(.+)@(.+):(.+)$/.exec(on) ?? [];
      const inventory = at('inventory.yaml');
      writeFileSync(inventory, `machines: { m: { ${product}: ${version}, gpu: ${gpu} } }\n`);
      const words = ['which', at(fact.model ?? 'relu.onnx'), '--on', inventory, '--json'];
      const [machine] = (await trtforge(words, environment)).json<Which>().machines;
      expect(machine?.build === null).toBe(code !== null);
      if (code !== null) expect(machine?.chosen).not.toBeNull();
    });
});

test('what is planned is not doubted: GridSample of pictures, every opset that the parser was made for', async () => {
  for (const model of ['plane.onnx', 'relu.onnx']) {
    const words = [...lineOf('build', { target: 'tensorrt@10.6.0.26:sm_90', model }), '--dry-run'];
    expect(await answer(words)).toMatchObject({ exitCode: 0, warns: false });
  }
});

test('a plug-in may bring any operator', async () => {
  mkdirSync(at('plugins'), { recursive: true });
  writeFileSync(at('plugins/lib.so'), 'a library');
  const words = lineOf('build', { target: 'tensorrt@10.3.0.26:sm_89', model: 'attention.onnx' });
  const told = await answer([...words, '--plugin', at('plugins/lib.so'), '--dry-run']);
  expect(told).toMatchObject({ exitCode: 0, code: null });
});

test('trtexec has its own options by version, which are asked too', async () => {
  const words = [
    ...lineOf('build', { target: 'tensorrt@9.3.0.1:sm_89' }),
    '--builder',
    'trtexec',
    '--dry-run',
  ];
  expect((await answer(words)).code).toBeNull();
  const streams = await answer([...words, '--builder-config', 'tiling-optimization-level=fast']);
  expect(streams.code).toBe('TF_OPTION_UNSUPPORTED');
});

test('doctor lists the GPUs by the same facts', async () => {
  const { json } = await trtforge(['doctor', '--json'], environment);
  const { support } = json<DoctorResult>();
  const row = (sm: number) => support.find(({ computeCapability }) => computeCapability === sm);
  expect(row(120)).toMatchObject({ tensorrt8: 'no', tensorrt10: 'from 10.8', tensorrtRtx: 'yes' });
  expect(row(90)).toMatchObject({ tensorrtRtx: 'no' });
});
