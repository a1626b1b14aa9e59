import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  attribute,
  buildModel,
  GraphBuilder,
  openModel,
  writeModel,
} from '../../../../src/formats/onnx/index.js';
import { censusOf, lintWeights } from '../../../../src/formats/onnx/lint/weights.js';
import type { Dtype } from '../../../../src/formats/tensor/dtype.js';
import type { Tensor } from '../../../../src/formats/tensor/tensor.js';
import { float32, int64, scratchFolder } from '../support/models.js';

const folder = scratchFolder();
let files = 0;

async function findingsOf(value: Tensor, signal?: AbortSignal) {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', ['n']);
  graph.initializer('w', value);
  graph.node('Add', { inputs: ['x', 'w'], outputs: ['y'] });
  graph.output('y', 'float32', ['n']);
  const path = join(folder, `weights${files++}.onnx`);
  await writeModel(buildModel(graph), path);
  const model = openModel(path);
  try {
    return await lintWeights(model, signal === undefined ? {} : { signal });
  } finally {
    model.close();
  }
}

const bits = (dtype: Dtype, words: Uint8Array | Uint16Array | Uint32Array | Float64Array) => ({
  dtype,
  *chunks() {
    yield new Uint8Array(words.buffer);
  },
});

describe('censusOf', () => {
  it.each([
    [
      'float32',
      Uint32Array.of(0x7fc00000, 0xff800000, 0x477ff000, 0x477fefff, 0x33000000, 0x33000001, 0x80000000),
      [1, 1, 1, 1],
    ],
    ['float16', Uint16Array.of(0x7e00, 0xfc00, 0x7bff, 0x0001), [1, 1, 0, 0]],
    ['bfloat16', Uint16Array.of(0x7fc0, 0x7f80, 0x4780, 0x477f, 0x3300, 0x3301), [1, 1, 1, 1]],
    [
      'float64',
      Float64Array.of(Number.NaN, Number.NEGATIVE_INFINITY, 65520, 65519, 2 ** -25, 1e-7, 0),
      [1, 1, 1, 1],
    ],
    ['float8_e4m3fn', Uint8Array.of(0x7f, 0xff, 0x7e, 0), [2, 0, 0, 0]],
    ['float8_e5m2', Uint8Array.of(0x7d, 0xfc, 0x7b, 0), [1, 1, 0, 0]],
    ['int8', Uint8Array.of(0x7f, 0xff), [0, 0, 0, 0]],
  ] as const)('counts NaN, infinities, overflow and underflow of %s', (dtype, words, counts) => {
    const { nan, infinite, overflow, underflow } = censusOf(bits(dtype, words));
    expect([nan, infinite, overflow, underflow]).toEqual(counts);
  });

  it('gives the largest finite magnitude', () => {
    const { largest } = censusOf(
      bits('float32', new Uint32Array(Float32Array.of(1, -70000, 3, Number.POSITIVE_INFINITY).buffer)),
    );
    expect(largest).toBe(70000);
  });
});

describe('lintWeights', () => {
  it.each([
    ['ordinary weights', float32([3], [1, -2, 65504]), []],
    ['NaN', float32([2], [Number.NaN, 1]), ['weights-nan']],
    ['infinity', float32([2], [Number.NEGATIVE_INFINITY, 1]), ['weights-inf']],
    ['values beyond FP16', float32([2], [1e6, 1]), ['weights-fp16-overflow']],
    ['many vanishing values', float32([2], [1e-9, 1]), ['weights-fp16-underflow']],
    ['a long list of large int64', int64([300], new Array(300).fill(5e9)), ['int64-clamped']],
  ])('reports %s', async (_name, value, expected) => {
    expect((await findingsOf(value)).map(({ code }) => code)).toEqual(expected);
  });

  it('names the tensor and reports how many', async () => {
    expect(await findingsOf(float32([2], [1e6, 1]))).toEqual([
      {
        code: 'weights-fp16-overflow',
        severity: 'warning',
        message: '1 of 2 values are outside the range of FP16 (largest 1.000e+6, FP16 ends at 65504).',
        where: 'graph initializer "w"',
      },
    ]);
  });

  it('looks into constants of nodes', async () => {
    const graph = new GraphBuilder('g');
    const value = float32([1], [Number.NaN]);
    graph.node('Constant', { outputs: ['y'], name: 'c', attributes: { value: attribute.tensor(value) } });
    graph.output('y', 'float32', [1]);
    const path = join(folder, 'constant.onnx');
    await writeModel(buildModel(graph), path);
    const model = openModel(path);
    expect((await lintWeights(model)).map(({ where }) => where)).toEqual(['graph/Constant "c".value']);
    model.close();
  });

  it('can be cancelled', async () => {
    const graph = new GraphBuilder('g');
    const chunk = new Uint8Array(4 << 20);
    graph.initializer('w', {
      dtype: 'float32',
      shape: [300, 1 << 18],
      *chunks() {
        for (let index = 0; index < 75; index++) yield chunk;
      },
    });
    const path = join(folder, 'large.onnx');
    await writeModel(buildModel(graph), path);
    const model = openModel(path);
    const abort = new AbortController();
    const work = lintWeights(model, { signal: abort.signal });
    abort.abort();
    await expect(work).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    model.close();
  });
});
