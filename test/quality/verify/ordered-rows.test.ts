import { describe, expect, it } from 'vitest';
import { type NamedTensors, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { judgeRuns } from '../../../src/quality/verify/judge-runs.js';
import type { SampleInfo } from '../../../src/quality/verify/judged.js';
import { worst } from '../../../src/quality/verify/outcome.js';

const ROWS = 24;
const SAMPLES = 3;

interface Row {
  box: number[];
  score: number;
  class: number;
}

/** Detections from the best down: scores from `top` in steps of about `step`, wider in later samples; everything else looks drawn. */
function detections(sample: number, top = 0.95, step = 0.02): Row[] {
  let state = sample * 2654435761 + 1;
  const draw = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return Array.from({ length: ROWS }, (_, row) => ({
    box: [draw() * 640, draw() * 640, 20 + draw() * 100, 20 + draw() * 100],
    score: top - (row + 0.5 * draw()) * step * (1 + (sample % 4) / 3),
    class: Math.floor(draw() * 6),
  }));
}

const tensorsOf = (rows: readonly Row[]): NamedTensors =>
  new Map([
    ['boxes', tensorFrom('float32', [1, ROWS, 4], Float32Array.from(rows.flatMap(({ box }) => box)))],
    [
      'scores',
      tensorFrom(
        'float32',
        [1, ROWS],
        Float32Array.from(rows, ({ score }) => score),
      ),
    ],
    [
      'classes',
      tensorFrom(
        'int64',
        [1, ROWS],
        BigInt64Array.from(rows, (row) => BigInt(row.class)),
      ),
    ],
  ]);

/** Boxes, score and class of a detection in one row. */
const joined = (rows: readonly Row[]): NamedTensors => {
  const values = rows.flatMap((row) => [...row.box, row.score, row.class]);
  return new Map([['detections', tensorFrom('float32', [1, ROWS, 6], Float32Array.from(values))]]);
};

const drawn: SampleInfo = { origin: 'drawn', kind: 'drawn' };

/** The outcome of three samples at FP16, each changed on the candidate's side, which sorts its rows by score as TopK does. */
function outcome(
  change: (rows: Row[], sample: number) => void,
  { of = tensorsOf, top = 0.95, step = 0.02, samples = Array<SampleInfo>(SAMPLES).fill(drawn) } = {},
) {
  const reference = samples.map((_, sample) => of(detections(sample, top, step)));
  const candidate = samples.map((_, sample) => {
    const rows = detections(sample, top, step);
    change(rows, sample);
    return of(rows.sort((a, b) => b.score - a.score));
  });
  const bindings = [...reference[0]!].map(([name, { dtype, shape }]) => ({ name, dtype, shape: [...shape] }));
  const { judged } = judgeRuns(
    { reference: 'original.onnx', candidate: 'candidate.onnx' },
    'fp16',
    { outputs: reference, bindings, samples },
    { outputs: candidate, bindings },
    {
      reaching: () => ({
        inputs: ['images'],
        isOrdered: true,
        isCount: false,
        areScores: false,
        classAxis: null,
        areLabels: false,
        largestWeight: 1,
      }),
    },
  );
  return worst(judged.map(({ output }) => output.outcome));
}

/** Another detection in the place of a row, with its score. */
const replace = (rows: Row[], row: number) => {
  rows[row] = { ...detections(100 + row)[0]!, score: rows[row]!.score };
};

describe('rows that TopK orders', () => {
  it('are the same where near ties fall the other way', () => {
    const swapped = (rows: Row[]) => {
      rows[8]!.score = rows[7]!.score + 1e-4;
    };
    expect(outcome(swapped, { step: 0.005 })).toBe('pass');
  });

  it('are the same where a near tie chooses the last one', () => {
    expect(outcome((rows) => replace(rows, ROWS - 1))).toBe('pass');
    expect(outcome((rows) => replace(rows, ROWS - 1), { of: joined })).toBe('pass');
  });

  it('are others where one clearly above the last is lost', () => {
    expect(outcome((rows) => replace(rows, 5))).toBe('fail');
  });

  it('cannot be compared where all scores are near ties', () => {
    const others = (rows: Row[]) => {
      for (let row = 0; row < ROWS; row += 2) replace(rows, row);
    };
    expect(outcome(others, { top: 0.9999, step: 1e-5 })).toBe('inconclusive');
  });
});

describe('what is not finite in rows that TopK orders fails', () => {
  const breaks: readonly (readonly [string, (row: Row) => void])[] = [
    ['NaN as a score', (row) => (row.score = Number.NaN)],
    ['infinity as a score', (row) => (row.score = Number.POSITIVE_INFINITY)],
    ['NaN in a box', (row) => (row.box[2] = Number.NaN)],
    ['infinity in a box', (row) => (row.box[0] = Number.NEGATIVE_INFINITY)],
  ];
  const edge: SampleInfo = { origin: 'zeros', kind: 'edge' };
  const samples = [edge, drawn, drawn, drawn];
  for (const [name, breakRow] of breaks) {
    it(`${name}, in the last row of one sample, a tie or not`, () => {
      const broken = (rows: Row[], sample: number) => {
        if (sample === 1) breakRow(rows.at(-1)!);
        else replace(rows, ROWS - 1);
      };
      expect(outcome(broken)).toBe('fail');
      expect(outcome(broken, { top: 0.9999, step: 1e-5 })).toBe('fail');
      expect(outcome(broken, { of: joined })).toBe('fail');
    });

    it(`${name}, in an extreme sample`, () => {
      const broken = (rows: Row[], sample: number) => {
        if (sample === 0) breakRow(rows[3]!);
      };
      expect(outcome(broken, { samples })).toBe('fail');
      expect(outcome(broken, { samples, of: joined })).toBe('fail');
    });
  }

  it('NaN as an index, in a row of integers and in one of floats', () => {
    const noNumber = (rows: Row[]) => {
      rows[2]!.class = Number(-(2n ** 63n));
    };
    expect(outcome(noNumber)).toBe('fail');
    const broken = (rows: Row[], sample: number) => {
      if (sample === 0) rows[2]!.class = Number.NaN;
    };
    expect(outcome(broken, { of: joined })).toBe('fail');
  });
});
