// Every figure that trtforge promises of a GPU beside its peer, in one run: rounds in turns, medians, ratios. Nothing is asserted: the report says which
// limit is met. A case that fails, and a peer that is missing, is said by name and stops no other case.
//
//   npm run build && npm run build:native && npm run build:examples
//   TENSORRT_HOME=/tmp/tensorrt TRTEXEC=/tmp/tensorrt/bin/trtexec PYTHON=python3 node bench/gpu/main.mjs --out results
//
//   --only CASE      gpu-time, throughput, calls, closed-loop, fp16, build, load, quantisation, feed; may be repeated
//   --rounds N       rounds of each comparison (default 3)
//   --work FOLDER    where models and plans are kept for the next run (default OUT/work)
//   --resnet50 FILE, --encoder FILE   FP32 models in place of generated ones (also RESNET50, ENCODER)
//
// PYTHON names a Python that imports tensorrt or tensorrt_bindings and numpy. Exit code 0 when the run ended, 3 without GPU or TensorRT.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { asked } from '../../scripts/phases.mjs';
import { build } from './cases/build.mjs';
import { calls } from './cases/calls.mjs';
import { closedLoop } from './cases/closed-loop.mjs';
import { feed } from './cases/feed.mjs';
import { fp16 } from './cases/fp16.mjs';
import { gpuTime } from './cases/gpu-time.mjs';
import { load } from './cases/load.mjs';
import { quantisation } from './cases/quantisation.mjs';
import { throughput } from './cases/throughput.mjs';
import { openMachine } from './machine.mjs';
import { markdown } from './report.mjs';

// Images are decoded on libuv's threads, whose number is read once: as many as the command line has.
if (process.env.UV_THREADPOOL_SIZE === undefined) {
  const env = { ...process.env, UV_THREADPOOL_SIZE: String(Math.max(4, availableParallelism())) };
  process.exit(spawnSync(process.execPath, process.argv.slice(1), { env, stdio: 'inherit' }).status ?? 1);
}

const cases = {
  'gpu-time': gpuTime,
  throughput,
  calls,
  'closed-loop': closedLoop,
  fp16,
  build,
  load,
  quantisation,
  feed,
};
const options = {
  only: { type: 'string', multiple: true },
  rounds: { type: 'string', default: '3' },
  out: { type: 'string', default: 'bench-gpu' },
  work: { type: 'string' },
  resnet50: { type: 'string' },
  encoder: { type: 'string' },
};
const { values } = asked(() => parseArgs({ options }));
const unknown = (values.only ?? []).filter((name) => !(name in cases));
const rounds = Number(values.rounds);
if (unknown.length > 0 || !Number.isSafeInteger(rounds) || rounds < 1) {
  console.error(`Cases are ${Object.keys(cases).join(', ')}; rounds are a whole number from 1.`);
  process.exit(2);
}

const out = resolve(values.out);
const work = resolve(values.work ?? join(out, 'work'));
for (const folder of [out, work]) mkdirSync(folder, { recursive: true });
const machine = await openMachine({ work, rounds, resnet50: values.resnet50, encoder: values.encoder });
if (machine === undefined) process.exit(3);

const report = { schema: 'trtforge.bench-gpu/1', at: new Date().toISOString(), ...machine.facts, cases: [] };
const save = () => {
  writeFileSync(join(out, 'bench-gpu.json'), `${JSON.stringify(report, null, 1)}\n`);
  writeFileSync(join(out, 'bench-gpu.md'), markdown(report));
};
for (const name of values.only ?? Object.keys(cases)) {
  const started = performance.now();
  const figures = [];
  const problems = [];
  /** A case tells each figure as soon as it has it, so that a later failure costs only what follows. */
  const tell = (figure) => {
    figures.push(figure);
    console.log(JSON.stringify({ case: name, ...figure }));
  };
  const problem = (text) => {
    problems.push(text);
    console.log(JSON.stringify({ case: name, problem: text }));
  };
  try {
    await cases[name](machine, tell, problem);
  } catch (error) {
    problem(`${error.code ?? error.name}: ${error.message}`);
  }
  report.cases.push({ name, seconds: (performance.now() - started) / 1000, figures, problems });
  save();
}
await machine.close();
console.log(`${join(out, 'bench-gpu.md')}, ${join(out, 'bench-gpu.json')}`);
