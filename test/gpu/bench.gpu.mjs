// Measures engines with a real TensorRT on a real GPU, through dist/ and build/trtforge.node, and prints one JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/bench.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Plans that lie in the folder BENCH_PLANS (tiny.engine, deep.engine, large.engine) are taken from there in place of being built.
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadEngine } from '../../dist/engines/runtime/tensorrt/load-engine.js';
import { readNpz } from '../../dist/formats/tensor/npz.js';
import { benchEngine } from '../../dist/quality/bench/bench-engine.js';
import { benchCompare } from '../../dist/quality/bench/compare.js';
import { defaultMode, defaultRequest } from '../../dist/quality/bench/options.js';
import { benchComparisonSchema, benchResultSchema } from '../../dist/quality/bench/result.js';
import { PROFILE_SHARING } from './engines.mjs';
import { buildWith, openChecks, refused, writeLayers } from './harness.mjs';

const { toolchain, gpu, addon, major, folder, check, finish } = openChecks();
const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') };
const range = (min, opt, max) => ({ min, opt, max, values: false });
const wide = 4096;
/** A GiB of input and as much output at the largest batch. */
const most = 65536;

async function engine(name, depth, width, batches, more = {}) {
  const given = join(process.env.BENCH_PLANS ?? '', `${name}.engine`);
  if (process.env.BENCH_PLANS && existsSync(given)) return given;
  const planPath = join(folder, `${name}.engine`);
  const profiles = batches.map((sizes) => ({ x: range(...sizes.map((batch) => [batch, width])) }));
  const recipe = {
    stronglyTyped: major >= 10,
    profiles,
    profilingVerbosity: 'detailed',
    optimizationLevel: 1,
    ...more,
  };
  await buildWith(toolchain, writeLayers(folder, name, depth, width), planPath, recipe);
  return planPath;
}

const request = (path, mode = {}, more = {}) => ({
  ...defaultRequest(path),
  device: gpu.index,
  mode: { ...defaultMode, durationMs: 500, ...mode },
  ...more,
});
const context = (signal = new AbortController().signal, emit = () => {}) => ({ emit, signal, environment });
const measure = async (...args) => {
  const result = await benchEngine(request(...args), context());
  assert.equal(benchResultSchema.safeParse(result).error, undefined);
  return result;
};
const told = ({ gpuMs, endToEndMs, qps, mode, warnings }) => ({
  gpuMs: gpuMs.median,
  endToEndMs: endToEndMs?.median ?? null,
  qps: Math.round(qps),
  graph: mode.graph,
  warnings,
});

let tiny = '';
let deep = '';
let large = '';
await check('engines to measure', async () => {
  const sharing = major >= 10 ? {} : { previewFeatures: [PROFILE_SHARING] };
  tiny = await engine('tiny', 4, 64, [[1, 8, 64]], sharing);
  deep = await engine('deep', 24, 1024, [
    [1, 64, 64],
    [65, 256, 512],
  ]);
  large = await engine('large', 2, wide, [[1, most, most]]);
});

for (const transfers of [false, true]) {
  for (const graph of [false, true]) {
    for (const spinWait of [false, true]) {
      const words = [
        transfers ? 'with transfers' : 'GPU only',
        graph ? 'graph' : 'no graph',
        spinWait ? 'spin' : 'no spin',
      ];
      await check(words.join(', '), async () => {
        const result = await measure(deep, { transfers, graph, spinWait });
        assert.deepEqual(
          [result.mode.kind, result.mode.graph, result.mode.spinWait],
          [transfers ? 'with-transfers' : 'gpu-only', graph, spinWait],
        );
        assert.ok(result.gpuMs.count >= 50, 'samples');
        assert.ok(result.qps * result.gpuMs.mean < 1300, 'one stream computes one inference at a time');
        assert.equal(result.endToEndMs !== null, transfers);
        assert.ok(result.runs[0].peakGpuBytes > 0);
        return told(result);
      });
    }
  }
}

