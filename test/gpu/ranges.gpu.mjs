// Runs the small graphs of test/formats/precision/range-graphs.ts, converted to FP16, strongly typed in TensorRT, and holds that what FP32 keeps finite is finite
// and as near. Their models come from
//
//   RANGE_GRAPHS=/tmp/ranges npx vitest run --project=integration test/formats/precision/ranges.integration.test.ts
//   TENSORRT_HOME=/tmp/tensorrt RANGE_GRAPHS=/tmp/ranges node test/gpu/ranges.gpu.mjs
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openEngineSession } from '../../dist/engines/runtime/tensorrt/engine-session.js';
import { readNpz } from '../../dist/formats/tensor/npz.js';
import { numbersOf } from '../../dist/formats/tensor/tensor.js';
import { buildOrLoad } from '../../dist/quality/known-answer/build-or-load.js';
import { openChecks } from './harness.mjs';

/** Of the error, in units of the RMS of FP32's results; the suite's bound on the CPU, where FP32 distinguishes what 16 bits cannot. */
const BOUND = 0.02;

const { folder, check, skip, finish } = openChecks();
const graphs = process.env.RANGE_GRAPHS;
if (graphs === undefined) skip('the graphs of the suite', 'RANGE_GRAPHS names no folder');
const files = graphs === undefined ? [] : readdirSync(graphs);
const names = files.flatMap((file) => (file.endsWith('.onnx') ? [file.slice(0, -5)] : []));
for (const name of names) {
  await check(name, async () => {
    const { y: expected, ...feeds } = Object.fromEntries(readNpz(join(graphs, `${name}.npz`)));
    const output = join(folder, `${name}.engine`);
    await buildOrLoad({
      model: join(graphs, `${name}.onnx`),
      target: 'tensorrt',
      precision: 'as-is',
      output,
      store: false,
    });
    const session = await openEngineSession(output);
    try {
      const results = await session.run(new Map(Object.entries(feeds)));
      const [reference, actual] = [[...numbersOf(expected)], [...numbersOf(results.get('y'))]];
      const lost = reference.filter((value, at) => Number.isFinite(value) && !Number.isFinite(actual[at]));
      assert.equal(lost.length, 0, `${lost.length} of ${reference.length} values are not finite`);
      const scale = Math.sqrt(reference.reduce((sum, value) => sum + value * value, 0) / reference.length);
      const errors = reference
        .map((value, at) => Math.abs(value - actual[at]))
        .sort((one, other) => one - other);
      const p99 = errors[Math.floor(0.99 * (errors.length - 1))] / scale;
      return { p99: Number(p99.toPrecision(3)), within: p99 < BOUND };
    } finally {
      await session.close();
    }
  });
}
finish();
