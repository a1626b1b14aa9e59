import { type DescField, type DescMessage, fromBinary, ScalarType, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { decodeModel } from '../../../src/formats/onnx/decode.js';
import { messageTypes } from '../../../src/formats/onnx/message-types.js';
import { file_onnx, type ModelProto, ModelProtoSchema } from '../../../src/formats/onnx/onnx_pb.js';
import { everywhereModel } from './support/models.js';

const allMessages = (messages: readonly DescMessage[]): DescMessage[] =>
  messages.flatMap((message) => [message, ...allMessages(message.nestedMessages)]);

const kindOf = (field: DescField): string => {
  const { message, scalar } = field;
  if (message !== undefined) return message.typeName;
  return scalar === undefined ? 'enum' : ScalarType[scalar].toLowerCase();
};

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

describe('the table of message types', () => {
  it('has the messages, fields, numbers and kinds of the generated code', () => {
    const generated = allMessages(file_onnx.messages).map((message) => [
      message.typeName,
      message.fields.map((field) => [
        field.number,
        field.localName,
        kindOf(field),
        field.fieldKind === 'list',
        field.oneof?.localName,
      ]),
    ]);
    const ours = [...messageTypes.values()].map((type) => [
      type.typeName,
      type.fields.flatMap((field) =>
        field === undefined
          ? []
          : [[field.number, field.name, field.message?.typeName ?? field.kind, field.repeated, field.oneof]],
      ),
    ]);
    const byName = (a: unknown[], b: unknown[]) => (String(a[0]) < String(b[0]) ? -1 : 1);
    const sortFields = (list: unknown[][]) =>
      list.map(([name, fields]) => [name, [...(fields as [number][])].sort((a, b) => a[0] - b[0])]);
    expect(sortFields(ours).sort(byName)).toEqual(sortFields(generated).sort(byName));
  });
});

describe('decodeModel', () => {
  it('gives what protobuf-es gives, which encodes it to the same bytes', () => {
    const bytes = toBinary(ModelProtoSchema, fullModel());
    const ours = decodeModel(bytes);
    expect(ours).toEqual(fromBinary(ModelProtoSchema, bytes));
    expect(toBinary(ModelProtoSchema, ours)).toEqual(bytes);
    expect(ours.graph!.node[0]!.docString).toBe('');
    expect(Object.hasOwn(ours.graph!.node[0]!, 'docString')).toBe(false);
  });

  it('merges a message field that occurs twice, and takes repeated numbers packed or one by one', () => {
    const nameOnly = Uint8Array.of(0x3a, 3, 0x12, 1, 0x61);
    const packedDims = Uint8Array.of(0x3a, 6, 0x2a, 4, 0x0a, 2, 5, 6);
    const singleDims = Uint8Array.of(0x3a, 6, 0x2a, 4, 0x08, 5, 0x08, 6);
    const model = decodeModel(Buffer.concat([nameOnly, packedDims, singleDims]));
    expect(model.graph!.name).toBe('a');
    expect(model.graph!.initializer.map(({ dims }) => dims)).toEqual([
      [5n, 6n],
      [5n, 6n],
    ]);
  });

  it('keeps fields with a wrong wire type and unknown enumeration values as unknown fields', () => {
    const model = decodeModel(Uint8Array.of(0x10, 5, 0x3a, 4, 0x2a, 2, 0x70, 9));
    expect(model.$unknown).toEqual([{ no: 2, wireType: 0, data: Uint8Array.of(5) }]);
    expect(model.graph!.initializer[0]!.$unknown).toEqual([{ no: 14, wireType: 0, data: Uint8Array.of(9) }]);
    expect(toBinary(ModelProtoSchema, model)).toEqual(Uint8Array.of(0x3a, 4, 0x2a, 2, 0x70, 9, 0x10, 5));
  });

  it.each([
    ['a length beyond its message', [0x3a, 2, 0x12, 9]],
    ['a number without end', [0x08, 0x80]],
    ['a group', [0x0b, 0x0c]],
    ['field 0', [0x00, 1]],
  ])('refuses %s', (_name, bytes) => {
    expect(() => decodeModel(Uint8Array.from(bytes))).toThrow(/onnx\.(Model|Graph)Proto/);
  });
});
