// Builds and measures through a real trtexec on a real GPU, through dist/, and prints one JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt TRTEXEC=/tmp/tensorrt/bin/trtexec node test/gpu/trtexec.gpu.mjs
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU, no TensorRT or no trtexec here.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCommand } from '../../dist/base/process/command.js';
import { buildWithTrtexec } from '../../dist/engines/builder/trtexec-build.js';
import { defaultRecipe } from '../../dist/engines/identity/recipe.js';
import { readLayers } from '../../dist/engines/layers/read-layers.js';
import { readPlanHeader } from '../../dist/engines/plan/header.js';
import { benchEngine } from '../../dist/quality/bench/bench-engine.js';
import { benchTrtexec } from '../../dist/quality/bench/trtexec/trtexec-bench.js';
import { buildOrLoad } from '../../dist/quality/known-answer/build-or-load.js';
import { withLibraries } from '../../dist/tensorrt/toolchain/environment.js';
import { trtexecVersion } from '../../dist/tensorrt/toolchain/trtexec.js';
import {
  readExportedOutput,
  readExportedProfile,
  readExportedTimes,
} from '../../dist/tensorrt/trtexec/exports.js';
import { benchArguments } from '../../dist/tensorrt/trtexec/flags.js';
import { readTrtexecLog } from '../../dist/tensorrt/trtexec/log/log.js';
import { runTrtexec } from '../../dist/tensorrt/trtexec/run.js';
import { loadedFacts, openChecks, refused, resolvedBuild, say, writeLayers } from './harness.mjs';

const { addon, toolchain, major, folder, check, skip, finish } = openChecks();
const trtexec = toolchain.trtexec;
if (trtexec === null || !existsSync(trtexec)) {
  say({ check: 'trtexec', ok: false, why: 'TRTEXEC names no trtexec' });
  process.exit(3);
}

const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') };
const libraries = withLibraries(toolchain, environment);
const range = (min, opt, max) => ({ min, opt, max, values: false });
const profiles = [{ x: range([1, 256], [64, 256], [128, 256]) }];
const small = writeLayers(folder, 'small', 4, 256);
const deep = writeLayers(folder, 'deep', 40, 512);
const logs = join(folder, 'logs');
const build = (recipe = {}, { modelPath = small, timingCache = null } = {}, options = {}) =>
  buildWithTrtexec(
    resolvedBuild(
      toolchain,
      modelPath,
      { stronglyTyped: major >= 10, profiles, ...recipe },
      { timingCache, logFolder: logs },
    ),
    { modelPath, planPath: join(folder, 'small.plan') },
    { emit: () => {}, environment, ...options },
  );
/** The deep model has other widths than the small one. */
const deepRecipe = { profiles: [{ x: range([1, 512], [64, 512], [128, 512]) }] };
const lastLog = () => readTrtexecLog(join(logs, readdirSync(logs).sort().at(-1)));

await check('trtexec is of the version of the library', async () => {
  const version = await trtexecVersion(
    trtexec,
    runCommand,
    process.env,
    dirname(toolchain.libraries.inference),
  );
  assert.ok(
    version !== null && toolchain.version.startsWith(version.split('.').slice(0, 3).join('.')),
    version,
  );
  return { version };
});

await check('an FP32 build: header, size and echo agree', async () => {
  const phases = [];
  const outcome = await build(
    {},
    {},
    { emit: (event) => event.type === 'phase-start' && phases.push(event.phase) },
  );
  const header = readPlanHeader(join(folder, 'small.plan'));
  assert.equal(header.planBytes, outcome.bytes);
  assert.ok(phases.includes('parse') && phases.includes('choose kernels'), phases.join());
  assert.equal(outcome.builder, 'trtexec');
  const log = lastLog();
  assert.equal(log.outcome, 'passed');
  return {
    buildMs: Math.round(outcome.buildMs),
    builtSeconds: log.engine.builtSeconds,
    bytes: outcome.bytes,
    peakMemoryBytes: outcome.peakMemoryBytes,
    version: header.version,
    precision: log.build.precision,
  };
});

