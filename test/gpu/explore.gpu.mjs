// `explore` and `bench compare --layers` with a real TensorRT on a real GPU: two engines of one detector, FP32 and FP16, whose times by layer, by group and by
// ONNX operator add up to those of `bench`. One JSON line per check.
//
//   npm run build && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/explore.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { initializer, openChecks, programsIn, value, writeModel } from './harness.mjs';

const { folder, check, finish } = openChecks();
const { trtforge } = programsIn(folder);
const at = (name) => join(folder, name);

const BATCH = 16;
const SIZE = 320;
const CLASSES = 20;
/** What a sum may differ by from the bench's own. */
const WITHIN = 0.02;

/** A detector: a backbone of convolutions with SiLU and a residual connection a stage, and heads for boxes and scores on its two last stages. */
function writeDetector() {
  const [nodes, initializers] = [[], []];
  const conv = (name, input, from, to, stride = 1, kernel = 3) => {
    const weights = Float32Array.from(
      { length: to * from * kernel * kernel },
      (_, at) => Math.sin(at * 12.9898) / (kernel * Math.sqrt(from)),
    );
    initializers.push(initializer(`${name}.weight`, 1, [to, from, kernel, kernel], weights));
    const ints = (attribute, values) => ({ name: attribute, type: 7, ints: values.map(BigInt) });
    const pad = (kernel - 1) / 2;
    nodes.push({
      opType: 'Conv',
      name: `${name}/Conv`,
      input: [input, `${name}.weight`],
      output: [`${name}.out`],
      attribute: [ints('strides', [stride, stride]), ints('pads', [pad, pad, pad, pad])],
    });
    return `${name}.out`;
  };
  const node = (opType, name, input, attribute = []) => {
    nodes.push({ opType, name: `${name}/${opType}`, input, output: [`${name}.${opType}`], attribute });
    return `${name}.${opType}`;
  };
  const silu = (name, input) => node('Mul', name, [input, node('Sigmoid', name, [input])]);
  initializers.push(initializer('boxes.shape', 7, [3], BigInt64Array.of(0n, 4n, -1n)));
  initializers.push(initializer('scores.shape', 7, [3], BigInt64Array.of(0n, BigInt(CLASSES), -1n)));
  let [stream, channels] = ['images', 3];
  const [boxes, scores] = [[], []];
  for (const [stage, width] of [32, 64, 128, 256, 256].entries()) {
    const name = `/backbone/stage${stage}`;
    stream = silu(`${name}/down`, conv(`${name}/down`, stream, channels, width, 2));
    const inner = silu(`${name}/inner`, conv(`${name}/inner`, stream, width, width));
    stream = node('Add', name, [stream, inner]);
    channels = width;
    if (stage < 3) continue;
    const head = (kind, count) =>
      node('Reshape', `/head${stage}/${kind}`, [
        conv(`/head${stage}/${kind}`, stream, width, count, 1, 1),
        `${kind}.shape`,
      ]);
    boxes.push(head('boxes', 4));
    scores.push(head('scores', CLASSES));
  }
  const axis = [{ name: 'axis', type: 2, i: 2n }];
  const [allBoxes, allScores] = [
    node('Concat', '/boxes', boxes, axis),
    node('Concat', '/scores', scores, axis),
  ];
  nodes.push({ opType: 'Identity', name: '/boxes/out', input: [allBoxes], output: ['boxes'] });
  nodes.push({ opType: 'Sigmoid', name: '/scores/out', input: [allScores], output: ['scores'] });
  return writeModel(folder, 'detector', {
    inputs: [value('images', 1, ['batch', 3, SIZE, SIZE])],
    outputs: [value('boxes', 1, ['batch', 4, 'anchors']), value('scores', 1, ['batch', CLASSES, 'anchors'])],
    initializers,
    nodes,
  });
}

const model = writeDetector();
const engines = ['fp32', 'fp16'].map((name) => at(`${name}.engine`));
const benches = [];
const sum = (values) => values.reduce((total, each) => total + (each ?? 0), 0);
const isNear = (one, other, what) =>
  assert.ok(
    Math.abs(one / other - 1) <= WITHIN,
    `${what}: ${one} and ${other} differ by more than ${WITHIN}`,
  );

