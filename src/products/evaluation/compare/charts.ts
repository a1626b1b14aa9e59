import { formatMs, formatMsTick } from '../../../base/text/quantity.js';
import type { Chart } from '../../../report/chart/frame.js';
import { plotChart } from '../../../report/chart/plot.js';
import { linearScale } from '../../../report/chart/scale.js';
import type { Figures } from './figures.js';

interface Drawn {
  readonly name: string;
  readonly figures: Figures;
}

/** The compared metric over the median latency; null where fewer than two variants have both. */
export function accuracyChart(metric: string, variants: readonly Drawn[]): Chart | null {
  const points = variants.flatMap(({ name, figures }) => {
    const value = figures.metrics[0]?.value;
    const latency = figures.latency?.median_ms;
    return typeof value === 'number' && latency !== undefined ? [{ name, x: latency, y: value }] : [];
  });
  if (points.length < 2) return null;
  const [low, high] = [Math.min(...points.map(({ y }) => y)), Math.max(...points.map(({ y }) => y))];
  // Differences of less than a point of a percentage would fill the axis.
  const room = Math.max(0.01, (high - low) / 4);
  return plotChart({
    title: `${metric} against latency`,
    description: `${points.map(({ name, x, y }) => `${name}: ${y.toFixed(4)} in ${formatMs(x)}`).join('; ')}.`,
    x: {
      title: 'median of a run',
      scale: linearScale(0, 1.1 * Math.max(...points.map(({ x }) => x)), 5, formatMsTick),
    },
    y: {
      title: metric,
      scale: linearScale(Math.max(0, low - room), Math.max(high, Math.min(1, high + room)), 5, String),
    },
    series: points.map(({ name, ...point }) => ({ name, points: [point] })),
  });
}

/** Precision over recall; null where no variant has a curve. */
export function precisionChart(variants: readonly Drawn[]): Chart | null {
  const curves = variants.flatMap(({ name, figures }) =>
    figures.precisionCurve === null ? [] : [{ name, curve: figures.precisionCurve }],
  );
  if (curves.length === 0) return null;
  return plotChart({
    title: 'Precision and recall',
    description: `${curves.map(({ name, curve }) => `${name}: precision ${(curve[50] ?? 0).toFixed(3)} at a recall of 0.50, ${(curve[90] ?? 0).toFixed(3)} at 0.90`).join('; ')}.`,
    x: { title: 'recall', scale: linearScale(0, 1, 5, String) },
    y: { title: 'precision', scale: linearScale(0, 1, 5, String) },
    series: curves.map(({ name, curve }) => ({
      name,
      joined: true,
      points: curve.map((precision, at) => ({ x: at / 100, y: precision })),
    })),
  });
}

/** The share of runs over their time; null where none was timed. The slowest hundredth is not drawn: one outlier would take the whole axis. */
export function latencyChart(variants: readonly Drawn[]): Chart | null {
  const timed = variants.flatMap(({ name, figures }) =>
    figures.latency === null ? [] : [{ name, latency: figures.latency }],
  );
  if (timed.length === 0) return null;
  return plotChart({
    title: 'Latency distributions',
    description: `${timed.map(({ name, latency }) => `${name}: ${formatMs(latency.median_ms)} median, ${formatMs(latency.p90_ms)} p90, ${formatMs(latency.percentiles_ms[100] ?? 0)} at most`).join('; ')}.`,
    x: {
      title: 'time of a run',
      scale: linearScale(
        0,
        Math.max(...timed.map(({ latency }) => latency.percentiles_ms[99] ?? 0)),
        5,
        formatMsTick,
      ),
    },
    y: { title: 'share of runs', scale: linearScale(0, 1, 4, String) },
    series: timed.map(({ name, latency }) => ({
      name,
      joined: true,
      points: latency.percentiles_ms.slice(0, 100).map((time, percent) => ({ x: time, y: percent / 100 })),
    })),
  });
}
