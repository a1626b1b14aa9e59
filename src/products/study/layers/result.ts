import { z } from 'zod';
import { describedInputSchema } from '../../../engines/run/result.js';
import { errorShare } from '../../../quality/verify/error-map.js';
import {
  errorMapSchema,
  measureSchema,
  outcomeSchema,
  verifyPrecisions,
} from '../../../quality/verify/result.js';

const count = z.number().int().nonnegative();

const comparedTensorSchema = z.object({
  name: z.string(),
  /** Of the reference: the node that makes it; empty where it has no name. */
  node: z.string(),
  op: z.string(),
  dtype: z.string(),
  candidateDtype: z.string(),
  /** Of one sample. */
  shape: z.array(z.number()),
  /** By the limits of `verify` for an output. */
  outcome: outcomeSchema,
  /** Over all samples; null where the shapes differ, so that nothing was compared. */
  error: z
    .object({
      maxAbs: measureSchema,
      meanAbs: measureSchema,
      maxRelative: measureSchema,
      /** Decibels: power of the reference over power of the error. */
      sqnr: measureSchema,
      cosine: measureSchema,
    })
    .nullable(),
  /** NaN and infinities; `mismatching` are those that the two sides do not have alike. */
  nonFinite: z.object({ candidate: count, reference: count, mismatching: count }),
  reasons: z.array(z.string()),
});
export type ComparedTensor = z.infer<typeof comparedTensorSchema>;

/** Error's share of a tensor: its RMS over the reference's; infinite where values are finite on one side only, 0 where nothing was compared. */
export const lossOf = ({ error, nonFinite }: Pick<ComparedTensor, 'error' | 'nonFinite'>): number =>
  errorShare(error?.sqnr, nonFinite.mismatching);

/** The result of `compare layers`: the values inside one model compared with those of another. */
export const layerComparisonSchema = z.object({
  schema: z.literal('trtforge.compare-layers/1'),
  /** The version of trtforge that ran. */
  version: z.string(),
  /** Paths as passed, and what ran them. */
  reference: z.string(),
  candidate: z.string(),
  referenceBackend: z.string(),
  candidateBackend: z.string(),
  /** The precision that the tolerances are for. */
  precision: z.enum(verifyPrecisions),
  seed: z.number(),
  samples: z.number(),
  inputs: z.array(describedInputSchema),
  /** In the order of the reference's graph. */
  tensors: z.array(comparedTensorSchema),
  /** Floating-point tensors that only one side has under their name. */
  onlyReference: count,
  onlyCandidate: count,
  /** Of an engine; null for a model. */
  engine: z
    .object({
      /** Engines that were built with more outputs. */
      builds: count,
      /** Tensors that are not compared, as they lie inside of kernels. */
      inside: count,
      /** Whether the engine's own outputs fail in each of these engines too; else more outputs made other kernels that do not fail. */
      outputsFail: z.boolean(),
    })
    .nullable(),
  diverging: count,
  /** The first tensor in graph order that is beyond the limits, and the one with the largest error relative to its size. */
  firstDivergence: z.string().nullable(),
  worst: z.string().nullable(),
  /** Where in these two the error is. */
  maps: z.array(errorMapSchema),
  outcome: outcomeSchema,
  headline: z.string(),
  reasons: z.array(z.string()),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
});
export type LayerComparison = z.infer<typeof layerComparisonSchema>;
