// What a profiler sees: a small model is built and run under a library that records the ranges of NVTX, one engine for each profiling verbosity. Phases of the
// build, calls with the engine's name and identity, and TensorRT's own ranges of layers stand in one record, each ended. One JSON line per check.
//
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/nvtx.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH; g++ or CXX compiles the recorder)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openChecks, programsIn, writeLayers } from './harness.mjs';

const { major, folder, check, skip, finish } = openChecks();
const { trtforge } = programsIn(folder);
const at = (name) => join(folder, name);
const source = fileURLToPath(new URL('../fakes/tensorrt/nvtx.cpp', import.meta.url));
const env = { NVTX_INJECTION64_PATH: at('records.so'), NVTX_RECORD: at('record') };
const RUNS = 20;

const compiler = process.env.CXX ?? 'g++';
const compiled = spawnSync(compiler, ['-std=c++17', '-fPIC', '-shared', source, '-o', at('records.so')], {
  encoding: 'utf8',
});
if (compiled.status !== 0) {
  skip(
    'all of it',
    `${compiler} does not compile the recorder: ${compiled.stderr ?? compiled.error?.message}`,
  );
  finish();
}

/** Runs a line under the recorder: its answer, and the ranges that it left, all of which ended. Layers are TensorRT's ranges within one of ours. */
function recorded(...line) {
  rmSync(at('record'), { force: true });
  const answer = trtforge(line, { env });
  const stacks = new Map();
  const open = new Set();
  const found = { answer, clients: 0, ours: [], spans: [], others: {}, inside: [] };
  for (const text of readFileSync(at('record'), 'utf8').trimEnd().split('\n')) {
    const [process, thread, what, domain, id, name] = text.split('\t');
    if (what === 'attach') found.clients++;
    if (what === 'start') open.add(`${process} ${id}`);
    if (what === 'start' && domain === '') found.spans.push(name);
    if (what === 'end') assert.ok(open.delete(`${process} ${id}`), `an end of what has not started: ${text}`);
    const place = `${thread} ${domain}`;
    const stack = stacks.get(place) ?? [];
    stacks.set(place, stack);
    if (what === 'pop') assert.ok(stack.length > 0, `an end of what has not begun: ${text}`);
    if (what === 'pop') stack.pop();
    if (what !== 'push') continue;
    stack.push(name);
    if (domain === '') found.ours.push(name);
    else found.others[domain] = (found.others[domain] ?? 0) + 1;
    if (domain !== '' && (stacks.get(`${thread} `) ?? []).length > 0) found.inside.push(name);
  }
  assert.deepEqual([...stacks.values()].flat(), []);
  assert.equal(open.size, 0);
  return found;
}

const model = writeLayers(folder, 'layers', 4, 64, 'Softmax');
const small = ['--target', 'tensorrt', '--batch', '1/4/8', '--no-cache'];
const labelOf = (engine) => {
  const { name, identity } = JSON.parse(readFileSync(`${engine}.passport.json`, 'utf8'));
  return `${name} ${identity.digest.slice(0, 12)}`;
};
const random = ['--inputs', 'random', '--shapes', 'x:4x64', '--iterations', String(RUNS)];
const run = (engine, ...more) => recorded('run', engine, ...random, ...more);
const count = (names, name) => names.filter((each) => each === name).length;

/** Names of layers as the inspector has them. */
let layers = [];
for (const verbosity of ['layer-names-only', 'detailed', 'none']) {
  const engine = at(`${verbosity}.engine`);
  await check(`${verbosity}: a build shows its steps and TensorRT's phases`, () => {
    const settings = [`profiling-verbosity=${verbosity}`, 'optimization-level=0'];
    const options = settings.flatMap((setting) => ['--builder-config', setting]);
    const { ours, spans, clients, others } = recorded('build', model, ...small, ...options, '-o', engine);
    assert.ok(ours.some((name) => name.startsWith('build ')) && ours.includes('parse'));
    assert.equal(spans.length > 0, major >= 10, 'phases');
    return { clients, ranges: ours.length, phases: [...new Set(spans)].slice(0, 10), others };
  });
  await check(`${verbosity}: each call is one range, TensorRT's are inside`, () => {
    const { ours, inside, others, clients } = run(engine, '--cuda-graph', 'never');
    assert.equal(count(ours, labelOf(engine)), RUNS);
    assert.equal(count(ours, `load ${labelOf(engine)}`), 1);
    if (verbosity === 'layer-names-only') {
      const listed = trtforge(['engine', 'layers', engine]).layers.map(({ name }) => name);
      layers = listed.filter((name) => name !== '');
      assert.ok(layers.length > 0, 'the inspector names no layers');
    }
    // The inspector's names go on: `mm0_myl0_1` is the range `mm0`.
    const marked = layers.filter((layer) => inside.some((name) => name !== '' && layer.startsWith(name)));
    const facts = { clients, others, layers: layers.length, marked: marked.length };
    const told = JSON.stringify({
      ...facts,
      layers: layers.slice(0, 10),
      inside: [...new Set(inside)].slice(0, 10),
    });
    if (verbosity === 'none') assert.equal(marked.length, 0, told);
    else assert.ok(marked.length > 0, told);
    return { ...facts, names: [...new Set(inside)].slice(0, 5) };
  });
}

await check('replays of a CUDA graph are ranges too; layers are marked while it is prepared', () => {
  const engine = at('layer-names-only.engine');
  const { ours, inside } = run(engine, '--cuda-graph', 'always');
  assert.equal(count(ours, labelOf(engine)), RUNS);
  return { inside: inside.length };
});

await check('a measurement has a range for every inference', () => {
  const engine = at('layer-names-only.engine');
  const modes = ['--duration', '0', '--warm-up', '0', '--iterations', String(RUNS)];
  const { ours } = recorded('bench', engine, ...modes);
  assert.ok(count(ours, labelOf(engine)) >= RUNS);
  return { ranges: count(ours, labelOf(engine)) };
});

finish();
