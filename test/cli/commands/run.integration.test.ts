import { spawn } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { type RunResult, runResultSchema } from '../../../src/engines/run/result.js';
import { runFile } from '../../../src/engines/run/run-file.js';
import { readNpy, writeNpy } from '../../../src/formats/tensor/npy.js';
import { readNpz, writeNpz } from '../../../src/formats/tensor/npz.js';
import { float32Values, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { floats, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { compileFakeOnnxRuntime, fakeProviders } from '../../fakes/onnxruntime/library.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { fakes } from '../../fakes/tensorrt/library.js';
import { sampleIdentity, samplePassport } from '../../support/sample-engine.js';
import { type Answer, trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-run-'));
const at = (name: string) => join(folder, name);
let model = '';
let environment: NodeJS.ProcessEnv = {};
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The fake of TensorRT 10.3 laid out as an installation. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({ TENSORRT_HOME: engine.install(at('home')) });
  engine.writePlan(at('affine.engine'), {
    kind: 'affine',
    inner: 4,
    profiles: [
      [1, 2, 4],
      [4, 8, 64],
    ],
  });
  engine.writePlan(at('fp8.engine'), { kind: 'copy', inner: 4, dtype: 6 });
  engine.writePlan(at('streamed.engine'), { kind: 'affine', inner: 4, streamable: 1 << 20 });
  // The fake refuses plug-in libraries of this name.
  writeFileSync(at('missing.so'), '');
  engine.writePlan(at('shape.engine'), { kind: 'shape', inner: 4 });
  engine.writePlan(at('large.engine'), { kind: 'affine', inner: 1 << 20 });
  model = await modelFile((graph) => {
    graph.input('x', 'float32', ['n', 4]);
    graph.input('i', 'int64', ['n']);
    graph.node('Relu', { inputs: ['x'], outputs: ['enc/y:0'] });
    graph.node('Neg', { inputs: ['i'], outputs: ['z'] });
    graph.output('enc/y:0', 'float32', ['n', 4]);
    graph.output('z', 'int64', ['n']);
  });
  writeNpy(
    at('x.npy'),
    floats('float32', [2, 4], [-1, 2, -3, 4, Number.NaN, Number.POSITIVE_INFINITY, 0, 1]),
  );
  writeNpy(
    at('x64.npy'),
    tensorFrom(
      'float64',
      [2, 4],
      Float64Array.from({ length: 8 }, (_, n) => n),
    ),
  );
  writeNpy(at('i.npy'), ids([2], [5, -6]));
  writeNpy(at('flat.npy'), floats('float32', [4], [1, 2, 3, 4]));
  writeNpy(at('huge.npy'), tensorFrom('float64', [1, 4], Float64Array.of(1, 1e300, -1e39, Number.NaN)));
  writeNpz(
    at('both.npz'),
    new Map([
      ['x', floats('float32', [1, 4], [1, 2, 3, 4])],
      ['i', ids([1], [7])],
    ]),
  );
});

const run = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  trtforge(['run', ...args], { ...environment, ...more });

async function json(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const { exitCode: status, json: parsed } = await run([...args, '--json'], more);
  const answer = parsed<RunResult & Answer>();
  return { status, answer, error: answer.error };
}

describe('trtforge run MODEL', () => {
  it('on CUDA lists the nodes that were allowed to run on the CPU, and fails where none was', async () => {
    await compileFakeOnnxRuntime();
    const words = [model, `x=@${at('x.npy')}`, `i=@${at('i.npy')}`, '--provider', 'cuda', '--device', '3'];
    const { status, answer } = await json([...words, '--allow-fallback'], fakeProviders('Relu', at('log')));
    expect(status).toBe(0);
    const { backend, warnings, repeat, onnxRuntime } = runResultSchema.parse(answer);
    expect(backend).toMatch(/\(CUDA, GPU 3\)$/);
    expect(warnings).toEqual([expect.stringMatching(/^1 of 2 nodes ran elsewhere .*: Neg\.$/)]);
    expect(onnxRuntime).toMatchObject({
      provider: 'cuda',
      tf32: false,
      placement: {
        providers: expect.arrayContaining([{ provider: 'CUDAExecutionProvider', nodes: 1 }]),
        fallback: [{ provider: 'CPUExecutionProvider', operator: 'Neg' }],
      },
    });
    expect(repeat).toMatch(/ --provider cuda --device 3/);
    const fallen = await json(words, fakeProviders('Relu', at('log')));
    expect(fallen).toMatchObject({
      status: 3,
      error: { code: 'TF_PROVIDER_FALLBACK', details: { nodes: [{ operator: 'Neg' }] } },
    });
  });

  it('runs on ONNX Runtime, one npy per output, and reports what is in each', async () => {
    const { status, answer } = await json([model, `x=@${at('x.npy')}`, `i=@${at('i.npy')}`, '-o', at('out')]);
    expect(status).toBe(0);
    const result = runResultSchema.parse(answer);
    expect(result).toMatchObject({ kind: 'model', profile: null, cudaGraph: null });
    expect(result.outputs).toEqual([
      {
        name: 'enc/y:0',
        dtype: 'float32',
        shape: [2, 4],
        elements: 8,
        min: 0,
        max: 4,
        mean: 7 / 6,
        nan: 1,
        infinite: 1,
        file: at('out/enc%2Fy%3A0.npy'),
      },
      expect.objectContaining({ name: 'z', min: -5, max: 6, file: at('out/z.npy') }),
    ]);
    expect(readdirSync(at('out')).sort()).toEqual(['enc%2Fy%3A0.npy', 'z.npy']);
    expect([...float32Values(readNpy(at('out/enc%2Fy%3A0.npy')))].slice(0, 4)).toEqual([0, 2, 0, 4]);
  });

  it('writes one output as an npy, and several into no npy', async () => {
    const several = await json([model, at('both.npz'), '-o', at('out.npy')]);
    expect([several.status, several.error?.code]).toEqual([2, 'TF_USAGE']);
    const single = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 4]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 4]);
    });
    const { exitCode } = await run([single, `x=@${at('x.npy')}`, '-o', at('one.npy')]);
    expect(exitCode).toBe(0);
    expect(readNpy(at('one.npy')).shape).toEqual(readNpy(at('x.npy')).shape);
  });

  it('takes all tensors of an npz and gives one npz', async () => {
    const { exitCode, out } = await run([model, at('both.npz'), '-o', at('out.npz')]);
    expect(exitCode).toBe(0);
    expect(out).toContain(`To repeat: trtforge run ${model} ${at('both.npz')}`);
    const outputs = readNpz(at('out.npz'));
    expect([...outputs.keys()]).toEqual(['enc/y:0', 'z']);
    expect([...float32Values(outputs.get('enc/y:0')!)]).toEqual([1, 2, 3, 4]);
  });

  it('draws what no file provides, the same for the same seed, and repeats as requested', async () => {
    const words = [model, '--inputs', 'random', '--shapes', 'x:3x4', '-o'];
    const first = await json([...words, at('a.npz'), '--seed', '7']);
    expect(first.answer.inputs).toMatchObject([
      { name: 'x', shape: [3, 4], from: 'normal, mean 0, deviation 1' },
      { name: 'i', shape: [3] },
    ]);
    await json([...words, at('b.npz'), '--seed', '7']);
    await json([...words, at('c.npz'), '--seed', '8']);
    const [a, b, c] = ['a', 'b', 'c'].map((name) => readFileSync(at(`${name}.npz`)));
    expect(a!.equals(b!)).toBe(true);
    expect(a!.equals(c!)).toBe(false);
    const mixed = await json([model, `x=@${at('x64.npy')}`, '--inputs', 'random', '--iterations', '3']);
    expect(mixed.answer.inputs[0]).toMatchObject({
      shape: [2, 4],
      from: `${at('x64.npy')}, converted from float64`,
    });
    const lost = await json([model, `x=@${at('huge.npy')}`, '--inputs', 'random']);
    expect(lost.answer.inputs[0]?.from).toBe(
      `${at('huge.npy')}, converted from float64, in which 2 of 4 values became infinite`,
    );
    expect(mixed.answer.times).toMatchObject({ iterations: 3, rest: { min: expect.any(Number) } });
  });

  it.each<[string, string[], string, RegExp]>([
    ['an input that nothing gives', [`x=@${at('x.npy')}`], 'TF_SESSION_INPUT', /no tensor for the input "i"/],
    ['a name that is no input', [`q=@${at('x.npy')}`], 'TF_SESSION_INPUT', /q, which is not an input/],
    [
      'integers for floats',
      [`x=@${at('i.npy')}`, '--inputs', 'random'],
      'TF_SESSION_INPUT',
      /int64, but the input "x"/,
    ],
    [
      'a file of another rank',
      [`x=@${at('flat.npy')}`, '--inputs', 'random'],
      'TF_SESSION_INPUT',
      /flat\.npy is \[4\], but the input "x" is \[n, 4\]/,
    ],
    [
      'a range where nothing is drawn',
      [at('both.npz'), '--val-range', '[0,1]'],
      'TF_USAGE',
      /no input is drawn/,
    ],
    [
      'a range for what a file gives',
      [`x=@${at('x.npy')}`, '--inputs', 'random', '--val-range', 'x:[0,1]'],
      'TF_USAGE',
      /x comes from .*x\.npy/,
    ],
    [
      'shapes that contradict',
      [`x=@${at('x.npy')}`, '--inputs', 'random', '--shapes', 'i:3'],
      'TF_SHAPE_INVALID',
      /n is 2 elsewhere/,
    ],
    [
      'a shape that is not that of the file',
      [`x=@${at('x.npy')}`, '--inputs', 'random', '--shapes', 'x:3x4'],
      'TF_SHAPE_INVALID',
      /x should be \[3, 4\], but it is \[2, 4\] in .*x\.npy/,
    ],
    ['a file that is not there', [`x=@${at('none.npy')}`], 'TF_FILE_NOT_FOUND', /none\.npy/],
    ['a word that is no input', ['x=x.npy'], 'TF_USAGE', /"x=x\.npy" is not a valid input/],
    [
      'an option of engines',
      ['--cuda-graph', 'never', '--inputs', 'random'],
      'TF_USAGE',
      /--cuda-graph has no effect on/,
    ],
    ['no iterations', ['--iterations', '0'], 'TF_USAGE', /from 1/],
    [
      'one npy for all outputs',
      [at('both.npz'), '-o', at('y.npy')],
      'TF_USAGE',
      /cannot be written to .*y\.npy/,
    ],
  ])('%s ends with exit code 2', async (_, words, code, message) => {
    const { status, error } = await json([model, ...words]);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(status).toBe(2);
  });

  it.each([0, -1, 1.5, Number.NaN])(
    '%s iterations are rejected where the library is asked',
    async (iterations) => {
      await expect(runFile({ file: model, sources: [{ kind: 'random' }], iterations })).rejects.toMatchObject(
        {
          code: 'TF_USAGE',
        },
      );
    },
  );

  it('a file that is neither is rejected by what it is', async () => {
    writeFileSync(at('text.engine'), 'hello '.repeat(100));
    expect((await json([at('text.engine'), '--inputs', 'random'])).error?.code).toBe('TF_PLAN_INVALID');
    writeFileSync(at('text.onnx'), 'hello '.repeat(100));
    expect((await json([at('text.onnx'), '--inputs', 'random'])).error?.code).toBe('TF_ONNX_NOT_A_MODEL');
  });
});

