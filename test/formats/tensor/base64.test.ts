import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { BASE64_STEP, base64Decoder } from '../../../src/formats/tensor/base64-decoder.js';
import { base64Source } from '../../../src/formats/tensor/base64-source.js';

/** What the decoder makes of a text in a target of so many bytes, from `at` on. */
function decoded(text: string, room: number, at = 0): { bytes: Buffer; written: number } {
  const decoder = base64Decoder();
  decoder.text.write(text, 0, 'latin1');
  const bytes = Buffer.alloc(room, 0xa5);
  return { bytes, written: decoder.decode(text.length, bytes, at) };
}
function byNode(text: string, room: number, at = 0): { bytes: Buffer; written: number } {
  const bytes = Buffer.alloc(room, 0xa5);
  return { bytes, written: bytes.write(text, at, 'base64') };
}

describe('the decoder of base64', () => {
  it('gives back any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 1000 }), (bytes) => {
        const text = Buffer.from(bytes).toString('base64');
        expect(decoded(text, bytes.length)).toEqual({ bytes: Buffer.from(bytes), written: bytes.length });
      }),
    );
  });

  it('decodes every character in every place of a vector as Node does, those that are none of base64 too', () => {
    const text = Buffer.from('abc/DEF+0129wxyz'.repeat(12));
    for (let code = 0; code < 256; code++) {
      for (let place = 60; place < 80; place++) {
        const changed = Buffer.from(text);
        changed[place] = code;
        const latin1 = changed.toString('latin1');
        expect(decoded(latin1, 144)).toEqual(byNode(latin1, 144));
      }
    }
  });

  it('writes no more than there is room for, and where it is told to', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 400 }),
        fc.nat({ max: 400 }),
        fc.nat({ max: 50 }),
        (bytes, room, at) => {
          fc.pre(at <= room);
          const text = Buffer.from(bytes).toString('base64');
          expect(decoded(text, room, at)).toEqual(byNode(text, room, at));
        },
      ),
    );
  });

  it('takes a whole step', () => {
    const bytes = Buffer.from(
      Uint8Array.from({ length: (BASE64_STEP / 4) * 3 }, (_, i) => (i * 2654435761) >>> 13),
    );
    const { bytes: found, written } = decoded(bytes.toString('base64'), bytes.length);
    expect(written).toBe(bytes.length);
    expect(found.equals(bytes)).toBe(true);
  });
});

describe('a source of the bytes behind base64', () => {
  it('reads from any place as many as are there', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 300 }),
        fc.nat({ max: 300 }),
        fc.nat({ max: 300 }),
        (bytes, position, wanted) => {
          fc.pre(position <= bytes.length);
          const text = Buffer.from(`xx${Buffer.from(bytes).toString('base64')}"}`);
          const source = base64Source(bytesSource('memory', text), 2, text.length - 4);
          expect(source.size).toBe(bytes.length);
          const target = new Uint8Array(wanted);
          const there = Math.min(wanted, bytes.length - position);
          expect(source.read(target, position, there)).toBe(there);
          expect(target.subarray(0, there)).toEqual(bytes.subarray(position, position + there));
        },
      ),
    );
  });
});
