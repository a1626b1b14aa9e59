import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  type GraphProtoSchema,
  ModelProtoSchema,
  type NodeProtoSchema,
  type TensorProtoSchema,
  type ValueInfoProtoSchema,
} from '../../src/formats/onnx/onnx_pb.js';

/** ONNX models of a few nodes, made in the test that builds them. Dimensions: a number, or a name for an open one. */
type Dimension = number | string;

const FLOAT = 1;
const INT64 = 7;

function value(
  name: string,
  dims: readonly Dimension[],
  elemType = FLOAT,
): MessageInitShape<typeof ValueInfoProtoSchema> {
  const dim = dims.map((dimension) =>
    typeof dimension === 'string'
      ? { value: { case: 'dimParam' as const, value: dimension } }
      : { value: { case: 'dimValue' as const, value: BigInt(dimension) } },
  );
  return { name, type: { value: { case: 'tensorType', value: { elemType, shape: { dim } } } } };
}

function weight(
  name: string,
  dims: readonly number[],
  fill: (index: number) => number = (index) => Math.sin(index) / 8,
): MessageInitShape<typeof TensorProtoSchema> {
  const values = Float32Array.from(
    { length: dims.reduce((product, dimension) => product * dimension, 1) },
    (_, index) => fill(index),
  );
  return { name, dataType: FLOAT, dims: dims.map(BigInt), rawData: new Uint8Array(values.buffer) };
}

const node = (
  opType: string,
  input: string[],
  output: string[],
  more: MessageInitShape<typeof NodeProtoSchema> = {},
): MessageInitShape<typeof NodeProtoSchema> => ({ opType, name: `${opType}_0`, input, output, ...more });

function writeModel(folder: string, name: string, graph: MessageInitShape<typeof GraphProtoSchema>): string {
  const model = create(ModelProtoSchema, {
    irVersion: 8n,
    opsetImport: [
      { domain: '', version: 17n },
      { domain: 'acme', version: 1n },
    ],
    graph: { name, ...graph },
  });
  const path = join(folder, `${name}.onnx`);
  writeFileSync(path, toBinary(ModelProtoSchema, model));
  return path;
}

/** y = relu(x · w), x of an open batch and 64 columns. */
export const dynamicModel = (folder: string): string =>
  writeModel(folder, 'dynamic', {
    input: [value('x', ['batch', 64])],
    output: [value('y', ['batch', 32])],
    initializer: [weight('w', [64, 32])],
    node: [node('MatMul', ['x', 'w'], ['h']), node('Relu', ['h'], ['y'])],
  });

/** The same with a fixed batch of 4: it needs no profile. */
export const staticModel = (folder: string): string =>
  writeModel(folder, 'static', {
    input: [value('x', [4, 64])],
    output: [value('y', [4, 32])],
    initializer: [weight('w', [64, 32])],
    node: [node('MatMul', ['x', 'w'], ['h']), node('Relu', ['h'], ['y'])],
  });

/** An elementwise model, which every architecture compiles in FP32 (Turing has no FP32 matrix multiplication in tensorrt-rtx). */
export const elementwiseModel = (folder: string): string =>
  writeModel(folder, 'elementwise', {
    input: [value('x', ['batch', 16])],
    output: [value('y', ['batch', 16])],
    initializer: [weight('b', [16])],
    node: [node('Add', ['x', 'b'], ['h']), node('Sigmoid', ['h'], ['y'])],
  });

/** y = reshape(x, s): the second input is a shape tensor, given by its values. */
export const shapeTensorModel = (folder: string): string =>
  writeModel(folder, 'reshape', {
    input: [value('x', ['batch', 16]), value('s', [2], INT64)],
    output: [value('y', ['rows', 'columns'])],
    node: [node('Reshape', ['x', 's'], ['y'])],
  });

/** Two nodes no TensorRT knows. */
export const unknownOpModel = (folder: string): string =>
  writeModel(folder, 'unknown-op', {
    input: [value('x', [1, 4])],
    output: [value('y', [1, 4])],
    node: [
      node('Frobnicate', ['x'], ['h'], { domain: 'acme', name: 'the_odd_one' }),
      node('Relu', ['h'], ['y']),
    ],
  });

/** A chain of `depth` distinct layers: its build takes long enough to be stopped in the middle. */
export const deepModel = (folder: string, depth = 60, width = 256): string =>
  writeModel(folder, 'deep', {
    input: [value('h0', ['batch', width])],
    output: [value(`h${depth}`, ['batch', width])],
    initializer: Array.from({ length: depth }, (_, layer) =>
      weight(`w${layer}`, [width, width], (index) => Math.sin(index + layer) / width),
    ),
    node: Array.from({ length: depth }, (_, layer) => [
      node('MatMul', [`h${layer}`, `w${layer}`], [`m${layer}`], { name: `mm${layer}` }),
      node(layer % 2 === 0 ? 'Tanh' : 'Softmax', [`m${layer}`], [`h${layer + 1}`], { name: `act${layer}` }),
    ]).flat(),
  });
