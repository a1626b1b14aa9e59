// Builds engines of one small network with a real TensorRT, loads them, and reads their layers: types, tactics, memory, ONNX nodes; compares FP32 and FP16.
// Goes through dist/ and build/trtforge.node, and prints one JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/inspect.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { diffEngines } from '../../dist/engines/layers/diff.js';
import { layersOfEngine, layersOfFile } from '../../dist/engines/layers/engine-layers.js';
import { layersResultSchema } from '../../dist/engines/layers/result.js';
import { writeNpz } from '../../dist/formats/tensor/npz.js';
import { tensorFrom } from '../../dist/formats/tensor/tensor.js';
import { explaining, issuesOf } from '../../dist/quality/explain/failure.js';
import { buildWith, initializer, openChecks, refused, value, writeModel } from './harness.mjs';

const { toolchain, gpu, major, folder, check, skip, finish } = openChecks();
const emit = () => {};
const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

const CHANNELS = 64;
const DEPTH = 4;
const weights = (count, seed) =>
  Float32Array.from({ length: count }, (_, index) => Math.sin(index + seed) / 30);

/** x [batch, 64, 32, 32] through four convolutions with their activations, then averaged to y [batch, 64, 1, 1]. */
const model = writeModel(folder, 'convolutions', {
  inputs: [value('x', 1, ['batch', CHANNELS, 32, 32])],
  outputs: [value('y', 1, ['batch', CHANNELS, 1, 1])],
  initializers: Array.from({ length: DEPTH }, (_, layer) =>
    initializer(`w${layer}`, 1, [CHANNELS, CHANNELS, 3, 3], weights(CHANNELS * CHANNELS * 9, layer)),
  ),
  nodes: [
    ...Array.from({ length: DEPTH }, (_, layer) => [
      {
        opType: 'Conv',
        name: `conv${layer}`,
        input: [layer === 0 ? 'x' : `r${layer - 1}`, `w${layer}`],
        output: [`c${layer}`],
        attribute: [{ name: 'pads', type: 7, ints: [1n, 1n, 1n, 1n] }],
      },
      { opType: 'Relu', name: `relu${layer}`, input: [`c${layer}`], output: [`r${layer}`] },
    ]).flat(),
    { opType: 'GlobalAveragePool', name: 'pool', input: [`r${DEPTH - 1}`], output: ['y'] },
  ],
});
const nodes = [
  ...Array.from({ length: DEPTH }, (_, layer) => [`conv${layer}`, `relu${layer}`]).flat(),
  'pool',
];
const weightCount = DEPTH * CHANNELS * CHANNELS * 9;

const build = async (name, recipe = {}, from = model) => {
  const planPath = join(folder, `${name}.plan`);
  const dims = [CHANNELS, 32, 32];
  await buildWith(
    toolchain,
    from,
    planPath,
    {
      stronglyTyped: major >= 10,
      profilingVerbosity: 'detailed',
      profiles: [{ x: { min: [1, ...dims], opt: [8, ...dims], max: [8, ...dims], values: false } }],
      ...recipe,
    },
    {},
    { emit },
  );
  return planPath;
};
const layersOf = (planPath) => layersOfEngine(planPath, { emit, toolchain });

/** The library needs neither of them. */
function hasCommandLine() {
  try {
    return import.meta.resolve('commander') !== '';
  } catch {
    return false;
  }
}

/** Runs the command line with the toolchain at hand; gives exit code and the JSON it printed. */
const trtforge = (words, environment = {}) => {
  const done = spawnSync(process.execPath, [main, ...words, '--json'], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    env: { ...process.env, ...environment },
  });
  return { status: done.status, output: JSON.parse(done.stdout) };
};

