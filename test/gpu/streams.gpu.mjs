// Sizes streams with a real TensorRT on a real GPU, through dist/: the whole flow, resumed, and read by the scripts' own grep
// lines; prints one JSON line per check.
//
//   npm run build && npm run build:native && npm run build:examples
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/streams.gpu.mjs      (TRTEXEC=/tmp/tensorrt/bin/trtexec for the part with trtexec)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readPassport } from '../../dist/engines/identity/passport.js';
import { streamsResultSchema } from '../../dist/products/deepstream/result.js';
import { openChecks } from './harness.mjs';

const { folder, major, check, skip, finish } = openChecks();
const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const model = join(folder, 'models/r50/model/r50.onnx');
execFileSync(process.execPath, [
  path('../../build/examples/models/main.js'),
  'resnet50',
  '--size',
  'tiny',
  '-o',
  model,
]);

/** Two engines at most, a second each: the flow is what is checked here, not the figures. */
const QUICK = ['--max-batch', '8', '--max-batch-limit', '16', '--duration', '1', '--warm-up', '200'];
const WITHOUT_STORE = ['--no-cache'];

const streams = (...words) => deepstream('size', ...words);

function deepstream(...words) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path('../../dist/main.js'), 'deepstream', ...words, '--json'],
    {
      encoding: 'utf8',
      env: { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') },
      maxBuffer: 64 << 20,
    },
  );
  const answer =
    stdout === '' ? { error: { code: `exit ${status}`, message: stderr.slice(-2000) } } : JSON.parse(stdout);
  assert.equal(answer.error, undefined, `${answer.error?.code} ${answer.error?.message}`);
  assert.equal(streamsResultSchema.safeParse(answer).error, undefined);
  return answer;
}

const place = (...parts) => join(folder, 'models/r50', ...parts);
const grep = (pattern, log) =>
  execFileSync('bash', ['-c', `grep -oP '${pattern}' "$1" | tail -1`, 'bash', log], {
    encoding: 'utf8',
  }).trim();

let first;
await check('two engines are built and measured', () => {
  first = streams(model, ...QUICK, ...WITHOUT_STORE, '--fps', '0.1');
  assert.deepEqual(
    first.engines.map(({ maxBatch, source }) => [maxBatch, source]),
    [
      [8, 'built'],
      [16, 'built'],
    ],
  );
  assert.equal(first.stop.reason, 'max-batch-limit');
  assert.equal(first.peakGpuStreams, Math.floor(first.engines.at(-1).peak.imagesPerSecond / 0.1));
  assert.ok(
    first.engines.every(
      ({ peak }) =>
        peak.contextBytes !== null &&
        peak.gpuBytes > 0 &&
        peak.gpuP99Ms >= peak.gpuMeanMs * 0.5 &&
        peak.gpuMsPerImage === peak.gpuMeanMs / peak.batch,
    ),
  );
  assert.deepEqual(
    readPassport(place('benchmarks/engines/r50_dynamic_b8.engine')).identity.document.recipe.profiles[0][
      first.model.input
    ].opt[0],
    8,
  );
  assert.ok(existsSync(place('benchmarks/engines/timing.cache')));
  return {
    imagesPerSecond: first.engines.map(({ peak }) => peak.imagesPerSecond),
    steps: first.steps,
    warnings: first.warnings,
  };
});

await check('the scripts’ own grep lines read the logs', () => {
  const log = place('benchmarks/b16/trtexec_b16.log');
  const { peak } = first.engines[1];
  assert.equal(Number(grep('Throughput:\\s*\\K[0-9.]+', log)), peak.qps);
  assert.equal(Number(grep('GPU Compute Time:.*mean = \\K[0-9.]+', log)), peak.gpuMeanMs);
  assert.equal(Number(grep('GPU Compute Time:.*percentile\\(99%\\) = \\K[0-9.]+', log)), peak.gpuP99Ms);
});

await check('a second call measures nothing', () => {
  const again = streams(model, ...QUICK, ...WITHOUT_STORE, '--fps', '0.1');
  assert.deepEqual(
    again.engines.map(({ source, peak }) => [source, peak.source]),
    [
      ['disk', 'disk'],
      ['disk', 'disk'],
    ],
  );
  assert.deepEqual(again.summary, first.summary);
});

await check('a lost log alone is measured again, on the engine that is there', () => {
  rmSync(place('benchmarks/b16/trtexec_b16.log'));
  const again = streams(model, ...QUICK, ...WITHOUT_STORE, '--fps', '0.1');
  assert.deepEqual(
    again.engines.map(({ source, peak }) => [source, peak.source]),
    [
      ['disk', 'disk'],
      ['disk', 'measured'],
    ],
  );
  return { before: first.engines[1].peak.qps, after: again.engines[1].peak.qps };
});

await check('the batches beside, with a CUDA graph', () => {
  const words = ['--sensitivity', '--graph', '--fps', '1000000'];
  const { sensitivity, stop, baseline } = streams(model, ...QUICK, ...WITHOUT_STORE, ...words);
  assert.equal(stop.reason, 'enough');
  assert.equal(baseline.graph, true);
  assert.ok(sensitivity.length >= 1);
  return {
    sensitivity: sensitivity.map(({ batch, imagesPerSecond }) => [batch, Math.round(imagesPerSecond)]),
  };
});

const trtexec = process.env.TRTEXEC ?? null;
if (trtexec === null || !existsSync(trtexec)) skip('with trtexec', 'TRTEXEC names no trtexec');
else
  await check('built and measured by trtexec, whose logs stay', () => {
    const words = [
      '--builder',
      'trtexec',
      '--with',
      'trtexec',
      '--name',
      'theirs',
      '--fresh',
      '--fps',
      '1000000',
    ];
    const theirs = streams(model, ...QUICK, ...WITHOUT_STORE, ...words);
    assert.equal(theirs.baseline.writtenBy, 'trtexec');
    const folderOf = join(folder, 'models/theirs/benchmarks/engines');
    assert.ok(readdirSync(folderOf).some((name) => /^r50_dynamic_build_\d{8}_\d{6}\.log$/.test(name)));
    const ours = first.engines[0].peak.imagesPerSecond;
    return { ratio: ours / theirs.engines[0].peak.imagesPerSecond, major };
  });

finish();
