import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attribute } from '../../src/formats/onnx/index.js';
import { writeNpz } from '../../src/formats/tensor/npz.js';
import { floatTensor } from '../../src/formats/tensor/tensor.js';
import { floats, modelFile } from '../engines/runtime/onnxruntime/models.js';
import { writeBundle } from '../support/bundle.js';
import { dryRunIn } from '../support/dry-run.js';
import { noteUsed } from '../support/judged-commands.js';
import { describeWith } from '../support/needs.js';
import { type Answer, trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-recipe-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const image = fileURLToPath(new URL('../fixtures/images/baseline.jpg', import.meta.url));

const environment = {
  ...process.env,
  TENSORRT_CACHE_DIR: at('store'),
  ARTIFACTS_BUCKET: '',
};
let model: string;
let meta: string;

beforeAll(async () => {
  model = await modelFile((graph) => {
    const weights = (size: number) => Array.from({ length: size }, (_, at) => Math.sin(at * 7 + 1) / 3);
    graph.input('image', 'float32', ['n', 3, 'h', 'w']);
    graph.initializer('kernel', floats('float32', [16, 3, 1, 1], weights(48)));
    graph.initializer('matrix', floats('float32', [16, 64], weights(1024)));
    graph.node('Conv', { inputs: ['image', 'kernel'], outputs: ['features'], name: 'conv' });
    graph.node('Relu', { inputs: ['features'], outputs: ['positive'], name: 'relu' });
    graph.node('GlobalAveragePool', { inputs: ['positive'], outputs: ['pooled'], name: 'pool' });
    graph.node('Flatten', { inputs: ['pooled'], outputs: ['flat'], attributes: { axis: attribute.int(1) } });
    graph.node('MatMul', { inputs: ['flat', 'matrix'], outputs: ['logits'], name: 'head' });
    graph.node('Softmax', { inputs: ['logits'], outputs: ['scores'], name: 'soft' });
    graph.output('scores', 'float32', ['n', 64]);
  });
  cpSync(model, at('net.onnx'));
  model = at('net.onnx');
  meta = await writeBundle(at('.'));
  const features = floatTensor(
    'float32',
    [1, 32, 16],
    Float32Array.from({ length: 512 }, (_, at) => at % 7),
  );
  const state = floatTensor('float32', [1, 32, 1], new Float32Array(32).fill(1));
  writeNpz(
    at('joint.npz'),
    new Map([
      ['encoder_output', features],
      ['predictor_output', state],
    ]),
  );
});

const target = ['--target', 'tensorrt-rtx:sm_89'];
const sizes = ['--batch', '1/2/4', '--dim', 'h=32', '--dim', 'w=32'];

/** What every verb that builds is run with; of a bundle the joint network is looked at. */
const lines: Readonly<Record<string, () => readonly string[]>> = {
  build: () => ['build', model, ...target, ...sizes],
  forge: () => ['forge', model, ...target, ...sizes, '--run-root', at('root')],
  'bundle build': () => ['bundle', 'build', meta, ...target, '--outdir', at('out'), '--only', 'joint'],
  'bundle forge': () => ['bundle', 'forge', meta, ...target, '--outdir', at('out'), '--only', 'joint'],
};
const isBundle = (verb: string) => verb.startsWith('bundle');

async function planOf(verb: string, options: readonly string[]) {
  const plan = await dryRunIn(folder, [...lines[verb]!(), ...options], environment);
  const { components } = plan.resolved as { readonly components?: { readonly joint: object } };
  return { ...plan, of: (components?.joint ?? plan.resolved) as Readonly<Record<string, unknown>> };
}

let configs = 0;
function configured(keys: Readonly<Record<string, unknown>>): readonly string[] {
  const path = at(`config-${configs++}.json`);
  writeFileSync(path, JSON.stringify(keys));
  return ['--config', path];
}
const calibration = (verb: string) =>
  isBundle(verb) ? ['--calibration', at('joint.npz')] : ['--calibration', image, '--preprocess', 'yolo'];

/** An option, how it is passed beside what it needs, and what of the decided build shows it. */
type Row = readonly [string, (verb: string) => readonly string[], () => readonly string[], object];
const none = () => [];
const fp16 = () => ['--precision', 'fp16'];
const int8 = (verb: string) => ['--precision', 'int8', ...calibration(verb)];
const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
const rows: readonly Row[] = [
  ['keep-nodes', fp16, () => ['--keep-nodes', '^conv$'], { conversion: { keepNodes: ['/^conv$/u'] } }],
  ['keep-ops', fp16, () => ['--keep-ops', 'Relu,Tanh'], { conversion: { keepOps: ['Relu', 'Tanh'] } }],
  ['io-types', fp16, () => ['--io-types', 'convert'], { conversion: { ioTypes: 'convert' } }],
  [
    'convert-ops',
    fp16,
    () => configured({ 'convert-ops': 'Softmax' }),
    { conversion: { convertOps: ['Softmax'] } },
  ],
  [
    'plugin-types',
    fp16,
    () => configured({ 'plugin-types': 'Foo:fp16' }),
    { conversion: { pluginTypes: ['Foo:fp16'] } },
  ],
  ['init-max', fp16, () => configured({ 'init-max': 0.25 }), { conversion: { initMax: 0.25 } }],
  [
    'max-reduction-depth',
    fp16,
    () => configured({ 'max-reduction-depth': 8 }),
    { conversion: { maxReductionDepth: 8 } },
  ],
  [
    'data-max',
    (verb) => [...fp16(), ...calibration(verb)],
    () => configured({ 'data-max': 2 }),
    { conversion: { dataMax: 2 } },
  ],
  [
    'calibration-method',
    int8,
    () => ['--calibration-method', 'percentile:99.9'],
    { conversion: { calibration: digest, quantization: { method: 'percentile:99.9' } } },
  ],
  [
    'high-precision',
    int8,
    () => ['--high-precision', 'fp32'],
    { conversion: { quantization: { rest: 'fp32' } } },
  ],
  ['workspace', none, () => ['--workspace', '64M'], { memoryPools: { workspace: 64 * 2 ** 20 } }],
  ['builder-config', none, () => ['--builder-config', 'optimization-level=4'], { optimizationLevel: 4 }],
  // TensorRT-RTX builds none without a GPU.
  ['refit', () => ['--target', 'tensorrt@10.6.0.26:sm_90'], () => ['--refit'], { flags: ['refit'] }],
  ['plugin', none, () => ['--plugin', model], { pluginDigests: [digest] }],
];

describeWith('toolchain', 'an option of the recipe decides what is built', (libraries) => {
  describe.each(Object.keys(lines))('by %s', (verb) => {
    test.each(rows)('--%s', async (option, base, words, seen) => {
      const without = await planOf(verb, base(verb));
      const line = [...base(verb), ...words()];
      const { of } = await planOf(verb, line);
      expect(of.recipe).toMatchObject(seen);
      expect(of.identity).not.toBe(without.of.identity);
      noteUsed('options', [
        `${verb} --${option}`,
        ...(line.includes('--calibration') ? [`${verb} --calibration`] : []),
      ]);
      if (isBundle(verb)) return;
      const [, ...asked] = lines.build!();
      const why = await trtforge(['cache', 'why', ...asked, ...line, '--json'], environment);
      expect(why.json().identity).toBe(of.identity);
    });

    test('--toolchain and --precision', async () => {
      const { of } = await planOf(verb, [...fp16(), '--toolchain', libraries]);
      expect(of).toMatchObject({ library: expect.stringMatching(/^tensorrt-rtx 1\./), precision: 'fp16' });
      noteUsed('options', [`${verb} --toolchain`]);
    });
  });

  test.each(['build', 'forge'])('%s prepares images of a calibration as requested', async (verb) => {
    const prepared = (...words: readonly string[]) => planOf(verb, [...int8(verb), ...words]);
    const plans = [
      await prepared(),
      await prepared('--imgsz', '64'),
      await prepared('--preprocess', 'imagenet', '--imgsz', '64'),
    ];
    expect(new Set(plans.map(({ of }) => of.identity)).size).toBe(3);
    noteUsed('options', [`${verb} --preprocess`, `${verb} --imgsz`]);
    const [, ...asked] = lines.build!();
    const line = ['cache', 'why', ...asked, ...int8(verb), '--imgsz', '64', '--json'];
    expect((await trtforge(line, environment)).json().identity).toBe(plans[1]!.of.identity);
  });

  describe.each(Object.keys(lines))('%s and its store', (verb) => {
    const name = verb.replace(' ', '-');
    const here = ['--cache-dir', at(`store-${name}`)];
    const built = () => [
      ...lines[verb]!(),
      ...fp16(),
      ...(verb === 'forge' ? ['--skip', 'verify,bench'] : []),
      ...(verb === 'bundle forge' ? ['--no-check'] : []),
    ];
    const key = at(`key-${name}`);
    const trusting = (file: string) => configured({ 'require-signature': true, 'trust-key': file });
    const plans = async (...words: readonly string[]) => (await planOf(verb, [...fp16(), ...words])).does;
    /** The same of the search alone. */
    const why = async (...words: readonly string[]) => {
      const [, ...asked] = lines.build!();
      const { exitCode, json } = await trtforge(
        ['cache', 'why', ...asked, ...fp16(), ...words, '--json'],
        environment,
      );
      expect(exitCode).toBe(0);
      return json<{ readonly from: string | null } & Answer>().from;
    };
    const fresh = isBundle(verb) ? () => ['--outdir', at(`${name}-${configs++}`)] : none;

    beforeAll(async () => {
      for (const file of [key, `${key}-other`])
        expect((await trtforge(['cache', 'keygen', '-o', file])).exitCode).toBe(0);
      const words = [
        ...here,
        ...fresh(),
        ...configured({ 'sign-key': key, 'max-size': '1G' }),
        '--timeout',
        '500',
      ];
      const { exitCode, err } = await trtforge([...built(), ...words], environment);
      expect(exitCode, err).toBe(0);
    });

    test('a signed engine is taken where its key is trusted, and no other', async () => {
      expect(await plans(...here, ...fresh(), ...trusting(`${key}.pub`))).toContain('take');
      expect(await plans(...here, ...fresh(), ...trusting(`${key}-other.pub`))).toContain('build');
      noteUsed(
        'options',
        ['require-signature', 'trust-key', 'cache-dir'].map((each) => `${verb} --${each}`),
      );
      if (verb !== 'build') return;
      expect(await why(...here, ...trusting(`${key}.pub`))).toBe('local');
      expect(await why(...here, ...trusting(`${key}-other.pub`))).toBe(null);
    });

    test('--force-rebuild, --no-cache and a store behind it', async () => {
      const empty = ['--cache-dir', at('empty')];
      expect(await plans(...here, ...fresh())).toContain('take');
      expect(await plans(...here, ...fresh(), '--force-rebuild')).toEqual(
        expect.arrayContaining(['build', 'keep']),
      );
      const uncached = await plans(...here, ...fresh(), '--no-cache');
      expect([uncached.includes('build'), uncached.includes('keep')]).toEqual([true, false]);
      expect(
        await plans(...empty, ...fresh(), ...configured({ 'cache-from': at(`store-${name}`) })),
      ).toContain('take');
      noteUsed(
        'options',
        ['force-rebuild', 'no-cache', 'cache-from'].map((each) => `${verb} --${each}`),
      );
      if (verb === 'build')
        expect(await why(...empty, ...configured({ 'cache-from': at(`store-${name}`) }))).not.toBe(null);
    });

    test('--remote is asked, and none is not', async () => {
      const asked = async (...words: readonly string[]) => {
        const { of } = await planOf(verb, [...fp16(), '--cache-dir', at('empty'), ...fresh(), ...words]);
        return (of.why as readonly { readonly from: string }[]).map(({ from }) => from);
      };
      expect(await asked('--remote', 'http://127.0.0.1:9/bucket')).toContain('remote');
      expect(await asked('--remote', 'none')).not.toContain('remote');
      noteUsed('options', [`${verb} --remote`]);
      if (verb === 'build') expect(await why('--cache-dir', at('empty'), '--remote', 'none')).toBe(null);
    });

    test('a store of few bytes keeps the engine that was built last', async () => {
      const other = [
        ...here,
        ...fresh(),
        '--builder-config',
        'optimization-level=1',
        ...configured({ 'max-size': '1K' }),
      ];
      const timing = ['--timing-cache', at('times.cache'), '--workspace', '64M'];
      // As after the end of the process that made it: until then it is in use.
      for (const path of readdirSync(here[1]!, { recursive: true, encoding: 'utf8' }))
        if (/in-use\.[^/]*$/.test(path)) rmSync(join(here[1]!, path));
      const { exitCode, out, err } = await trtforge([...built(), ...other, ...timing], environment);
      expect(exitCode, err).toBe(0);
      expect(`${out}${err}`).toContain('iming cache');
      expect(await plans(...here, ...fresh())).toContain('build');
    });
  });

  test('cache why takes the other options of a build, which decide nothing of what is searched', async () => {
    const [, ...asked] = lines.build!();
    const why = async (...words: readonly string[]) => {
      const line = ['cache', 'why', ...asked, ...fp16(), ...words, '--json'];
      const { exitCode, json } = await trtforge(line, environment);
      expect(exitCode, JSON.stringify(json().error)).toBe(0);
      return json();
    };
    const { identity, name } = await why();
    const keys = { 'max-size': '1G', 'sign-key': at('key-build'), provider: 'cpu', 'allow-fallback': true };
    const place = { ...keys, onnxruntime: '/opt/ort', 'provider-option': 'session.x=1' };
    const told = ['--force-rebuild', '--timing-cache', at('times.cache'), '--toolchain', libraries];
    expect((await why(...told, ...configured(place))).identity).toBe(identity);
    expect((await why('--no-cache')).identity).toBe(identity);
    const calibrated = [...int8('build'), '--calibration-cache', at('why-ranges.json')];
    const { of } = await planOf('build', calibrated);
    expect((await why(...calibrated, '--device', '0')).identity).toBe(of.identity);
    const named = await why('--name', 'pool:2');
    expect([named.identity === identity, named.name === name]).toEqual([true, false]);
  });
});
