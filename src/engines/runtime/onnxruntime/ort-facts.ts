import { z } from 'zod';

/**
 * Which provider took which nodes, as ONNX Runtime reports it: after its first optimizations, so a node may be several of the file's, and constant ones are gone.
 * A node that TensorRT takes counts by itself, not by its engine.
 */
const placementSchema = z.object({
  providers: z.array(z.object({ provider: z.string(), nodes: z.int().positive() })),
  /** Nodes that the requested provider did not take. */
  fallback: z.array(z.object({ provider: z.string(), name: z.string(), operator: z.string() })),
});
export type Placement = z.infer<typeof placementSchema>;

/** The ONNX Runtime that ran a model, for results. */
export const ortFactsSchema = z.object({
  /** Path of libonnxruntime.so; `onnxruntime-node` where that package's binding ran it. */
  library: z.string(),
  version: z.string(),
  /** The library's own build; null with onnxruntime-node's binding. */
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
export interface OrtFacts extends z.infer<typeof ortFactsSchema> {}
