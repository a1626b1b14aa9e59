import { z } from 'zod';
import { findingSchema } from '../../formats/onnx/model-facts.js';

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

const bytes = z.int().nonnegative();
const count = z.int().nonnegative();

const groupSchema = z.strictObject({
  name: z.string(),
  layers: count,
  weightBytes: bytes,
  /** Of the layers whose shapes are known. */
  outputBytes: bytes,
});

export const layersSummarySchema = z.strictObject({
  layers: count,
  /** Most layers first. */
  byType: z.array(groupSchema),
  /** The types that computing layers compute in; constants and copies left out. */
  byPrecision: z.array(groupSchema),
  /** Weights inside layers, and constants that layers read. */
  weightBytes: bytes,
  /** Bytes that all layers write in one run, of those whose shapes are known. */
  outputBytes: bytes,
  /** Layers whose bytes are unknown since a dimension is open. */
  openShapes: count,
  /** Layers that only move data. `ofConstants`: those that move the same weights in every run. */
  copies: z.strictObject({ layers: count, outputBytes: bytes, ofConstants: count }),
  /** Different ONNX nodes behind the layers. */
  onnxNodes: count,
});

/** The facts that only a machine that loads the engine knows. */
export const loadedFactsSchema = z.strictObject({
  /** `tensorrt 10.6.0` */
  library: z.string(),
  /** Plug-in libraries that were loaded with it; absent for none. */
  plugins: z.array(z.string()).optional(),
  gpu: z.strictObject({ name: z.string(), computeCapability: z.int() }),
  profiles: count,
  auxStreams: count,
  /** Activation memory of one context. */
  deviceMemoryBytes: bytes,
  deviceMemoryBytesPerProfile: z.array(bytes),
  streamableWeightsBytes: bytes,
  refittable: z.boolean(),
  /** Decrease of the GPU's free memory from before loading to after it. */
  loadedBytes: z.int(),
});

const source = {
  /** The engine, or the file of layer information. */
  file: z.string(),
  /** Where the layers come from: the loaded engine, or an exported file. */
  layersFrom: z.string(),
  /** Size of the plan; null where only its layer information is here. */
  planBytes: bytes.nullable(),
  /** SHA-256 of the plan: what reports later whether a file of layers is of an engine. Null where only its layer information is here. */
  planSha256: z.string().nullable(),
  /** Null where nothing was loaded. */
  loaded: loadedFactsSchema.nullable(),
};

/** The result of `trtforge engine layers ENGINE`. */
export const layersResultSchema = z.strictObject({
  schema: z.literal('trtforge.engine-layers/1'),
  kind: z.literal('layers'),
  ...source,
  ...engineLayersSchema.shape,
  summary: layersSummarySchema,
  findings: z.array(findingSchema),
});

const names = z.array(z.string());

const sideSchema = z.strictObject({ ...source, detail: z.string(), summary: layersSummarySchema });

/** The result of `trtforge engine diff A B`. */
export const engineDiffSchema = z.strictObject({
  schema: z.literal('trtforge.engine-diff/1'),
  kind: z.literal('diff'),
  a: sideSchema,
  b: sideSchema,
  /** Layers that stand for the same ONNX nodes (or have the same name, where they stand for none). */
  matched: count,
  /** Those of them that are alike in all that is compared. */
  same: count,
  changed: z.array(
    z.strictObject({
      a: z.string(),
      b: z.string(),
      onnxNodes: names,
      changes: z.array(
        z.strictObject({
          what: z.enum(['type', 'precision', 'tactic', 'inputs', 'outputs', 'weights']),
          a: z.string(),
          b: z.string(),
        }),
      ),
    }),
  ),
  /** The same ONNX nodes, put together into other layers. */
  fusions: z.array(z.strictObject({ onnxNodes: names, a: names, b: names })),
  /** Layers without a counterpart. */
  onlyA: names,
  onlyB: names,
});

/** Time by ONNX operator of one engine, or of two beside each other; the largest first. */
export const operatorTimesSchema = z.array(
  z.object({
    op: z.string(),
    /** Of each engine: its layers, and milliseconds of a run; null where none of them was timed. */
    sides: z.array(z.object({ layers: z.int().nonnegative(), ms: z.number().nonnegative().nullable() })),
  }),
);

export type LayersSummary = z.infer<typeof layersSummarySchema>;
export type LoadedFacts = z.infer<typeof loadedFactsSchema>;
export interface LayersResult extends z.infer<typeof layersResultSchema> {}
export interface EngineDiff extends z.infer<typeof engineDiffSchema> {}
export type OperatorTime = z.infer<typeof operatorTimesSchema>[number];
