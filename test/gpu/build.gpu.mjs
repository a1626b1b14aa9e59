// Builds and loads plans with a real TensorRT on a real GPU, through dist/ and build/trtforge.node, and prints one JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/build.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultRecipe } from '../../dist/engines/identity/recipe.js';
import { explaining, issuesOf } from '../../dist/quality/explain/failure.js';
import { buildWith, loadedFacts, openChecks, refused, value, writeLayers, writeModel } from './harness.mjs';

const { addon, toolchain, major, folder, check, finish } = openChecks();
const recipe = { stronglyTyped: major >= 10 };
const range = (min, opt, max) => ({ min, opt, max, values: false });
const profiles = [{ x: range([1, 64], [8, 64], [32, 64]) }, { x: range([33, 64], [64, 64], [128, 64]) }];
const small = writeLayers(folder, 'small', 2, 64);
const deep = writeLayers(folder, 'deep', 40, 256);
const planPath = join(folder, 'small.plan');
const build = (modelPath, more = {}, options = {}, rest = {}) =>
  buildWith(toolchain, modelPath, planPath, { ...recipe, profiles, ...more }, rest, options);
const inspect = (path) => loadedFacts(addon, toolchain, path);
await check('build with two profiles', async () => {
  const kinds = new Set();
  const outcome = await build(small, {}, { emit: ({ type }) => kinds.add(type) });
  const header = readFileSync(planPath).subarray(0, 28);
  assert.equal(header.toString('latin1', 0, 4), 'ftrt');
  assert.equal([...header.subarray(24, 27)].join('.'), toolchain.version.split('.').slice(0, 3).join('.'));
  assert.deepEqual(outcome.inputs, [{ name: 'x', dtype: 'float32', shape: [null, 64] }]);
  assert.equal(kinds.has('phase-start') && kinds.has('progress'), major >= 10, 'progress from 10.0 on');
  return {
    buildMs: Math.round(outcome.buildMs),
    bytes: outcome.bytes,
    peakMemoryBytes: outcome.peakMemoryBytes,
  };
});

await check('the plan loads, and its profiles are those asked for', async () => {
  const facts = await inspect(planPath);
  const [x, y] = facts.tensors;
  assert.deepEqual(
    { name: x.name, mode: x.mode, dtype: x.dtype, shape: x.shape },
    { name: 'x', mode: 'input', dtype: 0, shape: [-1, 64] },
  );
  assert.deepEqual(x.profiles, [
    { min: [1, 64], opt: [8, 64], max: [32, 64] },
    { min: [33, 64], opt: [64, 64], max: [128, 64] },
  ]);
  assert.equal(y.mode, 'output');
  assert.equal(facts.profiles, 2);
  assert.ok(facts.layers > 0 && facts.deviceMemoryBytes >= 0);
  return { layers: facts.layers, deviceMemoryBytes: facts.deviceMemoryBytes, auxStreams: facts.auxStreams };
});

await check('a file that is no plan is refused before the library sees it', async () => {
  const path = join(folder, 'no.plan');
  writeFileSync(path, 'this is not a plan, and it is long enough to hold a header of one');
  return refused('TF_PLAN_INVALID', /does not start like a plan/, inspect(path));
});

await check('timing cache: new, hit, rejected', async () => {
  const timingCachePath = join(folder, 'timing.cache');
  const cold = await build(
    deep,
    { profiles: [{ x: range([1, 256], [64, 256], [512, 256]) }] },
    {},
    { timingCache: timingCachePath },
  );
  const warm = await build(
    deep,
    { profiles: [{ x: range([1, 256], [64, 256], [512, 256]) }] },
    {},
    { timingCache: timingCachePath },
  );
  const cacheBytes = readFileSync(timingCachePath).length;
  writeFileSync(timingCachePath, 'of another version');
  const spoilt = await build(small, {}, {}, { timingCache: timingCachePath });
  // 8.6 prints of its own, valid cache that it "will not be used" when it means only the compiler's part of it.
  const again = major === 8 ? warm.timingCache : 'hit';
  assert.ok(['hit', 'rejected'].includes(again));
  assert.deepEqual([cold.timingCache, warm.timingCache, spoilt.timingCache], ['new', again, 'rejected']);
  return {
    warm: warm.timingCache,
    coldMs: Math.round(cold.buildMs),
    warmMs: Math.round(warm.buildMs),
    cacheBytes,
  };
});

