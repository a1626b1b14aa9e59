// The streaming encoder of examples/models in a closed loop of 300 chunks with a real TensorRT on a real GPU, its state kept there, against a reference
// that ONNX Runtime records in FP32 on the spot: FP32 with TF32, without it, and FP16. Prints one JSON line per check.
//
//   npm run build && npm run build:examples && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/stream.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// STREAM_SIZE=tiny|small|full and STREAM_CHUNKS=N choose another model and length; TRTFORGE_FULL=1 is the full size (24 layers of 1024, 8 GB of reference).
// STREAM_RESULTS=FOLDER keeps each whole result there. Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openEngineSession } from '../../dist/engines/runtime/tensorrt/engine-session.js';
import { readContract } from '../../dist/formats/contract/file.js';
import { convertModel } from '../../dist/formats/precision/convert.js';
import { guardCall } from '../../dist/products/streaming/guard/guarded-session.js';
import { recordReference } from '../../dist/products/streaming/record/record.js';
import { verifyAgainstReference } from '../../dist/products/streaming/verify/verify.js';
import { buildWith, contractProfile, openChecks } from './harness.mjs';

const { toolchain, major, folder, check, skip, finish } = openChecks();
const size = process.env.STREAM_SIZE ?? (process.env.TRTFORGE_FULL === '1' ? 'full' : 'small');
const chunks = Number(process.env.STREAM_CHUNKS ?? 300);
const model = join(folder, 'encoder_streaming.onnx');
const contractPath = join(folder, 'encoder_streaming.contract.json');
const reference = join(folder, 'reference.ref');
const generator = fileURLToPath(new URL('../../build/examples/models/main.js', import.meta.url));

/** Largest error of the output over all chunks that is still believed; outputs are of order one. */
const LIMITS = { 'fp32-no-tf32': 1e-3, fp32: 5e-2, fp16: 2e-1 };

if (major < 10) {
  skip('the streaming encoder', 'lengths are int64, which TensorRT has from 10 on');
  finish();
}

let contract;
await check('generate the model', () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    [generator, 'streaming-encoder', '--size', size, '-o', folder],
    { encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
  contract = readContract(contractPath);
  return { size, chunks };
});

await check('record the reference with ONNX Runtime in FP32', async () => {
  const recorded = await recordReference({
    file: model,
    contract: contractPath,
    chunks,
    seed: 42,
    batch: 1,
    output: reference,
  });
  assert.deepEqual(recorded.violations, []);
  return {
    backend: recorded.backend,
    form: recorded.form,
    megabytes: Math.round(recorded.bytes / 1e6),
    stepMs: recorded.stepMs,
  };
});

async function build(modelPath, name, { stronglyTyped, flags }, profiles = contract.profiles.slice(0, 1)) {
  const planPath = join(folder, `${name}.engine`);
  const recipe = { stronglyTyped, flags, profiles: profiles.map(contractProfile) };
  const { buildMs, bytes } = await buildWith(toolchain, modelPath, planPath, recipe);
  return { planPath, buildMs: Math.round(buildMs), bytes };
}

const short = (value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value);

/** The closed loop, and what it says in a line. */
async function closedLoop(name, planPath) {
  const result = await verifyAgainstReference({
    candidate: planPath,
    reference,
    mode: 'closed-loop',
    contract,
    toolchain,
  });
  if (process.env.STREAM_RESULTS !== undefined) {
    mkdirSync(process.env.STREAM_RESULTS, { recursive: true });
    writeFileSync(join(process.env.STREAM_RESULTS, `${size}-${name}.json`), JSON.stringify(result));
  }
  const { drift, times, gpuTimes } = result;
  assert.equal(result.chunks, chunks);
  assert.equal(result.verdicts.contract, 'pass', JSON.stringify(result.violations.slice(0, 3)));
  assert.equal(result.state.place, 'device', result.state.why ?? '');
  assert.ok(
    drift !== null && result.outputs.every(({ nonFinite }) => nonFinite.candidate === 0),
    'not finite',
  );
  assert.ok(drift.max <= LIMITS[name], `the largest error is ${drift.max}, ${LIMITS[name]} is believed`);
  assert.notEqual(drift.shape, 'growing', `errors grow by ${JSON.stringify(drift.slope)}`);
  return {
    verdict: result.outcome,
    passed: `${result.passed}/${result.chunks}`,
    error: {
      max: short(drift.max),
      p99: short(drift.p99),
      p95: short(drift.p95),
      mean: short(drift.mean),
      slope: short(drift.slope.robust.perChunk),
      thirds: [short(drift.thirds.first), short(drift.thirds.last)],
      shape: drift.shape,
    },
    outputs: Object.fromEntries(
      result.outputs.map(({ tensor, maxAbs, minCosine }) => [tensor, [short(maxAbs.max), short(minCosine)]]),
    ),
    stepMs: times.rest?.total,
    gpu: gpuTimes.map(({ shapes, inputMs, computeMs, outputMs, inARowMs, overGpu }) => ({
      shapes: shapes.slice(0, 40),
      inputMs: short(inputMs),
      computeMs: short(computeMs),
      outputMs: short(outputMs),
      inARowMs: short(inARowMs),
      overGpu: short(overGpu),
    })),
    explained: result.explanations.map(({ id }) => id),
  };
}

