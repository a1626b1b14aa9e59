import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import type { FleetPlan } from '../../../src/products/fleet/plan-schema.js';
import { floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { compileFakeOnnxRuntime, fakeProviders } from '../../fakes/onnxruntime/library.js';
import { noise } from '../../formats/precision/judge.js';
import { describeWith } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';
import { paint } from '../evaluation/image-networks.js';
import { writeAffine } from './affine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-every-key-'));
const at = (...names: readonly string[]) => join(root, ...names);
const home = process.cwd();
afterAll(() => {
  process.chdir(home);
  rmSync(root, { recursive: true, force: true });
});

beforeAll(async () => {
  await writeAffine(at('affine.onnx'));
  copyFileSync(await products(), at('sample.onnx'));
  copyFileSync(await openPictures(), at('means.onnx'));
  await paint(at('pictures'), { 'a.png': [250, 10, 10], 'b.png': [10, 250, 10], 'c.png': [10, 20, 250] });
  await compileFakeOnnxRuntime();
  for (const [name, step] of [
    ['x.npz', 10],
    ['y.npz', 7],
  ] as const)
    writeNpz(
      at(name),
      new Map([
        [
          'x',
          tensorFrom(
            'float32',
            [4, 64],
            Float32Array.from({ length: 256 }, (_, i) => (i % 19) / step - 1),
          ),
        ],
      ]),
    );
  const made = await trtforge([
    ...['convert', at('sample.onnx'), '--precision', 'int8', '--calibration', at('x.npz')],
    ...['--calibration-cache', at('ranges.json'), '-o', at('q.onnx')],
  ]);
  expect(made.exitCode, made.err).toBe(0);
  // As tasks run: in the folder that models are below.
  process.chdir(root);
  writeFileSync(at('lib.so'), 'a library of plug-ins');
});

/** Three products in a row, the last of which no quantization takes. */
const products = () =>
  modelFile((graph) => {
    graph.input('x', 'float32', ['batch', 64]);
    for (const [at, name] of ['product', 'second', 'y'].entries()) {
      graph.initializer(`w${at}`, noise([64, 64], 0.1, at));
      graph.node('MatMul', { name, inputs: [['x', 'product', 'second'][at]!, `w${at}`], outputs: [name] });
    }
    graph.output('y', 'float32', ['batch', 64]);
  });

/** Takes pictures of any size. */
const openPictures = () =>
  modelFile((graph) => {
    graph.input('image', 'float32', [1, 3, 'height', 'width']);
    graph.initializer('factors', floats('float32', [1, 3, 1, 1], [1, 0.5, 0.25]));
    graph.node('Mul', { inputs: ['image', 'factors'], outputs: ['scaled'] });
    graph.output('scaled', 'float32', [1, 3, 'height', 'width']);
  });

/** Plans a file; gives its jobs. */
async function planned(file: object): Promise<FleetPlan['jobs']> {
  writeFileSync(at('engines.yaml'), stringify(file));
  const { exitCode, err, json } = await trtforge(['fleet', 'plan', at('engines.yaml'), '--json']);
  expect(exitCode, `${err}${JSON.stringify(json().error)}`).toBe(0);
  return json<FleetPlan>().jobs;
}

const target = 'tensorrt@10.13.3.9:sm_89';

