// What `trtforge forge --heal` makes of models that fail in FP16 on a real GPU, by the command line alone: of one that overflows, then of those of which the typed
// model passes on ONNX Runtime and the engine alone fails. The printed line heals it, and the price beside it is measured. One JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/heal.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//   HEAL_CASES=lstm,cumsum    only these of the models whose engine may fail alone (default: all; none: no engine alone)
//   HEAL_MOST=3               so many of those that fail are healed (default: all)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { initializer, openChecks, programsIn, say, value, writeModel } from './harness.mjs';

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
    assert.deepEqual(
      conversion.kept.map(({ node }) => node).sort(),
      heal.raised.flatMap(({ nodes }) => nodes).sort(),
    );
    assert.deepEqual(
      heal.prices.map(({ what }) => what),
      ['failed', 'healed', 'fp32'],
    );
    for (const { what, gpuMs, engineBytes } of heal.prices) {
      assert.ok(gpuMs > 0, `${what}: ${gpuMs} ms`);
      assert.ok(engineBytes > 0);
    }
    return { raised: heal.raised, prices: heal.prices };
  },
);

const node = (opType, input, output, attribute = []) => ({
  opType,
  name: `${opType.toLowerCase()}_${output[0]}`,
  input,
  output,
  attribute,
});
const ints = (name, ...values) => ({ name, type: 7, ints: values.map(BigInt) });
const int = (name, number) => ({ name, type: 2, i: BigInt(number) });
const filled = (name, shape, valueAt) => {
  const size = shape.reduce((all, each) => all * each, 1);
  return initializer(
    name,
    FLOAT,
    shape,
    Float32Array.from({ length: size }, (_, index) => valueAt(index)),
  );
};
/** Between 0.5 and 1.5. */
const near = (index) => 1 + 0.5 * Math.sin(index * 1.7);

/** A model of x, whose magnitudes are taken first, to y. */
const ofMagnitudes = (name, shape, output, nodes, initializers = []) =>
  writeModel(folder, name, {
    inputs: [value('x', FLOAT, shape)],
    outputs: [value('y', FLOAT, output)],
    initializers,
    nodes: [node('Abs', ['x'], ['m']), ...nodes],
  });

/** The first half of a sum of products is far beyond FP16; the second takes nearly all of it away. */
const cancelling = (name, rows, inner, columns) =>
  ofMagnitudes(
    name,
    [rows, inner / 2],
    [rows, columns],
    [node('Concat', ['m', 'm'], ['c'], [int('axis', 1)]), node('MatMul', ['c', 'w'], ['y'])],
    [
      filled('w', [inner, columns], (index) => {
        const half = (inner / 2) * columns;
        return 100 * near(index % half) * (index < half ? 1 : -0.99);
      }),
    ],
  );

const STEPS = 2048;
const HIDDEN = 64;

