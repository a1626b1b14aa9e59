import { z } from 'zod';

const count = z.int().nonnegative();

/** What the convolutions and matrix products of a quantized model compute in, by the program in their plan. */
export const layerPrecisionsSchema = z.object({
  /** `types`: nodes by the type they compute in; `unknown` for those that the program does not name. */
  operators: z.array(z.object({ op: z.string(), nodes: count, types: z.record(z.string(), count) })),
  /** Nodes that compute in floating point, those with quantized operands first; at most 100. */
  floating: z.array(
    z.object({
      node: z.string(),
      op: z.string(),
      /** Type of the codes that it multiplies in the model; null where the model does not quantize it, or its weights alone. */
      requested: z.string().nullable(),
      computes: z.string(),
      reason: z.string(),
      /** The finding of `inspect` on it; null without one. */
      finding: z.string().nullable(),
    }),
  ),
  /** Those with quantized operands, those of them that are one kernel, and why the others are not, as far as it is known. */
  attentions: z.object({ quantized: count, fused: count, reasons: z.array(z.string()) }),
  /** Kernels that compute nothing but codes, values of codes, or another layout; of all profiles together. */
  conversions: z.object({ quantize: count, dequantize: count, move: count }),
});

export type LayerPrecisions = z.infer<typeof layerPrecisionsSchema>;
