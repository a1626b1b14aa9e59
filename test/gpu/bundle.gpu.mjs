// Builds a generated speech bundle (encoder, predictor, joint network) with a real TensorRT, runs its engines on a real GPU, decodes through all three, and
// prints one JSON line per check.
//
//   npm run build && npm run build:examples && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/bundle.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// TRTFORGE_FULL=1 also builds the bundle of 0.6 B parameters (2.5 GB of weights; it needs 5 GB of disk and several minutes).
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { modelFamilies } from '../../build/examples/models/catalogue.js';
import { openSupervisedEngine } from '../../dist/engines/runtime/tensorrt/supervised-engine.js';
import { checkChain } from '../../dist/products/bundle/chained-check.js';
import { forgeBundle } from '../../dist/products/bundle/forge-bundle.js';
import { bundleReportSchema } from '../../dist/products/bundle/result.js';
import { initializer, openChecks, value, writeModel } from './harness.mjs';

const { toolchain, gpu, major, folder, check, skip, finish } = openChecks();
const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') };
const hasOnnxRuntime = (() => {
  try {
    createRequire(import.meta.url).resolve('onnxruntime-node');
    return true;
  } catch {
    return false;
  }
})();

const generate = (size) =>
  modelFamilies.parakeet.write(size, join(folder, size), { seed: 1, external: false });
const outdir = (name) => join(folder, 'engines', name);
const build = async (name, more = {}) => {
  const report = await forgeBundle(
    {
      meta: join(folder, 'small', 'model_meta.json'),
      outdir: outdir(name),
      toolchain,
      target: 'tensorrt',
      precision: 'fp16',
      store: false,
      ...more,
    },
    { environment },
  );
  assert.deepEqual(bundleReportSchema.parse(report), report);
  assert.deepEqual(
    JSON.parse(readFileSync(join(outdir(name), 'build_report.json'), 'utf8')),
    JSON.parse(JSON.stringify(report)),
  );
  return report;
};
const passed = (report) => {
  assert.equal(report.outcome, 'pass', report.error ?? JSON.stringify(report.checks));
  return report;
};
const facts = ({ components, total_sec }) => ({
  totalSec: total_sec,
  components: components.map((one) => ({
    component: one.component,
    status: one.status,
    buildSec: one.timings_sec.build,
    bytes: one.engine_bytes,
    layers: one.layers,
    timingCache: one.timing_cache_state,
    peakMemoryBytes: one.forge?.build?.passport.built.peakMemoryBytes ?? null,
    smokeMs: one.smoke === null ? null : Math.round(one.smoke.ms),
  })),
});
const decoded = (checks) =>
  checks.map((one) => ({
    candidate: one.candidate,
    decisions: one.decisions,
    emitted: one.emitted_tokens,
    tokens: one.token_agreement,
    durations: one.duration_agreement,
    equal: `${one.equal_sequences} of ${one.samples}`,
    smallestMargin: one.smallest_margin,
    drifts: one.drifts,
    relativeRms: Object.fromEntries(
      one.components.map(({ component, relative_rms }) => [component, relative_rms]),
    ),
    lowMargin: one.differences.length,
  }));

if (major === 8) {
  skip('a bundle', 'the generated models are of opset 18, which TensorRT 8.6 does not parse');
  finish();
}

await generate('small');

await check('a bundle becomes engines that ran here, with the GPU in its report', async () => {
  const report = passed(await build('fp16'));
  assert.deepEqual(
    report.components.map(({ status }) => status),
    ['built', 'built', 'built'],
  );
  assert.ok(existsSync(report.timing_cache));
  for (const { smoke, env, logs } of report.components) {
    assert.equal(smoke.ran, 'engine');
    assert.ok(smoke.outputs.every(({ finite }) => finite));
    assert.equal(env.gpu, gpu.name);
    assert.equal(env.compute_capability, (gpu.computeCapability / 10).toFixed(1));
    assert.match(env.driver, /^\d+/);
    assert.ok(statSync(logs.build).size > 100 && statSync(logs.smoke).size > 50);
  }
  return facts(report);
});

await check('nothing is built twice, and one component alone finds the timing cache', async () => {
  const kept = passed(await build('fp16'));
  assert.deepEqual(
    kept.components.map(({ status }) => status),
    ['kept', 'kept', 'kept'],
  );
  const part = passed(await build('fp16', { only: ['joint'], forceRebuild: true }));
  assert.deepEqual(
    part.components.map(({ status }) => status),
    ['earlier', 'earlier', 'built'],
  );
  assert.equal(part.components[2].timing_cache_state, 'hit');
  return { keptSec: kept.total_sec, ...facts(part) };
});

