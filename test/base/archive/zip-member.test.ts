import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memberStart, readZipDirectory, readZipEntry, storedMember } from '../../../src/base/archive/zip.js';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { zipBytes } from '../../fakes/wheel.js';
import { randomNumbers } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';

const random = randomNumbers(3);
const content = Uint8Array.from({ length: 1000 }, () => random() * 256);
const stored = zipBytes({ before: Buffer.from('before'), content }, 'stored');
const dataStart = stored.indexOf(content);

/** The archive with one bit of the member's content turned. */
function damagedAt(place: number): Buffer {
  const damaged = Buffer.from(stored);
  damaged[dataStart + place]! ^= 4;
  return damaged;
}

function opened(archive: Uint8Array, name = 'content') {
  const source = bytesSource('archive', archive);
  const entry = readZipDirectory(source).find((each) => each.name === name);
  if (entry === undefined) throw new Error(`no ${name}`);
  return { source, entry, member: storedMember(source, entry) };
}

const cuts = fc.uniqueArray(fc.integer({ min: 1, max: content.length - 1 }), { maxLength: 6 });

describe('a stored member read piece by piece', () => {
  it('is what it is as a whole, wherever it is cut and whatever is looked at before', () => {
    fc.assert(
      fc.property(cuts, fc.array(fc.nat(content.length)), (places, looks) => {
        const { member } = opened(stored);
        for (const look of looks) member.read(new Uint8Array(16), look, 16);
        const ends = [...places.toSorted((a, b) => a - b), content.length];
        const bytes = ends.flatMap((end, i) => {
          const start = ends[i - 1] ?? 0;
          const piece = new Uint8Array(end - start);
          expect(member.read(piece, start, piece.length)).toBe(piece.length);
          return [...piece];
        });
        expect(Uint8Array.from(bytes)).toEqual(content);
        expect(member.read(new Uint8Array(9), content.length, 9)).toBe(0);
      }),
    );
  });

  it('is rejected by the read that completes it, as it is when read as a whole, wherever a bit has turned', () => {
    fc.assert(
      fc.property(cuts, fc.nat(content.length - 1), fc.nat(200), (places, turned, overlap) => {
        const { source, entry, member } = opened(damagedAt(turned));
        const ends = places.toSorted((a, b) => a - b);
        const read = (from: number, to: number) => member.read(new Uint8Array(to - from), from, to - from);
        for (const [i, end] of ends.entries()) read(Math.max(0, (ends[i - 1] ?? 0) - overlap), end);
        const { message } = refusal(() => readZipEntry(source, entry, 1 << 20));
        expect(message).toMatch(/member content is damaged \(size or checksum is wrong\)/);
        expect(refusal(() => read(ends.at(-1) ?? 0, content.length))).toMatchObject({
          code: 'TF_ARCHIVE_INVALID',
          message,
        });
      }),
    );
  });
});

describe('the start of a compressed member', () => {
  const long = Uint8Array.from({ length: 300_000 }, (_, i) => (i % 3 === 0 ? random() * 256 : 7));

  it.each([
    ['noise', content],
    ['what shrinks a little', long],
    ['what shrinks a thousandfold', new Uint8Array(3_000_000)],
    ['nothing', new Uint8Array()],
  ])('has as many bytes as are asked for, or all: %s', (_case, whole) => {
    const { source, entry } = opened(zipBytes({ content: whole }, 'deflate'));
    for (const length of [1, 500, 65_536, 2 ** 22]) {
      const start = memberStart(source, entry, length);
      expect(start.length).toBeGreaterThanOrEqual(Math.min(length, whole.length));
      expect(start.equals(whole.subarray(0, start.length))).toBe(true);
    }
  });

  it('reads no more of the file than that takes', () => {
    const { source, entry } = opened(zipBytes({ content: long }, 'deflate'));
    let read = 0;
    const counted = {
      ...source,
      read: (target: Uint8Array, at: number, length: number) => {
        read += length;
        return source.read(target, at, length);
      },
    };
    memberStart(counted, entry, 2000);
    expect(read).toBeLessThan(5000);
    expect(entry.compressedSize).toBeGreaterThan(100_000);
  });

  it('is rejected where it cannot be unpacked', () => {
    const archive = zipBytes({ content: long }, 'deflate');
    const { entry } = opened(archive);
    archive.fill(0xff, entry.headerOffset + 60, entry.headerOffset + 4000);
    const { source } = opened(archive);
    expect(refusal(() => memberStart(source, entry, 2000)).code).toBe('TF_ARCHIVE_INVALID');
  });
});
