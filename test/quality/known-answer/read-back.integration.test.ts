import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attribute, buildModel, GraphBuilder, writeModel } from 'trtforge/onnx';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Dtype } from '../../../src/formats/tensor/dtype.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { type KnownAnswer, readAnswer, writeAnswer } from '../../../src/quality/known-answer/answer.js';
import { runAnswer } from '../../../src/quality/known-answer/build-or-load.js';
import { recordAnswer, withMeasured } from '../../../src/quality/known-answer/record.js';
import type { VerifyPrecision } from '../../../src/quality/verify/result.js';
import { writeVariant } from '../../models/kind.js';
import { kinds } from '../../models/kinds.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-read-back-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const plan = join(folder, 'engine.plan');
const sha256 = 'a'.repeat(64);
const precisions: readonly VerifyPrecision[] = [
  'fp32',
  'tf32',
  'fp16',
  'bf16',
  'int8',
  'fp8',
  'int4',
  'nvfp4',
];

/** Outputs of every size: 0, below every step of FP16, beyond its range, of steep and of flat probabilities, of one element, of no float, with what is not finite. */
async function writeEdges(path: string, factor = 1): Promise<string> {
  const graph = new GraphBuilder('edges');
  const shape = [4, 40];
  const x = graph.input('x', 'float32', shape);
  const scaled = (name: string, value: number) => {
    const by = graph.initializer(`${name}.by`, tensorFrom('float32', [1], Float32Array.of(value * factor)));
    graph.node('Mul', { inputs: [x, by], outputs: [graph.value(name, 'float32', shape)] });
    return name;
  };
  const give = (
    name: string,
    operator: string,
    inputs: readonly string[],
    dtype: Dtype = 'float32',
    numbers: Readonly<Record<string, number>> = {},
    own = shape,
  ) =>
    graph.node(operator, {
      inputs: [...inputs],
      outputs: [graph.output(name, dtype, own)],
      attributes: Object.fromEntries(
        Object.entries(numbers).map(([key, value]) => [key, attribute.int(value)]),
      ),
    });
  for (const [name, value] of Object.entries({ zero: 0, tiny: 1e-30, small: 1e-6, large: 1e4, huge: 1e30 }))
    give(`${name}.y`, 'Identity', [scaled(name, value)]);
  for (const [name, value] of Object.entries({ flat: 1e-3, usual: 1, steep: 60 })) {
    give(`${name}.softmax`, 'Softmax', [scaled(`${name}.x`, value)], 'float32', { axis: -1 });
    give(`${name}.sigmoid`, 'Sigmoid', [`${name}.x`]);
    give(`${name}.hard`, 'HardSigmoid', [`${name}.x`]);
  }
  give('logarithm', 'Log', [scaled('log.x', 1)]);
  give('half', 'Cast', [scaled('half.x', 100)], 'float16', { to: 10 });
  give('brain', 'Cast', [scaled('brain.x', 1e-6)], 'bfloat16', { to: 16 });
  give('long', 'Cast', [scaled('long.x', 1000)], 'int64', { to: 7 });
  give('integer', 'Cast', [scaled('integer.x', 1)], 'int32', { to: 6 });
  give('boolean', 'Cast', ['integer'], 'bool', { to: 9 });
  give('most', 'ArgMax', [scaled('most.x', 1)], 'int64', { axis: 1, keepdims: 0 }, [4]);
  give('mean', 'ReduceMean', [scaled('mean.x', 1)], 'float32', { keepdims: 0 }, []);
  give('constant', 'Mul', ['constant.by', 'constant.by'], 'float32', {}, [1]);
  graph.initializer('constant.by', tensorFrom('float32', [1], Float32Array.of(3 * factor)));
  await writeModel(buildModel(graph, { opset: 18 }), path);
  return path;
}

function readBack(answer: KnownAnswer) {
  writeAnswer(plan, sha256, answer);
  return readAnswer(plan, null, sha256, false);
}

/** Detections with and without an operator that orders them, probabilities, labels, what has codes already. */
const some = [
  'edges',
  'detector',
  'end-to-end detector',
  'classifier',
  'detector with NMS',
  'label map by ArgMax',
  'recurrent',
  'Q/DQ network',
];
describe.each(some)('%s: what a build records counts when it is read', (name) => {
  const reference = join(folder, `${name.replaceAll(/\W/g, '-')}.onnx`);
  const other = reference.replace('.onnx', '.other.onnx');
  beforeAll(async () => {
    const kind = kinds.find((each) => each.name === name);
    if (kind === undefined) {
      await writeEdges(reference);
      await writeEdges(other, 1.02);
    } else {
      await writeVariant(reference, kind, 1);
      // As far off as codes can be and more: limits become as wide as they may.
      await writeVariant(other, kind, 2);
    }
  });

  it.each(precisions)('in %s', async (precision) => {
    const answer = await recordAnswer({ reference, precision, profiles: [] });
    expect(answer.cases[0]?.outputs.length).toBeGreaterThan(0);
    expect(readBack(answer)).toEqual(answer);
    const measured = withMeasured(answer, null, (await runAnswer(other, answer)).found);
    expect(readBack(measured)).toEqual(measured);
  });
});
