import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { ModelProtoSchema, type TensorProto, TensorProtoSchema } from '../../../src/formats/onnx/index.js';
import { modelOf } from '../../../src/formats/onnx/model.js';
import { type Dtype, dtypes } from '../../../src/formats/tensor/dtype.js';
import { codeOf } from '../../support/refusal.js';
import { bytesOf } from './support/models.js';

type Fields = Partial<Omit<TensorProto, '$typeName' | '$unknown'>>;

const modelWith = (tensor: TensorProto) =>
  create(ModelProtoSchema, { irVersion: 8n, graph: { name: 'g', initializer: [tensor] } });

/** The weight of the only tensor of a model encoded by protobuf-es; `inlineBytes` 0 leaves every payload in the file. */
function weightOf(dtype: Dtype, dims: readonly number[], fields: Fields, inlineBytes: number) {
  const tensor = create(TensorProtoSchema, {
    name: 't',
    dims: dims.map(BigInt),
    dataType: dtypes[dtype].onnx,
    ...fields,
  });
  return weightIn(toBinary(ModelProtoSchema, modelWith(tensor)), inlineBytes);
}

function weightIn(bytes: Uint8Array, inlineBytes: number) {
  const model = modelOf(bytesSource('model.onnx', bytes), { inlineBytes });
  return model.weight(model.proto.graph!.initializer[0]!);
}

const little = (
  array:
    | Float32Array
    | Float64Array
    | BigInt64Array
    | BigUint64Array
    | Int32Array
    | Uint16Array
    | Uint32Array
    | Int16Array,
) => Buffer.from(array.buffer);

const cases: readonly (readonly [Dtype, readonly number[], Fields, Buffer])[] = [
  ['float32', [3], { floatData: [1.5, -0, Number.NaN] }, little(Float32Array.of(1.5, -0, Number.NaN))],
  ['complex64', [1], { floatData: [1.5, 2] }, little(Float32Array.of(1.5, 2))],
  ['float64', [2], { doubleData: [Math.PI, -1e300] }, little(Float64Array.of(Math.PI, -1e300))],
  ['complex128', [1], { doubleData: [1, 2] }, little(Float64Array.of(1, 2))],
  [
    'int64',
    [4],
    { int64Data: [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)] },
    little(BigInt64Array.of(0n, -1n, 2n ** 63n - 1n, -(2n ** 63n))),
  ],
  [
    'uint64',
    [2],
    { uint64Data: [2n ** 64n - 1n, 2n ** 35n] },
    little(BigUint64Array.of(2n ** 64n - 1n, 2n ** 35n)),
  ],
  ['uint32', [2], { uint64Data: [2n ** 32n - 1n, 7n] }, little(Uint32Array.of(2 ** 32 - 1, 7))],
  [
    'int32',
    [3],
    { int32Data: [-1, 2 ** 31 - 1, -(2 ** 31)] },
    little(Int32Array.of(-1, 2 ** 31 - 1, -(2 ** 31))),
  ],
  ['int16', [2], { int32Data: [-2, 32767] }, little(Int16Array.of(-2, 32767))],
  ['uint16', [2], { int32Data: [65535, 1] }, little(Uint16Array.of(65535, 1))],
  ['int8', [3], { int32Data: [-128, -1, 127] }, Buffer.from([128, 255, 127])],
  ['uint8', [2], { int32Data: [255, 0] }, Buffer.from([255, 0])],
  ['bool', [3], { int32Data: [1, 0, 1] }, Buffer.from([1, 0, 1])],
  ['float16', [2], { int32Data: [0x3c00, 0xfbff] }, little(Uint16Array.of(0x3c00, 0xfbff))],
  ['bfloat16', [2], { int32Data: [0x3f80, 0xff7f] }, little(Uint16Array.of(0x3f80, 0xff7f))],
  ['float8_e4m3fn', [2], { int32Data: [0x38, 0xff] }, Buffer.from([0x38, 0xff])],
  ['int4', [3], { int32Data: [0x21, 0x0f] }, Buffer.from([0x21, 0x0f])],
  ['float4_e2m1fn', [2], { int32Data: [0x7a] }, Buffer.from([0x7a])],
  ['float32', [2], { rawData: new Uint8Array(little(Float32Array.of(1, 2))) }, little(Float32Array.of(1, 2))],
  ['int4', [5], { rawData: Uint8Array.of(1, 2, 3) }, Buffer.from([1, 2, 3])],
  ['float32', [], { floatData: [7] }, little(Float32Array.of(7))],
  ['float32', [0, 3], {}, Buffer.alloc(0)],
  [
    'string',
    [2],
    { stringData: [Buffer.from('ab'), Buffer.from('')] },
    Buffer.from('\x02\0\0\0ab\0\0\0\0', 'latin1'),
  ],
];