test('every key of where: is in what is handed to its scheduler', async () => {
  const slurm = {
    constraint: 'sm_89',
    gres: 'gpu:l4:1',
    partition: 'gpu',
    account: 'ml',
    time: '1:00:00',
    image: 'team#trt',
    mounts: ['/data:/data'],
    'at-once': 2,
    options: ['--qos=low'],
    environment: ['AWS_PROFILE'],
  };
  const kubernetes = {
    image: 'registry/trt',
    nodeSelector: { pool: 'gpu' },
    namespace: 'ml',
    folder: '/there',
    secret: 'bucket',
    volumes: [{ name: 'data', emptyDir: {} }],
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
    patch: { priorityClassName: 'low' },
    resource: 'dra',
    scratch: '8Gi',
    'at-once': 1,
  };
  const targets = {
    a: { target, where: { slurm } },
    b: { target: 'tensorrt@10.13.3.9:sm_90', where: { kubernetes } },
    c: { target: 'tensorrt@10.13.3.9:sm_120', where: { ssh: { host: 'me@thor', folder: '/far' } } },
  };
  await planned({ store: 'engines', targets, models: [{ model: 'affine.onnx', batch: 4 }] });
  const line = ['fleet', 'submit', at('engines.yaml'), '-o', at('sent'), '--json'];
  expect((await trtforge(line)).exitCode).toBe(0);
  const sent = (name: string) => readFileSync(at('sent', name), 'utf8');
  const { constraint, gres, partition, account, time, options } = slurm;
  for (const [name, value] of Object.entries({ constraint, gres, partition, account, time }))
    expect(sent('a.sbatch')).toContain(`#SBATCH --${name}=${value}\n`);
  for (const words of [
    'team\\#trt',
    `${root}:${root},/data:/data`,
    '--array=0%2',
    ...options,
    ',AWS_PROFILE',
  ])
    expect(sent('a.sbatch')).toContain(words);
  const [claim, job] = parseAllDocuments(sent('b.yaml')).map((each) => each.toJS());
  expect(claim).toMatchObject({ kind: 'ResourceClaimTemplate', metadata: { namespace: 'ml' } });
  expect(job).toMatchObject({
    metadata: { namespace: 'ml' },
    spec: {
      parallelism: 1,
      template: {
        spec: {
          nodeSelector: { pool: 'gpu' },
          priorityClassName: 'low',
          resourceClaims: [{}],
          containers: [
            {
              image: 'registry/trt',
              workingDir: '/there',
              envFrom: [{ secretRef: { name: 'bucket' } }],
              volumeMounts: [{ mountPath: '/data' }, {}],
            },
          ],
          volumes: [{ name: 'data' }, { emptyDir: { sizeLimit: '8Gi' } }],
        },
      },
    },
  });
  expect(sent('c.sh')).toMatch(/ me@thor .*cd \/far /);
});

/** Written as YAML, `at` made of a name; what the recipe has, where it is not that of the same entry without the keys. */
const keys: readonly (readonly [model: string, base: object, keys: object, recipe: object])[] = [
  ['sample', {}, { workspace: '64M' }, { memoryPools: { workspace: 64 << 20 } }],
  ['sample', {}, { 'builder-config': ['optimization-level=1'] }, { optimizationLevel: 1 }],
  ['sample', {}, { refit: true }, { flags: ['refit'] }],
  ['sample', {}, { plugin: ['lib.so'] }, { pluginDigests: [expect.any(String)] }],
  [
    'sample',
    { precision: 'fp16' },
    { 'weakly-typed': true },
    { precision: 'fp16', stronglyTyped: false, conversion: null },
  ],
  [
    'sample',
    { precision: 'fp16' },
    { 'keep-nodes': ['^product$'] },
    { conversion: { keepNodes: ['/^product$/u'] } },
  ],
  ['sample', { precision: 'fp16' }, { 'keep-ops': ['MatMul'] }, { conversion: { keepOps: ['MatMul'] } }],
  [
    'sample',
    { precision: 'fp16' },
    { 'convert-ops': ['Softmax'] },
    { conversion: { convertOps: ['Softmax'] } },
  ],
  [
    'sample',
    { precision: 'fp16' },
    { 'plugin-types': ['Nms:fp16'] },
    { conversion: { pluginTypes: ['Nms:fp16'] } },
  ],
  ['sample', { precision: 'fp16' }, { 'init-max': 9 }, { conversion: { initMax: 9 } }],
  ['sample', { precision: 'fp16' }, { 'io-types': 'convert' }, { conversion: { ioTypes: 'convert' } }],
  ['sample', { precision: 'fp16' }, { 'max-reduction-depth': 8 }, { conversion: { maxReductionDepth: 8 } }],
  [
    'sample',
    { precision: 'fp16', calibration: ['x.npz'] },
    { 'data-max': 9 },
    { conversion: { dataMax: 9 } },
  ],
  [
    'sample',
    { precision: 'int8', calibration: ['x.npz'] },
    { 'calibration-method': 'max' },
    { conversion: { quantization: { method: 'max' } } },
  ],
  [
    'sample',
    { precision: 'int8', calibration: ['x.npz'] },
    { 'high-precision': 'bf16' },
    { conversion: { quantization: { rest: 'bf16' } } },
  ],
  [
    'sample',
    { precision: 'int8', calibration: ['x.npz'] },
    { 'high-precision-nodes': ['^other$'] },
    { conversion: { quantization: { unquantizedNodes: ['/^other$/u'] } } },
  ],
];

