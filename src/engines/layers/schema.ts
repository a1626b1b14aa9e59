import { z } from 'zod';

const dtype = z.string().nullable();
/** -1 of the library is null: a dimension that is open. */
const shape = z.array(z.int().nullable()).nullable();

const layerTensorSchema = z.strictObject({
  name: z.string(),
  shape,
  /** The library's own message for layout and type: `Channel major FP16 format where channel % 8 == 0`, `Half`. */
  format: z.string().nullable(),
  /** As numpy spells it; null where the library does not state it. */
  dtype,
  /** `Device` or `Host`. */
  location: z.string().nullable(),
  /** With the padding its layout asks for; null where the shape is open. */
  bytes: z.int().nonnegative().nullable(),
});

export const engineLayerSchema = z.strictObject({
  /** Position in the engine, over all profiles. */
  index: z.int().nonnegative(),
  /** Without `[profile N]`; per-layer times are reported under the same name. Not always unique. */
  name: z.string(),
  /** `CaskConvolution`, `Reformat`, `kgen`, …; null where the engine was built with names only. */
  type: z.string().nullable(),
  /** Which optimization profile it belongs to. */
  profile: z.int().nonnegative(),
  inputs: z.array(layerTensorSchema),
  outputs: z.array(layerTensorSchema),
  tactic: z.strictObject({ name: z.string().nullable(), value: z.string().nullable() }),
  /** The type it computes in: that of its weights, else of its floating inputs, else of its outputs. */
  precision: dtype,
  /** The library's text as it is. */
  metadata: z.string().nullable(),
  /** Names of the ONNX nodes it stands for. A copy that serves a layer has the nodes of that layer. */
  onnxNodes: z.array(z.string()),
  /** A region passed to the compiler is reported by its first and last node only. */
  region: z.strictObject({ first: z.string(), last: z.string() }).nullable(),
  /** `REFORMAT` and the like: why the library added it. */
  origin: z.string().nullable(),
  stream: z.int().nullable(),
  /** Whether it only copies: a reformat, a cast of layouts, a move. */
  copies: z.boolean(),
  weightBytes: z.int().nonnegative(),
  /** Bytes that it writes in one run; null where a shape is open. */
  outputBytes: z.int().nonnegative().nullable(),
  /** Every other field, as the library wrote it: kernel, stride, activation, … */
  attributes: z.record(z.string(), z.unknown()),
});

const bindingSchema = z.strictObject({
  name: z.string(),
  /** From 11 on the library reports it; before that it follows from who reads and who writes the tensor. */
  mode: z.enum(['input', 'output']).nullable(),
  dtype,
  shape,
  format: z.string().nullable(),
  location: z.string().nullable(),
  shapeTensor: z.boolean().nullable(),
  profiles: z.array(z.strictObject({ min: shape, opt: shape, max: shape, format: z.string().nullable() })),
});

/** The report of an engine's inspector, whatever version wrote it. */
export const engineLayersSchema = z.strictObject({
  /** `names`: the engine was built without detailed profiling verbosity, so layers have a name and nothing else. */
  detail: z.enum(['detailed', 'names']),
  /** `bindings`: TensorRT before 11; `io-tensors`: 11 and later. */
  dialect: z.enum(['bindings', 'io-tensors']),
  layers: z.array(engineLayerSchema),
  bindings: z.array(bindingSchema),
});

export interface EngineLayers extends z.infer<typeof engineLayersSchema> {}
export type EngineLayer = z.infer<typeof engineLayerSchema>;
export type LayerTensor = z.infer<typeof layerTensorSchema>;
export type EngineBinding = z.infer<typeof bindingSchema>;
