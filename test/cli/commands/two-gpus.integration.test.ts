import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import type { ReferenceChunk } from '../../../src/formats/reference/reference.js';
import type { StreamsResult } from '../../../src/products/deepstream/result.js';
import type { BenchComparison, BenchResult } from '../../../src/quality/bench/result.js';
import { floats } from '../../engines/runtime/onnxruntime/models.js';
import { writePictureModel } from '../../fakes/deepstream.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { verbs } from '../../support/runs.js';
import { writeSampleModel } from '../../support/sample-engine.js';
import { type Answer, trtforge } from '../../support/trtforge.js';
import { writeReference } from '../../support/write-reference.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-two-gpus-'));
const at = (name: string) => join(folder, name);
const main = new URL('../../../dist/main.js', import.meta.url).pathname;
const uuid = 'GPU-01112233-4455-6677-8899-aabbccddeeff';
let environment: NodeJS.ProcessEnv = {};
let model: string;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Four chunks of ones, as the fake computes them: `state_out = state + x`, `y = 2 * state_out`. */
const recording = (): ReferenceChunk[] =>
  Array.from({ length: 4 }, (_, index) => {
    const filled = (value: number) => floats('float32', [2, 4], Array(8).fill(value));
    const lengths = { chunkLength: null, encodedLength: null, stateLength: null, stateLengthRaw: null };
    return {
      index,
      inputs: new Map([
        ['x', filled(1)],
        ['state', filled(index)],
      ]),
      outputs: new Map([
        ['y', filled(2 * index + 2)],
        ['state_out', filled(index + 1)],
      ]),
      meta: { line: index + 1, ...lengths, stepMs: null, recorded: {} },
    };
  });

/** The fake of TensorRT 10.3 laid out as an installation, on a machine of two GPUs: the first is warm and has company, the second neither. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  environment = engine.environment({
    TENSORRT_HOME: engine.install(at('home')),
    TRTEXEC: fakeTrtexec(folder, { version: '10.6', says: '10.3.0.26', gpuFile: at('trtexec-gpus') }),
    XDG_CACHE_HOME: at('cache'),
    NO_COLOR: '1',
    FAKE_GPUS: '2',
    FAKE_GPU_BYTES: '17179869184,8589934592',
    FAKE_NVML: 'temperature@0=50,temperature@1=30,utilization@0=90,processes@0=4242:1048576',
    FAKE_CALLS: at('calls'),
    FAKE_COMPUTE_US: '1000',
  });
  engine.bench.enter(environment);
  for (const name of ['a', 'b']) engine.writePlan(at(`${name}.engine`), { kind: 'affine', inner: 4 });
  engine.writePlan(at('large.engine'), { kind: 'affine', inner: 4, memory: 1 << 20 });
  engine.writePlan(at('state.engine'), { kind: 'state', inner: 4, rows: 2 });
  await writeReference(at('state.jsonl'), recording());
  await writeSampleModel(at('sample.onnx'));
  model = await writePictureModel(at('sized'));
});

const QUICK = ['--warm-up', '10', '--duration', '0.15'];

/** The GPUs that children built or loaded engines on since `calls` was removed. */
function gpusOf(did: 'builds on ' | 'loads on '): readonly string[] {
  const calls = existsSync(at('calls')) ? readFileSync(at('calls'), 'utf8').split('\n') : [];
  return [...new Set(calls.flatMap((call) => (call.startsWith(did) ? [call.slice(did.length)] : [])))];
}

/** One command as JSON, and the GPUs that it loaded engines on. */
async function ask<T = object>(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  rmSync(at('calls'), { force: true });
  const { exitCode: status, json } = await trtforge([...args, '--json'], { ...environment, ...more });
  return { status, answer: json<T & Answer>(), loaded: gpusOf('loads on ') };
}