describe.each([
  ['in the messages', 1 << 20],
  ['left in the file', 0],
])('weights whose values are %s', (_name, inlineBytes) => {
  it.each(cases)('%s of shape %j', (dtype, dims, fields, expected) => {
    const weight = weightOf(dtype, dims, fields, inlineBytes);
    expect(bytesOf(weight)).toEqual(expected);
    expect(weight).toMatchObject({ dtype, dims, byteLength: expected.length });
    const isLeft = inlineBytes === 0 && Object.keys(fields).length > 0;
    const left = 'rawData' in fields ? 'embedded' : 'encoded';
    expect(weight.where.kind).toBe(isLeft ? left : 'inline');
  });
});

describe('chunks', () => {
  const values = Array.from({ length: 5000 }, (_, index) => (index * 7919) % 300000);

  it.each([1, 16, 100, 4096, 1 << 20])(
    'of about %i bytes hold whole values, aligned, and give the same bytes',
    (chunkBytes) => {
      const weight = weightOf('int64', [5000], { int64Data: values.map(BigInt) }, 0);
      const sizes = Array.from(weight.chunks(chunkBytes), (chunk) => {
        expect(chunk.byteOffset % 16).toBe(0);
        return chunk.length;
      });
      expect(new Set(sizes.slice(0, -1)).size).toBeLessThan(2);
      expect(sizes[0]! % 16).toBe(0);
      expect(bytesOf(weight, chunkBytes)).toEqual(little(BigInt64Array.from(values.map(BigInt))));
    },
  );

  it('can be read again', () => {
    const weight = weightOf('float32', [3], { floatData: [1, 2, 3] }, 0);
    expect(bytesOf(weight)).toEqual(bytesOf(weight));
  });
});

describe('unusual but legal encodings', () => {
  const record = (field: number, wireType: number, ...content: readonly number[]) => [
    field * 8 + wireType,
    ...content,
  ];
  const tensor = (...content: readonly number[]) =>
    Uint8Array.from([0x3a, content.length + 2, 0x2a, content.length, ...content]);
  const header = [...record(1, 0, 3), ...record(2, 0, 7), ...record(8, 2, 1, 0x74)];

  it.each([
    ['one record per value', [...record(7, 0, 5), ...record(7, 0, 6), ...record(7, 0, 0x80, 1)]],
    ['packed runs in pieces', [...record(7, 2, 1, 5), ...record(7, 2, 3, 6, 0x80, 1)]],
    ['packed and single, mixed', [...record(7, 0, 5), ...record(7, 2, 1, 6), ...record(7, 0, 0x80, 1)]],
    ['numbers longer than needed', [...record(7, 2, 5, 0x85, 0, 6, 0x80, 1)]],
  ])('%s', (_name, payload) => {
    const expected = little(BigInt64Array.of(5n, 6n, 128n));
    for (const inlineBytes of [0, 1024]) {
      expect(bytesOf(weightIn(tensor(...header, ...payload), inlineBytes))).toEqual(expected);
    }
  });

  it('the last of two raw_data counts', () => {
    const bytes = tensor(
      ...record(1, 0, 1),
      ...record(2, 0, 2),
      ...record(9, 2, 1, 7),
      ...record(9, 2, 1, 8),
    );
    for (const inlineBytes of [0, 1024])
      expect(bytesOf(weightIn(bytes, inlineBytes))).toEqual(Buffer.from([8]));
  });
});

describe('a tensor that contradicts itself', () => {
  it.each([
    ['too little raw_data', 'float32', [4], { rawData: new Uint8Array(12) }],
    ['too much raw_data', 'float32', [4], { rawData: new Uint8Array(20) }],
    ['no values', 'float32', [4], {}],
    ['a negative dimension', 'float32', [-4], { rawData: new Uint8Array(16) }],
    ['dimensions beyond all memory', 'float32', [2 ** 40, 2 ** 40], { rawData: new Uint8Array(16) }],
    ['values in the wrong field', 'float32', [1], { int64Data: [1n] }],
    ['too few numbers', 'int64', [3], { int64Data: [1n] }],
    ['too many numbers', 'int64', [1], { int64Data: [1n, 2n] }],
    ['too few strings', 'string', [2], { stringData: [Uint8Array.of()] }],
  ] as const)('is rejected by name: %s', (_name, dtype, dims, fields) => {
    for (const inlineBytes of [0, 1024]) {
      expect(codeOf(() => bytesOf(weightOf(dtype, dims, fields as Fields, inlineBytes)))).toBe(
        'TF_ONNX_TENSOR_INVALID',
      );
    }
  });

  it('is rejected when its type is unknown', () => {
    const tensor = create(TensorProtoSchema, {
      name: 't',
      dims: [1n],
      dataType: 99,
      rawData: new Uint8Array(4),
    });
    expect(() => weightIn(toBinary(ModelProtoSchema, modelWith(tensor)), 0)).toThrow(
      /"t" has the element type 99/,
    );
  });
});