await check('a weakly typed FP16 build, where there is one', async () => {
  if (major >= 11) return refused('TF_OPTION_UNSUPPORTED', /weakly typed/, build({ stronglyTyped: false }));
  const { bytes } = await build({ stronglyTyped: false, precision: 'fp16' });
  assert.equal(lastLog().build.precision, 'FP32+FP16');
  return { bytes };
});

await check('Memory Pools: what was asked is what is echoed, to the byte', async () => {
  const echoed = [];
  for (const workspace of [1 << 30, 64 << 20, (16 << 20) + (1 << 19)]) {
    await build({ memoryPools: { ...defaultRecipe.memoryPools, workspace } });
    echoed.push(lastLog().build.memoryPools.workspace);
    assert.equal(echoed.at(-1), workspace);
  }
  return { echoed };
});

await check('two profiles, or their refusal by 8.6', async () => {
  const two = [...profiles, { x: range([129, 256], [256, 256], [256, 256]) }];
  if (major <= 8) return refused('TF_OPTION_UNSUPPORTED', /--profile/, build({ profiles: two }));
  await build({ profiles: two });
  const facts = await loadedFacts(addon, toolchain, join(folder, 'small.plan'));
  assert.equal(facts.profiles, 2);
  assert.deepEqual(facts.tensors[0].profiles[1], { min: [129, 256], opt: [256, 256], max: [256, 256] });
  return { profiles: facts.profiles };
});

await check('timing cache: new, then used', async () => {
  const timingCachePath = join(folder, 'timing.cache');
  const cold = await build(deepRecipe, { timingCache: timingCachePath, modelPath: deep });
  const warm = await build(deepRecipe, { timingCache: timingCachePath, modelPath: deep });
  assert.equal(cold.timingCache, 'new');
  assert.equal(warm.timingCache, 'hit');
  return { warm: warm.timingCache, coldMs: Math.round(cold.buildMs), warmMs: Math.round(warm.buildMs) };
});

await check('settings of a recipe are taken and echoed', async () => {
  await build({
    optimizationLevel: 1,
    maxAuxStreams: 0,
    avgTimingIterations: 2,
    profilingVerbosity: 'detailed',
    hardwareCompatibility: 'ampere-plus',
    flags: ['no-tf32', 'sparse-weights'],
    tacticSources: ['jit-convolutions', 'edge-mask-convolutions'],
  });
  const { options } = lastLog();
  assert.equal(options.build.BuilderOptimizationLevel, '1');
  assert.equal(options.build.Sparsity, 'Enabled');
  return { tactics: options.build['Tactic sources'] };
});

const found = {
  ...toolchain,
  name: 'under-test',
  folder: dirname(toolchain.libraries.inference),
  flavour: 'full',
  alsoFoundBy: [],
  parserVersion: null,
  cudaMajor: null,
  builderResources: [],
};
const engine = join(folder, 'small.engine');

await check('both builders give one identity, and the passport says who built', async () => {
  const wishes = {
    model: small,
    target: 'tensorrt',
    toolchain: found,
    profiles: ['x:1x256/64x256/128x256'],
    store: false,
    remote: false,
    timingCache: null,
    settings: { profilingVerbosity: 'detailed' },
  };
  const native = await buildOrLoad({ ...wishes, output: join(folder, 'native.engine') }, { environment });
  const ours = await buildOrLoad({ ...wishes, builder: 'trtexec', output: engine }, { environment });
  assert.equal(native.identity, ours.identity);
  assert.equal(native.passport.built.builder, undefined);
  assert.equal(ours.passport.built.builder, 'trtexec');
  return {
    identity: ours.identity.slice(0, 12),
    bytes: [native.passport.plan.bytes, ours.passport.plan.bytes],
  };
});

const mode = { streams: 1, warmUpMs: 200, durationMs: 1000, iterations: 10, idleMs: 0 };
const bench = (
  more = {},
  shapes = { kind: 'batches', batches: [1, 64] },
  request = {},
  measurer = benchTrtexec,
) =>
  measurer(
    {
      engine,
      toolchain: undefined,
      device: 0,
      plugins: [],
      allowHostCode: false,
      shapes,
      inputs: { seed: 0, ranges: [], files: [] },
      mode: { ...mode, transfers: false, graph: true, spinWait: true, ...more },
      layers: false,
      samples: undefined,
      wait: false,
      ...request,
    },
    { emit: () => {}, signal: new AbortController().signal, environment },
  );

