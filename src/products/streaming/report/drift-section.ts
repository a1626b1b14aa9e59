import { formatStatistic, plural } from '../../../base/text/quantity.js';
import { badge, figure, type SectionFacts, table } from '../../../report/parts.js';
import { formatMeasure } from '../../../report/sentences.js';
import type { ParityDrift, ParityResult } from '../verify/result.js';
import { type DriftLimit, driftChart } from './drift-chart.js';

const shapes = {
  steady: 'It neither grows nor stands out anywhere',
  growing: 'It grows from chunk to chunk',
  outliers: 'It does not grow, but a few chunks stand out',
  'too-short': 'The stream is too short to tell whether it grows',
} as const;

const tones = { pass: 'good', fail: 'bad', inconclusive: 'warn' } as const;

/** The seed's lines, for results that were held against no limits. */
const USUAL: readonly DriftLimit[] = [
  { error: 5e-4, label: '5e-4', beyond: 'warn' },
  { error: 1e-3, label: '1e-3', beyond: 'bad' },
];

/** The error of the main output over the stream: the chart of all chunks, and each criterion with its number. */
export function driftSection(result: Pick<ParityResult, 'drift' | 'series'>): SectionFacts | null {
  const { drift, series } = result;
  if (drift === null) return null;
  const points = series.flatMap(({ chunk, tensors }) =>
    tensors
      .filter(({ tensor }) => tensor === drift.tensor)
      .map(({ maxAbs }) => ({ chunk, error: Number(maxAbs) })),
  );
  const odd = points.filter(({ error }) => !Number.isFinite(error)).length;
  const extent =
    odd > 0
      ? `The error of ${drift.tensor} is no number in ${odd} of ${plural(points.length, 'chunk')}, first in chunk ${drift.worstChunk}`
      : `The largest error of ${drift.tensor} over ${plural(drift.chunks, 'chunk')} is ${formatMeasure(drift.max)} (chunk ${drift.worstChunk}), the mean ${formatMeasure(drift.mean)}`;
  const { robust, leastSquares } = drift.slope;
  return {
    id: 'drift',
    title: 'Drift',
    lead: `${extent}. ${shapes[drift.shape]}.`,
    body: [
      figure(
        driftChart(
          {
            id: 'drift-chart',
            title: `Error of ${drift.tensor} by chunk`,
            description:
              odd > 0
                ? `${extent}; those are not drawn.`
                : `From ${formatMeasure(drift.min)} to ${formatMeasure(drift.max)}; 95 % of the chunks are within ${formatMeasure(drift.p95)}.`,
          },
          { points, limits: limitsOf(drift) },
        ),
        `The largest absolute error of ${drift.tensor} in every chunk.`,
      ),
      table(
        'What was asked of it',
        [
          { title: 'criterion' },
          { title: 'verdict' },
          { title: 'measured', numeric: true },
          { title: 'limit', numeric: true },
        ],
        drift.checks.map(({ name, outcome, measured, limit }) => [
          name,
          badge(outcome, tones[outcome]),
          formatMeasure(measured),
          formatStatistic(limit),
        ]),
      ),
      table(
        'Growth of the error by chunk',
        [
          { title: 'fit' },
          { title: 'slope', numeric: true },
          { title: 'from', numeric: true },
          { title: 'to', numeric: true },
        ],
        [
          ['robust (Theil–Sen)', ...[robust.perChunk, robust.low, robust.high].map(formatMeasure)],
          [
            'least squares',
            ...[leastSquares.perChunk, leastSquares.low, leastSquares.high].map(formatMeasure),
          ],
        ],
      ),
    ],
  };
}

function limitsOf({ checks }: ParityDrift): readonly DriftLimit[] {
  const limitOf = (name: string) => checks.find((check) => check.name === name)?.limit;
  const [p95, max] = [limitOf('p95'), limitOf('max')];
  if (p95 === undefined && max === undefined) return USUAL;
  return [
    ...(p95 === undefined
      ? []
      : [{ error: p95, label: `p95 ${formatStatistic(p95)}`, beyond: 'warn' as const }]),
    ...(max === undefined
      ? []
      : [{ error: max, label: `max ${formatStatistic(max)}`, beyond: 'bad' as const }]),
  ];
}
