import { z } from 'zod';
import { formatIds, restIds } from '../../../formats/precision/formats/index.js';
import { layerTimesSchema } from '../../../quality/bench/result.js';
import { metricSchema } from '../../../quality/tasks/task.js';
import { measureSchema } from '../../../quality/verify/result.js';

const count = z.number().int().nonnegative();

export const budgetSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('sqnr'), db: z.number() }),
  z.object({ kind: z.literal('metric'), drop: z.number() }),
]);

/** The closeness of a choice to FP32 on the held-out samples; of several judged tensors the figure of the worst. */
const closeness = {
  sqnrDb: measureSchema,
  cosineMean: measureSchema,
  cosineMin: measureSchema,
  /** Of the task; null without one, and of units alone that make too small an error to be worth the time. */
  metric: z.number().nullable(),
};

/** A model with one choice of quantized nodes, converted and judged. */
export const choiceSchema = z.object({
  /** Counted from 1, in the order of the trials. */
  id: count,
  what: z.string(),
  /** `fp32`: the model as it is. `alone`: one unit, for its sensitivity; the most sensitive a second time with the metric. `set`: a step of the search. */
  role: z.enum(['fp32', 'alone', 'set']),
  /** Names of the units that are quantized. */
  units: z.array(z.string()),
  ...closeness,
  /** Decibels of each judged tensor, in their order. */
  tensorsDb: z.array(measureSchema),
  /** The model file with its external data. */
  bytes: count,
  /** Shares of the multiply-adds and of the weights that are in the low format. */
  macsShare: z.number(),
  weightsShare: z.number(),
  ms: z.object({ convert: z.number(), run: z.number(), score: z.number() }),
});
export type Choice = z.infer<typeof choiceSchema>;

const unitSchema = z.object({
  name: z.string(),
  nodes: z.array(z.string()),
  op: z.string(),
  /** Shares of all weighted nodes. */
  macsShare: z.number(),
  weightsShare: z.number(),
  /** Where it alone is quantized. */
  alone: z.object({
    ...closeness,
    /** Power of the error over that of the values, the error of the other types taken off; of several tensors the largest, and with a task the mean of their shares in the error of all units. */
    noise: measureSchema,
  }),
  quantized: z.boolean(),
  /** Why, in a sentence. */
  why: z.string(),
});

const layerDifferenceSchema = z.object({
  /** Of the unit, or of conversions between types that belong to none. */
  unit: z.string().nullable(),
  /** Milliseconds of a run in the engine without codes, and in the one of the choice. */
  ms: z.object({ before: z.number(), after: z.number() }),
  layers: z.array(z.string()),
});

/** Times on the GPU. */
const latencySchema = z.object({
  choices: z.array(z.object({ id: count, medianMs: z.number(), layers: layerTimesSchema })),
  /** The one without codes over the chosen one; 1.5: it takes two thirds of the time. */
  speedup: z.number(),
  /** Units that keep the budget and are not at least 1.02 times as fast in the low format: they were undone. */
  undone: z.array(layerDifferenceSchema),
  /** Whether the engine with all units of the budget is slower than the one without codes, and the layers that take longer, the worst first. */
  isSlower: z.boolean(),
  slower: z.array(layerDifferenceSchema),
});

/** The result of `convert advise`. */
export const adviceSchema = z.object({
  schema: z.literal('trtforge.convert-advise/1'),
  /** The version of trtforge that ran. */
  version: z.string(),
  startedAt: z.iso.datetime(),
  totalMs: z.number(),
  model: z.string(),
  precision: z.enum(formatIds),
  /** The type of everything else. */
  rest: z.enum(restIds),
  samples: z.object({
    /** Number of divided samples that calibrate; null where they were not divided. */
    calibration: count.nullable(),
    heldOut: count,
    /** The rule of their division, in a sentence. */
    rule: z.string(),
  }),
  /** The tensors compared with FP32: outputs, or those that go into a choice among values. */
  judged: z.array(z.string()),
  /** The task and the metric of FP32; null without one. */
  task: z.object({ id: z.string(), metric: metricSchema }).nullable(),
  budget: budgetSchema,
  headline: z.string(),
  units: z.array(unitSchema),
  /** Weighted nodes that the placement rules keep out. */
  ruledOut: z.array(z.object({ node: z.string(), op: z.string(), rule: z.string(), reason: z.string() })),
  choices: z.array(choiceSchema),
  /** Ids: no other choice is at least as small and as close. */
  front: z.array(count),
  /** Without codes, with all units, and the one that is advised: ids. */
  without: count,
  all: count,
  chosen: count,
  /** The chosen against FP32, for policies: how much worse the metric is, in its unit and as a share; null without a task. */
  drop: z.object({ metric: z.number(), relative: z.number().nullable() }).nullable(),
  latency: latencySchema.nullable(),
  /** Choices that this run did not find in the results of an earlier one. */
  tried: count,
  /** The chosen model, the ranges that it was made with, and the line that makes it again. */
  output: z.string(),
  calibration: z.string(),
  convert: z.string(),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
});
export type Advice = z.infer<typeof adviceSchema>;
export type AdvisedUnit = Advice['units'][number];
