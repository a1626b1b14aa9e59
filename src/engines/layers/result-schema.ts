import { z } from 'zod';
import { findingSchema } from '../../formats/onnx/model-facts.js';
import { engineLayersSchema } from './schema.js';

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

export type LayersSummary = z.infer<typeof layersSummarySchema>;
export type LoadedFacts = z.infer<typeof loadedFactsSchema>;
export interface LayersResult extends z.infer<typeof layersResultSchema> {}
export interface EngineDiff extends z.infer<typeof engineDiffSchema> {}
