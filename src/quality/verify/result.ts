import { z } from 'zod';
import { describedInputSchema } from '../../engines/run/result.js';
import { formatIds } from '../../formats/precision/formats/index.js';
import { predictionSchema } from '../predictions/prediction.js';
import { outputFormats } from './output-set.js';

/** Numbers that JSON cannot represent are written by name: what is parsed may be either, the outcome is what JSON has. */
export const measureSchema = z.preprocess(
  (value) => (typeof value === 'number' ? measure(value) : value),
  z.union([z.number(), z.literal(['NaN', 'Infinity', '-Infinity'])]),
);
export type Measure = number | 'NaN' | 'Infinity' | '-Infinity';

/** A number as JSON can represent it. */
export function measure(value: number): Measure {
  if (Number.isFinite(value)) return value;
  return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';
}

export const outcomeSchema = z.enum(['pass', 'fail', 'inconclusive']);

/** Wrong outputs made from the reference, which a criterion must reject before it may say pass. */
export const plantedErrors = ['zeros', 'mean', 'another sample', 'turned sign', 'non-zeros x 0.7'] as const;
export type PlantedError = (typeof plantedErrors)[number];

/** The precisions that a comparison's tolerances are for; `tf32` is FP32 whose products have operands of 11 significant bits, TensorRT's default. */
export const verifyPrecisions = ['fp32', 'tf32', ...formatIds] as const;
export type VerifyPrecision = (typeof verifyPrecisions)[number];

const sideStatisticsSchema = z.object({
  min: measureSchema,
  max: measureSchema,
  mean: measureSchema,
  deviation: measureSchema,
});

export const verifiedOutputSchema = z.object({
  name: z.string(),
  /** Of the reference. */
  dtype: z.string(),
  candidateDtype: z.string(),
  /** Of one sample. */
  shape: z.array(z.number()),
  /** Of all samples together; the statistics are over these. */
  elements: z.number(),
  outcome: outcomeSchema,
  pass: z.boolean(),
  /** The deciding checks, in the units of the output. */
  checks: z.array(
    z.object({
      statistic: z.string(),
      measured: measureSchema,
      limit: z.number(),
      pass: z.boolean(),
      /** `at-least` for similarities; absent means that the statistic may be the limit at most. */
      bound: z.literal('at-least').optional(),
      /** The check passes as well when this one is within its limit. */
      or: z.object({ statistic: z.string(), measured: measureSchema, limit: z.number() }).optional(),
      /** The sample where it is worst; absent where there is one sample only. */
      sample: z.number().optional(),
      /** The slice that is meant, where positions of an axis have scales of their own; absent for the whole output. */
      slice: z.object({ axis: z.number(), position: z.number() }).optional(),
    }),
  ),
  /** Decisions that the output states, by rule: those of the reference, and of these kept and lost; those that only the candidate takes; near ties, which are neither. */
  decisions: z
    .array(
      z.object({
        rule: z.enum(['above 0.5', 'above 0.25', 'argmax']),
        reference: z.number(),
        kept: z.number(),
        lost: z.number(),
        new: z.number(),
        ties: z.number(),
        /** The share that may be lost or new. */
        limit: z.number(),
        /** Null where they are too few to decide. */
        pass: z.boolean().nullable(),
      }),
    )
    .optional(),
  /** Number of classes of an axis, and of those that no sample gave a probability above 0.1: the verdict is not about those. */
  classes: z.object({ axis: z.number(), of: z.number(), unpredicted: z.number() }).optional(),
  /** Where drawn samples make an output far larger than the weights behind it: how large. */
  blownUp: z.object({ peak: z.number(), largestWeight: z.number() }).optional(),
  /** Samples that do not decide, as the original itself is unstable there. */
  unstable: z.array(z.object({ sample: z.number(), moved: measureSchema })).optional(),
  /** null for integers and booleans that are compared exactly: all for which none was asked by name. */
  tolerance: z.object({ absolute: z.number(), relative: z.number(), why: z.string() }).nullable(),
  /** The error's statistics in the order to print them. */
  statistics: z.array(z.object({ name: z.string(), amount: measureSchema })),
  histogram: z.object({
    bins: z.array(z.object({ from: z.number(), to: z.number(), count: z.number() })),
    zeros: z.number(),
    nonFinite: z.number(),
  }),
  /** Planted errors that the same checks accept in the place of the candidate, in the whole output or in slices: then they show nothing there. */
  planted: z.array(
    z.object({
      error: z.enum(plantedErrors),
      slice: z.object({ axis: z.number(), positions: z.array(z.number()) }).nullable(),
    }),
  ),
  /** The finite values of each side; absent for complex numbers. */
  sides: z.object({ candidate: sideStatisticsSchema, reference: sideStatisticsSchema }).optional(),
  /** NaN and infinities on each side; absent for integers and booleans. */
  nonFinite: z
    .object({
      nanInCandidate: z.number(),
      nanInReference: z.number(),
      infiniteInCandidate: z.number(),
      infiniteInReference: z.number(),
      /** Both NaN, or the same infinity. */
      matching: z.number(),
      mismatching: z.number(),
      /** Of those that do not match, where the reference is finite; absent in results of versions before. */
      onlyInCandidate: z.number().optional(),
    })
    .optional(),
  /** The elements that are furthest apart, worst first. */
  worst: z
    .array(
      z.object({
        sample: z.number(),
        index: z.array(z.number()),
        candidate: measureSchema,
        reference: measureSchema,
        error: measureSchema,
      }),
    )
    .optional(),
  reasons: z.array(z.string()),
});
export type VerifiedOutput = z.infer<typeof verifiedOutputSchema>;

