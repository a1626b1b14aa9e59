import { describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { modelOf } from '../../../src/formats/onnx/model.js';
import { refusal } from '../../support/refusal.js';

function varint(value: number): Buffer {
  const bytes = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 128);
  }
}

const field = (number: number, content: Uint8Array): Buffer =>
  Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
const text = (number: number, content: string): Buffer => field(number, Buffer.from(content));
const times = (count: number, record: Uint8Array): Buffer => Buffer.alloc(count * record.length, record);
const node = (...content: readonly Buffer[]): Buffer =>
  field(1, Buffer.concat([text(4, 'Relu'), ...content]));
const opset = field(8, Buffer.from([16, 17]));
const open = (graph: Uint8Array) =>
  modelOf(bytesSource('m.onnx', Buffer.concat([Buffer.from([8, 8]), opset, field(7, graph)])));
const shaped = (rank: number) =>
  field(5, Buffer.concat([field(1, times(rank, Buffer.of(1))), Buffer.from([16, 1])]));
const empty = Buffer.alloc(0);

describe('an ONNX file that costs more memory than any model', () => {
  it.each([
    ['nodes', () => times(500_001, field(1, empty))],
    ['initializers', () => times(500_001, field(5, empty))],
    ['attributes', () => node(times(2_000_001, field(5, empty)))],
    ['fields that ONNX does not know', () => node(times(2_000_001, Buffer.concat([varint(800), varint(1)])))],
    ['values of an attribute', () => node(field(5, field(8, Buffer.alloc(8_000_001, 1))))],
    ['inputs of a node', () => node(times(8_000_001, field(1, empty)))],
    ['dimensions of a tensor', () => shaped(65)],
    ['dimensions of a value', () => field(11, field(2, field(1, field(2, times(65, field(1, empty))))))],
    ['bytes that are not weights', () => node(field(1, Buffer.alloc(128 << 20)))],
    ['bytes of a tensor that are not its values', () => field(5, field(8, Buffer.alloc(128 << 20)))],
  ])('is rejected for its %s', (_what, graph) => {
    expect(refusal(() => open(graph())).code).toBe('TF_ONNX_TOO_LARGE');
  });

  it('is rejected for a tensor of many separate fields', () => {
    const alternating = times(1000, Buffer.from([0x20 + 5, 0, 0, 0, 0, 0x28, 1]));
    expect(refusal(() => open(field(5, alternating))).code).toBe('TF_ONNX_CORRUPT');
  });

  it('is not one that has 64 dimensions, or the values of a tensor one by one', () => {
    const { proto } = open(shaped(64));
    expect(proto.graph?.initializer[0]?.dims).toHaveLength(64);
    const single = Buffer.concat([
      times(20, Buffer.from([8, 1])),
      times(5000, Buffer.from([0x25, 0, 0, 0, 0])),
    ]);
    expect(open(field(5, single)).proto.graph?.initializer[0]?.dims).toHaveLength(20);
  });
});