if (hasOnnxRuntime)
  await check('the engines decode as the models do on ONNX Runtime', async () => {
    const report = passed(await build('fp16', { check: { seed: 0, samples: 3 } }));
    assert.deepEqual(
      report.checks.map(({ candidate }) => candidate),
      ['typed models', 'engines'],
    );
    return { checks: decoded(report.checks) };
  });
else skip('the engines decode as the models do on ONNX Runtime', 'onnxruntime-node is not installed here');

await check(
  'engines of FP16 and BF16 decode as engines of the models as they are, component by component',
  async () => {
    passed(await build('as-is', { precision: 'as-is', settings: { flags: ['no-tf32'] } }));
    passed(await build('bf16', { precision: 'bf16' }));
    const meta = JSON.parse(readFileSync(join(folder, 'small', 'model_meta.json'), 'utf8'));
    const shapes = (report) => (name) =>
      new Map(Object.entries(report.components.find(({ component }) => component === name).profile.min));
    const of = shapes(JSON.parse(readFileSync(join(outdir('as-is'), 'build_report.json'), 'utf8')));
    const open = (name) => (component) =>
      openSupervisedEngine(join(outdir(name), `${component}.engine`), { toolchain, environment });
    const request = {
      facts: {
        tokenLogits: meta.joint_vocab_size - meta.duration_values.length,
        blankId: meta.blank_id,
        durations: meta.duration_values,
        smallest: { encoder: of('encoder'), predictor: of('predictor'), joint: of('joint') },
        timeAxis: 2,
        tokenAxis: 2,
      },
      features: { shape: [1, meta.features.n_mels, 256], frames: 256 },
      seed: 1,
      samples: 3,
    };
    const run = async (precision) => {
      const candidates = [{ name: 'engines', open: open(precision) }];
      const [found] = await checkChain({ ...request, precision }, open('as-is'), candidates, {
        emit: () => {},
      });
      assert.equal(found.outcome, 'pass', found.reasons.join(' '));
      return found;
    };
    return { checks: decoded([await run('fp16'), await run('bf16')]) };
  },
);

if (toolchain.trtexec === null) skip('trtexec builds the bundle', 'TRTEXEC names no trtexec');
else
  await check('trtexec builds the bundle, and its engines run', async () => {
    const report = passed(await build('trtexec', { builder: 'trtexec', only: ['predictor', 'joint'] }));
    for (const { commands, smoke, logs } of report.components) {
      assert.match(commands.build[0], /trtexec/);
      assert.equal(smoke.ran, 'engine');
      assert.match(readFileSync(logs.build, 'utf8'), /&&&& PASSED/);
    }
    return facts(report);
  });

await check(
  'a profile that the graph cannot take is an error that names the node, and leaves no engine',
  async () => {
    writeModel(folder, 'fixed', {
      inputs: [value('x', 1, ['batch', 'time'])],
      outputs: [value('y', 1, ['rows', 8, 8])],
      initializers: [initializer('target', 7, [3], BigInt64Array.of(-1n, 8n, 8n))],
      nodes: [
        { opType: 'Reshape', name: 'view', input: ['x', 'target'], output: ['rows'] },
        { opType: 'Relu', name: 'relu', input: ['rows'], output: ['y'] },
      ],
    });
    const meta = join(folder, 'fixed_meta.json');
    const profilesFile = join(folder, 'fixed.yaml');
    writeFileSync(meta, '{}');
    writeFileSync(profilesFile, 'components: { fixed: { symbols: { time: 16/64/256 } } }');
    const report = await build('fixed', { meta, onnxDir: folder, profilesFile, precision: 'as-is' });
    assert.equal(report.failure?.code, 'TF_PROFILE_INVALID', JSON.stringify(report.failure));
    assert.match(
      report.failure.message,
      hasOnnxRuntime ? /axis 1 \("time"\) of input "x" = 16/ : /impossible for its graph/,
    );
    assert.ok(!existsSync(join(outdir('fixed'), 'fixed.engine')));
    return { message: report.failure.message.split('\n')[0] };
  },
);

if (process.env.TRTFORGE_FULL === '1')
  await check('the bundle of 0.6 B parameters builds, runs and decodes', async () => {
    const generated = performance.now();
    await generate('full');
    const generateMs = Math.round(performance.now() - generated);
    const more = { meta: join(folder, 'full', 'model_meta.json') };
    const report = passed(
      await build('full', { ...more, ...(hasOnnxRuntime ? { check: { seed: 0, samples: 3 } } : {}) }),
    );
    rmSync(join(folder, 'full'), { recursive: true });
    return { generateMs, ...facts(report), checks: decoded(report.checks) };
  });
else skip('the bundle of 0.6 B parameters builds, runs and decodes', 'TRTFORGE_FULL is not 1');

finish();