const axisSchema = z.object({
  /** Null where the tensor has no such axis. */
  axis: z.int().nonnegative().nullable(),
  size: z.int().nonnegative(),
});

/** Where in a tensor the error is. */
export const errorMapSchema = z.object({
  tensor: z.string(),
  rows: axisSchema,
  columns: axisSchema,
  /** Mean absolute error by row and column, neighbours together where an axis is long; null where a value that is not finite has no counterpart. */
  cells: z.array(z.array(z.number().nullable())),
});
export type ErrorMap = z.infer<typeof errorMapSchema>;

/** One picture or recording of those that a verdict is about. */
export const worstSampleSchema = z.object({
  sample: z.number(),
  /** Path as passed, and SHA-256 of the file. */
  file: z.string(),
  sha256: z.string(),
  /** Of a picture, in pixels; null for a recording. */
  size: z.object({ width: z.int().positive(), height: z.int().positive() }).nullable(),
  /** The largest share that its error has of a limit; null where nothing is limited: of texts. */
  share: measureSchema.nullable(),
  /** What the outputs of both sides state, where a decoder knows them. */
  reference: predictionSchema.nullable(),
  candidate: predictionSchema.nullable(),
  /** Decisions that only the reference takes, and only the candidate: boxes, the class, places of a mask, words. */
  lost: z.number(),
  new: z.number(),
});
export type WorstSample = z.infer<typeof worstSampleSchema>;

/** The samples that a verdict is about: each one that ran, and the number in the user's data; null where all were drawn. */
const sampleKind = z.enum(['data', 'drawn', 'edge']);
const samplesFromSchema = z.object({
  samples: z.array(
    z.object({
      origin: z.string(),
      kind: sampleKind,
      /** Of a batch how many samples it holds, each counted once; absent: one. */
      items: z.number().optional(),
    }),
  ),
  available: z.number().nullable(),
});

