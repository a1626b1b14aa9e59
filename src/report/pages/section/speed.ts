import { formatBytes, formatCount, formatMs, formatStatistic } from '../../../base/text/quantity.js';
import type { BenchResult } from '../../../quality/bench/result.js';
import { percentilesOf } from '../../../quality/bench/times.js';
import { badge, charts, code, labelled, numbers, type Section, table } from '../../blocks.js';
import type { Chart } from '../../chart/frame.js';
import { plotChart } from '../../chart/plot.js';
import { linearScale } from '../../chart/scale.js';
import { modeText, speedSentence } from '../../sentences.js';

/** The speed of an engine or a model where it was measured, the way of measuring, and what makes the measurement unreliable. */
export function speedSection({ bench }: { readonly bench: BenchResult | null }): Section | null {
  if (bench === null) return null;
  const { gpu, subject, warnings, backend } = bench;
  const chart = throughputChart(bench);
  const sizes: readonly (readonly [string, number | null])[] = [
    ['file', subject.bytes],
    ['activations of one context', subject.contextBytes],
    ['GPU memory that loading took', subject.loadedBytes],
  ];
  return {
    id: 'speed',
    title: 'Speed',
    lead: speedSentence(bench),
    blocks: [
      chart && charts({ chart, caption: 'Higher is more. A ring is a valley: a smaller batch has more.' }),
      labelled(
        'valley',
        'warn',
        bench.valleys.map(({ message }) => message),
      ),
      timesTable(`GPU compute time on ${gpu?.name ?? backend}, and how it was measured`, bench, 'gpuMs'),
      timesTable(`Time end to end on ${backend}, and how it was measured`, bench, 'endToEndMs'),
      table(
        'What it takes',
        ['what', ...numbers('size')],
        sizes.flatMap(([what, bytes]) => (bytes === null ? [] : [[what, formatBytes(bytes)]])),
      ),
      labelled('warning', 'warn', warnings),
    ],
  };
}

/** The runs of which a clock has times, with the percentiles that were requested; null without any. */
function timesTable(caption: string, { runs }: BenchResult, clock: 'gpuMs' | 'endToEndMs') {
  const timed = runs.flatMap((run) => {
    const spread = run[clock];
    return spread === null ? [] : [{ ...run, spread }];
  });
  const percentiles = timed.slice(0, 1).flatMap(({ spread }) => percentilesOf(spread, ['p99']));
  const names = percentiles.map(([name]) => name);
  return table(
    caption,
    ['shapes', ...numbers('median', ...names, 'max', 'items/s', 'samples'), 'mode', 'measurement'],
    timed.map(({ shapes, spread, itemsPerSecond, mode, doubts }) => [
      code(shapes.map(({ name, shape }) => `${name} ${shape.join('×')}`).join(', ')),
      ...[spread.median, ...percentilesOf(spread, ['p99']).map(([, ms]) => ms), spread.max].map(formatMs),
      formatCount(Math.round(itemsPerSecond)),
      formatCount(spread.count),
      modeText(mode),
      doubts.length === 0 ? badge('steady', 'good') : badge('unreliable', 'warn'),
    ]),
  );
}

/** Items a second of each batch; null for fewer than two. */
function throughputChart({ runs, valleys }: BenchResult): Chart | null {
  const points = runs
    .map(({ batch, itemsPerSecond }) => ({ x: batch, y: itemsPerSecond }))
    .sort((a, b) => a.x - b.x);
  const largest = points.at(-1)?.x ?? 0;
  if (new Set(points.map(({ x }) => x)).size < 2) return null;
  const rate = (perSecond: number) => formatCount(Math.round(perSecond));
  const isValley = (batch: number) => valleys.some((valley) => valley.batch === batch);
  const text = ({ x, y }: (typeof points)[number]) =>
    `batch ${x}: ${rate(y)} a second${isValley(x) ? ', a valley' : ''}`;
  return plotChart({
    title: 'Throughput by batch',
    description: `${points.map(text).join('; ')}.`,
    x: { title: 'batch', scale: linearScale(0, 1.05 * largest, 6, formatStatistic) },
    y: {
      title: 'items a second',
      scale: linearScale(0, 1.1 * Math.max(...points.map(({ y }) => y)), 4, rate),
    },
    points: points.map((point) => ({
      ...point,
      tone: isValley(point.x) ? 'warn' : 'accent',
      hollow: isValley(point.x),
      name: text(point),
      ...(isValley(point.x) ? { label: `batch ${point.x}` } : {}),
    })),
    limits: [],
    series: [{ name: 'items a second', points, joined: true }],
  });
}