await check('numbers and choices of a recipe are taken', async () => {
  const outcome = await build(small, {
    memoryPools: { ...defaultRecipe.memoryPools, workspace: 1 << 30 },
    optimizationLevel: 1,
    maxAuxStreams: 0,
    avgTimingIterations: 2,
    profilingVerbosity: 'detailed',
    hardwareCompatibility: 'ampere-plus',
    flags: ['no-tf32', 'sparse-weights', ...(major >= 10 ? ['strip-plan'] : [])],
    tacticSources: ['jit-convolutions', 'edge-mask-convolutions'],
  });
  const { auxStreams } = await inspect(planPath);
  assert.equal(auxStreams, 0);
  return { bytes: outcome.bytes, warnings: outcome.warnings };
});

await check('a weakly typed FP16 build, where there is one', async () => {
  if (major >= 11)
    return refused('TF_OPTION_UNSUPPORTED', /weakly typed/, build(small, { stronglyTyped: false }));
  const { bytes } = await build(small, { stronglyTyped: false, precision: 'fp16' });
  const { tensors } = await inspect(planPath);
  assert.equal(tensors.length, 2);
  return { bytes };
});

await check('an option of another version is refused before the build', () =>
  refused(
    'TF_OPTION_UNSUPPORTED',
    /have it|has it/,
    build(
      small,
      major >= 11 ? { tacticSources: ['cudnn'] } : { previewFeatures: ['multidevice-runtime-10-16'] },
    ),
  ),
);

await check('a wrong profile is our sentence', () =>
  refused('TF_PROFILE_INVALID', /no input z/, build(small, { profiles: [{ z: range([1], [1], [1]) }] })),
);

await check('an unknown operator is named', () =>
  refused('TF_MODEL_REJECTED', /Frobnicate|node 0/, build(writeLayers(folder, 'odd', 1, 64, 'Frobnicate'))),
);

await check(
  'an operator of another domain whose plug-in is not there: the node, the plug-in, and what helps',
  async () => {
    const modelPath = writeModel(folder, 'acme', {
      domains: ['acme'],
      inputs: [value('x', 1, ['batch', 64])],
      outputs: [value('y', 1, ['batch', 64])],
      nodes: [{ opType: 'AcmeGelu', domain: 'acme', name: 'block/gelu', input: ['x'], output: ['y'] }],
    });
    const attempt = explaining((emit) => build(modelPath, {}, { emit }), {
      emit: () => {},
      model: modelPath,
      version: toolchain.version,
    });
    const error = await attempt.then(
      () => assert.fail('an error was expected'),
      (reason) => reason,
    );
    assert.equal(error.code, 'TF_MODEL_REJECTED', error.message);
    // 8.6 gives the node's number only; the number is looked up in the model.
    assert.match(`${error.message} ${error.remedy}`, /block\/gelu.*AcmeGelu|AcmeGelu.*block\/gelu/s);
    const issues = issuesOf(error).map(({ id }) => id);
    assert.ok(issues.includes('plugin-not-found'), issues.join(', '));
    assert.match(error.remedy, /--plugin FILE/);
    return { issues, message: error.message.split('\n')[1] ?? error.message };
  },
);

await check('a build is cancelled in the middle', async () => {
  const stopping = new AbortController();
  let askedAt = 0;
  const emit = ({ type, message = '' }) => {
    if (
      askedAt !== 0 ||
      (major >= 10
        ? type !== 'phase-start'
        : !/Global timing cache|Local timing cache|Graph optimization/.test(message))
    )
      return;
    askedAt = performance.now();
    stopping.abort();
  };
  const options = { emit, signal: stopping.signal, graceMs: 120_000 };
  const attempt = build(
    deep,
    { profiles: [{ x: range([1, 256], [64, 256], [512, 256]) }], optimizationLevel: 5 },
    options,
  );
  const facts = await refused('TF_CANCELLED', /ancelled/, attempt);
  return { ...facts, stoppedAfterMs: Math.round(performance.now() - askedAt) };
});

finish();
