import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import { identityDigest } from '../../../../src/engines/identity/identity.js';
import { digestModelFile } from '../../../../src/engines/identity/model-digest.js';
import type { Comparison } from '../../../../src/products/evaluation/compare/result.js';
import { fakeIdentity, manyLayers } from '../../../fakes/tensorrt/affine.js';
import { fakeEngine, type NetworkPlan } from '../../../fakes/tensorrt/engine.js';
import { writeBundle } from '../../../support/bundle.js';
import { samplePassport } from '../../../support/sample-engine.js';
import { trtforge } from '../../../support/trtforge.js';
import { detector, paintCells } from '../detection/coloured-cells.js';
import { channelMeans, paint, quantizableMeans } from '../image-networks.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-evaluated-engines-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const sounds = join(import.meta.dirname, '../../../fixtures/audio');
let environment: NodeJS.ProcessEnv = {};
const identity = fakeIdentity();
const models = { detector: '', means: '', meta: '' };

type Tensors = NonNullable<NetworkPlan['inputs']>;

/** Engines of the stand-in whose inputs are those of the models; those of pictures compute what `channelMeans` does. */
const plans: Readonly<Record<string, { readonly inputs: Tensors; readonly outputs: Tensors }>> = {
  means: { inputs: [['image', 'float32', [1, 3, 16, 16]]], outputs: [['scores', 'float32', [1, 3]]] },
  detector: {
    inputs: [['images', 'float32', [1, 3, 64, 64]]],
    outputs: [['output0', 'float32', [1, 7, 64]]],
  },
  'speech/predictor': {
    inputs: [
      ['y', 'int64', [1, 1]],
      ['h', 'float32', [2, 1, 16]],
      ['c', 'float32', [2, 1, 16]],
    ],
    outputs: [
      ['g', 'float32', [1, 16, 1]],
      ['h_out', 'float32', [2, 1, 16]],
      ['c_out', 'float32', [2, 1, 16]],
    ],
  },
  'speech/joint': {
    inputs: [
      ['encoder_output', 'float32', [1, 32, 1]],
      ['predictor_output', 'float32', [1, 16, 1]],
    ],
    outputs: [['joint_output', 'float32', [1, 1, 1, 38]]],
  },
  'speech/encoder': {
    inputs: [
      ['audio_signal', 'float32', [1, 128, -1]],
      ['length', 'int64', [1]],
    ],
    outputs: [
      ['encoder_output', 'float32', [1, 32, -1]],
      ['encoded_lengths', 'int64', [1]],
    ],
  },
};

beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: at('none'),
    TRTFORGE_TOOLCHAINS: at('none'),
    XDG_CACHE_HOME: at('cache'),
    TENSORRT_CACHE_DIR: at('store'),
    FAKE_PLAN: at('detector.engine'),
    FAKE_GPUS: '2',
    FAKE_CALLS: at('calls'),
    NO_COLOR: '1',
  });
  engine.install(at('home'));
  engine.bench.enter(environment);
  mkdirSync(at('speech'));
  for (const [name, tensors] of Object.entries(plans)) {
    const plan = { kind: 'means', layers: manyLayers, hostCode: true, streamable: 1 << 20 } as const;
    const path = engine.writePlan(at(`${name}.engine`), { ...plan, profiles: [[1, 64, 4096]], ...tensors });
    writeFileSync(`${path}.passport.json`, JSON.stringify(samplePassport(readFileSync(path), identity)));
  }
  engine.writePlan(at('plain.engine'), { kind: 'means', layers: manyLayers, rows: 1, ...plans.means! });
  writeFileSync(at('a.so'), 'a library of plug-ins');
  await paintCells(folder);
  await paint(at('pictures'), { 'a.png': [250, 10, 10], 'b.png': [10, 250, 10], 'c.png': [10, 20, 250] });
  Object.assign(models, {
    detector: await detector(),
    means: await channelMeans(),
    meta: await writeBundle(folder),
  });
  // Engines of a bundle are of its models.
  for (const name of ['encoder', 'predictor', 'joint']) {
    const path = at(`speech/${name}.engine`);
    const model = await digestModelFile(at(`${name}.onnx`));
    writeFileSync(
      `${path}.passport.json`,
      JSON.stringify(samplePassport(readFileSync(path), { ...identity, model })),
    );
  }
  writeFileSync(at('labels.txt'), 'red\ngreen\nblue\n');
  writeFileSync(at('truth.tsv'), 'a.png\tred\nb.png\tgreen\nc.png\tblue\n');
  writeFileSync(at('ref.tsv'), 'utt_id\twav_path\tref_text\na\tpcm16.wav\tOne, two\n');
});

const own = { backEnd: 'tensorrt', identity: identityDigest(identity) };
const cells = () => ['--images', at('images'), '--labels', at('labels.txt'), '--conf', '0.1'];
const pictures = () => ['--images', at('pictures'), '--preprocess', 'rt-detr'];