let fp32;
await check('the layers of an FP32 engine: every ONNX node has its layer', async () => {
  fp32 = await layersOf(await build('fp32'));
  assert.equal(layersResultSchema.safeParse(fp32).error, undefined);
  assert.equal(fp32.detail, 'detailed');
  assert.equal(fp32.dialect, major >= 11 ? 'io-tensors' : 'bindings');
  const behind = new Set(fp32.layers.flatMap(({ onnxNodes }) => onnxNodes));
  assert.deepEqual(
    nodes.filter((node) => !behind.has(node)),
    [],
  );
  assert.deepEqual(
    [...behind].filter((node) => !nodes.includes(node)),
    [],
  );
  assert.deepEqual(
    fp32.bindings.map(({ name, mode }) => [name, mode]),
    [
      ['x', 'input'],
      ['y', 'output'],
    ],
  );
  return {
    layers: fp32.summary.layers,
    types: Object.fromEntries(fp32.summary.byType.map(({ name, layers }) => [name, layers])),
    findings: fp32.findings.map(({ code }) => code),
  };
});

await check('tactics, types and weights are told', async () => {
  const convolutions = fp32.layers.filter(({ onnxNodes }) =>
    onnxNodes.some((node) => node.startsWith('conv')),
  );
  const computing = convolutions.filter(({ copies }) => !copies);
  assert.ok(computing.length > 0);
  assert.ok(computing.every(({ tactic }) => tactic.name !== null || tactic.value !== null));
  assert.deepEqual([...new Set(computing.map(({ precision }) => precision))], ['float32']);
  assert.ok(fp32.summary.weightBytes >= 4 * weightCount, `${fp32.summary.weightBytes} bytes of weights`);
  assert.ok(fp32.summary.weightBytes < 5 * weightCount, `${fp32.summary.weightBytes} bytes of weights`);
  return { tactics: computing.map(({ tactic }) => tactic.name), weightBytes: fp32.summary.weightBytes };
});

await check('the loaded engine tells its memory', async () => {
  const { loaded, planBytes } = fp32;
  assert.equal(loaded.profiles, 1);
  assert.equal(loaded.deviceMemoryBytesPerProfile.length, 1);
  assert.ok(planBytes > 4 * weightCount);
  return { ...loaded, planBytes };
});

if (major >= 11)
  skip('FP32 against FP16', 'TensorRT 11 has no weakly typed FP16: the types are in the model');
else
  await check('FP32 against FP16: the same nodes in another precision, with half the weights', async () => {
    const fp16 = await layersOf(await build('fp16', { stronglyTyped: false, precision: 'fp16' }));
    const diff = diffEngines(fp32, fp16);
    const inHalf = fp16.summary.byPrecision.find(({ name }) => name === 'float16');
    assert.ok(inHalf?.layers > 0);
    assert.ok(diff.matched + diff.fusions.length > 0);
    assert.ok(
      diff.changed.some(({ changes }) =>
        changes.some(({ what, b }) => what === 'precision' && b === 'float16'),
      ) || diff.fusions.length > 0,
    );
    assert.ok(fp16.summary.weightBytes < 0.7 * fp32.summary.weightBytes);
    return {
      matched: diff.matched,
      same: diff.same,
      changed: diff.changed.length,
      fusions: diff.fusions.length,
      copies: [fp32.summary.copies.layers, fp16.summary.copies.layers],
      findings: fp16.findings.map(({ code }) => code),
    };
  });

for (const [precision, type, least] of [
  ['int8', 'int8', 72],
  ['fp8', 'float8_e4m3fn', 89],
]) {
  const what = `${precision} by convert: convolutions run in ${type}, and copies are counted`;
  if (major < 10) skip(what, 'TensorRT 8.6 builds no strongly typed network');
  else if (gpu.computeCapability < least)
    skip(what, `the compute capability is ${gpu.computeCapability}, ${least} is needed`);
  else
    await check(what, async () => {
      const quantized = join(folder, `${precision}.onnx`);
      const samples = join(folder, 'samples.npz');
      const shape = [16, CHANNELS, 32, 32];
      const values = weights(
        shape.reduce((product, size) => product * size),
        1,
      ).map((value) => 30 * value);
      writeNpz(samples, new Map([['x', tensorFrom('float32', shape, values)]]));
      const converted = trtforge([
        ...['convert', model, '--precision', precision, '--calibration', samples, '-o', quantized],
      ]);
      assert.equal(converted.status, 0, JSON.stringify(converted.output));
      const { layers, summary, findings } = await layersOf(await build(precision, {}, quantized));
      const convolutions = layers.filter(
        ({ copies, onnxNodes }) => !copies && onnxNodes.some((node) => /^conv\d/.test(node)),
      );
      const inType = new Set(
        convolutions.filter((layer) => layer.precision === type).flatMap(({ onnxNodes }) => onnxNodes),
      );
      for (let layer = 0; layer < DEPTH; layer++)
        assert.ok(inType.has(`conv${layer}`), JSON.stringify(convolutions.map(({ precision }) => precision)));
      return {
        precisions: convolutions.map((layer) => layer.precision),
        copies: summary.copies,
        findings: findings.map(({ code }) => code),
      };
    });
}

