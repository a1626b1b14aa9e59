import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Tensor as OrtTensor } from 'onnxruntime-node';
import { afterAll } from 'vitest';
import { loadOrt } from '../../../src/engines/runtime/onnxruntime/node-model.js';
import { buildModel, type GraphBuilder, type ModelSpec } from '../../../src/formats/onnx/builder.js';
import { visitNodes } from '../../../src/formats/onnx/graph.js';
import { type OnnxModel, openModel } from '../../../src/formats/onnx/model.js';
import type { NodeProto } from '../../../src/formats/onnx/onnx_pb.js';
import { declaredType } from '../../../src/formats/onnx/values.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { type ConvertOptions, convertModel } from '../../../src/formats/precision/convert.js';
import { quantizedFormatNamed } from '../../../src/formats/precision/formats/index.js';
import type { Calibration } from '../../../src/formats/precision/options.js';
import type { ConversionResult } from '../../../src/formats/precision/result.js';
import { float16ToFloat32, float32ToFloat16 } from '../../../src/formats/tensor/low-precision.js';
import type { Tensor } from '../../../src/formats/tensor/tensor.js';

const ort = await loadOrt();
const folder = mkdtempSync(join(tmpdir(), 'trtforge-precision-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
export const freshPath = (suffix = '.onnx'): string => join(folder, `${++files}${suffix}`);

export function floats(shape: readonly number[], values: Iterable<number>): Tensor {
  return { dtype: 'float32', shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

export function integers(shape: readonly number[], values: readonly number[]): Tensor {
  return { dtype: 'int64', shape, bytes: new Uint8Array(BigInt64Array.from(values.map(BigInt)).buffer) };
}

/** Values of a network's magnitude, the same in every run. */
export function noise(shape: readonly number[], scale = 0.5, seed = 1): Tensor {
  let state = seed >>> 0;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2 ** 32) * 2 - 1;
  };
  const count = shape.reduce((product, dim) => product * dim, 1);
  return floats(
    shape,
    Array.from({ length: count }, () => next() * scale),
  );
}

export type Feeds = Readonly<Record<string, Tensor>>;

/** A model written to a file. */
export async function written(graph: GraphBuilder, spec: ModelSpec = {}): Promise<string> {
  const path = freshPath();
  await writeModel(buildModel(graph, spec), path);
  return path;
}

export interface Converted {
  readonly input: string;
  readonly output: string;
  readonly result: ConversionResult;
  readonly model: OnnxModel;
  readonly nodes: readonly NodeProto[];
  /** The type a graph input, output or value is declared with in the result. */
  declared(name: string): string | undefined;
  /** The rule that kept a node, or undefined when it was converted. */
  keptBy(node: string): string | undefined;
}

export async function converted(input: string, options: Partial<ConvertOptions> = {}): Promise<Converted> {
  const output = freshPath();
  // Rules are shown on models of one node.
  const allowUnconverted = quantizedFormatNamed(options.precision) === undefined;
  const result = await convertModel(input, output, { precision: 'fp16', allowUnconverted, ...options });
  const model = openModel(output);
  model.close();
  const graph = model.proto.graph;
  return {
    input,
    output,
    result,
    model,
    nodes: [...visitNodes(model.proto)].map(({ node }) => node),
    declared: (name) =>
      declaredType(
        [...(graph?.input ?? []), ...(graph?.output ?? []), ...(graph?.valueInfo ?? [])].find(
          (info) => info.name === name,
        )?.type,
      ),
    keptBy: (node) => result.kept.find((kept) => kept.node === node)?.rule,
  };
}

/**
 * Runs a model on ONNX Runtime, by default without its optimizer: that of 1.30 drops FP16 casts of values that only an If body reads. 16-bit inputs are rounded from
 * the FP32 feeds, outputs come back as numbers.
 */
export async function run(
  path: string,
  feeds: Feeds,
  graphOptimizationLevel: 'disabled' | 'basic' | 'extended' | 'all' = 'disabled',
): Promise<Map<string, readonly number[]>> {
  const session = await ort.InferenceSession.create(path, {
    logSeverityLevel: 4,
    intraOpNumThreads: 1,
    graphOptimizationLevel,
  });
  try {
    const given = Object.fromEntries(
      session.inputMetadata.flatMap((input) => {
        const feed = feeds[input.name];
        return feed === undefined || !input.isTensor ? [] : [[input.name, ortTensor(feed, input.type)]];
      }),
    );
    const outputs = await session.run(given);
    return new Map(Object.entries(outputs).map(([name, tensor]) => [name, numbersOf(tensor)]));
  } finally {
    await session.release();
  }
}

/** Whether ONNX Runtime takes a model at all. */
export async function loads(path: string): Promise<boolean> {
  try {
    const session = await ort.InferenceSession.create(path, { logSeverityLevel: 4, intraOpNumThreads: 1 });
    await session.release();
    return true;
  } catch {
    return false;
  }
}

function ortTensor(feed: Tensor, wanted: string): OrtTensor {
  const { buffer, byteOffset, byteLength } = feed.bytes.slice();
  const dims = [...feed.shape];
  if (feed.dtype === 'int64')
    return new ort.Tensor('int64', new BigInt64Array(buffer, byteOffset, byteLength / 8), dims);
  if (feed.dtype === 'int32')
    return new ort.Tensor('int32', new Int32Array(buffer, byteOffset, byteLength / 4), dims);
  if (feed.dtype === 'bool')
    return new ort.Tensor('bool', new Uint8Array(buffer, byteOffset, byteLength), dims);
  if (feed.dtype === 'float64')
    return new ort.Tensor('float64', new Float64Array(buffer, byteOffset, byteLength / 8), dims);
  const values = new Float32Array(buffer, byteOffset, byteLength / 4);
  if (wanted !== 'float16') return new ort.Tensor('float32', values, dims);
  const halves = new Uint16Array(values.length);
  float32ToFloat16(values, halves);
  return new ort.Tensor('float16', halves, dims);
}

function numbersOf(tensor: OrtTensor): readonly number[] {
  const data: unknown = tensor.data;
  if (tensor.type === 'float16' && data instanceof Uint16Array) {
    const values = new Float32Array(data.length);
    float16ToFloat32(data, values);
    return [...values];
  }
  if (data instanceof BigInt64Array) return Array.from(data, Number);
  return Array.from(data as Float32Array, Number);
}

/** The largest difference between two runs, relative to the larger of 1 and the reference's magnitude. NaN where only one of them is finite. */
export function difference(
  reference: ReadonlyMap<string, readonly number[]>,
  other: ReadonlyMap<string, readonly number[]>,
): number {
  let largest = 0;
  for (const [name, expected] of reference) {
    const actual = other.get(name) ?? [];
    if (actual.length !== expected.length) return Number.NaN;
    const scale = Math.max(1, ...expected.map(Math.abs).filter(Number.isFinite));
    for (const [index, value] of expected.entries()) {
      const found = actual[index] ?? Number.NaN;
      if (Object.is(value, found) || value === found) continue;
      const error = Math.abs(value - found) / scale;
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

/** A calibration that has nothing but ranges. */
export const observedBy = (observe: Calibration['observe']): Calibration => ({
  digest: () => '',
  method: 'max',
  observe,
  calibrate: async () => new Map(),
});