/** The same for what looks at the driver itself, which reads CUDA_VISIBLE_DEVICES once a process. */
function askProcess<T>(args: readonly string[], more: NodeJS.ProcessEnv) {
  rmSync(at('calls'), { force: true });
  const env = { ...environment, ...more };
  const { stdout } = spawnSync(process.execPath, [main, ...args, '--json'], { encoding: 'utf8', env });
  return JSON.parse(stdout) as T & Answer;
}

const chosen = [
  ['--device 1', ['--device', '1'], {}],
  ['CUDA_VISIBLE_DEVICES=1', [], { CUDA_VISIBLE_DEVICES: '1' }],
  ['CUDA_VISIBLE_DEVICES=1,0', [], { CUDA_VISIBLE_DEVICES: '1,0' }],
  ['its UUID', ['--device', '1'], { CUDA_VISIBLE_DEVICES: `0,${uuid}` }],
] as const;

describe.each(verbs(chosen))('the second GPU, by %s', (_, words, visible) => {
  it('is the one that bench measures on and asks about', async () => {
    const { status, answer, loaded } = await ask<BenchResult>(
      ['bench', at('a.engine'), ...words, ...QUICK],
      visible,
    );
    expect([status, loaded]).toEqual([0, ['NVIDIA Fake 1']]);
    expect(answer.gpu).toMatchObject({ name: 'NVIDIA Fake 1', uuid });
    const { before, after } = answer.runs[0]?.gpuStates ?? {};
    expect([before?.temperatureC, after?.temperatureC]).toEqual([30, 30]);
    // Somebody else's process is on the first GPU.
    expect(answer.warnings.join('\n')).not.toContain('4242');
  });
});

describe('of two GPUs', () => {
  it.each(chosen.slice(0, 2))(
    'run, engine layers, explore, stream verify and a comparison use the one chosen by %s',
    async (_, words, visible) => {
      const engine = at('a.engine');
      const commands = [
        ['run', engine, '--inputs', 'random'],
        ['engine', 'layers', engine],
        ['engine', 'inspect', engine, '--memory'],
        ['explore', engine],
        ['stream', 'verify', at('state.engine'), '--reference', at('state.jsonl'), '--batches', '2'],
        ['bench', 'compare', engine, at('b.engine'), '--rounds', '3', ...QUICK],
      ];
      for (const command of verbs(commands)) {
        const { status, loaded, answer } = await ask<BenchComparison>([...command, ...words], visible);
        expect([command[0], status, loaded], JSON.stringify(answer)).toEqual([
          command[0],
          0,
          ['NVIDIA Fake 1'],
        ]);
      }
    },
  );

  it('the first is used where none is chosen, and the others are reported', async () => {
    const { answer, loaded } = await ask<BenchResult>(['bench', at('a.engine'), ...QUICK]);
    expect(loaded).toEqual(['NVIDIA Fake']);
    expect(answer.warnings.join('\n')).toContain('4242');
  });

  it.each(
    verbs<[string, readonly string[]]>([
      ['run', ['--shapes', 'x:2x4']],
      ['bench', []],
      ['engine layers', []],
      ['engine inspect', ['--memory']],
      ['deepstream size', []],
    ]),
  )('%s rejects a third and names both', async (command, words) => {
    const file = command === 'deepstream size' ? model : at('a.engine');
    const { status, answer, loaded } = await ask([
      ...command.split(' '),
      file,
      ...words,
      ...['--device', '2'],
    ]);
    expect([status, loaded]).toEqual([3, []]);
    expect(answer.error).toMatchObject({
      code: 'TF_GPU_UNAVAILABLE',
      message: expect.stringContaining('there is no GPU 2 here: 0 is NVIDIA Fake, 1 is NVIDIA Fake 1.'),
    });
  });

  it('engine inspect --memory adds up activations, and takes the largest for one pool', async () => {
    const words = ['engine', 'inspect', at('a.engine'), at('large.engine'), '--memory', '--device', '1'];
    const { answer } = await ask(words);
    expect(answer).toMatchObject({
      memory: {
        gpu: 'NVIDIA Fake 1',
        activationBytes: [4096, 1 << 20],
        separateBytes: 4096 + (1 << 20),
        sharedBytes: 1 << 20,
      },
    });
    const { out } = await trtforge(words, environment);
    expect(out).toMatch(/in one activation pool +1\.00 MiB/);
  });

  it('stream sizing builds and measures on the one that is chosen', async () => {
    writeFileSync(at('trtexec-gpus'), '');
    const sizing = [
      '--fps',
      '300',
      '--max-batch',
      '4',
      '--max-batch-limit',
      '4',
      '--no-cache',
      '--precision',
      'as-is',
    ];
    const words = [model, '--builder', 'trtexec', '--with', 'trtexec', '--device', '1', ...sizing];
    const { status, answer } = await ask<StreamsResult>(['deepstream', 'size', ...words]);
    expect([status, answer.engines[0]?.source]).toEqual([0, 'built']);
    const runs = readFileSync(at('trtexec-gpus'), 'utf8').trim().split('\n');
    expect([...new Set(runs)]).toEqual(['1 -', 'all 1']);
  });

  it.each(
    verbs<[NodeJS.ProcessEnv, readonly string[], string]>(
      [
        [{ CUDA_VISIBLE_DEVICES: '1,0' }, ['--device', '1'], 'NVIDIA Fake'],
        [{}, ['--device', '1'], 'NVIDIA Fake 1'],
        [{}, [], 'NVIDIA Fake'],
        [{ CUDA_VISIBLE_DEVICES: '1,0' }, [], 'NVIDIA Fake 1'],
        [{ CUDA_VISIBLE_DEVICES: uuid }, ['--device', '0'], 'NVIDIA Fake 1'],
      ],
      2,
    ),
  )('build, of %j with %j, is done on %s', (visible, words, name) => {
    const building = ['build', at('sample.onnx'), '--profile', 'x:8x64', '--no-cache', '-o', at('o.engine')];
    const answer = askProcess<object>([...building, ...words], visible);
    // What the fake builds is too small to be an engine; where it was built is what counts.
    expect(answer.error).toMatchObject({ code: 'TF_BUILD_FAILED' });
    expect(gpusOf('builds on ')).toEqual([name]);
  });
});