await check('an engine built without detail has names, and says how to get more', async () => {
  const names = await layersOf(await build('names', { profilingVerbosity: 'layer-names-only' }));
  assert.equal(names.detail, 'names');
  assert.deepEqual(
    names.findings.map(({ code }) => code),
    ['engine-names-only'],
  );
  return { first: names.layers[0]?.name };
});

if (!hasCommandLine()) skip('the command line', 'commander is not in node_modules here');
else {
  await check('what --json prints is read again where no GPU is', async () => {
    const { status, output } = trtforge(['engine', 'layers', join(folder, 'fp32.plan')]);
    assert.equal(status, 0, JSON.stringify(output.error));
    const saved = join(folder, 'saved.json');
    writeFileSync(saved, JSON.stringify(output));
    const blind = { CUDA_VISIBLE_DEVICES: '' };
    const again = trtforge(['engine', 'layers', saved], blind);
    assert.equal(again.status, 0, JSON.stringify(again.output.error));
    assert.deepEqual(again.output.summary, fp32.summary);
    assert.deepEqual(layersOfFile(saved).layers, fp32.layers);
    const refusal = trtforge(['engine', 'layers', join(folder, 'fp32.plan')], blind);
    assert.equal(refusal.status, 3);
    assert.equal(refusal.output.error.code, 'TF_GPU_UNAVAILABLE');
    return { remedy: refusal.output.error.remedy };
  });

  await check('engine diff loads both engines', async () => {
    const plan = join(folder, 'fp32.plan');
    const { status, output } = trtforge(['engine', 'diff', plan, plan]);
    assert.equal(status, 0, JSON.stringify(output.error));
    assert.equal(output.schema, 'trtforge.engine-diff/1');
    assert.deepEqual([output.changed, output.fusions, output.onlyA, output.onlyB], [[], [], [], []]);
    return { matched: output.matched };
  });
}

await check('a damaged plan is refused, and the refusal is explained', async () => {
  const damaged = join(folder, 'damaged.plan');
  const bytes = readFileSync(join(folder, 'fp32.plan'));
  bytes.fill(0xa5, 64, 4096);
  writeFileSync(damaged, bytes);
  const work = explaining((heard) => layersOfEngine(damaged, { emit: heard, toolchain }), { emit });
  const error = await work.then(
    () => assert.fail('a damaged plan was loaded'),
    (reason) => reason,
  );
  assert.ok(['TF_PLAN_LOAD_FAILED', 'TF_CHILD_DIED'].includes(error.code), error.code);
  return {
    code: error.code,
    issues: issuesOf(error).map(({ id }) => id),
    message: error.message.split('\n')[0],
  };
});

await check('a plan behind a foreign header never reaches the library', () => {
  const foreign = join(folder, 'foreign.plan');
  const json = Buffer.from(JSON.stringify({ description: 'made elsewhere' }));
  const length = Buffer.alloc(4);
  length.writeInt32LE(json.length);
  writeFileSync(foreign, Buffer.concat([length, json, readFileSync(join(folder, 'fp32.plan'))]));
  return refused('TF_PLAN_FOREIGN_HEADER', /in front of the plan/, layersOf(foreign));
});

finish();
