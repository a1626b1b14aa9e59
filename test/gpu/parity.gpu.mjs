// What `trtforge stream verify` reports of real engines on a real GPU, by the command line alone as a user has it: a recorded stream, engines with and
// without TF32 and in FP16, the task decoded by a bundle, and the gate. One JSON line per check.
//
//   npm run build && npm run build:examples && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/parity.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readContract } from '../../dist/formats/contract/file.js';
import { parityResultSchema } from '../../dist/products/streaming/verify/result.js';
import { contractProfile, openChecks, programsIn } from './harness.mjs';

const { major, folder, check, skip, finish } = openChecks();
const SIZE = 'small';
const CHUNKS = '60';
const at = (name) => join(folder, name);
const model = at('encoder_streaming.onnx');
const contract = at('encoder_streaming.contract.json');

if (major < 10) {
  skip('what verify tells of engines', 'lengths are int64, which TensorRT has from 10 on');
  finish();
}

const { ran, trtforge } = programsIn(folder);

await check('a model, two bundles that could decode it, and a recording', () => {
  const made = (words) => ran('build/examples/models/main.js', words);
  made(['streaming-encoder', '--size', SIZE, '-o', folder]);
  made(['parakeet', '--size', SIZE, '-o', at('bundle')]);
  const { chunks } = trtforge([
    ...['stream', 'record', model, '--contract', contract, '--chunks', CHUNKS],
    ...['--seed', '42', '-o', at('reference')],
  ]);
  assert.equal(chunks, Number(CHUNKS));
});

/** The contract's first profile as words of the command line. */
function profileWords() {
  const dims = (range) => [range.min, range.opt, range.max].map((all) => all.join('x')).join('/');
  const [first] = readContract(contract).profiles;
  return Object.entries(contractProfile(first))
    .map(([name, range]) => `${name}:${dims(range)}`)
    .join(',');
}

const wishes = {
  exact: ['--builder-config', 'flags=no-tf32'],
  tf32: [],
  fp16: ['--precision', 'fp16'],
};
await check('three engines, built by the command line', () => {
  const ms = {};
  for (const [name, words] of Object.entries(wishes)) {
    const built = trtforge([
      ...['build', model, '--target', 'tensorrt', '--profile', profileWords(), '--no-cache'],
      ...['-o', at(`${name}.engine`), ...words],
    ]);
    ms[name] = Math.round(built.buildMs ?? Number.NaN);
  }
  return { ms };
});

/** Verifies an engine in closed loop; the result is kept under the engine's name for the gate and for runs beside it. */
function verify(name, ...words) {
  const result = trtforge(
    [
      ...['stream', 'verify', at(`${name}.engine`), '--reference', at('reference'), '--contract', contract],
      ...['--mode', 'closed-loop', ...words],
    ],
    { codes: [0, 1] },
  );
  writeFileSync(at(`${name}.json`), JSON.stringify(result));
  const { exitCode, ...parity } = result;
  assert.equal(parityResultSchema.safeParse(parity).error, undefined);
  assert.equal(result.state.place, 'device', result.state.why ?? '');
  assert.equal(result.verdicts.contract, 'pass');
  return { ...result, ids: result.explanations.map(({ id }) => id) };
}
const decoded = ['--decoder', at('bundle/model_meta.json')];

await check('without TF32: numbers, contract and task agree', () => {
  const { verdicts, task, drift, outcome, memory, times } = verify('exact', ...decoded);
  assert.deepEqual(verdicts, { contract: 'pass', numeric: 'pass', task: 'pass' });
  assert.equal(outcome, 'pass');
  assert.equal(task.different, 0);
  assert.ok(task.emitted.reference > 0 && task.emitted.equal, JSON.stringify(task.emitted));
  assert.equal(drift.passRate, 1);
  assert.equal(memory.planBytes, statSync(at('exact.engine')).size);
  // The weights at least are on the GPU.
  assert.ok(memory.gpuBytes > memory.planBytes / 2 && memory.peakHostBytes > 0, JSON.stringify(memory));
  assert.ok(times.recorded.p50 > 0 && times.overRecorded > 0, JSON.stringify(times));
  return {
    max: drift.max,
    decisions: task.decisions,
    emitted: task.emitted.reference,
    memory,
    overRecorded: times.overRecorded,
  };
});

await check('with TF32: beside the engine without it, TF32 is named as the cause', () => {
  const { verdicts, task, ids, drift } = verify('tf32', ...decoded, '--beside', at('exact.json'));
  assert.equal(verdicts.numeric, 'fail');
  assert.ok(ids.includes('tf32-is-the-cause'), ids.join(' '));
  return { max: drift.max, verdicts, decisions: task.decisions, different: task.different, explained: ids };
});

await check('FP16: the task is judged where the numbers do not pass', () => {
  const { verdicts, task, ids, drift } = verify('fp16', ...decoded);
  assert.equal(verdicts.numeric, 'fail');
  assert.ok(['pass', 'fail'].includes(verdicts.task));
  for (const { referenceMargin } of task.differences) assert.ok(referenceMargin >= 0);
  return {
    max: drift.max,
    verdicts,
    decisions: task.decisions,
    different: task.different,
    smallestMargin: task.smallestMargin,
    differences: task.differences.slice(0, 3),
    explained: ids,
  };
});

await check('the gate: yes to the engine without TF32, no to the one with it', () => {
  writeFileSync(at('gate.yaml'), 'schema: trtforge.gate-policy/1\nextends: streaming-parity\n');
  const judged = (name, codes) => trtforge(['gate', at('gate.yaml'), at(`${name}.json`)], { codes });
  assert.equal(judged('exact', [0]).outcome, 'pass');
  const { outcome, findings } = judged('tf32', [1]);
  assert.equal(outcome, 'fail');
  const missed = findings.filter((each) => each.outcome === 'fail').map((each) => each.check);
  // One decision of nearly equal scores is enough for the task to fail as well.
  const { verdicts } = JSON.parse(readFileSync(at('tf32.json'), 'utf8'));
  const own = Object.values(verdicts).filter((verdict) => verdict === 'fail');
  assert.ok(own.length > 0);
  assert.deepEqual(missed, [
    ...own.map(() => 'own-outcome'),
    'encoder-error',
    ...(verdicts.task === 'fail' ? ['task'] : []),
  ]);
  return { missed };
});

await check('the summary that scripts of the streaming encoder read', () => {
  const summary = at('trt_parity_60_closed_loop.json');
  verify('exact', '--summary-json', summary, '--report', at('parity.html'));
  const { total_chunks, passed } = JSON.parse(readFileSync(summary, 'utf8'));
  assert.deepEqual([total_chunks, passed], [Number(CHUNKS), Number(CHUNKS)]);
  assert.match(readFileSync(at('parity.html'), 'utf8'), /<svg/);
});

finish();
