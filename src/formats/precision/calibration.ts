import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { type EventListener, ignoreEvents } from '../../events.js';
import { type OnnxModel, openModel } from '../onnx/model.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  NodeProtoSchema,
  TensorProtoSchema,
  ValueInfoProtoSchema,
} from '../onnx/onnx_pb.js';
import { writeModel } from '../onnx/write.js';
import type { NamedTensors } from '../tensor/tensor.js';
import { float32Values } from '../tensor/values.js';
import { isFloat32, isStored, readFlow, type Value } from './flow.js';
import { inlineFunctions } from './inline-functions.js';
import { normalise } from './normalise.js';
import type { ValueRange } from './options.js';

/** Runs a model file; the runtime's sessions fit. */
interface CalibrationSession {
  run(inputs: NamedTensors, options?: { readonly signal?: AbortSignal }): Promise<NamedTensors>;
  close(): Promise<void>;
}

interface CalibrationContext {
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
}

const MINIMA = 'trtforge/minima';
const MAXIMA = 'trtforge/maxima';

/**
 * Runs the FP32 model on every sample and gives the range of each activation of its graph (not of the bodies of If, Loop and Scan), zero included.
 * The ranges are computed inside the model, so nothing but two small vectors comes out of it. The copy that runs is written to a temporary folder.
 * Throws what opening, writing and running a model throw.
 */
export async function observeRanges(
  modelPath: string,
  samples: readonly NamedTensors[],
  openSession: (path: string) => Promise<CalibrationSession>,
  { emit = ignoreEvents, signal }: CalibrationContext = {},
): Promise<ReadonlyMap<string, ValueRange>> {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-calibration-'));
  try {
    const path = join(folder, 'ranges.onnx');
    const names = await writeObserver(modelPath, path, signal);
    if (names.length === 0) return new Map();
    const session = await openSession(path);
    try {
      const ranges = names.map(() => ({ min: 0, max: 0 }));
      for (const [index, sample] of samples.entries()) {
        const outputs = await session.run(sample, { signal });
        widen(ranges, vectorOf(outputs, MINIMA), vectorOf(outputs, MAXIMA));
        emit({ type: 'progress', phase: 'calibrate', done: index + 1, total: samples.length });
      }
      return new Map(names.map((name, index) => [name, ranges[index] ?? { min: 0, max: 0 }]));
    } finally {
      await session.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** NaN sticks, so that a rule sees it. */
function widen(ranges: { min: number; max: number }[], minima: Float32Array, maxima: Float32Array): void {
  for (const [index, range] of ranges.entries()) {
    range.min = Math.min(range.min, minima[index] ?? Number.NaN);
    range.max = Math.max(range.max, maxima[index] ?? Number.NaN);
  }
}

function vectorOf(outputs: NamedTensors, name: string): Float32Array {
  const tensor = outputs.get(name);
  return tensor === undefined ? new Float32Array() : float32Values(tensor);
}

/** Writes a copy of the model whose only outputs are the smallest and largest value of each activation; returns the activations' names. */
async function writeObserver(
  modelPath: string,
  path: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const model = openModel(modelPath);
  try {
    const names = observe(model);
    await writeModel(model, path, { signal });
    return names;
  } finally {
    model.close();
  }
}

function observe(model: OnnxModel): readonly string[] {
  inlineFunctions(model.proto);
  normalise(model.proto);
  const { root } = readFlow(model.proto);
  const observed = [...root.values.values()].filter((value) => isFloat32(value) && !isStored(value));
  const { graph } = root;
  graph.initializer.push(flatShape(), zero());
  graph.node.push(...observed.flatMap(reductions));
  graph.output = [];
  for (const [name, side] of [
    [MINIMA, 'min'],
    [MAXIMA, 'max'],
  ] as const) {
    const inputs = observed.map((_, index) => part(index, side));
    graph.node.push(node('Concat', inputs, name, { axis: 0n }));
    graph.output.push(
      create(ValueInfoProtoSchema, {
        name,
        type: { value: { case: 'tensorType', value: { elemType: 1 } } },
      }),
    );
  }
  return observed.map(({ name }) => name);
}

const part = (index: number, what: string): string => `trtforge/${index}/${what}`;

/** A zero is put in front, because the largest of no values at all is an error. */
function reductions(value: Value, index: number) {
  return [
    node('Reshape', [value.name, flatShape().name], part(index, 'flat')),
    node('Concat', [zero().name, part(index, 'flat')], part(index, 'all'), { axis: 0n }),
    node('ReduceMin', [part(index, 'all')], part(index, 'min'), { keepdims: 1n }),
    node('ReduceMax', [part(index, 'all')], part(index, 'max'), { keepdims: 1n }),
  ];
}

const node = (opType: string, input: string[], output: string, attributes: Record<string, bigint> = {}) =>
  create(NodeProtoSchema, {
    opType,
    name: output,
    input,
    output: [output],
    attribute: Object.entries(attributes).map(([name, i]) =>
      create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.INT, i }),
    ),
  });

const flatShape = () =>
  create(TensorProtoSchema, {
    name: 'trtforge/flat',
    dims: [1n],
    dataType: 7,
    rawData: new Uint8Array(BigInt64Array.of(-1n).buffer),
  });

const zero = () =>
  create(TensorProtoSchema, { name: 'trtforge/zero', dims: [1n], dataType: 1, rawData: new Uint8Array(4) });
