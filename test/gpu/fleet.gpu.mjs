// Engines of two versions of TensorRT in one store, on a GPU: `fleet work` builds them, lets them prove themselves, and keeps none whose policy fails; nodes of
// another GPU are named; `fleet rehearse` builds, verifies and measures the new engines beside the old ones.
// TENSORRT_OLD is the libnvinfer.so.8 of an older TensorRT; without it no upgrade is rehearsed.
//
//   TENSORRT_HOME=/tmp/tensorrt TENSORRT_OLD=/tmp/tensorrt8/lib/libnvinfer.so.8 LD_LIBRARY_PATH=/tmp/tensorrt/lib:/tmp/tensorrt8/lib \
//     node test/gpu/fleet.gpu.mjs
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openChecks, programsIn, runtimeAt } from './harness.mjs';

const { folder, gpu, toolchain, check, skip, finish } = openChecks();
const { ran, trtforge } = programsIn(folder);
const at = (name) => join(folder, name);
const sm = `sm_${gpu.computeCapability}`;
const newVersion = toolchain.version;
const oldVersion = process.env.TENSORRT_OLD ? runtimeAt(process.env.TENSORRT_OLD).version : '8.6.1.6';

for (const model of ['resnet50', 'transformer-encoder', 'matmul-stack'])
  ran('build/examples/models/main.js', [model, '--size', 'tiny', '-o', at(`${model}.onnx`)]);
const policy = (name, text) => writeFileSync(at(name), `schema: trtforge.gate-policy/1\n${text}`);
const limit = (ms) => `
checks:
  - { id: gpu-time, result: { schema: trtforge.bench/1 }, field: 'runs[0].gpuMs.median', fail: { above: ${ms} } }
  - { id: model, result: { schema: trtforge.verify/1 }, field: outcome, fail: { is-not: pass } }
`;
policy('never.yaml', limit(0.000001));
policy('usual.yaml', limit(1000));
policy(
  'waived.yaml',
  `extends: rehearsal\nchecks: [{ id: gpu-time, fail: { above: 0.01 } }]\nwaivers: [{ check: gpu-time, result: '*', reason: measured again later, expires: '2999-01-01' }]\n`,
);
policy('strict.yaml', 'extends: rehearsal\nchecks: [{ id: gpu-time, fail: { above: 0.01 } }]\n');
writeFileSync(
  at('engines.yaml'),
  `store: store
targets:
  old: { target: 'tensorrt@${oldVersion}:${sm}' }
  new: { target: 'tensorrt@${newVersion}:${sm}' }
  elsewhere: { target: 'tensorrt@${newVersion}:sm_80' }
models:
  - { model: resnet50.onnx, batch: 1/4/8, precision: fp16, targets: [old] }
  - { model: transformer-encoder.onnx, dim: [batch=1/2/4, sequence=16/32/64], targets: [old] }
  - { model: matmul-stack.onnx, batch: 1/8/16, targets: [old, elsewhere] }
  - { model: matmul-stack.onnx, batch: 4, gate: never.yaml, targets: [new] }
  - { model: matmul-stack.onnx, batch: 8, gate: usual.yaml, targets: [new] }
`,
);
const shown = ({ index, did, code, check: answer, gate, exitCode, gpu: name, engine, reasons }) => ({
  index,
  did,
  code,
  answer,
  gate: gate?.outcome ?? null,
  exitCode,
  gpu: name,
  bytes: engine?.bytes,
  buildMs: engine && Math.round(engine.buildMs),
  reasons,
});
let plan;

await check('a fleet of two versions is planned', () => {
  plan = trtforge(['fleet', 'plan', 'engines.yaml']);
  assert.deepEqual([...new Set(plan.jobs.map(({ state }) => state))], ['missing']);
  return { jobs: plan.jobs.map(({ name }) => name) };
});
await check('another GPU is named', () => {
  const [job] = plan.jobs.filter(({ on }) => on === 'elsewhere');
  const work = trtforge(['fleet', 'work', plan.address, '--jobs', String(job.index)], { codes: [3] });
  assert.equal(work.jobs[0].code, 'TF_TARGET_UNAVAILABLE');
  return { jobs: work.jobs.map(shown) };
});
await check('a policy decides what is kept', () => {
  const gated = plan.jobs.filter(({ on }) => on === 'new').map(({ index }) => index);
  const work = trtforge(['fleet', 'work', plan.address, '--jobs', gated.join(',')], { codes: [1] });
  assert.deepEqual(
    work.jobs.map(({ did, gate }) => [did, gate.outcome]),
    [
      ['refused', 'fail'],
      ['built', 'pass'],
    ],
    JSON.stringify(work.jobs.map(shown)),
  );
  const status = trtforge(['fleet', 'status', 'engines.yaml'], { codes: [1] });
  assert.deepEqual(
    gated.map((index) => status.jobs[index].state),
    ['refused', 'have'],
  );
  return { jobs: work.jobs.map(shown) };
});
if (!process.env.TENSORRT_OLD) {
  skip('an upgrade is rehearsed', 'TENSORRT_OLD names no library');
  finish();
}
await check('old engines are built where their version is, and give their known answers', () => {
  const jobs = plan.jobs.filter(({ on }) => on === 'old').map(({ index }) => index);
  const work = trtforge(['fleet', 'work', plan.address, '--jobs', jobs.join(',')], { codes: [0, 1, 4] });
  assert.deepEqual(
    work.jobs.map(({ did, check: answer }) => [did, answer]),
    jobs.map(() => ['built', 'pass']),
    JSON.stringify(work.jobs.map(shown)),
  );
  return { jobs: work.jobs.map(shown) };
});
const rehearse = (words, codes) =>
  trtforge(
    [
      'fleet',
      'rehearse',
      'engines.yaml',
      '--from',
      `tensorrt@${oldVersion}`,
      '--to',
      `tensorrt@${newVersion}`,
      ...words,
    ],
    { codes },
  );
await check('an upgrade is rehearsed over three engines', () => {
  const found = rehearse(['-o', 'upgrade.html'], [0, 1, 4]);
  assert.equal(found.engines.length, 3);
  for (const { verify, ratio, after, before } of found.engines)
    assert.ok(
      verify !== null && ratio !== null && after !== null && before !== null,
      JSON.stringify(found.engines),
    );
  if (process.env.OUT) copyFileSync(at('upgrade.html'), join(process.env.OUT, 'upgrade.html'));
  return { outcome: found.outcome, reasons: found.reasons, engines: found.engines };
});
await check('a limit that is missed is no-go, and go with a waiver', () => {
  const strict = rehearse(['--gate', 'strict.yaml'], [1]);
  const waived = rehearse(['--gate', 'waived.yaml'], [0, 1, 4]);
  assert.ok(waived.gate.counts.waived >= 3, JSON.stringify(waived.reasons));
  return { strict: strict.reasons, waived: [waived.outcome, waived.reasons] };
});
await check('the page of the upgrade shows every engine', () => {
  const page = readFileSync(at('upgrade.html'), 'utf8');
  for (const name of ['resnet50', 'transformer-encoder', 'matmul-stack']) assert.ok(page.includes(name));
  return { bytes: page.length };
});
finish();