describe('a bench on the second GPU', () => {
  let first: ChildProcess;
  const begin = () =>
    new Promise<void>((resolve) => {
      const words = [main, 'bench', at('a.engine'), '--device', '1', '--duration', '86400', '--events'];
      first = spawn(process.execPath, words, {
        env: { ...environment, FAKE_CLOCK: undefined },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      first.stderr?.on('data', (chunk: Buffer) => {
        if (chunk.toString().includes('measure')) resolve();
      });
    });

  it('is no hindrance on the first, and one on the same by whatever number', async () => {
    await begin();
    const ended = new Promise<number | null>((resolve) => first.once('close', resolve));
    const isWarned = ({ warnings }: BenchResult) =>
      warnings.some((warning) => warning.startsWith('Another bench measures on this GPU'));
    const bench = (...args: readonly string[]) => ['bench', at('b.engine'), ...args, ...QUICK];
    const warned = async (args: readonly string[], visible: NodeJS.ProcessEnv = {}) =>
      isWarned((await ask<BenchResult>(bench(...args), visible)).answer);
    const trtexec = bench('--with', 'trtexec', '--shapes', 'x:2x4');
    const benches: readonly (readonly [() => boolean | Promise<boolean>, boolean])[] = [
      [() => warned(['--device', '1']), true],
      [() => warned([]), false],
      [() => warned([], { CUDA_VISIBLE_DEVICES: '1' }), true],
      [() => isWarned(askProcess<BenchResult>(trtexec, { CUDA_VISIBLE_DEVICES: uuid })), true],
      [() => warned(['--device', '1'], { CUDA_VISIBLE_DEVICES: '1,0' }), false],
    ];
    for (const [beside, expected] of verbs(benches, 2)) expect(await beside()).toBe(expected);
    first.kill('SIGINT');
    await ended;
  });
});
