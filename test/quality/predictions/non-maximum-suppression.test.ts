import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Candidates, strongest, suppress } from '../../../src/quality/predictions/decode.js';

const of = (rows: readonly (readonly [number, number, number, number, number, number])[]): Candidates => ({
  box: Float32Array.from(rows.flatMap((row) => row.slice(0, 4))),
  score: Float32Array.from(rows, (row) => row[4]),
  row: new Int32Array(),
  category: Int32Array.from(rows, (row) => row[5]),
});
const options = { overlap: 0.5, classAgnostic: false, topK: 100, maxDetections: 100 };

describe('suppress', () => {
  // The second overlaps the first by 0.8, the third is of another class, the fourth apart.
  const candidates = of([
    [0, 0, 10, 10, 0.5, 0],
    [0, 0, 10, 8, 0.9, 0],
    [0, 0, 10, 10, 0.4, 1],
    [50, 50, 60, 60, 0.3, 0],
  ]);

  it('keeps the higher score of an overlapping pair, by class', () => {
    expect(suppress(candidates, options)).toEqual([1, 2, 3]);
    expect(suppress(candidates, { ...options, classAgnostic: true })).toEqual([1, 3]);
    expect(suppress(candidates, { ...options, overlap: 0.85 })).toEqual([1, 0, 2, 3]);
  });

  it('limits the candidates that it looks at and keeps', () => {
    expect(suppress(candidates, { ...options, topK: 3 })).toEqual([1, 2]);
    expect(suppress(candidates, { ...options, maxDetections: 1 })).toEqual([1]);
    expect(strongest(candidates, 2)).toEqual([1, 0]);
  });

  it('keeps no two boxes of a class that overlap, and drops none without a reason', () => {
    const row = fc.tuple(
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 1, max: 15 }),
      fc.integer({ min: 1, max: 15 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 0, max: 1 }),
    );
    fc.assert(
      fc.property(fc.array(row, { maxLength: 25 }), (rows) => {
        const boxes = rows.map(([x, y, w, h, score, category]) => ({ x, y, w, h, score, category }));
        const overlap = (a: number, b: number) => {
          const [p, q] = [boxes[a]!, boxes[b]!];
          const w = Math.min(p.x + p.w, q.x + q.w) - Math.max(p.x, q.x);
          const h = Math.min(p.y + p.h, q.y + q.h) - Math.max(p.y, q.y);
          const common = Math.max(0, w) * Math.max(0, h);
          return common / (p.w * p.h + q.w * q.h - common);
        };
        const kept = suppress(
          of(boxes.map(({ x, y, w, h, score, category }) => [x, y, x + w, y + h, score / 10, category])),
          options,
        );
        const hides = (a: number, b: number) =>
          boxes[a]!.category === boxes[b]!.category &&
          overlap(a, b) > 0.5 &&
          boxes[a]!.score >= boxes[b]!.score;
        for (const a of kept) for (const b of kept) if (a !== b) expect(hides(a, b)).toBe(false);
        for (const [at] of boxes.entries())
          if (!kept.includes(at)) expect(kept.some((other) => hides(other, at))).toBe(true);
      }),
    );
  });
});
