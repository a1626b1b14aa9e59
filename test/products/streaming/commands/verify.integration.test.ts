import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import { openOrtSession } from '../../../../src/engines/runtime/onnxruntime/ort-session.js';
import { writeContract } from '../../../../src/formats/contract/file.js';
import type { ReferenceChunk } from '../../../../src/formats/reference/reference.js';
import { type ParityResult, parityResultSchema } from '../../../../src/products/streaming/verify/result.js';
import { floats } from '../../../engines/runtime/onnxruntime/models.js';
import { compileFakeOnnxRuntime, fakeProviders } from '../../../fakes/onnxruntime/library.js';
import { fakeEngine } from '../../../fakes/tensorrt/engine.js';
import { writeBundle } from '../../../support/bundle.js';
import { sampleIdentity, samplePassport } from '../../../support/sample-engine.js';
import { type Answer, trtforge } from '../../../support/trtforge.js';
import { writeReference } from '../../../support/write-reference.js';
import { contractOfSession, recordTiny, tinyModel } from '../tiny-stream.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-verify-reference-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let environment: NodeJS.ProcessEnv = process.env;

const verify = (...given: (string | NodeJS.ProcessEnv)[]) => stream('verify', ...given);
const check = (...given: (string | NodeJS.ProcessEnv)[]) => stream('check', ...given);

async function stream(...given: (string | NodeJS.ProcessEnv)[]) {
  const args = given.filter((each) => typeof each === 'string');
  const more = given.filter((each) => typeof each !== 'string');
  const { exitCode, out, err, json } = await trtforge(
    ['stream', ...args],
    Object.assign({}, environment, ...more),
  );
  return { status: exitCode, stdout: out, stderr: err, answer: json<ParityResult & Answer> };
}

