import { z } from 'zod';
import { formatIds, restIds } from './formats/index.js';

const count = z.number().int().nonnegative();

/** The origin of the ranges. */
const calibrationFactsSchema = z.object({
  /** Files and folders of samples. */
  data: z.array(z.string()),
  /** That the model ran on, one after another; 0 where the cache had all that was needed. */
  samples: count,
  cache: z.string().nullable(),
  /** The preparation of images, and their size where the model leaves it open; null where no preparation was named. */
  preprocess: z.string().nullable(),
  imgsz: count.nullable(),
  /** The ONNX Runtime provider that ran the model. */
  provider: z.string(),
});
export type CalibrationFacts = z.infer<typeof calibrationFactsSchema>;

/** The result of `convertModel`, as data. */
export const conversionSchema = z.object({
  schema: z.literal('trtforge.convert/1'),
  input: z.string(),
  output: z.string(),
  precision: z.enum(formatIds),
  ioTypes: z.enum(['keep', 'convert']),
  /** Opset of the default domain, before and after. */
  opset: z.object({ before: count, after: count, reason: z.string().nullable() }),
  functionsInlined: count,
  /** Stored integers behind a Cast that a DequantizeLinear reads now; results of older versions lack it. */
  codesDequantized: count.optional(),
  /** Nodes of the graph and its bodies. `untouched`: nothing in them was FP32. */
  nodes: z.object({ total: count, converted: count, kept: count, untouched: count }),
  convertedOps: z.record(z.string(), count),
  /** Rules that kept nodes, in the order in which they are asked. */
  rules: z.array(z.object({ id: z.string(), title: z.string(), nodes: count })),
  /** Every node that stayed FP32, in graph order. */
  kept: z.array(z.object({ node: z.string(), op: z.string(), rule: z.string(), reason: z.string() })),
  casts: z.object({ added: count, removed: count }),
  /** Where Q/DQ pairs are and why; null for a floating-point precision. `nodes` and `kept` are about what is around them. */
  quantization: z
    .object({
      /** The precision of everything but the pairs. */
      rest: z.enum(restIds),
      /** The method that chose the magnitudes of activations; null where none is quantized. */
      method: z.string().nullable(),
      /** Every node that was considered, in graph order; `rule` is what kept it out, or what it is quantized as. */
      nodes: z.array(
        z.object({
          node: z.string(),
          op: z.string(),
          quantized: z.boolean(),
          rule: z.string(),
          reason: z.string(),
        }),
      ),
      /** Rules with the nodes that they decided, in the order in which they are asked. */
      rules: z.array(z.object({ id: z.string(), title: z.string(), quantized: z.boolean(), nodes: count })),
      /** Each activation with a pair: the magnitude of the largest code, and the scale. */
      activations: z.array(z.object({ tensor: z.string(), amax: z.number(), scale: z.number() })),
      /** Weights that became codes. */
      weights: count,
    })
    .nullable(),
  /** null without a calibration; results of older versions lack it. */
  calibration: calibrationFactsSchema.nullable().optional(),
  weights: z.object({
    converted: count,
    keptFp32: count,
    /** Values clamped to the largest finite one; that became zero; that became subnormal. */
    saturated: count,
    toZero: count,
    subnormal: count,
    /** Weights that lost something in one of these ways. */
    losses: z.array(
      z.object({
        name: z.string(),
        elements: count,
        saturated: count,
        toZero: count,
        subnormal: count,
      }),
    ),
  }),
  inputs: z.array(z.object({ name: z.string(), before: z.string(), after: z.string() })),
  outputs: z.array(z.object({ name: z.string(), before: z.string(), after: z.string() })),
  /** Model file and external data together. */
  bytes: z.object({ before: count, after: count }),
  externalData: z.string().nullable(),
  warnings: z.array(z.string()),
  ms: z.number().nonnegative(),
});

export interface ConversionResult extends z.infer<typeof conversionSchema> {}

/** The precision of the nodes that `nodes` counts: of a quantized precision, the one around the pairs. */
export const floatPrecision = ({ precision, quantization }: ConversionResult): string =>
  quantization?.rest ?? precision;