for (const [name, more] of [
  ['GPU only, graph, spin wait', {}],
  ['with transfers, no graph, no spin wait', { transfers: true, graph: false, spinWait: false }],
]) {
  await check(`bench: ${name}`, async () => {
    const { runs, warnings, backend } = await bench(more);
    const printed = warnings.filter((warning) => warning.startsWith('trtexec printed'));
    assert.deepEqual(printed, []);
    for (const run of runs) {
      assert.ok(run.gpuMs.count >= 10);
      assert.equal(run.mode.kind, more.transfers ? 'with-transfers' : 'gpu-only');
      assert.equal(run.mode.graph, more.graph ?? true);
      assert.equal(run.endToEndMs !== null, more.transfers ?? false);
    }
    return {
      backend,
      gpuMs: runs.map(({ gpuMs }) => gpuMs.median),
      qps: runs.map(({ qps }) => Math.round(qps)),
      doubts: runs.map(({ doubts }) => doubts.map(({ rule }) => rule)),
    };
  });
}

if (major <= 8) skip('a budget for streamed weights', 'TensorRT has weight streaming from 10.0 on');
else
  await check('a budget for streamed weights: trtexec sets what was asked, as trtforge does', async () => {
    const streamed = join(folder, 'streamed.engine');
    const wishes = {
      model: writeLayers(folder, 'wide', 2, 2048),
      target: 'tensorrt',
      toolchain: found,
      profiles: ['x:1x2048/8x2048/16x2048'],
      store: false,
      remote: false,
      timingCache: null,
      settings: { flags: ['weight-streaming'], optimizationLevel: 1 },
      output: streamed,
    };
    await buildOrLoad(wishes, { environment });
    const { streamableWeightsBytes: streamable } = await loadedFacts(addon, toolchain, streamed);
    assert.ok(streamable > 0);
    const half = Math.floor(streamable / 2);
    const measured = (weightBudget, measurer) =>
      bench(
        { graph: false },
        { kind: 'optimum' },
        { engine: streamed, ...(weightBudget === undefined ? {} : { weightBudget }) },
        measurer,
      );
    const all = await measured(undefined);
    assert.equal(all.subject.streamableWeightsBytes, streamable);
    assert.equal(all.subject.weightBudgetBytes, streamable);
    const part = await measured(half);
    assert.equal(part.subject.weightBudgetAsked, half);
    assert.equal(part.subject.weightBudgetBytes, half);
    const ours = await measured(half, benchEngine);
    assert.equal(ours.subject.weightBudgetBytes, half);
    const least = await measured(0);
    assert.equal(least.subject.weightBudgetBytes, 0);
    const { subject: chosen } = await measured('automatic');
    assert.equal(chosen.weightBudgetAsked, 'automatic');
    assert.ok(chosen.weightBudgetBytes >= 0 && chosen.weightBudgetBytes <= streamable);
    // Without a passport nobody knows before trtexec runs, and trtexec says nothing of weights that are not streamed.
    const bare = join(folder, 'bare.engine');
    copyFileSync(engine, bare);
    const shapes = { kind: 'shapes', shapes: new Map([['x', [8, 256]]]) };
    const why = /not built with weight streaming/;
    await refused('TF_OPTION_UNSUPPORTED', why, bench({}, shapes, { engine: bare, weightBudget: 1024 }));
    return {
      streamable,
      automatic: chosen.weightBudgetBytes,
      gpuMs: [all, part, ours, least].map(({ gpuMs }) => gpuMs.median),
    };
  });