const variants = {
  fp32: { path: () => model, recipe: { stronglyTyped: false, flags: [] } },
  'fp32-no-tf32': { path: () => model, recipe: { stronglyTyped: false, flags: ['no-tf32'] } },
  fp16: {
    path: async () => {
      const path = join(folder, 'encoder_streaming.fp16.onnx');
      await convertModel(model, path, { precision: 'fp16' });
      return path;
    },
    recipe: { stronglyTyped: true, flags: [] },
  },
};

const built = new Map();
for (const [name, { path, recipe }] of Object.entries(variants)) {
  await check(`closed loop, ${name}`, async () => {
    const engine = await build(await path(), name, major >= 11 ? { ...recipe, stronglyTyped: true } : recipe);
    built.set(name, engine.planPath);
    return {
      buildMs: engine.buildMs,
      engineMB: Math.round(engine.bytes / 1e6),
      ...(await closedLoop(name, engine.planPath)),
    };
  });
}

await check('batches of 1 to 8, and what going from one profile to another costs', async () => {
  const recipe = { stronglyTyped: major >= 11, flags: ['no-tf32'] };
  const engine = await build(model, 'batched', recipe, contract.profiles);
  const { profiles, passed } = await verifyAgainstReference({
    candidate: engine.planPath,
    reference,
    mode: 'closed-loop',
    contract,
    batches: [1, 2, 4, 8, 16],
    toolchain,
  });
  assert.equal(passed, chunks);
  const [last, ...run] = profiles.batches.toReversed();
  assert.ok(last.batch === 16 && last.error !== null, JSON.stringify(last));
  assert.ok(
    run.every(({ error }) => error === null),
    JSON.stringify(run),
  );
  assert.ok(profiles.switching.some(({ acrossProfiles }) => acrossProfiles));
  return profiles;
});

await check('a guarded prepared call keeps its promises, and what the guard adds', async () => {
  const session = await openEngineSession(built.get('fp32-no-tf32') ?? built.values().next().value, {
    toolchain,
    requirePassport: false,
  });
  try {
    const { rest } = contract.schedule;
    const pairs = Object.fromEntries(contract.state.map(({ input, output }) => [input, output]));
    const shapeOf = (binding) =>
      binding.shape.map(
        (dim, axis) =>
          dim ?? (binding.name === contract.schedule.tensor && axis === contract.schedule.axis ? rest : 1),
      );
    const shapes = Object.fromEntries(session.inputs.map((binding) => [binding.name, shapeOf(binding)]));
    const state = session.state(pairs, shapes);
    const given = session.inputs.filter(({ name }) => !(name in pairs));
    const call = await session.prepare(Object.fromEntries(given.map(({ name }) => [name, shapes[name]])), {
      state,
    });
    call.inputs[contract.lengths.signal].fill(BigInt(rest));
    const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];
    const timed = async (subject) => {
      const times = [];
      for (let step = 0; step < 200; step++) {
        const began = performance.now();
        await subject.run();
        times.push(performance.now() - began);
      }
      return short(median(times));
    };
    const bareMs = await timed(call);
    const guarded = guardCall(call, contract);
    const guardedMs = await timed(guarded);
    assert.equal(guarded.counters.violations(), 0);
    assert.equal(guarded.counters.steps, 200);
    call.close();
    state.close();
    return { bareMs, guardedMs };
  } finally {
    await session.close();
  }
});

finish();
