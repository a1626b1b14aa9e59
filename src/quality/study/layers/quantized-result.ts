import { z } from 'zod';
import { measureSchema } from '../../verify/result.js';

const sampleErrorSchema = z.object({
  mse: measureSchema,
  rmse: measureSchema,
  mean_abs: measureSchema,
  max_abs: measureSchema,
  /** Infinity where nothing differs, NaN where the error is not a finite number. */
  sqnr_db: measureSchema,
  cosine_sim: measureSchema,
});

/** Over all samples. */
const errorsSchema = z.object({
  mean_mse: measureSchema,
  max_mse: measureSchema,
  mean_rmse: measureSchema,
  max_rmse: measureSchema,
  mean_mean_abs: measureSchema,
  max_mean_abs: measureSchema,
  mean_max_abs: measureSchema,
  max_max_abs: measureSchema,
  /** Over the samples with finite decibels; NaN where one sample has it. */
  mean_sqnr_db: measureSchema,
  min_sqnr_db: measureSchema,
  mean_cosine_sim: measureSchema,
  min_cosine_sim: measureSchema,
});
export type Errors = z.infer<typeof errorsSchema>;

/** `metrics.json` of `compare layers`, with the fields of auto-quantize-model's comparison; `schema` and `version` are trtforge's. */
export const quantizedComparisonSchema = z.object({
  schema: z.literal('trtforge.compare-quantized/1'),
  /** The version of trtforge that ran. */
  version: z.string(),
  baseline_model: z.string(),
  quantized_model: z.string(),
  /** Files of samples, separated by commas; empty where they were drawn. */
  calibration_path: z.string(),
  num_samples: z.number(),
  providers: z.array(z.string()),
  /** Whether tensors were compared on a GPU. */
  gpu_compare: z.literal(false),
  /** Of the first input, without its batch; null where it is no image. */
  input_chw: z.array(z.number()).length(3).nullable(),
  metric_definitions: z.record(
    z.string(),
    z.object({
      key_name: z.string(),
      short_name: z.string(),
      full_name: z.string(),
      description: z.string(),
    }),
  ),
  /** The output with the largest error of those that both models have. */
  output_name: z.string(),
  /** Of that output. */
  errors: errorsSchema,
  per_sample: z.array(sampleErrorSchema.extend({ index: z.number() })),
  /** Nodes that both models have, by the name of the first value that they make, the largest error first. `name` of a node without one is that of the value. */
  per_layer: z.array(
    z.object({
      name: z.string(),
      op_type: z.string(),
      precision: z.string(),
      fp_tensor: z.string(),
      qt_tensor: z.string(),
      metrics: errorsSchema,
    }),
  ),
});
export type QuantizedComparison = z.infer<typeof quantizedComparisonSchema>;

/** `precision-scheme.json`: what each node computes in, by the pairs around it. */
export const precisionSchemeSchema = z.object({
  model_path: z.string(),
  /** Of the graph, pairs included. */
  num_nodes: z.number(),
  counts: z.record(z.string(), z.number()),
  nodes: z.array(
    z.object({
      name: z.string(),
      op_type: z.string(),
      /** `int8` (or the type of other codes) where an input is dequantized or an output is quantized, else `fp32_fp16`. */
      precision: z.string(),
      inputs: z.array(z.string()),
      outputs: z.array(z.string()),
    }),
  ),
});
export type PrecisionScheme = z.infer<typeof precisionSchemeSchema>;

const bindingSchema = z.object({
  name: z.string(),
  /** ONNX's number of the type: 1 is float32, 10 float16. */
  dtype: z.number(),
  /** Names of open dimensions, null for those without. */
  shape: z.array(z.union([z.number(), z.string(), z.null()])),
});

/** `io.json`: inputs and outputs of the quantized model. */
export const ioContractSchema = z.object({
  inputs: z.array(bindingSchema),
  outputs: z.array(bindingSchema),
});
export type IoContract = z.infer<typeof ioContractSchema>;
