// What `trtforge bisect` finds of real engines on a real GPU, by the command line alone as a user has it: a planted overflow of FP16, a planted difference by
// TF32, an engine that is right, and whether what it hands out passes and fails. One JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/bisect.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { initializer, openChecks, programsIn, value, writeModel } from './harness.mjs';

const { major, folder, check, skip, finish } = openChecks();
const WIDTH = 1024;
const FLOAT = 1;
const at = (name) => join(folder, name);

if (major < 10) {
  skip('bisect', 'the types of an engine of TensorRT 8.6 are chosen by its builder');
  finish();
}

const { trtforge } = programsIn(folder);

const weights = (seed, size) =>
  Float32Array.from({ length: WIDTH * WIDTH }, (_, index) => Math.sin(index * seed) * size);
const node = (opType, name, input, output, attribute = []) => ({
  opType,
  name,
  input,
  output: [output],
  attribute,
});

/** Three products; what the first makes is `size` times the usual, and the second brings it back. Between products a value is stored in the type of the model. */
const products = (name, size) =>
  writeModel(folder, name, {
    inputs: [value('x', FLOAT, ['batch', WIDTH])],
    outputs: [value('y', FLOAT, ['batch', WIDTH])],
    initializers: [
      initializer('w1', FLOAT, [WIDTH, WIDTH], weights(1.1, size / 16)),
      initializer('w2', FLOAT, [WIDTH, WIDTH], weights(2.3, 1 / 16 / Math.sqrt(size))),
      initializer('w3', FLOAT, [WIDTH, WIDTH], weights(3.7, 1 / 16)),
    ],
    nodes: [
      node('MatMul', 'large', ['x', 'w1'], 'a'),
      node('MatMul', 'back', ['a', 'w2'], 'b'),
      node('Abs', 'abs', ['b'], 'c'),
      node('MatMul', 'last', ['c', 'w3'], 'y'),
    ],
  });

/** Weights of FP16's range whose products are beyond it. */
const overflowing = products('overflow', 30_000);
const plain = products('plain', 1);
const shapes = ['--shapes', `x:64x${WIDTH}`, '--samples', '1'];

function build(name, model, ...words) {
  const engine = at(`${name}.engine`);
  trtforge([
    ...['build', model, '--target', 'tensorrt', '--profile', `x:1x${WIDTH}/64x${WIDTH}/128x${WIDTH}`],
    ...['--no-cache', '-o', engine, ...words],
  ]);
  return engine;
}

const verify = (engine, model, ...words) =>
  trtforge(['verify', engine, '--against', model, ...shapes, ...words], { codes: [0, 1] }).outcome;

function bisect(name, engine, model, ...words) {
  const { exitCode, schema, ...result } = trtforge(
    ['bisect', engine, '--against', model, '-o', at(name), ...shapes, ...words],
    { codes: [0, 4] },
  );
  assert.equal(schema, 'trtforge.bisect/1');
  assert.ok(result.builds <= 40, `${result.builds} builds`);
  for (const { ms } of result.candidates) assert.ok(ms.build > 0);
  const files = [
    'bisect.json',
    'report.md',
    'report.html',
    ...(result.builds > 0 ? ['candidates.json'] : []),
  ];
  for (const file of files) assert.ok(existsSync(join(at(name), file)), file);
  return result;
}

/** Runs a command line that a result hands out. */
const follow = (line) =>
  spawnSync('/bin/sh', ['-c', line.replace(/^trtforge/, `${process.execPath} ${program}`)], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') },
  });
const program = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** What is handed out does what is stated of it: the work-around passes, the reduced model fails. */
function assertHandedOut({ build: line, reduced }, name, model) {
  const built = follow(line);
  assert.equal(built.status, 0, built.stderr.slice(-500));
  assert.equal(verify(join(at(name), 'workaround.engine'), model), 'pass');
  assert.ok(reduced !== null, 'nothing was reduced');
  const statuses = reduced.commands.map((command) => follow(command).status);
  assert.deepEqual(statuses, [...reduced.commands.slice(1).map(() => 0), 1]);
}

await check('an engine without TF32 passes: there is nothing to search', () => {
  const engine = build('exact', plain, '--builder-config', 'flags=no-tf32');
  const { cause, builds } = bisect('exact', engine, plain);
  assert.deepEqual([cause, builds], ['none', 0]);
});

await check(
  'TF32 passes by its own bound; by a tolerance that it misses it is found, and the engine without it passes',
  () => {
    const engine = build('tf32', plain);
    assert.equal(verify(engine, plain), 'pass');
    const strict = ['--atol', '1e-4', '--rtol', '1e-4'];
    assert.equal(verify(engine, plain, ...strict), 'fail');
    const result = bisect('tf32', engine, plain, ...strict);
    assert.equal(result.cause, 'tf32');
    assertHandedOut(result, 'tf32', plain);
    return { builds: result.builds, reduced: result.reduced.nodes };
  },
);

await check('an overflow of FP16: the nodes at it are found', () => {
  const engine = build('overflow', overflowing, '--precision', 'fp16', '--builder-config', 'flags=no-tf32');
  assert.equal(verify(engine, overflowing), 'fail');
  const result = bisect('overflow', engine, overflowing);
  assert.equal(result.cause, 'nodes');
  assert.ok(result.nodes.length > 0 && result.nodes.length <= 2);
  for (const { name, overflows } of result.nodes) {
    assert.ok(['large', 'back'].includes(name), name);
    assert.ok(overflows);
  }
  assertHandedOut(result, 'overflow', overflowing);
  return {
    builds: result.builds,
    nodes: result.nodes.map(({ name }) => name),
    reduced: result.reduced.nodes,
  };
});

await check('compare layers: the engine diverges where it overflows, and its outputs still fail', () => {
  const { schema, firstDivergence, engine, outcome, tensors } = trtforge(
    ['compare', 'layers', at('overflow.engine'), '--against', overflowing, ...shapes],
    { codes: [1] },
  );
  assert.equal(schema, 'trtforge.compare-layers/1');
  assert.equal(outcome, 'fail');
  assert.equal(firstDivergence, 'a');
  assert.ok(engine.outputsFail);
  return { tensors: tensors.length, ...engine };
});

await check('a search that was stopped goes on where it was', () => {
  const { candidates } = JSON.parse(readFileSync(join(at('overflow'), 'bisect.json'), 'utf8'));
  const { tried, builds } = bisect('overflow', at('overflow.engine'), overflowing);
  assert.deepEqual([tried, builds], [0, candidates.filter(({ ms }) => ms.build !== null).length]);
});

finish();