await check('batches in the profiles that take them; more work takes longer', async () => {
  const { runs } = await measure(
    deep,
    { transfers: false, graph: true },
    { shapes: { kind: 'batches', batches: [1, 64, 512] } },
  );
  assert.deepEqual(
    runs.map(({ batch, profile }) => [batch, profile]),
    [
      [1, 0],
      [64, 0],
      [512, 1],
    ],
  );
  assert.ok(runs[2].gpuMs.median > runs[0].gpuMs.median);
  return { ms: runs.map(({ gpuMs }) => gpuMs.median) };
});

await check('streams: 1, 2 and 4 on a tiny network', async () => {
  const qps = [];
  for (const streams of [1, 2, 4]) {
    const result = await measure(tiny, { transfers: false, graph: true, spinWait: true, streams });
    assert.equal(result.mode.streams, streams);
    qps.push(Math.round(result.qps));
  }
  return { qps };
});

if (major < 10)
  await check('streams on an engine that does not share its profiles are refused', () =>
    refused('TF_CONTEXT_FAILED', /chosen by another IExecutionContext/, measure(deep, { streams: 2 })),
  );

await check('iterations last longer than the duration when they must', async () => {
  const { gpuMs } = await measure(deep, { durationMs: 0, warmUpMs: 0, iterations: 200 });
  assert.ok(gpuMs.count >= 200, `${gpuMs.count} samples`);
  return { samples: gpuMs.count };
});

await check('idle time between inferences lowers the rate', async () => {
  const { qps } = await measure(tiny, { idleMs: 5 });
  assert.ok(qps < 201, `${qps} inferences a second`);
  return { qps };
});

await check('every sample goes to a file', async () => {
  const path = join(folder, 'samples.npz');
  const { gpuMs } = await measure(tiny, {}, { samples: path });
  const columns = readNpz(path);
  assert.deepEqual(columns.get('computeMs').shape, [gpuMs.count]);
  return { samples: gpuMs.count };
});

await check('the GPU’s state is known before, meanwhile and after', async () => {
  const { runs, gpu: measured } = await measure(deep, { durationMs: 1500, transfers: false });
  const { before, during, after } = runs[0].gpuStates;
  assert.equal(measured.uuid, gpu.uuid);
  assert.ok(before !== null && after !== null && during.length >= 2, `${during.length} looks`);
  for (const state of [before, ...during, after]) assert.ok(state.smClockMHz > 0 && state.temperatureC > 0);
  return {
    before: before.smClockMHz,
    during: during.map(({ smClockMHz }) => smClockMHz),
    after: after.smClockMHz,
  };
});

await check('layers: times beside types, tactics and ONNX nodes', async () => {
  const { layers } = await measure(deep, { transfers: false }, { layers: true });
  const known = layers.layers.filter(({ index }) => index !== null);
  assert.ok(
    known.length > 0 && known.length === layers.layers.length,
    `${known.length} of ${layers.layers.length}`,
  );
  assert.ok(Math.abs(layers.layers.reduce((sum, { share }) => sum + share, 0) - 1) < 1e-6);
  const withNodes = layers.layers.filter(({ onnxNodes }) => onnxNodes.length > 0).length;
  return { layers: layers.layers.length, totalMs: layers.totalMs, withNodes };
});

const against = (candidate, reference, more = {}) =>
  benchCompare({ candidate, reference, rounds: 6, failAbove: undefined, ...more }, context());

const againstItself = async (path, batch) => {
  const mode = { transfers: false, graph: true, spinWait: true, durationMs: 3000 };
  const one = request(path, mode, { shapes: { kind: 'batches', batches: [batch] } });
  const result = await against(one, one, { failAbove: 1.05 });
  assert.equal(benchComparisonSchema.safeParse(result).error, undefined);
  const { verdict, gate, ratios, candidate, reference } = result;
  const roundMs = [candidate.roundMs, reference.roundMs];
  return { verdict, outcome: gate.outcome, ratios, roundMs, doubts: [candidate, reference].map(rulesOf) };
};
const rulesOf = ({ doubts }) => doubts.map(({ rule }) => rule);

await check('an engine against itself is equal', async () => {
  const facts = await againstItself(large, 4096);
  assert.deepEqual([facts.verdict, facts.outcome], ['equal', 'pass'], JSON.stringify(facts));
  return facts;
});

