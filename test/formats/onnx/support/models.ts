import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import {
  attribute,
  buildModel,
  GraphBuilder,
  type ModelLike,
  type WeightStream,
} from '../../../../src/formats/onnx/index.js';
import type { Dtype } from '../../../../src/formats/tensor/dtype.js';
import type { Tensor } from '../../../../src/formats/tensor/tensor.js';

/** A folder that is gone when the tests of the file are done. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-onnx-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A tensor with bytes 0, 1, 2, … so that every place in it is recognisable. */
export function counting(dtype: Dtype, shape: readonly number[], byteLength: number): Tensor {
  return { dtype, shape, bytes: Uint8Array.from({ length: byteLength }, (_, index) => (index * 7) & 255) };
}

export const float32 = (shape: readonly number[], values: readonly number[]): Tensor => ({
  dtype: 'float32',
  shape,
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});

export const int64 = (shape: readonly number[], values: readonly number[]): Tensor => ({
  dtype: 'int64',
  shape,
  bytes: new Uint8Array(BigInt64Array.from(values.map(BigInt)).buffer),
});

/** x:[batch,64] → MatMul → If(flag) with a weight in each body → y; a Constant, a function and generated weights: tensors in every usual place. */
export function everywhereModel(): ModelLike {
  const branch = (name: string, factor: number) => {
    const body = new GraphBuilder(name);
    body.initializer(
      `${name}_weight`,
      float32(
        [64],
        Array.from({ length: 64 }, (_, i) => i * factor),
      ),
    );
    body.node('Mul', { inputs: ['hidden', `${name}_weight`], outputs: [`${name}_out`], name: `${name}_mul` });
    body.output(`${name}_out`, 'float32', ['batch', 64]);
    return body;
  };
  const graph = new GraphBuilder('everywhere');
  graph.input('x', 'float32', ['batch', 64]);
  graph.input('flag', 'bool', []);
  graph.initializer('w', {
    dtype: 'float32',
    shape: [64, 64],
    *chunks() {
      for (let row = 0; row < 64; row++) {
        yield new Uint8Array(Float32Array.from({ length: 64 }, (_, i) => (row === i ? 1 : 0)).buffer);
      }
    },
  });
  graph.node('MatMul', { inputs: ['x', 'w'], outputs: ['product'], name: 'matmul' });
  graph.node('Constant', {
    outputs: ['bias'],
    name: 'constant',
    attributes: {
      value: attribute.tensor(
        float32(
          [512],
          Array.from({ length: 512 }, (_, i) => i / 512),
        ),
      ),
    },
  });
  graph.initializer('slice', int64([1], [0]));
  graph.initializer('ends', int64([1], [64]));
  graph.node('Slice', { inputs: ['bias', 'slice', 'ends'], outputs: ['bias64'], name: 'slice64' });
  graph.node('Scaled', {
    inputs: ['product', 'bias64'],
    outputs: ['hidden'],
    name: 'scaled',
    domain: 'test',
  });
  graph.node('If', {
    inputs: ['flag'],
    outputs: ['y'],
    name: 'choose',
    attributes: {
      then_branch: attribute.body(branch('yes', 1)),
      else_branch: attribute.body(branch('no', -1)),
    },
  });
  graph.output('y', 'float32', ['batch', 64]);

  const scaled = new GraphBuilder('scaled');
  scaled.node('Constant', {
    outputs: ['two'],
    attributes: { value: attribute.tensor(float32([1, 512], new Array(512).fill(2))) },
  });
  scaled.node('ReduceMean', {
    inputs: ['two'],
    outputs: ['mean'],
    attributes: { axes: attribute.ints([1]) },
  });
  scaled.node('Mul', { inputs: ['a', 'mean'], outputs: ['doubled'] });
  scaled.node('Add', { inputs: ['doubled', 'b'], outputs: ['c'] });
  return buildModel(graph, {
    opset: 17,
    opsets: { test: 1 },
    functions: [
      {
        domain: 'test',
        name: 'Scaled',
        inputs: ['a', 'b'],
        outputs: ['c'],
        nodes: scaled,
        opsets: { '': 17 },
      },
    ],
  });
}

/** All bytes of a stream; chunks are copied, because a stream uses its buffer again. */
export const bytesOf = (stream: WeightStream, chunkBytes?: number): Buffer =>
  Buffer.concat(Array.from(stream.chunks(chunkBytes), (chunk) => chunk.slice()));