describe('trtforge run ENGINE', () => {
  it('runs in a child on the GPU, at the optimum of its profile, and warns that there is no passport', async () => {
    const { status, answer } = await json([
      at('affine.engine'),
      '--inputs',
      'random',
      '--iterations',
      '5',
      '-o',
      at('e.npz'),
    ]);
    expect(status).toBe(0);
    const result = runResultSchema.parse(answer);
    expect(result).toMatchObject({
      kind: 'engine',
      backend: 'TensorRT 10.3.0 (NVIDIA Fake)',
      profile: 0,
      cudaGraph: { asked: 'auto', fallbacks: [] },
      inputs: [{ name: 'x', shape: [2, 4] }],
      times: { iterations: 5 },
    });
    expect(result.warnings).toEqual([expect.stringContaining('has no passport')]);
    expect(readNpz(at('e.npz')).get('y')?.shape).toEqual([2, 4]);
  });

  it('computes what the engine computes, in the profile that takes the shape or the one asked for', async () => {
    writeNpy(
      at('four.npy'),
      floats(
        'float32',
        [4, 4],
        Array.from({ length: 16 }, (_, n) => n),
      ),
    );
    for (const [words, profile] of [
      [[], 0],
      [['--profile', '1'], 1],
    ] as const) {
      const { answer } = await json([
        at('affine.engine'),
        `x=@${at('four.npy')}`,
        '-o',
        at('four.npz'),
        ...words,
      ]);
      expect(answer.profile).toBe(profile);
      expect([...float32Values(readNpz(at('four.npz')).get('y')!)]).toEqual(
        Array.from({ length: 16 }, (_, n) => 2 * n + 1),
      );
    }
  });

  it('passes large tensors through shared memory and leaves none behind', async () => {
    const leftovers = () =>
      ['/dev/shm', tmpdir()]
        .flatMap((place) => readdirSync(place))
        .filter((name) => name.startsWith(`trtforge-tensors-${process.pid}-`));
    const values = Float32Array.from({ length: 1 << 20 }, (_, n) => n % 1000);
    writeNpy(at('large.npy'), tensorFrom('float32', [1, 1 << 20], values));
    expect((await json([at('large.engine'), `x=@${at('large.npy')}`, '-o', at('large.npz')])).status).toBe(0);
    const y = float32Values(readNpz(at('large.npz')).get('y')!);
    expect(y.findIndex((value, index) => value !== 2 * values[index]! + 1)).toBe(-1);
    expect(leftovers()).toEqual([]);
  });

  it('draws 8-bit floats, and takes them from a file of another float type', async () => {
    const { answer } = await json([at('fp8.engine'), '--inputs', 'random', '-o', at('fp8.npz')]);
    expect(answer.outputs).toMatchObject([{ dtype: 'float8_e4m3fn', nan: 0, infinite: 0 }]);
    expect(answer.outputs[0]?.max).toBeGreaterThan(0);
    expect(readNpz(at('fp8.npz'), { voidDtype: 'float8_e4m3fn' }).get('y')?.shape).toEqual([8, 4]);
    writeNpy(at('ninth.npy'), floats('float32', [1, 4], [0.9, -1.1, 1000, 0]));
    const given = (await json([at('fp8.engine'), `x=@${at('ninth.npy')}`])).answer;
    expect(given.inputs[0]?.from).toBe(
      `${at('ninth.npy')}, converted from float32, in which 1 of 4 values are beyond float8_e4m3fn and became the nearest it holds`,
    );
    expect(given.outputs).toMatchObject([{ min: -1.125, max: 448 }]);
  });

  it.each([
    ['all of them', [], 1 << 20],
    ['as many as asked for', ['--weight-budget', '1K'], 1024],
    ['as few as can be', ['--weight-budget', '0'], 0],
    ['what the library chooses', ['--weight-budget', 'automatic'], 1 << 19],
  ])('keeps weights that are streamed on the GPU and reports how many: %s', async (_, words, bytes) => {
    const { answer } = await json([at('streamed.engine'), '--inputs', 'random', ...words]);
    expect(answer.weightBudgetBytes).toBe(bytes);
    expect(runResultSchema.safeParse(answer).error).toBeUndefined();
  });

  it('takes the optimum of a profile for values that decide shapes', async () => {
    const { answer } = await json([at('shape.engine'), '--inputs', 'random']);
    expect(answer.error).toBeUndefined();
    expect(answer.inputs.find(({ name }: { name: string }) => name === 's')?.from).toMatch(
      /optimum of profile 0/,
    );
  });

  it.each<[string, string[], NodeJS.ProcessEnv, number, string, RegExp]>([
    [
      'a shape outside every profile',
      ['--shapes', 'x:65x4'],
      {},
      2,
      'TF_PROFILE_MISFIT',
      /x has the shape \[65, 4\], but profile 0 takes \[1\.\.4, 4\], profile 1 takes \[4\.\.64, 4\]/,
    ],
    [
      'a profile that is not there',
      ['--profile', '2', '--shapes', 'x:2x4'],
      {},
      2,
      'TF_SESSION_INPUT',
      /profiles 0 to 1/,
    ],
    ['a GPU that is not there', ['--device', '5'], {}, 3, 'TF_GPU_UNAVAILABLE', /no GPU 5/],
    ['no GPU at all', [], { FAKE_GPU: 'none' }, 3, 'TF_GPU_UNAVAILABLE', /shows none/],
    [
      'every GPU hidden',
      [],
      { CUDA_VISIBLE_DEVICES: '' },
      3,
      'TF_GPU_UNAVAILABLE',
      /shows none: .*CUDA_VISIBLE_DEVICES is empty, which hides every GPU/,
    ],
    ['no driver', [], { LD_LIBRARY_PATH: '' }, 3, 'TF_GPU_UNAVAILABLE', /no NVIDIA driver/],
    ['a plug-in that is not there', ['--plugin', at('gone.so')], {}, 2, 'TF_FILE_NOT_FOUND', /gone\.so/],
    [
      'a plug-in library that does not load',
      ['--plugin', at('missing.so')],
      {},
      3,
      'TF_LIBRARY_LOAD_FAILED',
      /missing\.so could not be loaded as a plug-in library/,
    ],
    [
      'memory exhausted while loading',
      [],
      { FAKE_LOAD: 'memory' },
      3,
      'TF_GPU_MEMORY',
      /no room for the engine .*affine\.engine: 1\.00 GiB needed, 149\.00 GiB of 150\.00 GiB free\.$/,
    ],
    [
      'memory exhausted by the context',
      [],
      { FAKE_CONTEXT: 'memory' },
      3,
      'TF_GPU_MEMORY',
      /no room for the execution context: 4\.00 KiB needed/,
    ],
    [
      'memory exhausted by other processes',
      [],
      { FAKE_GPU_BYTES: String(2 ** 30 + 2048) },
      3,
      'TF_GPU_MEMORY',
      /no room for the activations of a context: 4\.00 KiB needed, \d\.\d\d KiB of 1\.00 GiB free/,
    ],
    ['a plan that the library refuses', [], { FAKE_LOAD: 'fails' }, 3, 'TF_PLAN_LOAD_FAILED', /reports/],
    ['no context', [], { FAKE_CONTEXT: 'missing' }, 3, 'TF_CONTEXT_FAILED', /context/i],
    [
      'a GPU without memory for a context',
      [],
      { FAKE_GPU: 'full' },
      3,
      'TF_GPU_MEMORY',
      /GPU 0 has no room left, not even for a CUDA context: other processes use its memory/,
    ],
    [
      'a GPU that has gone astray',
      [],
      { FAKE_FAULT: '1' },
      3,
      'TF_RUN_FAILED',
      /an illegal memory access was encountered \(CUDA error 700\)/,
    ],
    ['a run that the library refuses', [], { FAKE_ENQUEUE: '1' }, 3, 'TF_RUN_FAILED', /./],
    ['an abort inside the library', [], { FAKE_RUN: 'aborts' }, 5, 'TF_CHILD_DIED', /was killed by SIGABRT/],
    [
      'a budget for weights that are not streamed',
      ['--weight-budget', 'automatic'],
      {},
      2,
      'TF_OPTION_UNSUPPORTED',
      /not built with weight streaming/,
    ],
    ['an option of models', ['--threads', '2'], {}, 2, 'TF_USAGE', /--threads has no effect on/],
    ['a provider', ['--provider', 'cuda'], {}, 2, 'TF_USAGE', /--provider has no effect on/],
  ])('%s', async (_, words, wishes, exitCode, code, message) => {
    const { status, error } = await json([at('affine.engine'), '--inputs', 'random', ...words], wishes);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(status).toBe(exitCode);
  });

  it.each<[string, (plan: Buffer) => Buffer, number, string, RegExp, RegExp]>([
    [
      'text',
      () => Buffer.from('no plan'),
      2,
      'TF_PLAN_INVALID',
      /spoilt\.engine is a text file, not a TensorRT plan/,
      /\.engine/,
    ],
    [
      'nothing but the beginning',
      (plan) => plan.subarray(0, 20),
      2,
      'TF_PLAN_INVALID',
      /spoilt\.engine is cut short/,
      /\.engine/,
    ],
    [
      'metadata of an exporter in front',
      (plan) => {
        const json = Buffer.from('{"description":"Ultralytics YOLO"}');
        const length = Buffer.alloc(4);
        length.writeUInt32LE(json.length);
        return Buffer.concat([length, json, plan]);
      },
      2,
      'TF_PLAN_FOREIGN_HEADER',
      /begins with 38 bytes of Ultralytics metadata.*would end the process/,
      /trtforge engine strip-header .*spoilt\.engine -o /,
    ],
    [
      'another version',
      (plan) => Buffer.concat([plan.subarray(0, 24), Buffer.of(10, 9, 0, 1), plan.subarray(28)]),
      3,
      'TF_ENGINE_VERSION_MISMATCH',
      /built by tensorrt 10\.9\.0\.1; tensorrt 10\.3\.0 cannot load it/,
      /Use the version that built it/,
    ],
    [
      'another product',
      (plan) => {
        const other = Buffer.from(plan);
        other.write('vtrt', 'latin1');
        return other;
      },
      3,
      'TF_TOOLCHAIN_NOT_FOUND',
      /no tensorrt-rtx 10\.3\.0\.0 to run with/,
      /toolchain install tensorrt-rtx/,
    ],
  ])(
    'a file that is not an engine, or an engine for another machine: %s',
    async (_, spoil, exitCode, code, message, remedy) => {
      writeFileSync(at('spoilt.engine'), spoil(readFileSync(at('affine.engine'))));
      const { status, error } = await json([at('spoilt.engine'), '--inputs', 'random'], {
        TRTFORGE_TOOLCHAINS: at('none'),
      });
      expect(error).toMatchObject({
        code,
        message: expect.stringMatching(message),
        remedy: expect.stringMatching(remedy),
      });
      expect(status).toBe(exitCode);
    },
  );

  it.each<[string, (library: string) => void, string, RegExp]>([
    [
      'is gone',
      (library) => rmSync(library),
      'TF_TOOLCHAIN_NOT_FOUND',
      /is a link to a file that is not there/,
    ],
    [
      'is cut short',
      (library) => writeFileSync(library, readFileSync(library).subarray(0, 4000)),
      'TF_TOOLCHAIN_NOT_FOUND',
      /libnvinfer\.so\.10\.3\.0 is not a usable library/,
    ],
    [
      'is another under its name',
      (library) => copyFileSync(at('home/lib/libnvonnxparser.so.10.3.0'), library),
      'TF_LIBRARY_LOAD_FAILED',
      /libnvinfer\.so\.10 has no function getInferLibVersion/,
    ],
  ])('a TensorRT whose library %s is named with the file', async (_, spoil, code, message) => {
    cpSync(at('home'), at('spoilt'), { recursive: true, verbatimSymlinks: true });
    spoil(at('spoilt/lib/libnvinfer.so.10.3.0'));
    const { status, error } = await json([at('affine.engine'), '--inputs', 'random'], {
      TENSORRT_HOME: at('spoilt'),
    });
    rmSync(at('spoilt'), { recursive: true });
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(status).toBe(3);
  });

  /** A run that would take a quarter of an hour, its child at work. */
  async function longRun() {
    const words = [
      fileURLToPath(new URL('../../../dist/main.js', import.meta.url)),
      'run',
      at('affine.engine'),
      '--inputs',
      'random',
      '--iterations',
      '1000000',
      '--json',
      '--events',
    ];
    const started = spawn(process.execPath, words, {
      env: { ...environment, FAKE_CLOCK: undefined, FAKE_COMPUTE_US: '1000' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said: Buffer[] = [];
    started.stdout.on('data', (chunk: Buffer) => said.push(chunk));
    const ended = new Promise((resolve) => started.once('close', resolve));
    await new Promise<void>((resolve) => {
      started.stderr.on('data', (chunk: Buffer) => {
        if (/"type":"phase-start","phase":"run"/.test(chunk.toString())) resolve();
      });
    });
    const { pid } = started;
    const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
    return { started, child, ended, answer: () => JSON.parse(Buffer.concat(said).toString()) };
  }

  it('a child that is killed ends the command with the signal and who sends it', async () => {
    const { child, ended, answer } = await longRun();
    process.kill(child, 'SIGKILL');
    expect(await ended).toBe(5);
    expect(answer().error).toMatchObject({
      code: 'TF_CHILD_DIED',
      message: expect.stringMatching(/affine\.engine was killed by SIGKILL/),
      remedy: expect.stringMatching(/memory/),
    });
  });

  it('a command that is killed leaves no child behind', async () => {
    const { started, child, ended } = await longRun();
    started.kill('SIGKILL');
    await ended;
    await expect.poll(() => existsSync(`/proc/${child}`)).toBe(false);
  });

  it('a graph that is rejected is reported once, and the run goes on', async () => {
    const { status, answer } = await json([at('affine.engine'), '--inputs', 'random', '--iterations', '4'], {
      FAKE_CAPTURE: 'refused',
    });
    expect(status).toBe(0);
    const { fallbacks = [] } = answer.cudaGraph ?? {};
    expect(fallbacks).toHaveLength(1);
    const { out } = await run([at('affine.engine'), '--inputs', 'random', '--iterations', '4'], {
      FAKE_CAPTURE: 'refused',
    });
    // The library's line ends are visible in the text.
    expect(out.split(`${fallbacks[0]?.replaceAll('\n', '\\n')}`)).toHaveLength(2);
  });
});

describe('what is wrong with inputs is reported before a GPU is needed', () => {
  const noGpu = { FAKE_GPU: 'none' };
  beforeAll(() => {
    copyFileSync(at('affine.engine'), at('known.engine'));
    const document = sampleIdentity();
    const target = { ...document.target, product: 'tensorrt' as const, version: fakes['10'].version };
    const passport = samplePassport(readFileSync(at('known.engine')), { ...document, target });
    const inputs = [{ name: 'x', dtype: 'float32', shape: [null, 4] }];
    const plan = { ...passport.plan, inputs };
    writeFileSync(at('known.engine.passport.json'), JSON.stringify({ ...passport, plan }));
    writeFileSync(at('text.npy'), 'no array');
    writeFileSync(at('text.npz'), 'no archive');
    writeNpz(at('none.npz'), new Map());
    writeNpy(at('rank.npy'), floats('float32', [4], [1, 2, 3, 4]));
    writeNpy(at('half.npy'), floats('bfloat16', [1, 4], [1, 2, 3, 4]));
  });

  it.each<[string, string[], string, RegExp]>([
    ['a file that is not there', [`x=@${at('none.npy')}`], 'TF_FILE_NOT_FOUND', /none\.npy/],
    ['a file that is no npy', [`x=@${at('text.npy')}`], 'TF_TENSOR_FILE_INVALID', /text\.npy/],
    ['an archive without a tensor', [at('none.npz')], 'TF_TENSOR_FILE_INVALID', /none\.npz holds no tensor/],
    ['a file that is no npz', [at('text.npz')], 'TF_ARCHIVE_INVALID', /text\.npz/],
    ['a name given twice', [`x=@${at('x.npy')}`, `x=@${at('x64.npy')}`], 'TF_USAGE', /\bx\b.*twice/],
    ['a name that an archive gives too', [`i=@${at('i.npy')}`, at('both.npz')], 'TF_USAGE', /\bi\b.*twice/],
  ])('%s, also without a passport', async (_, words, code, message) => {
    const { status, error } = await json([at('affine.engine'), ...words], noGpu);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(status).toBe(2);
  });

  it.each<[string, string[], RegExp]>([
    ['a name that is no input', [`q=@${at('x.npy')}`], /q, which is not an input/],
    ['a tensor of an archive that is no input', [at('both.npz')], /i, which is not an input/],
    ['integers for floats', [`x=@${at('i.npy')}`], /int64, but the input "x" is float32/],
    ['another rank', [`x=@${at('rank.npy')}`], /x is \[\?, 4\]; .* is \[4\]/],
    ['an input that nothing gives', [], /no tensor for the input "x"/],
    ['a shape for no input', ['--inputs', 'random', '--shapes', 'q:1x4'], /There is no input "q"/],
    ['a range for no input', ['--inputs', 'random', '--val-range', 'q:[0,1]'], /There is no input "q"/],
  ])('%s, where the passport names the inputs', async (_, words, message) => {
    const { status, error } = await json([at('known.engine'), ...words], noGpu);
    expect(error).toMatchObject({ code: 'TF_SESSION_INPUT', message: expect.stringMatching(message) });
    expect(status).toBe(2);
  });

  it.each([
    ['a passport', 'known.engine', 'x64.npy'],
    ['elements that numpy has no name for', 'affine.engine', 'half.npy'],
  ])('inputs that are right leave the word to the GPU: %s', async (_, engine, file) => {
    const { status, error } = await json([at(engine), `x=@${at(file)}`], noGpu);
    expect([status, error?.code]).toEqual([3, 'TF_GPU_UNAVAILABLE']);
  });

  it('a passport of another plan states nothing of the inputs', async () => {
    writeFileSync(at('other.engine'), Buffer.concat([readFileSync(at('affine.engine')), Buffer.alloc(8)]));
    copyFileSync(at('known.engine.passport.json'), at('other.engine.passport.json'));
    const { error } = await json([at('other.engine'), `q=@${at('x.npy')}`], noGpu);
    expect(error?.code).toMatch(/^TF_ENGINE_/);
  });
});
