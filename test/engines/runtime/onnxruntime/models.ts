import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  attribute,
  buildModel,
  GraphBuilder as Graph,
  type GraphBuilder,
  type ModelSpec,
  writeModel,
} from '../../../../src/formats/onnx/index.js';
import { type Dtype, dtypes } from '../../../../src/formats/tensor/dtype.js';
import { floatTensor, type Tensor, tensorFrom } from '../../../../src/formats/tensor/tensor.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-runtime-'));
let written = 0;

/** Writes a small model described by a few calls and gives its path. */
export async function modelFile(
  describe: (graph: GraphBuilder) => void,
  spec: ModelSpec = {},
): Promise<string> {
  const graph = new Graph('test');
  describe(graph);
  const path = join(folder, `model-${written++}.onnx`);
  await writeModel(buildModel(graph, spec), path);
  return path;
}

export const floats = (
  dtype: 'float16' | 'bfloat16' | 'float32',
  shape: readonly number[],
  values: readonly number[],
): Tensor => floatTensor(dtype, shape, Float32Array.from(values));

export const ids = (shape: readonly number[], values: readonly number[]): Tensor =>
  tensorFrom('int64', shape, BigInt64Array.from(values.map(BigInt)));

export const castTo = (dtype: Dtype) => ({ to: attribute.int(dtypes[dtype].onnx) });