/** What is run, what is seen of it, and whether it takes the identity of its engine, which a verb of several does not. */
type Row = [verb: string, line: () => readonly string[], seen: object, hasIdentity: boolean];
const rows: readonly Row[] = [
  [
    'eval detector',
    () => [at('detector.engine'), '--instances', at('instances.json'), ...cells()],
    { samples: 2, run: { candidate: own } },
    true,
  ],
  [
    'eval classify',
    () => [at('means.engine'), '--labels', at('labels.txt'), '--truth', at('truth.tsv'), ...pictures()],
    { top1: 1, candidate: own },
    true,
  ],
  [
    'eval embeddings',
    () => [at('means.engine'), '--against', models.means, ...pictures()],
    { validation: { passed: true }, candidate: own },
    true,
  ],
  [
    'eval recogniser',
    () => [models.meta, '--engines', at('speech'), '--manifest', at('ref.tsv'), '--audio-dir', sounds],
    { refWords: 2, run: { backend: expect.stringContaining('TensorRT') } },
    false,
  ],
  [
    'compare-backends',
    () => [
      ...[models.detector, '--candidate', `built=${at('detector.engine')}`, '--data', at('instances.json')],
      ...[...cells(), '--backends', 'ort-cpu,trt', '-o', mkdtempSync(at('compared-'))],
    ],
    { variants: ['fp32-ort-cpu', 'fp32-trt', 'built-trt'].map((name) => ({ name, status: 'run' })) },
    false,
  ],
];

async function run(line: readonly string[]) {
  rmSync(at('calls'), { force: true });
  const { exitCode, json } = await trtforge([...line, '--json'], environment);
  const calls = existsSync(at('calls')) ? readFileSync(at('calls'), 'utf8').split('\n') : [];
  return { exitCode, answer: json(), calls };
}

test('convert advise measures on the GPU and with the TensorRT requested', async () => {
  environment.FAKE_PLAN = at('plain.engine');
  const line = [
    'convert',
    'advise',
    await quantizableMeans(),
    '-o',
    at('advice'),
    '--latency',
    '--device',
    '1',
  ];
  const { answer, calls } = await run([
    ...line,
    '--toolchain',
    at('home'),
    '--calibration',
    ...[...pictures().slice(1), '--held-out', at('pictures/a.png')],
  ]);
  environment.FAKE_PLAN = at('detector.engine');
  expect(answer).toMatchObject({ exitCode: 0, latency: { choices: [{ id: 1 }, { id: 2 }] } });
  for (const does of ['builds on', 'loads on'])
    expect(calls.filter((call) => call.startsWith(does))).toEqual(Array(2).fill(`${does} NVIDIA Fake 1`));
});

test('compare-backends prepares images as an engine was calibrated; another preparation is named', async () => {
  const [file, other] = [at('calibrated.engine'), at('other.engine')];
  for (const [copy, preprocess] of [
    [file, 'rt-detr'],
    [other, 'arcface'],
  ] as const) {
    copyFileSync(at('means.engine'), copy);
    const passport = samplePassport(readFileSync(copy), identity);
    const model = { ...passport.model, preprocess };
    writeFileSync(`${copy}.passport.json`, JSON.stringify({ ...passport, model }));
  }
  const compared = async (...words: readonly string[]) => {
    const line = ['compare-backends', models.means, '--data', at('truth.tsv'), '--labels', at('labels.txt')];
    const place = ['--images', at('pictures'), '-o', mkdtempSync(at('prepared-')), '--allow-host-code'];
    const { answer } = await run([...line, ...place, '--backends', 'ort-cpu,trt', ...words]);
    const { root, variants, warnings } = answer as unknown as Comparison;
    const metrics = join(root, `${variants[0]?.name}-classify`, 'metrics.json');
    return { preprocess: JSON.parse(readFileSync(metrics, 'utf8')).preprocess, warnings };
  };
  const both = ['--candidate', `a=${file}`, '--candidate', `b=${other}`];
  const named = (path: string, its: string) => expect.stringMatching(new RegExp(`${path}.*"${its}"`));
  expect(await compared()).toEqual({ preprocess: 'imagenet', warnings: [] });
  const follows = await compared(...both.slice(0, 2));
  expect(follows.preprocess).toBe('rt-detr');
  expect(follows.warnings).not.toContainEqual(named(file, 'rt-detr'));
  expect((await compared(...both)).warnings).toContainEqual(named(other, 'arcface'));
  const asked = await compared(...both.slice(0, 2), '--preprocess', 'yolo');
  expect(asked.preprocess).toBe('yolo');
  expect(asked.warnings).toContainEqual(named(file, 'rt-detr'));
});

test.each(rows)('%s loads engines with the options passed', async (verb, line, seen, hasIdentity) => {
  const place = ['--toolchain', at('home'), '--plugin', at('a.so'), '--weight-budget', '0'];
  const named = hasIdentity ? ['--identity', own.identity] : [];
  const told = () => [...verb.split(' '), ...line(), ...place];
  const { answer, calls } = await run([...told(), '--allow-host-code', ...named]);
  expect(answer).toMatchObject({ exitCode: 0, ...seen });
  expect(calls).toContain(`loadLibrary ${at('a.so')}`);
  expect(calls).toContain('setWeightStreamingBudgetV2 0');
  expect(JSON.stringify((await run(told())).answer)).toContain('"TF_PLAN_LOAD_FAILED"');
  if (!hasIdentity) return;
  const other = await run([...told(), '--allow-host-code', '--identity', 'f'.repeat(64)]);
  expect(other.answer.error?.code).toBe('TF_PASSPORT_INVALID');
});
