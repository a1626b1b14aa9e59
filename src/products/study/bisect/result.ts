import { z } from 'zod';
import { measureSchema, outcomeSchema, verifyPrecisions } from '../../../quality/verify/result.js';

const count = z.number().int().nonnegative();

export const candidateOutcomeSchema = z.enum(['pass', 'fail', 'unresolved']);

/** One candidate of a search. Milliseconds; null for a step that it did not need. */
export const candidateSchema = z.object({
  /** Counted from 1, in the order of the search. */
  id: count,
  /** The change, in one phrase. */
  what: z.string(),
  outcome: candidateOutcomeSchema,
  /** Why it failed, or why it could not be judged. */
  reasons: z.array(z.string()),
  /** Nodes of the search that stay FP32 in it. */
  kept: count,
  /** An earlier candidate that is the same model, or of which the engine is the same program: its outcome counts, nothing was run. 0 is the candidate that the search began with. */
  same: count.nullable(),
  ms: z.object({ convert: z.number().nullable(), build: z.number().nullable(), run: z.number().nullable() }),
});
export type BisectCandidate = z.infer<typeof candidateSchema>;

/** A part of the model that still fails, with its real inputs. */
const reducedSchema = z.object({
  /** Paths: the model, its inputs, and what FP32 computes of them. */
  model: z.string(),
  inputs: z.string(),
  expected: z.string(),
  nodes: count,
  reasons: z.array(z.string()),
  /** The command lines that show the failure. */
  commands: z.array(z.string()),
});

/** The result of `bisect`. */
export const bisectResultSchema = z.object({
  schema: z.literal('trtforge.bisect/1'),
  /** The version of trtforge that ran. */
  version: z.string(),
  startedAt: z.iso.datetime(),
  totalMs: z.number(),
  reference: z.string(),
  candidate: z.string(),
  precision: z.enum(verifyPrecisions),
  /** The judge: the reference model, or a command. */
  judge: z.enum(['model', 'check']),
  /** The back end that ran the candidates; null where a command judged. */
  backend: z.string().nullable(),
  seed: z.number(),
  samples: z.number(),
  /** `pass`: a work-around was found, or nothing fails. `inconclusive`: the search ended without one. */
  outcome: outcomeSchema,
  /**
   * `none`: the candidate passes. `conversion`: trtforge's conversion, or another build, passes as it is. `tf32`: an engine passes without TF32. `fusion`: an engine
   * passes where a fusion is broken. `nodes`: some must stay FP32. `unknown`: it fails in each of these ways.
   */
  cause: z.enum(['none', 'conversion', 'tf32', 'fusion', 'nodes', 'unknown']),
  headline: z.string(),
  reasons: z.array(z.string()),
  /** The nodes that must stay FP32 besides what stays FP32 anyway. */
  nodes: z.array(
    z.object({
      name: z.string(),
      op: z.string(),
      /** The largest magnitude that it reads or makes in FP32; null where none was observed. */
      peak: measureSchema.nullable(),
      overflows: z.boolean(),
    }),
  ),
  /** The fusion that must be broken; null for another cause. */
  fusion: z
    .object({
      /** The kernel that spans the nodes; null where the compiled program cannot be read. */
      kernel: z.string().nullable(),
      /** ONNX nodes that it computes. */
      nodes: z.array(z.string()),
      /** Tensors that are outputs of the work-around besides. */
      outputs: z.array(z.string()),
    })
    .nullable(),
  /** Whether none of the nodes, or outputs, can be left out; false where the budget ended first, and where smaller sets were unresolved. */
  isMinimal: z.boolean(),
  /** Whether the failure is theirs alone: it stays where every other node is FP32. null where that was not tried, unresolved, or the same model as with all nodes in FP32. */
  isConfirmed: z.boolean().nullable(),
  candidates: z.array(candidateSchema),
  /** Candidates that this run did not find in the results of an earlier one. */
  tried: count,
  /** Candidates that an engine was built for. */
  builds: count,
  budget: count,
  /** The model that passes; null where none does, or none is needed. */
  workaround: z.string().nullable(),
  /** The command line that converts the reference so; null as well where a calibration or more outputs are part of it. */
  convert: z.string().nullable(),
  /** The command line that builds the engine that passes; null where candidates are models. */
  build: z.string().nullable(),
  /** null where no part fails by itself or the command that judges decides about none, which `reasons` state, and where the smallest set was not found. */
  reduced: reducedSchema.nullable(),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
});
export type BisectResult = z.infer<typeof bisectResultSchema>;
