// Cold starts on a real GPU: an engine with 200 MB of weights is loaded without a copy of its plan in memory, beside NVIDIA's Python API where PYTHON names a Python that
// has it; `bench --cold` measures new processes; four engines load at once. Prints times as ratios, one JSON line per check.
//
//   TENSORRT_HOME=/tmp/tensorrt PYTHON=python3 node test/gpu/cold.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startPython } from '../../bench/gpu/python.mjs';
import { float32Values, floatTensor } from '../../dist/formats/tensor/tensor.js';
import { openEngineSession, openSession } from '../../dist/index.js';
import { benchResultSchema } from '../../dist/quality/bench/result.js';
import {
  buildWith,
  initializer,
  loadedFacts,
  openChecks,
  programsIn,
  value,
  writeModel,
} from './harness.mjs';

const { addon, toolchain, major, folder, check, skip, finish } = openChecks();
const { trtforge } = programsIn(folder);
const HALF = 10;
const [WIDTH, LAYERS, BATCH] = [4096, 6, 4];
const LOADS = 7;
const engine = join(folder, 'large.engine');
const medianOf = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

/** Halves of either sign between 2^-7 and 2^-6, the same for the same seed. */
function noise(seed) {
  let state = seed;
  return Uint16Array.from({ length: WIDTH * WIDTH }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return ((state >>> 16) & 0x83ff) | 0x2000;
  });
}

const model = writeModel(folder, 'large', {
  inputs: [value('x', HALF, ['n', WIDTH])],
  outputs: [value('y', HALF, ['n', WIDTH])],
  initializers: Array.from({ length: LAYERS }, (_, at) =>
    initializer(`w${at}`, HALF, [WIDTH, WIDTH], noise(at + 1)),
  ),
  nodes: Array.from({ length: LAYERS }, (_, at) => [
    {
      opType: 'MatMul',
      name: `mm${at}`,
      input: [at === 0 ? 'x' : `h${at - 1}`, `w${at}`],
      output: [`m${at}`],
    },
    { opType: 'Tanh', name: `act${at}`, input: [`m${at}`], output: [at === LAYERS - 1 ? 'y' : `h${at}`] },
  ]).flat(),
});
const x = floatTensor(
  'float16',
  [BATCH, WIDTH],
  Float32Array.from({ length: BATCH * WIDTH }, (_, at) => Math.sin(at)),
);
const loading = { toolchain, requirePassport: false };
const open = () => openEngineSession(engine, loading);
const answer = async (session) => float32Values((await session.run({ x })).get('y'));
const largest = (a, b = new Float32Array(a.length)) =>
  a.reduce((most, number, at) => Math.max(most, Math.abs(number - b[at])), 0);
const timed = async (work) => {
  const started = performance.now();
  const result = await work();
  return { ms: performance.now() - started, result };
};
let expected;

await check('an engine of 200 MB is built', async () => {
  const [min, opt, max] = [1, BATCH, 8].map((n) => [n, WIDTH]);
  const recipe = {
    ...{ stronglyTyped: major >= 10, optimizationLevel: 1 },
    ...(major >= 10 ? {} : { precision: 'fp16' }),
    profiles: [{ x: { min, opt, max, values: false } }],
  };
  await buildWith(toolchain, model, engine, recipe);
  return { bytes: statSync(engine).size };
});

await check('it is loaded from the mapped file, and computes what ONNX Runtime does', async () => {
  const reference = await openSession(model);
  expected = await answer(reference);
  await reference.close();
  const session = await open();
  try {
    const found = await answer(session);
    const error = largest(found, expected) / largest(expected);
    assert.ok(error < 0.05, `the largest error is ${error} of the largest output`);
    const { readMs, deserializeMs, loadMs } = session.facts.engine;
    return { error, readMs, deserializeMs, loadMs };
  } finally {
    await session.close();
  }
});

await check('loading holds the plan in host memory once at most', async () => {
  // What the driver and TensorRT keep for all engines is there after the first load.
  await loadedFacts(addon, toolchain, engine);
  writeFileSync('/proc/self/clear_refs', '5');
  const { hostMemory } = await loadedFacts(addon, toolchain, engine);
  const share = hostMemory.peakBytes / statSync(engine).size;
  assert.ok(share < 1.2, JSON.stringify({ share, ...hostMemory }));
  return { share, ...hostMemory };
});

const { peer, why } = await startPython({ ...process.env });
if (peer === null) skip("loading beside the library's own deserialize", why);
else
  await check("loading beside the library's own deserialize", async () => {
    const ours = [];
    for (let at = 0; at < LOADS; at++) {
      const { readMs, deserializeMs } = await loadedFacts(addon, toolchain, engine);
      ours.push(readMs + deserializeMs);
    }
    const { readMs, deserializeMs } = await peer.ask({ plan: engine, loads: LOADS });
    await peer.close();
    const oursMs = medianOf(ours);
    const [overBoth, overDeserialize] = [readMs + deserializeMs, deserializeMs].map((ms) => oursMs / ms);
    return { oursMs, readMs, deserializeMs, overBoth, overDeserialize, met: overDeserialize <= 1.02 };
  });

await check('bench --cold measures new processes', () => {
  const words = ['bench', engine, '--cold', '--graph', '--duration', '0.5'];
  const result = trtforge(words);
  assert.equal(benchResultSchema.safeParse(result).error, undefined);
  const { warm, dropped, files, starts } = result.cold;
  const medians = ({ ms }) =>
    Object.fromEntries(Object.entries(ms).map(([phase, spread]) => [phase, spread?.median ?? null]));
  const shares = [warm, dropped].map(({ hostMemory }) => hostMemory.peakBytes / result.subject.bytes);
  const facts = { starts, warm: medians(warm), dropped: medians(dropped), files, shares };
  assert.notEqual(warm.ms.capture, null, JSON.stringify(facts));
  return { ...facts, hostMemory: warm.hostMemory, warnings: result.warnings };
});

await check('four load at once, beside one after another', async () => {
  const close = (sessions) => Promise.all(sessions.map((session) => session.close()));
  const inTurn = await timed(async () => {
    const sessions = [];
    for (let at = 0; at < 4; at++) sessions.push(await open());
    return sessions;
  });
  await close(inTurn.result);
  const together = await timed(() => Promise.all(Array.from({ length: 4 }, open)));
  const answers = await Promise.all(together.result.map(answer));
  await close(together.result);
  for (const found of answers) assert.ok(largest(found, expected) / largest(expected) < 0.05);
  return { inTurnMs: inTurn.ms, togetherMs: together.ms, share: together.ms / inTurn.ms };
});

finish();
