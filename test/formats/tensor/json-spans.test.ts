import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { base64Source } from '../../../src/formats/tensor/base64-source.js';
import { type JsonNode, JsonSpan, readJsonSpans, spanText } from '../../../src/formats/tensor/json-spans.js';

function plain(text: string): unknown {
  const source = bytesSource('test', Buffer.from(text));
  const visit = (node: JsonNode): unknown => {
    if (node instanceof JsonSpan) return spanText(source, node);
    if (Array.isArray(node)) return node.map(visit);
    return node instanceof Map ? new Map([...node].map(([key, value]) => [key, visit(value)])) : node;
  };
  return visit(readJsonSpans(source));
}

const asMaps = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asMaps);
  return typeof value === 'object' && value !== null
    ? new Map(Object.entries(value).map(([key, each]) => [key, asMaps(each)]))
    : value;
};

describe('JSON whose long strings stay in the file', () => {
  it('reads what JSON.parse reads, whatever the spaces', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.constantFrom(undefined, 1, '\t'), (text, space) => {
        const value: unknown = JSON.parse(text);
        // Numbers such as -0 and keys such as __proto__ are what JSON.parse makes of them.
        fc.pre(!text.includes('__proto__'));
        expect(plain(JSON.stringify(value, null, space))).toEqual(asMaps(JSON.parse(JSON.stringify(value))));
      }),
    );
  });

  it.each([4095, 4096, 1 << 20, (1 << 20) + 1, 3_000_000])('finds the end of a string of %i', (length) => {
    const text = 'x'.repeat(length);
    expect(plain(JSON.stringify({ before: 'b', text, after: 1 }))).toEqual(
      new Map<string, unknown>([
        ['before', 'b'],
        ['text', text],
        ['after', 1],
      ]),
    );
  });

  it('minds escapes wherever a window of the file ends', () => {
    const base = (1 << 20) - 12;
    for (let shift = 0; shift < 8; shift++) {
      const text = `${'y'.repeat(base + shift)}\\"\\\\"`;
      expect(plain(JSON.stringify([text, 2]))).toEqual([text, 2]);
    }
  });

  it("takes Python's NaN and Infinity", () => {
    expect(plain('[NaN, Infinity, -Infinity, 1e3]')).toEqual([
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      1000,
    ]);
  });
});

describe('base64 within a file', () => {
  it('is read from anywhere', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(210), fc.nat(60), (bytes, from, length) => {
        const text = `head${Buffer.from(bytes).toString('base64')}tail`;
        const source = base64Source(bytesSource('test', Buffer.from(text)), 4, text.length - 8);
        expect(source.size).toBe(bytes.length);
        const target = new Uint8Array(length);
        const wanted = bytes.slice(from, from + length);
        expect(source.read(target, from, length)).toBe(wanted.length);
        expect(target.slice(0, wanted.length)).toEqual(wanted);
      }),
    );
  });

  it('is read in steps when there is much of it', () => {
    const bytes = Uint8Array.from({ length: 2_000_003 }, (_, i) => (i * 7) & 255);
    const text = Buffer.from(Buffer.from(bytes).toString('base64'));
    const target = new Uint8Array(bytes.length - 5);
    expect(base64Source(bytesSource('test', text), 0, text.length).read(target, 5, target.length)).toBe(
      target.length,
    );
    expect(Buffer.compare(target, bytes.subarray(5))).toBe(0);
  });
});