/** Models whose typed form ONNX Runtime computes in FP32 inside of one node, and an engine perhaps in FP16. `config` is the configuration file. */
const alone = {
  'product that cancels': { model: (name) => cancelling(name, 128, 8192, 1024) },
  'vector product that cancels': { model: (name) => cancelling(name, 1, 8192, 1024) },
  'long product': {
    model: (name) =>
      ofMagnitudes(
        name,
        [256, 32_768],
        [256, 512],
        [node('MatMul', ['m', 'w'], ['y'])],
        [filled('w', [32_768, 512], (index) => near(index) / 64)],
      ),
  },
  'convolution that cancels': {
    model: (name) =>
      ofMagnitudes(
        name,
        [1, 256, 28, 28],
        [1, 256, 26, 26],
        [node('Concat', ['m', 'm'], ['c'], [int('axis', 1)]), node('Conv', ['c', 'w'], ['y'])],
        [
          filled(
            'w',
            [256, 512, 3, 3],
            (index) => 100 * near(index % 2304) * (index % 4608 < 2304 ? 1 : -0.99),
          ),
        ],
      ),
  },
  // The cell begins at 1 and grows by less than half of what FP16 can add to it.
  lstm: {
    model: (name) =>
      ofMagnitudes(
        name,
        [STEPS, 1, HIDDEN],
        [STEPS, 1, 1, HIDDEN],
        [node('LSTM', ['m', 'w', 'r', 'b', '', 'h', 'c'], ['y'], [int('hidden_size', HIDDEN)])],
        [
          filled('w', [1, 4 * HIDDEN, HIDDEN], (index) =>
            index >= 3 * HIDDEN * HIDDEN && index % (HIDDEN + 1) === 0 ? 2.5e-4 : 0,
          ),
          filled('r', [1, 4 * HIDDEN, HIDDEN], () => 0),
          // Of input, output, forget and cell.
          filled('b', [1, 8 * HIDDEN], (index) => [8, 8, 20, 0][Math.floor(index / HIDDEN)] ?? 0),
          filled('h', [1, 1, HIDDEN], () => 0),
          filled('c', [1, 1, HIDDEN], () => 1),
        ],
      ),
  },
  // The sum stops where a term is less than half of what FP16 can add to it.
  cumsum: {
    config: { 'convert-ops': ['CumSum'] },
    model: (name) =>
      ofMagnitudes(
        name,
        [4, 8192],
        [4, 8192],
        [node('Mul', ['m', 'k'], ['s']), node('CumSum', ['s', 'axis'], ['y'])],
        [filled('k', [], () => 1 / 64), initializer('axis', 7, [], BigInt64Array.of(1n))],
      ),
  },
  mean: {
    model: (name) =>
      ofMagnitudes(
        name,
        [8, 262_144],
        [8, 1],
        [node('Mul', ['m', 'k'], ['s']), node('ReduceMean', ['s'], ['y'], [ints('axes', 1)])],
        [filled('k', [8, 1], (index) => 1000 * near(index))],
      ),
  },
  'global average': {
    model: (name) =>
      ofMagnitudes(
        name,
        [1, 64, 256, 256],
        [1, 64, 1, 1],
        [node('Mul', ['m', 'k'], ['s']), node('GlobalAveragePool', ['s'], ['y'])],
        [filled('k', [1, 64, 1, 1], (index) => 1000 * near(index))],
      ),
  },
  'average of a window': {
    model: (name) =>
      ofMagnitudes(
        name,
        [1, 64, 128, 128],
        [1, 64, 4, 4],
        [
          node('Mul', ['m', 'k'], ['s']),
          node('AveragePool', ['s'], ['y'], [ints('kernel_shape', 32, 32), ints('strides', 32, 32)]),
        ],
        [filled('k', [1, 64, 1, 1], (index) => 1000 * near(index))],
      ),
  },
  'instance norm': {
    model: (name) =>
      ofMagnitudes(
        name,
        [2, 32, 64, 64],
        [2, 32, 64, 64],
        [node('Mul', ['m', 'k'], ['s']), node('InstanceNormalization', ['s', 'one', 'none'], ['y'])],
        [filled('k', [], () => 4000), filled('one', [32], () => 1), filled('none', [32], () => 0)],
      ),
  },
  'layer norm': {
    model: (name) =>
      ofMagnitudes(
        name,
        [64, 4096],
        [64, 4096],
        [node('Mul', ['m', 'k'], ['s']), node('LayerNormalization', ['s', 'one', 'none'], ['y'])],
        [filled('k', [], () => 4000), filled('one', [4096], () => 1), filled('none', [4096], () => 0)],
      ),
  },
};

const { HEAL_CASES, HEAL_MOST = 'Infinity' } = process.env;
const failed = [];
for (const [name, { model: write, config = {} }] of Object.entries(alone)) {
  if (HEAL_CASES !== undefined && !HEAL_CASES.split(',').includes(name)) continue;
  const file = write(name.replaceAll(' ', '-'));
  const settings = file.replace('.onnx', '.config.json');
  writeFileSync(settings, JSON.stringify(config));
  const line = [
    ...['forge', file, '--precision', 'fp16', '--target', 'tensorrt', '--samples', '2'],
    ...['--config', settings],
  ];
  await check(`${name}: FP16`, () => {
    const root = join(folder, `${name} plain`);
    const result = trtforge([...line, '--skip', 'bench', '--run-root', root], { codes: [0, 1, 4] });
    const { verification, engineVerification, verdict } = result;
    const isAlone = verification?.outcome === 'pass' && engineVerification?.outcome === 'fail';
    if (isAlone) failed.push({ name, line });
    return {
      onlyTheEngineFails: isAlone,
      typed: verification?.outcome,
      engine: engineVerification?.outcome,
      headline: verdict.headline,
    };
  });
}
say({ check: 'engines that fail alone', models: failed.map(({ name }) => name) });
for (const { name, line } of failed.slice(0, Number(HEAL_MOST)))
  await check(`${name}: the engine that fails alone is healed`, () => {
    const result = trtforge([...line, '--run-root', join(folder, name), '--heal', '5m'], {
      codes: [0, 1, 4],
    });
    const { heal, verdict, verification, engineVerification, conversion, engine } = result;
    assert.ok(heal, verdict.headline);
    const { outcome, headline, reasons, raised, isSmallest, isUnseen, tried, prices } = heal;
    say({ check: `${name}: heal`, verdict, outcome, headline, reasons, raised, isSmallest, tried, prices });
    assert.equal(verdict.outcome, 'pass');
    assert.equal(outcome, 'found');
    assert.equal(isUnseen, true);
    assert.deepEqual([verification.outcome, engineVerification.outcome], ['pass', 'pass']);
    assert.ok(existsSync(engine));
    const kept = new Set(conversion.kept.map(({ node: kept }) => kept));
    for (const { nodes } of raised)
      for (const each of nodes) assert.ok(kept.has(each), `${each} is not kept`);
    for (const { what, gpuMs, engineBytes } of prices) {
      assert.ok(gpuMs > 0, `${what}: ${gpuMs} ms`);
      assert.ok(engineBytes > 0);
    }
    return { raised };
  });
if (failed.length === 0)
  skip('an engine that fails alone', 'none of these models fails as an engine alone here');

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
