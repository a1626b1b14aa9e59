import { z } from 'zod';
import { placementSchema } from './ort-placement.js';

/** What of ONNX Runtime ran a model, for results. */
export const ortFactsSchema = z.object({
  /** Path of libonnxruntime.so; `onnxruntime-node` where that package's binding ran it. */
  library: z.string(),
  version: z.string(),
  /** What the library states of its own build; null with onnxruntime-node's binding. */
  buildInfo: z.string().nullable(),
  /** Version of the TensorRT that the provider loaded; null for other providers. */
  tensorrt: z.string().nullable(),
  provider: z.enum(['cpu', 'cuda', 'tensorrt']),
  /** As they were passed to the provider, with the precision flags of the model's types. */
  providerOptions: z.record(z.string(), z.string()),
  /** Whether products of float32 may be shortened to TF32; null where the model wraps an engine, which was built with its answer. */
  tf32: z.boolean().nullable(),
  /** Which provider took which nodes; null on the CPU, and before the first run of a version before 1.24. */
  placement: placementSchema.nullable(),
});
export type OrtFacts = z.infer<typeof ortFactsSchema>;