describe('a model against a recorded stream', () => {
  let model = '';
  let drifting = '';
  beforeAll(async () => {
    model = await tinyModel();
    drifting = await tinyModel({ drift: 1e-4 });
    await writeReference(at('r.jsonl'), await recordTiny(30));
  });

  it('passes its own recording in closed loop', async () => {
    const { status, answer } = await verify(model, '--reference', at('r.jsonl'), '--threads', '1', '--json');
    expect(status).toBe(0);
    const { exitCode, ...result } = answer();
    expect(exitCode).toBe(0);
    expect(parityResultSchema.safeParse(result).success).toBe(true);
    expect(result).toMatchObject({
      schema: 'trtforge.stream-verify/1',
      mode: 'closed-loop',
      chunks: 30,
      passed: 30,
      drift: { tensor: 'output', max: 0 },
      memory: { planBytes: null, peakHostBytes: expect.any(Number), gpuBytes: null },
      state: {
        place: 'host',
        pairs: [{ input: 'cache', output: 'cache_out' }, {}, { input: 'sum', output: 'sum_out' }],
      },
    });
    expect(result.repeat).toMatch(/verify \S+ --reference \S+ .*--threads 1/);
  });

  it('fails one that drifts, states why, and writes summary, page and chunks', async () => {
    const { status, stdout } = await verify(
      drifting,
      ...['--reference', at('r.jsonl'), '--threads', '1', '--summary-json', at('trt_parity_30.json')],
      ...['--report', at('parity.html'), '--dump', at('dump'), '--dump-limit', '1'],
    );
    expect(status).toBe(1);
    expect(stdout).toMatch(/contract pass {3}numeric FAIL {3}task not judged/);
    expect(stdout).toMatch(/slope: the error grows by 0\.0001 a chunk; 0\.000001 is allowed/);
    expect(stdout).toMatch(/error The error of output accumulates/);
    expect(stdout).toMatch(/written: .*chunk_000\d\d_fail\.npz/);
    const summary = JSON.parse(readFileSync(at('trt_parity_30.json'), 'utf8'));
    expect(summary).toMatchObject({ onnx: drifting, mode: 'closed_loop', total_chunks: 30 });
    expect(summary.chunk_stats).toHaveLength(30);
    expect(summary.failures[0].encoder_output_max_abs).toBeGreaterThan(5e-4);
    const html = readFileSync(at('parity.html'), 'utf8');
    expect(html.match(/<circle class="mark/g)).toHaveLength(30);
    expect(html).toMatch(/class="limit"/);
  });

  it.each(['fp16', 'bf16'])('judges one in %s by its own limits', async (precision) => {
    const converted = async (from: string, name: string) => {
      const { exitCode } = await trtforge(
        ['convert', from, '--precision', precision, '-o', at(name)],
        environment,
      );
      expect(exitCode).toBe(0);
      return at(name);
    };
    const words = ['--reference', at('r.jsonl'), '--threads', '1', '--json'];
    const healthy = await converted(model, `healthy.${precision}.onnx`);
    const { status, answer } = await verify(healthy, ...words);
    expect(answer().drift).not.toMatchObject({ max: 0 });
    expect(answer().outputs[0]?.tolerance?.why).toMatch(new RegExp(precision, 'i'));
    expect(answer().drift?.checks.find(({ name }) => name === 'slope')?.limit).toBeGreaterThan(1e-5);
    expect(status).toBe(0);
    // By those of FP32 it fails, and passes again by a tolerance that the drift follows.
    expect((await verify(healthy, ...words, '--precision', 'fp32')).status).toBe(1);
    expect((await verify(healthy, ...words, '--atol', '0.5', '--rtol', '0.5')).status).toBe(0);
    const biased = await converted(await tinyModel({ bias: 0.1 }), `biased.${precision}.onnx`);
    const found = await verify(biased, ...words);
    expect(found.status).toBe(1);
    expect(found.answer().failures[0]?.reason).toMatch(/rms=\S+ where \S+ is allowed/);
    // Of an FP32 model those of FP16 are wider, and a large error fails all the same.
    expect((await verify(await tinyModel({ bias: 4e-3 }), ...words)).status).toBe(1);
    expect((await verify(await tinyModel({ bias: 4e-3 }), ...words, '--precision', precision)).status).toBe(
      0,
    );
  });

  it('on CUDA names it in the result and in the summary, and reports the nodes on the CPU', async () => {
    await compileFakeOnnxRuntime();
    const { status, answer } = await verify(
      model,
      ...['--reference', at('r.jsonl'), '--chunks', '3', '--provider', 'cuda', '--device', '1', '--json'],
      ...['--allow-fallback', '--summary-json', at('trt_parity_3.json')],
      fakeProviders('Add', at('log')),
    );
    expect(status).toBe(0);
    expect(answer()).toMatchObject({
      candidateBackend: expect.stringMatching(/^ONNX Runtime .* \(CUDA, GPU 1\)$/),
      warnings: expect.arrayContaining([expect.stringMatching(/nodes ran elsewhere .*Concat/)]),
      repeat: expect.stringMatching(/--provider cuda --device 1/),
    });
    const { providers } = JSON.parse(readFileSync(at('trt_parity_3.json'), 'utf8'));
    expect(providers).toEqual(['CUDAExecutionProvider', 'CPUExecutionProvider']);
  });

  it('reports that another provider was the same one, by errors that agree to the last digit', async () => {
    const words = ['--reference', at('r.jsonl'), '--chunks', '12', '--threads', '1', '--json'];
    const one = await verify(drifting, ...words);
    writeFileSync(
      at('cuda.json'),
      one.stdout.replace('ONNX Runtime', 'CUDAExecutionProvider of ONNX Runtime'),
    );
    const { explanations, repeat } = (await verify(drifting, ...words, '--beside', at('cuda.json'))).answer();
    expect(repeat).toMatch(/ --beside \S+cuda\.json/);
    expect(explanations[0]).toMatchObject({ id: 'same-provider-twice', severity: 'error' });
    writeFileSync(at('same.json'), one.stdout);
    const { warnings } = (await verify(drifting, ...words, '--beside', at('same.json'))).answer();
    expect(warnings.at(-1)).toContain('--beside');
  });

  it('passes the same one in functional mode, with limits of its own', async () => {
    const { status, answer } = await verify(
      drifting,
      ...[
        '--reference',
        at('r.jsonl'),
        '--mode',
        'functional',
        '--drift',
        'slope=off,p95=1e-2',
        '--chunks',
        '12',
      ],
      ...['--rule', 'allclose', '--threads', '1', '--json'],
    );
    expect(status).toBe(0);
    expect(answer()).toMatchObject({ chunks: 12, rule: 'allclose', state: { place: 'reference' } });
    expect(answer().drift?.checks.map(({ name, limit }) => [name, limit])).toEqual([
      ['max', 1e-3],
      ['pass-rate', 0.8],
      ['p95', 1e-2],
      ['mean', 2e-4],
    ]);
  });

  it.each([
    [['--drift', 'p96=1'], /"p96=1" is not a limit of the drift/],
    [['--drift', 'pass-rate=80'], /"pass-rate=80" is not a limit/],
    [['--drift', 'p95='], /"p95=" is not a limit/],
    [['--mode', 'open-loop'], /open-loop/],
    [['--against', 'other.onnx'], /--against/],
    [['--batches', '1'], /--batches has no effect on/],
    [['--device', '0'], /--device has no effect on/],
    [['--precision', 'fp17'], /--precision/],
    [['--seed', '1'], /--seed/],
    [['--samples', '2'], /--samples/],
    [['--task-output', 'logits'], /has no output logits to decide by/],
    [['--decoder', 'none.json'], /none\.json does not exist/],
  ])('rejects %j before any work', async (words, message) => {
    const { status, stderr } = await verify(model, '--reference', at('r.jsonl'), ...words);
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
  });

  it('holds a file against its contract alone, and rejects to without one', async () => {
    const session = await openOrtSession(model, { threads: 1 });
    const contract = contractOfSession(session);
    await session.close();
    writeContract(at('contract.json'), contract);
    const words = ['--contract', at('contract.json'), '--reference', at('r.jsonl')];
    expect((await check(model, ...words)).status).toBe(0);
    const other = contract.inputs.map((input) =>
      input.name === 'length' ? { ...input, dtype: 'float32' as const } : input,
    );
    writeContract(at('wrong.json'), { ...contract, inputs: other });
    const { status, answer } = await check(model, '--contract', at('wrong.json'), '--json');
    expect(status).toBe(1);
    expect(answer()).toMatchObject({ schema: 'trtforge.stream-check/1', outcome: 'fail' });
    expect(await check(model)).toMatchObject({ status: 2, stderr: expect.stringContaining('TF_USAGE') });
    // With the stream it is the contract's own tolerances and promises that count.
    const streamed = await verify(
      model,
      '--reference',
      at('r.jsonl'),
      '--contract',
      at('contract.json'),
      '--json',
    );
    expect(streamed.status).toBe(0);
    expect(streamed.answer()).toMatchObject({ contract: { path: at('contract.json') }, warnings: [] });
  });

  it('fails the contract where the candidate has not what it promises, as a guard would', async () => {
    const session = await openOrtSession(model, { threads: 1 });
    const contract = contractOfSession(session);
    await session.close();
    const promised = { name: 'promised', dtype: 'float32', shape: [1], role: 'other' } as const;
    writeContract(at('more.json'), { ...contract, outputs: [...contract.outputs, promised] });
    const words = ['--reference', at('r.jsonl'), '--chunks', '12', '--json'];
    const { status, answer } = await verify(model, ...words, '--contract', at('more.json'));
    expect(status).toBe(1);
    expect(answer()).toMatchObject({ verdicts: { contract: 'fail', numeric: 'pass' } });
    expect(answer().explanations[0]).toMatchObject({ id: 'missing-binding', severity: 'error' });
    // What a contract does not name breaks nothing.
    const less = contract.outputs.filter(({ role }) => role !== 'result');
    const lengths = { ...contract.lengths, result: null };
    writeContract(at('less.json'), { ...contract, outputs: less, assertions: [], lengths });
    expect((await verify(model, ...words, '--contract', at('less.json'))).answer().verdicts.contract).toBe(
      'pass',
    );
  });

  it.each([
    ['--decoder', 'm.json'],
    ['--atol', '1e-3'],
    ['--mode', 'functional'],
  ])('stream check runs nothing and does not take %s', async (...words) => {
    const { status, stderr } = await check(model, '--contract', at('contract.json'), ...words);
    expect(status).toBe(2);
    expect(stderr).toContain('TF_USAGE');
    expect(stderr).toContain(words[0]);
  });

  it.each([
    ['one that is not there', 'none.jsonl', 'TF_FILE_NOT_FOUND'],
    ['one that is damaged', 'bad.jsonl', 'TF_REFERENCE_INVALID'],
  ])('names what is wrong with a reference: %s', async (_case, name, code) => {
    writeFileSync(at('bad.jsonl'), '{"chunk_idx": 0, "inputs": {');
    const { status, answer } = await verify(model, '--reference', at(name), '--json');
    expect(status).toBe(2);
    expect(answer()).toMatchObject({ error: { code } });
  });
});

describe('an engine against a recorded stream, over fake libraries', () => {
  const meta = {
    line: 1,
    chunkLength: null,
    encodedLength: null,
    stateLength: null,
    stateLengthRaw: null,
    stepMs: null,
    recorded: {},
  };
  const CHUNKS = 20;

  /** `state_out = state + x`, `y = 2 * state_out`, as the fake computes it. */
  function recording(rows: number): ReferenceChunk[] {
    const size = rows * 4;
    let sum = 0;
    return Array.from({ length: CHUNKS }, (_, index) => {
      const x = 1 + (index % 3);
      const filled = (value: number) => floats('float32', [rows, 4], Array(size).fill(value));
      const inputs = new Map([
        ['x', filled(x)],
        ['state', filled(sum)],
      ]);
      sum += x;
      const outputs = new Map([
        ['y', filled(2 * sum)],
        ['state_out', filled(sum)],
      ]);
      return { index, inputs, outputs, meta: { ...meta, line: index + 1 } };
    });
  }

  beforeAll(async () => {
    await buildAddon({ say: () => {} });
    const engine = await fakeEngine('10');
    environment = engine.environment({ TENSORRT_HOME: engine.install(at('home')) });
    engine.writePlan(at('state.engine'), {
      kind: 'state',
      inner: 4,
      profiles: [
        [1, 2, 3],
        [4, 8, 16],
      ],
    });
    await writeReference(at('state.jsonl'), recording(2));
    const wrong = recording(2).map((chunk) =>
      chunk.index < 12 ? chunk : { ...chunk, outputs: recording(2)[chunk.index - 1]!.outputs },
    );
    await writeReference(at('wrong.jsonl'), wrong);
  });
  afterAll(() => {
    environment = process.env;
  });

  it('keeps the state on the device in closed loop, and times the GPU', async () => {
    const { status, stderr, answer } = await verify(
      at('state.engine'),
      '--reference',
      at('state.jsonl'),
      '--json',
    );
    expect(status, stderr).toBe(0);
    const result = answer();
    expect(result).toMatchObject({
      chunks: CHUNKS,
      passed: CHUNKS,
      state: { place: 'device', why: null, pairs: [{ input: 'state', output: 'state_out' }] },
      verdicts: { contract: 'pass', numeric: 'pass' },
      times: { rest: { chunks: CHUNKS - 1, state: { max: 0 } } },
      gpuTimes: [{ profile: 0, shapes: 'x:2x4,state:2x4' }],
      memory: { planBytes: statSync(at('state.engine')).size, gpuBytes: expect.any(Number) },
    });
    expect(result.memory.peakHostBytes).toBeGreaterThan(1 << 20);
    const [{ computeMs, inARowMs, overGpu }] = result.gpuTimes as [ParityResult['gpuTimes'][number]];
    expect(computeMs).toBeGreaterThan(0);
    expect(overGpu).toBeCloseTo(inARowMs / computeMs);
  });

  it('gets every state in functional mode', async () => {
    const { status, answer } = await verify(
      at('state.engine'),
      '--reference',
      at('state.jsonl'),
      '--mode',
      'functional',
      '--json',
    );
    expect(status).toBe(0);
    expect(answer()).toMatchObject({ passed: CHUNKS, state: { place: 'reference' } });
  });

  it('finds of two engines of one model whether TF32 is the cause', async () => {
    const plan = readFileSync(at('state.engine'));
    const sample = sampleIdentity();
    const target = {
      ...sample.target,
      product: 'tensorrt' as const,
      version: '10.3.0.0',
      computeCapabilities: [90],
    };
    for (const [name, flags] of [
      ['on', []],
      ['off', ['no-tf32']],
    ] as const) {
      copyFileSync(at('state.engine'), at(`${name}.engine`));
      const identity = {
        ...sampleIdentity(),
        target,
        recipe: { ...sampleIdentity().recipe, flags: [...flags] },
      };
      const passport = samplePassport(plan, identity);
      writeFileSync(at(`${name}.engine.passport.json`), JSON.stringify(passport));
    }
    const words = ['--reference', at('wrong.jsonl'), '--json'];
    const off = await verify(at('off.engine'), ...words);
    expect(off.status, off.stderr).toBe(1);
    expect(off.answer().built).toMatchObject({ tf32: false });
    writeFileSync(at('off.json'), off.stdout);
    const { explanations, reasons } = (
      await verify(at('on.engine'), ...words, '--beside', at('off.json'))
    ).answer();
    expect(explanations[0]).toMatchObject({ id: 'tf32-is-not-the-cause', evidence: { ratio: 1 } });
    expect(reasons.at(-1)).toBe(explanations[0]?.sentence);
  });

  it('judges the task in the process of the engine', async () => {
    const words = ['--reference', at('state.jsonl'), '--task-output', 'y', '--json'];
    const { status, stderr, answer } = await verify(at('state.engine'), ...words);
    expect(status, stderr).toBe(0);
    const decisions = 2 * CHUNKS;
    expect(answer()).toMatchObject({
      verdicts: { task: 'pass' },
      task: { kind: 'argmax', output: 'y', decisions, agreed: decisions, smallestMargin: 0 },
    });
  });

  it('opens the decoder there too, and names an output that it does not take', async () => {
    const decoder = await writeBundle(at('bundle'));
    const words = ['--reference', at('state.jsonl'), '--decoder', decoder, '--json'];
    const { status, answer } = await verify(at('state.engine'), ...words);
    expect(status).toBe(2);
    expect(answer()).toMatchObject({
      error: {
        code: 'TF_BUNDLE_MISMATCH',
        message: expect.stringMatching(/^y is \[2, 4\]; the joint network .* takes encoder_output as/),
      },
    });
  });

  it('fails where the recording states otherwise', async () => {
    const { status, answer } = await verify(at('state.engine'), '--reference', at('wrong.jsonl'), '--json');
    expect(status).toBe(1);
    expect(answer()).toMatchObject({ passed: 12, failed: 8 });
    expect(answer().failures[0]).toMatchObject({ chunk: 12, tensor: 'y', kind: 'outside-tolerance' });
  });

  it('times batches, profiles that take them, and changes between calls', async () => {
    const { status, stderr, answer } = await verify(
      ...[at('state.engine'), '--reference', at('state.jsonl'), '--batches', '1,2,8,64', '--json'],
    );
    expect(status, stderr).toBe(0);
    const { batches, switching } = answer().profiles!;
    expect(batches.map(({ batch, profile, error }) => [batch, profile, error === null])).toEqual([
      [1, 0, true],
      [2, 0, true],
      [8, 1, true],
      [64, null, false],
    ]);
    expect(batches[3]?.error).toMatch(/profile 0 takes \[1\.\.3, 4\]/);
    expect(batches[0]!.itemsPerSecond).toBeGreaterThan(0);
    expect(switching.map(({ from, to, acrossProfiles }) => [from, to, acrossProfiles])).toEqual([
      ['size 1', 'batch 1', false],
      ['batch 1', 'batch 2', false],
      ['batch 2', 'batch 8', true],
    ]);
  });

  it('names a chunk that no profile takes, and the profiles', async () => {
    await writeReference(at('large.jsonl'), recording(32));
    const { status, answer } = await verify(at('state.engine'), '--reference', at('large.jsonl'), '--json');
    expect(status).toBe(1);
    expect(answer()).toMatchObject({ chunks: 1, verdicts: { contract: 'fail' } });
    expect(answer().failures[0]).toMatchObject({ chunk: 0, kind: 'run' });
    expect(answer().failures[0]?.reason).toMatch(/profile 1 takes \[4\.\.16, 4\]/);
  });
});
