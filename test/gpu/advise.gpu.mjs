// `convert advise --latency` with a real TensorRT on a real GPU: engines of the choices, times of their layers by ONNX node, and what is undone. One JSON line per check.
//
//   npm run build && npm run build:examples && npm run build:native
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/advise.gpu.mjs      (or with the libraries' folder in LD_LIBRARY_PATH)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { writeNpz } from '../../dist/formats/tensor/npz.js';
import { tensorFrom } from '../../dist/formats/tensor/tensor.js';
import { openChecks, programsIn } from './harness.mjs';

const { folder, check, finish } = openChecks();
const { ran, trtforge } = programsIn(folder);
const at = (name) => join(folder, name);
const model = at('resnet.onnx');
ran('build/examples/models/main.js', ['resnet50', '--size', 'small', '-o', model]);

const sizes = trtforge(['inspect', model]).inputs[0].shape.map((size) =>
  typeof size === 'number' ? size : 16,
);
let state = 1;
const values = Float32Array.from({ length: sizes.reduce((product, size) => product * size, 1) }, () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 31 - 1;
});
writeNpz(at('samples.npz'), new Map([['input', tensorFrom('float32', sizes, values)]]));

const advise = (output, ...more) =>
  trtforge([
    ...['convert', 'advise', model, '--calibration', at('samples.npz'), '--budget', '10dB', '-o', at(output)],
    ...more,
  ]);

let advice;
await check('engines of the choices are measured layer by layer', async () => {
  advice = advise('timed', '--latency');
  const { latency, units, without } = advice;
  assert.ok(latency.choices.length >= 2);
  assert.ok(latency.choices.some(({ id }) => id === without));
  for (const { medianMs, layers } of latency.choices) {
    assert.ok(medianMs > 0 && layers.totalMs > 0);
    const nodes = new Set(layers.layers.flatMap(({ onnxNodes }) => onnxNodes));
    const seen = units.filter((unit) => unit.nodes.some((node) => nodes.has(node)));
    assert.ok(seen.length > units.length / 2, `${seen.length} of ${units.length} units are in the layers`);
  }
  return {
    speedup: latency.speedup,
    isSlower: latency.isSlower,
    undone: latency.undone.length,
    medianMs: latency.choices.map(({ medianMs }) => medianMs),
  };
});

await check('what is quantized at the end is at least 1.02 times as fast, or nothing is', async () => {
  const { latency, units, headline } = advice;
  const quantized = units.filter((unit) => unit.quantized);
  if (quantized.length === 0) {
    assert.equal(latency.speedup, 1);
    assert.ok(latency.undone.length > 0);
  } else assert.ok(latency.speedup >= 1.02, headline);
  if (latency.isSlower) assert.ok(latency.slower.length > 0 && latency.slower[0].layers.length > 0);
  return { headline, slower: latency.slower.slice(0, 3) };
});

await check('the page has accuracy against latency, and the engine of the model builds', async () => {
  assert.ok(existsSync(join(at('timed'), 'report.html')));
  const built = trtforge(['build', advice.output, '--precision', 'as-is', '--batch', '1']);
  return { engine: built.engine, bytes: built.bytes };
});

await check('without --latency nothing is built', async () => {
  const { latency, units } = advise('untimed');
  assert.equal(latency, null);
  assert.ok(units.every(({ quantized }) => quantized));
  return {};
});

finish();