/** The result of `verify`: one model compared with another on the same inputs. */
export const verifyResultSchema = z.object({
  schema: z.literal('trtforge.verify/1'),
  /** Paths as passed, and what ran them. */
  reference: z.string(),
  candidate: z.string(),
  referenceBackend: z.string(),
  candidateBackend: z.string(),
  /** The precision that the tolerances are for. */
  precision: z.enum(verifyPrecisions),
  /** Values that were computed in float32 and rounded to 16 bits, as a GPU stores them; 0 when the candidate has none. */
  roundedValues: z.number(),
  seed: z.number(),
  samples: z.number(),
  /** Absent in results of versions before. */
  samplesFrom: samplesFromSchema.optional(),
  /** The parts that no sample reached, so that this verdict is not about them; absent where they were not looked for. */
  unreached: z
    .object({
      branches: z.array(
        z.object({ node: z.string(), branch: z.enum(['then', 'else']), message: z.string() }),
      ),
      tables: z.array(
        z.object({
          node: z.string(),
          tensor: z.string(),
          rows: z.number(),
          reached: z.number(),
          message: z.string(),
        }),
      ),
    })
    .optional(),
  /** Samples that do not run, beside those that do: why, and the branches that no other sample takes. Absent in results of versions before. */
  leftOut: z
    .array(
      z.object({
        origin: z.string(),
        kind: sampleKind,
        reason: z.string(),
        branches: z.array(z.object({ node: z.string(), branch: z.enum(['then', 'else']) })),
        message: z.string(),
      }),
    )
    .optional(),
  /** Of 16-bit and quantized candidates on drawn samples: how large inputs may be before it makes NaN or infinity where the reference makes none; absent where not tried, and after a failure. */
  headRoom: z
    .object({
      /** Which inputs were made larger. */
      inputs: z.array(z.string()),
      /** The largest absolute value of these inputs that was tried and makes none. */
      finiteUpTo: z.number(),
      /** The smallest that makes some, in `outputs`; null where none did. */
      failsAt: z.number().nullable(),
      outputs: z.array(z.string()),
      /** Whether the graph takes inputs of any size: then NaN or infinity leaves a verdict on drawn samples inconclusive. */
      isFree: z.boolean(),
      message: z.string(),
    })
    .optional(),
  inputs: z.array(describedInputSchema),
  outputs: z.array(verifiedOutputSchema),
  /** Of the output that decided, or of which the largest share is error where all pass; absent where none was asked for, and where it is equal. */
  errorMap: errorMapSchema.optional(),
  /** The pictures or recordings on which the candidate is worst, the worst first, at most 12; absent where none was asked for, and where samples are no such files. */
  worstSamples: z.array(worstSampleSchema).optional(),
  verdicts: z.object({
    /** Same outputs, of the same shapes. */
    contract: outcomeSchema,
    numeric: outcomeSchema,
    /** null: no task metric was asked for. */
    task: outcomeSchema.nullable(),
  }),
  /** Samples, under the name that streaming references use. */
  chunks: z.number(),
  failures: z.array(
    z.object({ chunk: z.number(), tensor: z.string(), kind: z.string(), maxAbs: measureSchema }),
  ),
  /** null: the inputs are no stream. */
  drift: z.null(),
  outcome: outcomeSchema,
  /** The finding, its samples, and the decisions, in a line; absent in results of earlier versions. */
  headline: z.string().optional(),
  reasons: z.array(z.string()),
  /** After a numeric failure: what `bisect` found within seconds, and its command line; absent where it could search nothing. */
  next: z
    .object({
      /** Whether a conversion that was tried passes, and none of the nodes it keeps FP32 can be left out. */
      passes: z.boolean(),
      /** Number of conversions that were compared. */
      tried: z.number(),
      /** Patterns of these nodes: what to add to the options of the conversion. Nodes without names have none. */
      keepNodes: z.array(z.string()),
      /** The command line that converts the model so; null where the caller passed how it was converted, and for nodes without names. */
      command: z.string().nullable(),
      message: z.string(),
      /** The command line that goes on: `bisect`, of a quantized candidate `convert advise`; null where none states how the candidate was converted or run, or has samples. */
      bisect: z.string().nullable(),
    })
    .optional(),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
});
export interface VerifyResult extends z.infer<typeof verifyResultSchema> {}

const sideSchema = z.object({
  path: z.string(),
  format: z.enum(outputFormats),
  /** Of Polygraphy's results. */
  runner: z.string().nullable(),
  runs: z.number(),
  /** Outputs that only this side has. */
  unmatched: z.array(z.string()),
});

/** The result of `compare`: recorded outputs compared with others. */
export const compareResultSchema = z.object({
  schema: z.literal('trtforge.compare/1'),
  candidate: sideSchema,
  reference: sideSchema,
  /** The precision that the usual limits are for. */
  precision: z.enum(verifyPrecisions),
  /** Number of runs of both that were compared, in order. */
  runs: z.number(),
  /** By the reference's names. */
  outputs: z.array(verifiedOutputSchema),
  /** As in the result of `verify`. */
  errorMap: errorMapSchema.optional(),
  verdicts: z.object({
    /** Same outputs, of the same types and shapes. */
    contract: outcomeSchema,
    numeric: outcomeSchema,
  }),
  /** Runs in which an output failed. */
  failures: z.array(
    z.object({
      run: z.number(),
      tensor: z.string(),
      kind: z.string(),
      maxAbs: verifiedOutputSchema.shape.checks.element.shape.measured,
    }),
  ),
  warnings: z.array(z.string()),
  outcome: outcomeSchema,
  reasons: z.array(z.string()),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
});
export interface CompareResult extends z.infer<typeof compareResultSchema> {}