await check(
  'an engine of many small kernels against itself is equal, or its rounds are said to differ',
  async () => {
    const facts = await againstItself(deep, 64);
    const differs = facts.doubts.map((rules) => rules.includes('rounds-differ'));
    const expected = differs.includes(true) ? ['equal', 'inconclusive'] : ['equal'];
    assert.ok(expected.includes(facts.verdict), JSON.stringify(facts));
    return facts;
  },
);

await check('a graph against no graph on a tiny network: the rate tells', async () => {
  const mode = { transfers: false, spinWait: true, durationMs: 2000 };
  const result = await against(request(tiny, { ...mode, graph: true }), request(tiny, mode));
  const { ratio, high } = result.ratios['time-per-inference'];
  assert.ok(high < 1.05, `ratio ${ratio}`);
  return { verdict: result.verdict, ratio };
});

await check('a larger batch against a smaller one is slower', async () => {
  const mode = { transfers: false, graph: true, spinWait: true, durationMs: 2000 };
  const at = (batch) => request(deep, mode, { shapes: { kind: 'batches', batches: [batch] } });
  const result = await against(at(512), at(64), { failAbove: 1.02 });
  assert.deepEqual([result.verdict, result.gate.outcome], ['slower', 'fail']);
  return { ratio: result.ratios.gpuMs };
});

/** Resolves when a bench began to measure. */
function begin(more, signal) {
  let result;
  const measuring = new Promise((resolve) => {
    const emit = ({ type, phase }) => {
      if (type === 'phase-start' && phase === 'measure') resolve();
    };
    result = benchEngine(request(deep, { durationMs: 4000 }, more), context(signal, emit));
    // One that fails never begins; whoever awaits the result is told.
    result.catch(() => resolve());
  });
  return { measuring, result: () => result };
}

await check('two benches at once: the second says so, or waits', async () => {
  const first = begin({});
  await first.measuring;
  const second = await measure(tiny, { durationMs: 300 });
  assert.match(second.warnings.join('\n'), /Another bench measures on this GPU/);
  const waited = await benchEngine(request(tiny, { durationMs: 300 }, { wait: true }), context());
  assert.doesNotMatch(waited.warnings.join('\n'), /Another bench/);
  const { runs } = await first.result();
  return { doubtsOfTheFirst: runs[0].doubts.map(({ rule }) => rule) };
});

await check('a bench is cancelled in the middle and gives the GPU back', async () => {
  const used = () => addon.gpuState(gpu.uuid)?.memoryUsedBytes ?? 0;
  const before = used();
  const stopping = new AbortController();
  const { measuring, result } = begin({}, stopping.signal);
  await measuring;
  const asked = performance.now();
  stopping.abort();
  const facts = await refused('TF_CANCELLED', /ancelled/, result());
  const stoppedAfterMs = Math.round(performance.now() - asked);
  assert.ok(stoppedAfterMs < 6000, `${stoppedAfterMs} ms`);
  const left = used() - before;
  assert.ok(left < 64 << 20, `${left} bytes are still in use`);
  return { ...facts, stoppedAfterMs };
});

await check('memory that does not suffice is named', async () => {
  const holder = await loadEngine(tiny, { requirePassport: false, device: gpu.index });
  const { freeAfter } = holder.native.facts.gpuMemory;
  const held = holder.native.allocate(freeAfter - 2 ** 31);
  try {
    return await refused('TF_GPU_MEMORY', /memory|MiB|GiB|bytes/i, benchEngine(request(large), context()));
  } finally {
    held.close();
    await holder.native.close().done;
  }
});

await check('a file that is no plan is refused', async () => {
  const path = join(folder, 'no.engine');
  writeFileSync(path, 'this is not a plan, and it is long enough to hold a header of one');
  return refused('TF_PLAN_INVALID', /no\.engine/, benchEngine(request(path), context()));
});

await check('a batch that no profile takes is named', () =>
  refused(
    'TF_PROFILE_MISFIT',
    /x is \[600, 1024\]/,
    benchEngine(request(deep, {}, { shapes: { kind: 'batches', batches: [600] } }), context()),
  ),
);

finish();
