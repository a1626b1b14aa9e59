import { CERTAIN } from '../../../base/statistics.js';
import { formatCount, formatStatistic, plural } from '../../../base/text/quantity.js';
import { badge, charts, numbers, type Section, table } from '../../../report/blocks.js';
import type { Chart, Tone } from '../../../report/chart/frame.js';
import { plotChart } from '../../../report/chart/plot.js';
import { linearScale, logScale } from '../../../report/chart/scale.js';
import { formatMeasure, outcomeTone } from '../../../report/sentences.js';
import { isUncertain } from '../compare/drift.js';
import type { ParityDrift, ParityResult } from '../verify/result.js';

const shapes = {
  steady: 'It neither grows nor stands out anywhere',
  growing: 'It grows from chunk to chunk',
  outliers: 'It does not grow, but a few chunks stand out',
  'too-short': 'The stream is too short to show whether it grows',
} as const;

/** A horizontal line; errors above it take its colour. */
interface Limit {
  readonly y: number;
  readonly label: string;
  readonly beyond: Tone;
}

/** The lines of results that were compared with no limits: those of the usual policy. */
const USUAL: readonly Limit[] = [
  { y: 5e-4, label: '5e-4', beyond: 'warn' },
  { y: 1e-3, label: '1e-3', beyond: 'bad' },
];

interface ChunkError {
  readonly chunk: number;
  readonly error: number;
}

/** The error of the main output over the stream: the chart of all chunks, and each criterion with its number. */
export function driftSection(result: Pick<ParityResult, 'drift' | 'series'>): Section | null {
  const chart = driftChart(result);
  const { drift, series } = result;
  if (drift === null || chart === null) return null;
  const errors = errorsOf(drift, series);
  const odd = countOdd(errors);
  const extent =
    odd > 0
      ? `The error of ${drift.tensor} is not finite in ${odd} of ${plural(errors.length, 'chunk')}, first in chunk ${drift.worstChunk}`
      : `The largest error of ${drift.tensor} over ${plural(drift.chunks, 'chunk')} is ${formatMeasure(drift.max)} (chunk ${drift.worstChunk}), the mean ${formatMeasure(drift.mean)}`;
  const { robust, leastSquares } = drift.slope;
  const above = drift.checks.find((check) => check.name === 'slope' && isUncertain(check));
  return {
    id: 'drift',
    title: 'Drift',
    lead: above === undefined ? `${extent}. ${shapes[drift.shape]}.` : `${extent}; ${above.sentence}`,
    blocks: [
      charts({
        chart,
        caption: `The largest absolute error of ${drift.tensor} in every chunk.`,
      }),
      table(
        'The criteria of the drift',
        ['criterion', 'verdict', ...numbers('measured', 'limit')],
        drift.checks.map((check) => [
          check.name,
          isUncertain(check)
            ? badge('not certain', 'warn')
            : badge(check.outcome, outcomeTone[check.outcome]),
          formatMeasure(check.measured),
          formatStatistic(check.limit),
        ]),
      ),
      table(
        `Growth of the error by chunk, with bounds that are each ${CERTAIN} certain`,
        ['fit', ...numbers('slope', 'from', 'to')],
        [
          ['robust (Theil–Sen)', ...[robust.perChunk, robust.low, robust.high].map(formatMeasure)],
          ['least squares', formatMeasure(leastSquares.perChunk), '–', '–'],
        ],
      ),
    ],
  };
}

/** The error of the main output by chunk, beside its limits; null where none was compared. */
export function driftChart({ drift, series }: Pick<ParityResult, 'drift' | 'series'>): Chart | null {
  if (drift === null) return null;
  const errors = errorsOf(drift, series);
  const odd = countOdd(errors);
  const description =
    odd > 0
      ? `${plural(odd, 'chunk')} of ${errors.length} without a finite error are not drawn.`
      : `From ${formatMeasure(drift.min)} to ${formatMeasure(drift.max)}; 95 % of the chunks are within ${formatMeasure(drift.p95)}.`;
  return errorChart(`Error of ${drift.tensor} by chunk`, description, errors, limitsOf(drift));
}

const errorsOf = ({ tensor: main }: ParityDrift, series: ParityResult['series']): readonly ChunkError[] =>
  series.flatMap(({ chunk, tensors }) =>
    tensors
      .filter(({ tensor }) => tensor === main)
      .map(({ maxAbs }): ChunkError => ({ chunk, error: Number(maxAbs) })),
  );

const countOdd = (errors: readonly ChunkError[]): number =>
  errors.filter(({ error }) => !Number.isFinite(error)).length;

/** Chunks without any error sit on the axis. */
function errorChart(
  title: string,
  description: string,
  errors: readonly ChunkError[],
  limits: readonly Limit[],
): Chart {
  const heights = [...errors.map(({ error }) => error), ...limits.map(({ y }) => y)]
    .filter((height) => height > 0 && Number.isFinite(height))
    .sort((a, b) => a - b);
  const whole = (chunk: number) => (Number.isInteger(chunk) ? formatCount(chunk) : '');
  const toneOf = (error: number): Tone =>
    limits.findLast(({ y }) => error > y)?.beyond ?? (error === 0 ? 'good' : 'accent');
  return plotChart({
    title,
    description,
    x: { title: 'chunk', scale: linearScale(errors[0]?.chunk ?? 0, errors.at(-1)?.chunk ?? 1, 6, whole) },
    y: {
      title: 'largest absolute error, log scale',
      scale: logScale(heights[0] ?? 1e-8, heights.at(-1) ?? 1, 6),
    },
    points: errors.map(({ chunk, error }) => ({
      x: chunk,
      y: error,
      tone: toneOf(error),
      name: `chunk ${chunk}: ${formatStatistic(error)}`,
    })),
    limits,
  });
}

function limitsOf({ checks }: ParityDrift): readonly Limit[] {
  const limitOf = (name: 'p95' | 'max', beyond: Tone) =>
    checks
      .filter((check) => check.name === name)
      .map(({ limit }) => ({ y: limit, label: `${name} ${formatStatistic(limit)}`, beyond }));
  const limits = [...limitOf('p95', 'warn'), ...limitOf('max', 'bad')];
  return (limits.length === 0 ? USUAL : limits).toSorted((a, b) => a.y - b.y);
}
