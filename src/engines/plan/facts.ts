import { z } from 'zod';
import { findingSchema } from '../../formats/onnx/model-facts.js';
import { passportSchema } from '../identity/passport.js';

/** The known facts of a plan file, from its bytes and the files beside it; nothing is loaded. */
export const planFactsSchema = z.strictObject({
  kind: z.literal('plan'),
  file: z.string(),
  product: z.enum(['tensorrt', 'tensorrt-rtx']),
  /** `major.minor.patch.build` of the library that built it, the build number modulo 256; null before TensorRT 8.6. */
  version: z.string().nullable(),
  fileBytes: z.int().nonnegative(),
  /** Without a foreign header. */
  planBytes: z.int().nonnegative(),
  /** SHA-256 of the plan without a foreign header. */
  sha256: z.string(),
  /** The header that an exporter put in front of the plan, with its content; `onnxruntime`: an ONNX file around it. */
  foreignHeader: z
    .strictObject({
      kind: z.enum(['ultralytics', 'json', 'onnxruntime']),
      bytes: z.int().positive(),
      content: z.record(z.string(), z.unknown()),
    })
    .nullable(),
  /** The plan's program, where the plan contains it as text (TensorRT-RTX). */
  program: z
    .strictObject({
      /** Equal for plans that compute by the same kernels; the values of weights are not in it. */
      digest: z.string(),
      /** `sm_89` */
      architectures: z.array(z.string()),
      /** Of all optimization profiles. */
      kernels: z.int().nonnegative(),
      /** `convolution`, `matrix product`, `attention`, …, and how many multiply which type. */
      operators: z.array(z.strictObject({ operator: z.string(), types: z.record(z.string(), z.int()) })),
    })
    .nullable(),
  /** The passport beside the plan, as it stands there; null when there is none that can be read. */
  passport: z.strictObject({ path: z.string(), content: passportSchema }).nullable(),
  /** For each TensorRT of the plan's product on this machine, whether it can load the plan. */
  toolchains: z.array(
    z.strictObject({
      name: z.string(),
      loads: z.enum(['yes', 'if-allowed', 'if-version-compatible', 'no']),
      why: z.string(),
    }),
  ),
  findings: z.array(findingSchema),
});
export type PlanFacts = z.infer<typeof planFactsSchema>;

/** The output of `engine inspect`. */
export const enginesInspectedSchema = z.strictObject({
  schema: z.literal('trtforge.engine-inspect/2'),
  /** In the order of the command line. */
  engines: z.array(planFactsSchema),
  /** 1 where a finding of an engine is an error: its passport is of another plan, or cannot be read. */
  exitCode: z.literal([0, 1]),
});
export type EnginesInspected = z.infer<typeof enginesInspectedSchema>;

/** The result of `engine strip-header`: the plan without the header that an exporter put in front of it. */
export const strippedPlanSchema = z.strictObject({
  schema: z.literal('trtforge.engine-strip-header/1'),
  file: z.string(),
  path: z.string(),
  bytes: z.int().nonnegative(),
});
export type StrippedPlan = z.infer<typeof strippedPlanSchema>;