await check('two engines of one detector are built and measured, layer by layer', async () => {
  for (const [index, precision] of ['as-is', 'fp16'].entries()) {
    const dims = `3x${SIZE}x${SIZE}`;
    const profile = `images:1x${dims}/${BATCH}x${dims}/${BATCH}x${dims}`;
    trtforge([
      ...['build', model, '--precision', precision, '--profile', profile, '-o', engines[index]],
      ...['--builder-config', 'profiling-verbosity=detailed'],
    ]);
    const bench = trtforge(['bench', engines[index], '--layers', '--no-data-transfers']);
    assert.ok(bench.layers.totalMs > 0);
    writeFileSync(at(`bench${index}.json`), JSON.stringify(bench));
    benches.push(bench);
  }
  return {
    // Timing layers takes an engine apart, so that its launches stand between them.
    layersOverWhole: benches.map(({ layers, gpuMs }) => layers.totalMs / gpuMs.median),
    gpuMs: benches.map(({ gpuMs }) => gpuMs.median),
  };
});

let explored;
await check('times by row, by group and by operator add up to those of bench', async () => {
  explored = trtforge([
    ...['explore', ...engines, '--from', at('bench0.json'), '--from', model, '--from-b', at('bench1.json')],
    ...['-o', at('page.html')],
  ]);
  const { sides, comparison, operators } = explored;
  for (const [index, key] of ['a', 'b'].entries()) {
    const { totalMs } = benches[index].layers;
    const { rows, timing, kind } = sides[index];
    assert.equal(kind, 'engine');
    isNear(sum(rows.map(({ ms }) => ms)), totalMs, 'rows');
    isNear(sum(comparison.groups.map((group) => group[`${key}Ms`])), totalMs, 'groups');
    isNear(sum(operators.map(({ sides: of }) => of[index].ms)), totalMs, 'operators');
    assert.equal(timing.measuredMs, benches[index].gpuMs.median);
  }
  return { operators: operators.slice(0, 6), page: statSync(at('page.html')).size };
});

await check('layers of both are together by their nodes, with FLOPs and what changed', async () => {
  const { sides, comparison } = explored;
  const paired = comparison.groups.filter(({ a, b, copies }) => a.length > 0 && b.length > 0 && !copies);
  const heaviest = sides.map(({ rows }) => rows.toSorted((one, other) => (other.ms ?? 0) - (one.ms ?? 0))[0]);
  assert.ok(paired.length > 0);
  assert.ok(
    heaviest.every(({ operator }) => operator === 'Conv'),
    JSON.stringify(heaviest.map(({ name }) => name)),
  );
  assert.ok(heaviest.every(({ flops }) => flops > 0));
  assert.ok(sides[1].rows.some(({ precision }) => precision === 'float16'));
  assert.ok(
    comparison.groups.some(({ changes, change }) => change === 'fused' || changes.includes('precision')),
  );
  return { counts: comparison.counts, newReformats: comparison.newReformats };
});

await check('bench compare --layers has the same operators, and adds up', async () => {
  const { layers } = trtforge(
    ['bench', 'compare', ...engines, '--rounds', '3', '--layers', '--no-data-transfers'],
    {
      codes: [0, 4],
    },
  );
  for (const [index, times] of [layers.candidate, layers.reference].entries())
    isNear(sum(layers.operators.map(({ sides }) => sides[index].ms)), times.totalMs, 'operators');
  assert.ok(layers.operators.some(({ op }) => op === 'Conv'));
  return { operators: layers.operators.slice(0, 6) };
});

await check("Model Explorer's node data has the time of every layer once", async () => {
  const { written, sides } = trtforge([
    ...['explore', engines[1], '--from', at('bench1.json'), '--from', model],
    ...['--as', 'model-explorer', '-o', at('overlay')],
  ]);
  assert.ok(written.some((file) => file.endsWith('time-ms.json')));
  return { files: written.length, rows: sides[0].rows.length };
});

finish();
