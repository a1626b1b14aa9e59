// What `trtforge forge --heal` makes of a model that overflows in FP16, on a real GPU, by the command line alone: the engine fails, the printed line heals it, and
// the price beside it is measured. One JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/heal.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { initializer, openChecks, programsIn, value, writeModel } from './harness.mjs';

const { major, folder, check, skip, finish } = openChecks();
const WIDTH = 1024;
const FLOAT = 1;

if (major < 10) {
  skip('forge --heal', 'the types of an engine of TensorRT 8.6 are chosen by its builder');
  finish();
}

const { trtforge } = programsIn(folder);

const weights = (seed, size) =>
  Float32Array.from({ length: WIDTH * WIDTH }, (_, index) => Math.sin(index * seed) * size);
const product = (name, input, weight, output) => ({
  opType: 'MatMul',
  name,
  input: [input, weight],
  output: [output],
  attribute: [],
});

/** Three products: the first makes values beyond FP16's range, the second brings them back. */
const model = writeModel(folder, 'overflow', {
  inputs: [value('x', FLOAT, ['batch', WIDTH])],
  outputs: [value('y', FLOAT, ['batch', WIDTH])],
  initializers: [
    initializer('w1', FLOAT, [WIDTH, WIDTH], weights(1.1, 30_000 / 16)),
    initializer('w2', FLOAT, [WIDTH, WIDTH], weights(2.3, 1 / 16 / Math.sqrt(30_000))),
    initializer('w3', FLOAT, [WIDTH, WIDTH], weights(3.7, 1 / 16)),
  ],
  nodes: [
    product('large', 'x', 'w1', 'a'),
    product('back', 'a', 'w2', 'b'),
    { opType: 'Abs', name: 'abs', input: ['b'], output: ['c'], attribute: [] },
    product('last', 'c', 'w3', 'y'),
  ],
});

const words = [
  ...['forge', model, '--precision', 'fp16', '--target', 'tensorrt'],
  ...[
    '--profile',
    `x:1x${WIDTH}/64x${WIDTH}/128x${WIDTH}`,
    '--samples',
    '2',
    '--run-root',
    join(folder, 'run'),
  ],
];

await check('a model that overflows in FP16 fails', () => {
  const result = trtforge(words, { codes: [1] });
  assert.equal(result.heal, null);
  return { outcome: result.verdict.outcome };
});

await check(
  'with --heal it passes, on samples that the search has not seen, and the price is measured',
  () => {
    const { heal, verdict, conversion, engine, engineVerification } = trtforge([...words, '--heal', '5m']);
    assert.equal(verdict.outcome, 'pass');
    assert.equal(heal.outcome, 'found');
    assert.equal(heal.isUnseen, true);
    assert.equal(engineVerification.outcome, 'pass');
    assert.ok(existsSync(engine));
    assert.deepEqual(conversion.kept.map(({ node }) => node).sort(), [...heal.nodes].sort());
    assert.deepEqual(
      heal.prices.map(({ what }) => what),
      ['failed', 'healed', 'fp32'],
    );
    for (const { what, gpuMs, engineBytes } of heal.prices) {
      assert.ok(gpuMs > 0, `${what}: ${gpuMs} ms`);
      assert.ok(engineBytes > 0);
    }
    return { nodes: heal.nodes, prices: heal.prices };
  },
);

await check('an edited model builds, and its engine does what the original does', () => {
  const folded = join(folder, 'fixed.onnx');
  const edit = trtforge(['edit', model, '--set-dim', 'batch=64', '--fold', '-o', folded]);
  assert.equal(edit.proof.outcome, 'pass');
  const engine = join(folder, 'fixed.engine');
  trtforge(['build', folded, '--target', 'tensorrt', '--no-cache', '-o', engine]);
  const { outcome } = trtforge(['verify', engine, '--against', folded, '--samples', '2']);
  assert.equal(outcome, 'pass');
  return { outcome };
});

finish();
