import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import { planSchema } from '../../../../src/cli/printed-schemas.js';
import { streamsResultSchema } from '../../../../src/products/deepstream/result.js';
import { modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { writePictureModel } from '../../../fakes/deepstream.js';
import { fakeElf } from '../../../fakes/elf.js';
import { fakeEngine } from '../../../fakes/tensorrt/engine.js';
import { fakeTrtexec } from '../../../fakes/trtexec.js';
import { dryRunIn } from '../../../support/dry-run.js';
import { writeSampleModel } from '../../../support/sample-engine.js';
import { trtforge } from '../../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-streams-command-'));
let environment: NodeJS.ProcessEnv = {};
let model: string;

/** A fake of TensorRT 10.3, of its trtexec, and of a driver without a GPU, so that the answer is the same everywhere. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: engine.install(join(root, 'home')),
    TRTEXEC: fakeTrtexec(root, { version: '10.6', says: '10.3.0.26' }),
    XDG_CACHE_HOME: join(root, 'cache'),
    NO_COLOR: '1',
  });
  engine.bench.enter({ ...environment, FAKE_GPU: 'none' });
  // Where relative paths begin.
  process.chdir(root);
  model = await writePictureModel(root);
  await writeSampleModel(join(root, 'fixed.onnx'), { batch: 4 });
});
afterAll(() => rmSync(root, { recursive: true }));

const streams = (...args: readonly string[]) => trtforge(['deepstream', ...args], environment);

describe('trtforge deepstream size rejects before any work', () => {
  test.each<[string, readonly string[], number, string, RegExp]>([
    ['no model', [], 2, 'TF_USAGE', /MODEL|argument/i],
    ['a model that is not there', ['no.onnx'], 2, 'TF_FILE_NOT_FOUND', /no\.onnx/],
    ['a fixed batch', ['fixed.onnx'], 2, 'TF_PROFILE_INVALID', /"x" .* batch at 4/],
    ['another height than the model has', ['@', '--height', '640'], 2, 'TF_PROFILE_INVALID', /64, not 640/],
    ['an input that is not there', ['@', '--input', 'data'], 2, 'TF_PROFILE_INVALID', /no input "data"/],
    ['a rate of nothing', ['@', '--fps', '0'], 2, 'TF_USAGE', /"0"/],
    ['no name', ['@', '--name', ''], 2, 'TF_USAGE', /"" cannot be the folder/],
    ['no rate', ['@', '--fps', ','], 2, 'TF_USAGE', /frame rates/],
    ['a batch of nothing', ['@', '--max-batch', '0'], 2, 'TF_USAGE', /"0"/],
    [
      'a first batch above the limit',
      ['@', '--max-batch', '64', '--max-batch-limit', '32'],
      2,
      'TF_USAGE',
      /64 is above/,
    ],
    ['a name that leads elsewhere', ['@', '--name', '../../x'], 2, 'TF_USAGE', /"\.\.\/\.\.\/x" cannot be/],
    ['a misspelt option', ['@', '--time-limt', '5'], 2, 'TF_USAGE', /time-limt/],
  ])('%s', async (_what, words, exitCode, code, message) => {
    const line = ['size', ...words.map((word) => (word === '@' ? model : word)), '--json'];
    for (const args of [line, [...line, '--dry-run']]) {
      const { exitCode: status, json } = await streams(...args);
      expect(json()).toMatchObject({
        ok: false,
        exitCode,
        error: { code, message: expect.stringMatching(message) },
      });
      expect(status).toBe(exitCode);
    }
    expect(existsSync(join(root, 'models/net/benchmarks'))).toBe(false);
  });

  test.each([[], ['--with', 'trtexec']])(
    'a machine without GPU, which plans all the same %j',
    async (...words) => {
      const line = ['size', model, '--json', '--max-batch', '4', ...words];
      const { exitCode, json } = await streams(...line);
      expect([exitCode, json()]).toMatchObject([3, { error: { code: 'TF_GPU_UNAVAILABLE' } }]);
      const { steps, resolved } = planSchema.loose().parse((await streams(...line, '--dry-run')).json());
      expect(steps.map(({ does }) => does)).toEqual([
        'build',
        'measure',
        'measure',
        'build',
        'write',
        'write',
      ]);
      expect(steps.every(({ skipped }) => /GPU/.test(skipped ?? ''))).toBe(true);
      expect(steps[0]).toMatchObject({ what: expect.stringMatching(/net_dynamic_b4\.engine$/) });
      expect(resolved).toMatchObject({ name: 'net', input: expect.any(String), height: 64, width: 64 });
      expect(existsSync(join(root, 'models/net/benchmarks'))).toBe(false);
    },
  );
});

describe('trtforge deepstream size over a fake GPU, built and measured by trtexec', () => {
  let onnx: string;
  beforeAll(async () => {
    delete process.env.FAKE_GPU;
    onnx = await writePictureModel(join(root, 'sized'));
  });

  const byTrtexec = ['--builder', 'trtexec', '--with', 'trtexec', '--precision', 'as-is'];
  const size = (...args: readonly string[]) => streams('size', onnx, ...byTrtexec, ...args);
  // The recorded run gives 532.026 batches a second, whatever the batch.
  const words = ['--fps', '300', '--max-batch', '4', '--max-batch-limit', '8', '--no-cache'];
  const folder = (...parts: readonly string[]) => join(root, 'sized/models/net', ...parts);

  const plan = (...args: readonly string[]) =>
    dryRunIn(join(root, 'sized'), ['deepstream', 'size', onnx, ...byTrtexec, ...words, ...args], environment);

  test('is planned up to the measurement that decides the next batch', async () => {
    const { does, steps, resolved } = await plan('--duration', '5', '--sensitivity');
    expect(does).toEqual(['build', 'write', 'measure', 'measure', 'build', 'measure', 'write', 'write']);
    expect(steps[1]?.what).toBe(folder('benchmarks/engines/net_dynamic_b4.engine'));
    expect(steps[3]).toMatchObject({ what: folder('benchmarks/b4/trtexec_b4.log'), ms: 6000 });
    expect(resolved).toMatchObject({ name: 'net', input: 'images', precision: 'as-is' });
  });

  test('goes the whole way, and prints the scripts’ words', async () => {
    const { exitCode, out, err } = await size(...words);
    expect(err).not.toMatch(/error/);
    expect(exitCode).toBe(0);
    expect(out.split('\n').slice(0, 9)).toEqual([
      '=== TRT Engine Build Complete ===',
      'Model:   net',
      'Engine:  models/net/benchmarks/engines/net_dynamic_b8.engine',
      '         (single engine — used for trtexec baseline and all DS runs)',
      '',
      'trtexec Results:',
      '  BS=1:       532.026 QPS  |  GPU mean: 1.87829ms',
      '  BS=8: 532.026 QPS  |  4256.21 img/s  |  GPU mean: 1.87829ms  P99: 1.89185ms',
      '',
    ]);
    expect(out).toContain('stopped: max-batch-limit.');
    for (const file of [
      'benchmarks/engines/net_dynamic_b4.engine',
      'benchmarks/engines/net_dynamic_b8.engine',
      'benchmarks/b1/trtexec_b1.log',
      'benchmarks/b4/trtexec_b4.log',
      'benchmarks/b8/trtexec_b8.log',
    ])
      expect(existsSync(folder(file)), file).toBe(true);
  });

  test('--verbose asks trtexec for its verbose lines, here as in build; nothing else does', async () => {
    const verbose = await size(...words, '--fresh', '--max-batch-limit', '4', '-v');
    expect(verbose.exitCode).toBe(0);
    const commandOf = (path: string) => readFileSync(path, 'utf8').split('\n')[0] ?? '';
    const logs = () =>
      readdirSync(folder('benchmarks/engines')).filter((name) => /^net_dynamic_build_\d.*\.log$/.test(name));
    expect(commandOf(folder('benchmarks/engines', logs().sort().at(-1) ?? ''))).toMatch(/ --verbose$/);
    const built = async (...more: readonly string[]) => {
      const log = join(root, 'cache/trtforge/build_logs');
      rmSync(log, { recursive: true, force: true });
      const profile = ['--profile', 'images:1x3x64x64'];
      const line = ['build', onnx, '--builder', 'trtexec', ...profile, '--no-cache', ...more];
      expect((await trtforge(line, environment)).exitCode).toBe(0);
      return commandOf(join(log, readdirSync(log)[0] ?? ''));
    };
    expect(await built('-o', join(root, 'v.engine'), '-v')).toMatch(/ --verbose$/);
    expect(await built('-o', join(root, 'q.engine'))).not.toContain('--verbose');
  });

  test('the next call reads what lies there, and so does its plan', async () => {
    const { does, steps } = await plan();
    expect(does).toEqual(['take', 'take', 'take', 'take', 'take', '(build)', 'write', 'write']);
    expect(steps.at(-3)?.skipped).toMatch(/limit of 8/);
    expect((await plan('--fresh')).does.slice(0, 2)).toEqual(['build', 'write']);
    const { json, exitCode } = await size(...words, '--json');
    expect(exitCode).toBe(0);
    const again = json<{ engines: { source: string; peak: { source: string } }[] }>();
    expect(again.engines.map(({ source, peak }) => [source, peak.source])).toEqual([
      ['disk', 'disk'],
      ['disk', 'disk'],
    ]);
  });
});

describe('each option of deepstream size, over the same fake', () => {
  let open: string;
  let untold: string;
  beforeAll(async () => {
    delete process.env.FAKE_GPU;
    open = await modelFile((graph) => {
      for (const name of ['images', 'others']) graph.input(name, 'float32', ['n', 3, 'h', 'w']);
      graph.node('Add', { inputs: ['images', 'others'], outputs: ['sum'] });
      graph.output('sum', 'float32', ['n', 3, 'h', 'w']);
    });
    writeFileSync(join(root, 'plug.so'), fakeElf({}));
    untold = (await sized(asIs)).commands;
  });

  const lines = [
    '--fps',
    '300',
    '--max-batch',
    '4',
    '--max-batch-limit',
    '4',
    '--builder',
    'trtexec',
    '--with',
    'trtexec',
  ];
  /** What the result has, and the command lines of the logs of its folder. */
  async function sized(words: readonly string[], file = model) {
    const place = join(root, 'sizes', `${readdirSync(root).length}${words.join('')}`.replaceAll(/\W/g, ''));
    const own = words.includes('--root') ? [] : ['--root', place];
    const more = words.includes('--cache-dir') ? [] : ['--no-cache'];
    const { exitCode, json } = await streams('size', file, ...lines, ...own, ...more, ...words, '--json');
    // Ended by its time the answer is undecided.
    expect(exitCode, JSON.stringify(json().error)).toBe(words.includes('--time-limit') ? 4 : 0);
    const result = streamsResultSchema.loose().parse(json());
    mkdirSync(result.root, { recursive: true });
    const logs = readdirSync(result.root, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.log'),
    );
    const commands = logs.map((name) => readFileSync(join(result.root, name), 'utf8').split('\n')[0] ?? '');
    return { result, commands: commands.join('\n') };
  }
  const asIs = ['--precision', 'as-is'];

  test.each<[string, readonly string[], RegExp]>([
    ['--graph', [...asIs, '--graph'], / --useCudaGraph/],
    ['--spin-wait', [...asIs, '--spin-wait'], / --useSpinWait/],
    ['--warm-up', [...asIs, '--warm-up', '70'], / --warmUp=70 /],
    ['--duration', [...asIs, '--duration', '3'], / --duration=3 /],
    ['--workspace', [...asIs, '--workspace', '64M'], / --memPoolSize=workspace:64/],
    [
      '--builder-config',
      [...asIs, '--builder-config', 'optimization-level=1'],
      / --builderOptimizationLevel=1 /,
    ],
    ['--plugin', [...asIs, '--plugin', 'plug.so'], /Plugins=\S*plug\.so/],
    ['--weakly-typed', ['--precision', 'fp16', '--weakly-typed'], / --fp16/],
  ])('%s is passed to trtexec', async (_flag, words, told) => {
    expect(untold).not.toMatch(told);
    expect((await sized(words)).commands).toMatch(told);
  });

  test('takes sizes and the input of a model that leaves them open', async () => {
    const words = [...asIs, '--input', 'others', '--height', '64', '--width', '96', '--dim', 'h=64,w=96'];
    const { result, commands } = await sized(words, open);
    expect(result.model).toMatchObject({ input: 'others', height: 64, width: 96 });
    expect(commands).toContain('--maxShapes=others:4x3x64x96,images:4x3x64x96');
  });

  test('stops where requested', async () => {
    const none = await sized([...asIs, '--time-limit', '0', '--timeout', '600']);
    expect(none.result).toMatchObject({ engines: [], stop: { reason: 'time' } });
    const doubling = [...asIs, '--fps', '30', '--max-batch', '1', '--max-batch-limit', '4', '--min-gain'];
    const recorded = environment.TRTEXEC;
    const filled = { version: '10.6', says: '10.3.0.26', fault: 'saturated', isSaturated: true } as const;
    environment.TRTEXEC = fakeTrtexec(root, filled);
    const gains = [];
    for (const least of ['10', '-100']) gains.push((await sized([...doubling, least])).result);
    environment.TRTEXEC = recorded;
    expect(gains.map(({ stop }) => stop?.reason)).toEqual(['gain', 'max-batch-limit']);
    expect(gains.map(({ engines }) => engines.length)).toEqual([2, 3]);
    const { sensitivity } = (
      await sized([...asIs, '--max-batch', '32', '--max-batch-limit', '32', '--sensitivity'])
    ).result;
    expect(sensitivity?.map(({ batch }) => batch)).toEqual([24, 32]);
  });

  test('is where and what was requested', async () => {
    const words = ['--name', 'mine', '--root', join(root, 'there'), '--cache-dir', join(root, 'own-cache')];
    const { result } = await sized([
      ...asIs,
      ...words,
      '--target',
      'tensorrt',
      '--toolchain',
      join(root, 'home'),
    ]);
    expect(result).toMatchObject({ root: join(root, 'there'), model: { name: 'mine' }, fps: 300 });
    expect(result.engine).toMatch(/^models\/mine\//);
    expect(readdirSync(join(root, 'own-cache', 'by-identity'))).toHaveLength(1);
    const bad = await streams(
      'size',
      model,
      ...lines,
      ...asIs,
      '--toolchain',
      join(root, 'nothing'),
      '--json',
    );
    expect(bad.json()).toMatchObject({ error: { code: 'TF_TOOLCHAIN_NOT_FOUND' } });
  });
});