const pictures = {
  precision: 'fp16',
  calibration: ['pictures'],
  preprocess: 'rt-detr',
  'data-max': 100,
  imgsz: 32,
};
const digests: readonly (readonly [model: string, base: object, keys: object])[] = [
  ['sample', { precision: 'fp16', 'data-max': 9, calibration: ['y.npz'] }, { calibration: ['x.npz'] }],
  ['sample', { precision: 'int8', calibration: ['x.npz'] }, { inputs: ['y.npz'] }],
  [
    'sample',
    { precision: 'int8', calibration: ['y.npz'] },
    { calibration: [], 'calibration-cache': 'ranges.json' },
  ],
  ['means', pictures, { preprocess: 'yolo' }],
  ['means', pictures, { imgsz: 64 }],
];

test.each(digests)('%s: of %j the keys %j make another calibration', async (name, base, more) => {
  const dim = name === 'means' ? ['height=32', 'width=32'] : ['batch=4'];
  const models = [base, { ...base, ...more }].map((each) => ({ model: `${name}.onnx`, dim, ...each }));
  const jobs = await planned({ store: 'engines', targets: { l4: { target } }, models });
  const [one, other] = jobs.map(({ recipe }) => recipe.conversion?.calibration);
  expect(other).toMatch(/^[0-9a-f]{64}$/);
  expect(other).not.toBe(one);
});

test('the policy of the file is that of models that have none', async () => {
  for (const name of ['all.yaml', 'own.yaml'])
    writeFileSync(
      at(name),
      `schema: trtforge.gate-policy/1\nchecks: [{ id: size, result: { schema: trtforge.build/1 }, field: bytes, fail: { above: 1e9 } }]\n`,
    );
  const models = [
    { model: 'sample.onnx', batch: 4 },
    { model: 'sample.onnx', batch: 8, gate: 'own.yaml' },
  ];
  const jobs = await planned({ store: 'engines', targets: { l4: { target } }, gate: 'all.yaml', models });
  expect(jobs.map(({ gate }) => gate?.path)).toEqual(['all.yaml', 'own.yaml']);
});

describeWith('toolchain', 'ranges that a task makes', () => {
  test('are made on the provider that the model names, with what else it names', async () => {
    writeFileSync(at('log'), '');
    const { ORT_HOME, ...fake } = fakeProviders('MatMul', at('log'));
    const entry = {
      model: 'sample.onnx',
      batch: 4,
      precision: 'int8',
      calibration: ['x.npz'],
      provider: 'cuda',
      'provider-option': ['use_tf32=0'],
      onnxruntime: ORT_HOME,
      'allow-fallback': true,
    };
    const file = { store: 'built', targets: { ada: { target: 'tensorrt-rtx:sm_89' } }, models: [entry] };
    await planned(file);
    for (const [name, value] of Object.entries(fake)) vi.stubEnv(name, value);
    const { json } = await trtforge(['fleet', 'work', at('engines.yaml'), '--json']);
    vi.unstubAllEnvs();
    expect(json()).toMatchObject({ jobs: [{ did: 'built', reasons: [expect.any(String)] }] });
    expect(readFileSync(at('log'), 'utf8')).toContain('use_tf32');
  });
});

test.each(keys)('%s: of %j the keys %j are in the recipe', async (name, base, more, recipe) => {
  const models = [base, { ...base, ...more }].map((each) => ({ model: `${name}.onnx`, batch: 4, ...each }));
  const jobs = await planned({ store: 'engines', targets: { l4: { target } }, models });
  expect(new Set(jobs.map(({ identity }) => identity)).size).toBe(2);
  expect(jobs[0]?.recipe).not.toMatchObject(recipe);
  expect(jobs[1]?.recipe).toMatchObject(recipe);
});

test.each([
  [{ profile: ['x:1x64/2x64/8x64'] }, [1, 2, 8]],
  [{ dim: ['batch=1/3/9'] }, [1, 3, 9]],
  [{ 'profile-from': ['x.npz'] }, [4, 4, 4]],
])('%j makes the profiles', async (ranges, [min, opt, max]) => {
  const models = [{ model: 'sample.onnx', name: 'net:3', ...ranges }];
  const [job] = await planned({ store: 'engines', targets: { l4: { target } }, models });
  expect(job?.recipe.profiles).toMatchObject([{ x: { min: [min, 64], opt: [opt, 64], max: [max, 64] } }]);
  expect(job?.name).toMatch(/^net_3_/);
});
