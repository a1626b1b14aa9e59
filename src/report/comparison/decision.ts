import { z } from 'zod';
import { paretoFront } from '../../base/statistics.js';
import {
  formatBytes,
  formatMs,
  formatMsTick,
  formatShare,
  formatStatistic,
} from '../../base/text/quantity.js';
import { measure, measureSchema } from '../../quality/verify/result.js';
import { badge, charts, numbers, type Section, type Text, table } from '../blocks.js';
import type { Chart } from '../chart/frame.js';
import { plotChart } from '../chart/plot.js';
import { linearScale } from '../chart/scale.js';
import { runOutcomeSchema } from '../forge-result.js';
import { outcomeTone, outcomeWord } from '../sentences.js';

const pointSchema = z.object({
  /** The run by its letter and its precision: `A INT8`. */
  name: z.string(),
  outcome: runOutcomeSchema.nullable(),
  /** In the units of the axes; null where it is not known, and then `missing` states why. */
  cost: z.number().nullable(),
  error: measureSchema.nullable(),
  /** Whether no other that did not fail is at most as dear and as far from the original, and better in one of both. */
  isFront: z.boolean(),
  missing: z.array(z.string()),
});

/** Runs of one model as points: what each costs, and how far it is from the original. */
export const decisionSchema = z.object({
  /** Milliseconds of the GPU where they were measured, else bytes of the plan, else of the model. */
  cost: z.object({ what: z.string(), unit: z.enum(['ms', 'bytes']) }),
  /** The share of decisions that are lost or new where there are decisions, else the error over its limit; `limit` is where a line is drawn. */
  error: z.object({ what: z.string(), unit: z.enum(['share', 'number']), limit: z.number().nullable() }),
  points: z.array(pointSchema),
});

export type Decision = z.infer<typeof decisionSchema>;
type Point = Decision['points'][number];

/** The points with their front; NaN of a figure is as far as can be. */
export function decided(
  axes: Pick<Decision, 'cost' | 'error'>,
  points: readonly (Omit<Point, 'isFront' | 'error'> & { readonly error: number | null })[],
): Decision {
  const able = points.flatMap(({ cost, error, outcome }, index) =>
    cost === null || error === null || Number.isNaN(error) || isFailed({ outcome })
      ? []
      : { index, cost, error },
  );
  const front = new Set(paretoFront(able, ({ cost, error }) => [cost, error]).map(({ index }) => index));
  return {
    ...axes,
    points: points.map((point, index) => ({
      ...point,
      error: point.error === null ? null : measure(point.error),
      isFront: front.has(index),
    })),
  };
}

const isFailed = ({ outcome }: Pick<Point, 'outcome'>): boolean => outcome === 'fail' || outcome === 'error';

const costText = (cost: number | null, { unit }: Decision['cost']): string =>
  cost === null ? '–' : (unit === 'ms' ? formatMs : formatBytes)(cost);

const errorText = (error: Point['error'], { unit }: Decision['error']): string => {
  if (error === null) return '–';
  const amount = Number(error);
  return unit === 'share' && Number.isFinite(amount) ? formatShare(amount) : formatStatistic(amount);
};

/** Names in a sentence; the table has all. */
const MOST_NAMED = 6;

/** `A INT8, C FP16: no other is as fast and as close to the original.` Null without a front. */
export function frontSentence({ cost, points }: Decision): string | null {
  const names = points.filter(({ isFront }) => isFront).map(({ name }) => name);
  return names.length === 0
    ? null
    : `${names.slice(0, MOST_NAMED).join(', ')}${names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : ''}: no other is as ${cost.unit === 'ms' ? 'fast' : 'small'} and as close to the original.`;
}

/** More points are labelled only on the front. */
const MOST_LABELS = 12;

/** Cost to the right, error upwards; null for fewer than two points. `chosen` is green. */
export function decisionChart({ cost, error, points }: Decision, chosen: string | null = null): Chart | null {
  const placed = points.flatMap((point) =>
    point.cost === null || point.error === null ? [] : [{ ...point, x: point.cost, y: Number(point.error) }],
  );
  if (placed.length < 2) return null;
  const { limit } = error;
  const finite = placed.map(({ y }) => y).filter(Number.isFinite);
  const most = Math.max(0, limit ?? 0, ...finite);
  // Beyond twice the limit all are of as little use.
  const top = 1.1 * (limit ? Math.min(most, 2 * limit) : most) || 0.01;
  const [least, dearest] = [Math.min(...placed.map(({ x }) => x)), Math.max(...placed.map(({ x }) => x))];
  const front = placed.filter(({ isFront }) => isFront).sort((a, b) => a.x - b.x);
  const text = ({ name, ...point }: Point) =>
    `${name}: ${costText(point.cost, cost)}, ${errorText(point.error, error)}${isFailed(point) ? ', failed' : ''}`;
  return plotChart({
    title: `${error.what} against ${cost.what}`,
    description: `${placed.map((point) => `${text(point)}${point.isFront ? ', on the front' : ''}`).join('; ')}.`,
    x: {
      title: cost.what,
      scale: linearScale(
        2 * least < dearest ? 0 : 0.9 * least,
        1.1 * dearest,
        3,
        cost.unit === 'ms' ? formatMsTick : formatBytes,
      ),
    },
    y: {
      title: error.what,
      scale: linearScale(0, top, 4, error.unit === 'share' ? formatShare : formatStatistic),
    },
    points: placed
      .map((point) => ({
        x: point.x,
        y: Number.isFinite(point.y) ? point.y : top,
        tone:
          point.name === chosen
            ? ('good' as const)
            : isFailed(point)
              ? ('bad' as const)
              : point.isFront
                ? ('accent' as const)
                : ('quiet' as const),
        hollow: isFailed(point),
        name: text(point),
        ...(placed.length <= MOST_LABELS || point.isFront || point.name === chosen
          ? { label: `${point.name}${isFailed(point) ? ', failed' : ''}` }
          : {}),
      }))
      .sort((a, b) => a.x - b.x),
    limits: limit === null ? [] : [{ y: limit, label: 'limit' }],
    series: [{ name: 'the front', joined: true, points: front }],
  });
}

/** The plot, and the same rows as a table with what is missing. */
export function decisionSection(decision: Decision): Section {
  const { cost, error, points } = decision;
  const chart = decisionChart(decision);
  return {
    id: 'decision',
    title: 'Which to take',
    lead: frontSentence(decision) ?? 'No run has both figures and passed.',
    blocks: [
      chart &&
        charts({
          chart,
          caption: 'Left costs less, down is closer to the original. Rings: failed.',
        }),
      table(
        'Cost and error of each',
        ['run', 'verdict', ...numbers(cost.what, error.what), 'front', 'not known'],
        points.map((point): readonly Text[] => [
          point.name,
          point.outcome === null ? '–' : badge(outcomeWord[point.outcome], outcomeTone[point.outcome]),
          costText(point.cost, cost),
          errorText(point.error, error),
          point.isFront ? badge('front', 'accent') : '–',
          point.missing.join(' '),
        ]),
      ),
    ],
  };
}
