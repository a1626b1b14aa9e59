import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { decodeModel } from '../../../src/formats/onnx/decode.js';
import { type ModelProto, ModelProtoSchema } from '../../../src/formats/onnx/onnx_pb.js';
import { refusal } from '../../support/refusal.js';
import { everywhereModel } from './support/models.js';

const decode = (bytes: Uint8Array) => decodeModel('m.onnx', bytes);

/** A length-delimited record of a field below 16, with up to 16,383 bytes. */
const record = (field: number, ...content: number[]): number[] => [
  field * 8 + 2,
  ...(content.length < 128 ? [] : [(content.length & 127) | 128]),
  content.length < 128 ? content.length : content.length >> 7,
  ...content,
];

/** An input of a type that is a sequence of sequences of sequences …, in all of this depth of messages. */
function nested(depth: number): number[] {
  let type: number[] = [];
  for (let level = depth; level > 4; level -= 2) type = record(4, ...record(1, ...type));
  return record(7, ...record(11, ...record(2, ...type)));
}

/** Every kind of field, set to something, with unknown fields inside. */
function fullModel(): ModelProto {
  const { proto } = everywhereModel();
  proto.docString = 'größer – 数';
  proto.metadataProps.push({ $typeName: 'onnx.StringStringEntryProto', key: 'k', value: 'v' });
  proto.$unknown = [{ no: 77, wireType: 0, data: Uint8Array.of(0x96, 1) }];
  const tensor = proto.graph!.initializer[0]!;
  tensor.dims = [64n, -1n, 2n ** 62n, -(2n ** 63n)];
  tensor.floatData = [1.5, -0];
  tensor.doubleData = [Math.PI];
  tensor.int32Data = [-1, 2 ** 31 - 1, -(2 ** 31)];
  tensor.int64Data = [2n ** 63n - 1n, -1n];
  tensor.uint64Data = [2n ** 64n - 1n];
  tensor.stringData = [Uint8Array.of(), Uint8Array.of(255)];
  return proto;
}

describe('decodeModel', () => {
  it('accepts every kind of field, and the result encodes to the same bytes', () => {
    const bytes = toBinary(ModelProtoSchema, fullModel());
    const model = decode(bytes);
    expect(model).toEqual(fromBinary(ModelProtoSchema, bytes));
    expect(toBinary(ModelProtoSchema, model)).toEqual(bytes);
    expect(model.graph!.node[0]!.docString).toBe('');
    expect(Object.hasOwn(model.graph!.node[0]!, 'docString')).toBe(false);
  });

  it('merges a message field that occurs twice, and takes repeated numbers packed or one by one', () => {
    const nameOnly = Uint8Array.of(0x3a, 3, 0x12, 1, 0x61);
    const packedDims = Uint8Array.of(0x3a, 6, 0x2a, 4, 0x0a, 2, 5, 6);
    const singleDims = Uint8Array.of(0x3a, 6, 0x2a, 4, 0x08, 5, 0x08, 6);
    const model = decode(Buffer.concat([nameOnly, packedDims, singleDims]));
    expect(model.graph!.name).toBe('a');
    expect(model.graph!.initializer.map(({ dims }) => dims)).toEqual([
      [5n, 6n],
      [5n, 6n],
    ]);
  });

  it('counts the dimensions of a shape over all records that are merged into it', () => {
    const dimensions = record(2, ...Array.from({ length: 40 }, () => record(1)).flat());
    const tensorType = record(1, ...dimensions);
    const input = (...types: number[]) =>
      decode(Uint8Array.from(record(7, ...record(11, ...record(2, ...types)))));
    expect(input(...tensorType).graph!.input).toHaveLength(1);
    expect(refusal(() => input(...tensorType, ...tensorType)).code).toBe('TF_ONNX_TOO_LARGE');
  });

  it('keeps unknown enumeration values as unknown fields', () => {
    const model = decode(Uint8Array.of(0x3a, 4, 0x2a, 2, 0x70, 9));
    expect(model.graph!.initializer[0]!.$unknown).toEqual([{ no: 14, wireType: 0, data: Uint8Array.of(9) }]);
    expect(toBinary(ModelProtoSchema, model)).toEqual(Uint8Array.of(0x3a, 4, 0x2a, 2, 0x70, 9));
  });

  it('accepts messages that nest 100 deep', () => {
    expect(decode(Uint8Array.from(nested(100))).graph!.input).toHaveLength(1);
  });

  it.each([
    ['a length beyond its message', [0x3a, 2, 0x12, 9]],
    ['a number without end', [0x08, 0x80]],
    ['a number of 11 bytes', [0x08, ...new Array(10).fill(0x80), 1]],
    ['packed values that run over their length', [0x3a, 6, 0x2a, 4, 0x0a, 1, 0x85, 1]],
    ['a group', [0x0b, 0x0c]],
    ['field 0', [0x00, 1]],
    ['a field number beyond 2^29', [0x80, 0x80, 0x80, 0x80, 0x10, 1]],
    ['a string with the wire type of a number', [0x10, 5]],
    ['a number with the wire type of a string', [0x0a, 1, 5]],
    ['messages that nest deeper than 100', nested(102)],
  ])('rejects %s', (_name, bytes) => {
    expect(refusal(() => decode(Uint8Array.from(bytes))).code).toBe('TF_ONNX_CORRUPT');
  });
});