await check('all four exports are read', async () => {
  const at = (name) => join(folder, name);
  const exports = {
    times: at('times.json'),
    profile: at('profile.json'),
    layers: at('layers.json'),
    output: at('output.json'),
  };
  const run = await runTrtexec(
    {
      trtexec,
      arguments: benchArguments(
        {
          loadEngine: engine,
          shapes: { x: [2, 256] },
          profile: 0,
          ...mode,
          transfers: false,
          graph: false,
          spinWait: true,
          inputFiles: {},
          exports,
          runtime: 'full',
          allowHostCode: false,
          plugins: { static: [], dynamic: [], serialize: [] },
          device: 0,
          verbose: false,
        },
        toolchain.version,
      ),
      expectedVersion: toolchain.version,
      environment: libraries,
      logPath: at('exports.log'),
      doing: 'exporting',
    },
    { emit: () => {}, signal: AbortSignal.timeout(120_000) },
  );
  assert.equal(run.exitCode, 0, run.lastLines.join('\n'));
  const times = readExportedTimes(exports.times);
  assert.equal(times.computeMs.length, run.log.run.queries);
  const profile = readExportedProfile(exports.profile);
  assert.ok(profile.count > 0 && profile.layers.length > 0);
  const layers = readLayers(readFileSync(exports.layers, 'utf8'));
  assert.equal(layers.detail, 'detailed');
  const [output] = readExportedOutput(exports.output);
  assert.deepEqual(output.shape, [2, 256]);
  return { queries: times.computeMs.length, profiled: profile.layers.length, layers: layers.layers.length };
});

const running = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return (
          readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(folder) && Number(name) !== process.pid
        );
      } catch {
        return false;
      }
    });

await check('a build that takes too long is stopped, and nothing of it stays', async () => {
  const attempt = runTrtexec(
    {
      trtexec,
      arguments: [`--onnx=${deep}`, '--shapes=x:64x512', '--duration=-1'],
      expectedVersion: toolchain.version,
      environment: libraries,
      logPath: null,
      doing: 'measuring without end',
    },
    { emit: () => {}, signal: AbortSignal.timeout(4000) },
  );
  const facts = await refused('TF_CANCELLED', /measuring without end/, attempt);
  assert.deepEqual(running(), []);
  return facts;
});

await check('a build is cancelled in the middle', async () => {
  const stopping = new AbortController();
  let askedAt = 0;
  const emit = (event) => {
    if (askedAt !== 0 || event.type !== 'phase-start' || event.phase !== 'choose kernels') return;
    askedAt = performance.now();
    stopping.abort();
  };
  const attempt = build(deepRecipe, { modelPath: deep }, { emit, signal: stopping.signal });
  const facts = await refused('TF_CANCELLED', /ancelled/, attempt);
  assert.deepEqual(running(), []);
  return { ...facts, stoppedAfterMs: Math.round(performance.now() - askedAt) };
});

await check('an unknown operator is told with trtexec’s words', () =>
  refused(
    'TF_MODEL_REJECTED',
    /Frobnicate|parse/i,
    build({}, { modelPath: writeLayers(folder, 'odd', 1, 256, 'Frobnicate') }),
  ),
);

await check('an option of another version is refused before it runs', () =>
  major >= 10
    ? refused(
        'TF_OPTION_UNSUPPORTED',
        /have it|has it|No version/,
        build({ previewFeatures: ['faster-dynamic-shapes-0805'] }),
      )
    : refused('TF_OPTION_UNSUPPORTED', /has it/, build({ stronglyTyped: true })),
);

await check('a file that is no plan is told with trtexec’s words', async () => {
  const path = join(folder, 'no.plan');
  writeFileSync(path, 'this is not a plan, and it is long enough to hold a header of one');
  const run = await runTrtexec(
    {
      trtexec,
      arguments: [`--loadEngine=${path}`],
      expectedVersion: null,
      environment: libraries,
      logPath: null,
      doing: 'loading a text',
    },
    { emit: () => {}, signal: AbortSignal.timeout(60_000) },
  );
  assert.notEqual(run.exitCode, 0);
  // 10.6 says FAILED for a short text and dies of a signal over a longer one.
  assert.ok(run.log.outcome === 'failed' || run.signal !== null, `${run.log.outcome}, exit ${run.exitCode}`);
  return { signal: run.signal, errors: run.log.errors.map(({ message }) => message).slice(0, 2) };
});

if (major <= 8) skip('strongly typed FP16', '8.6 has no strongly typed networks');
finish();
