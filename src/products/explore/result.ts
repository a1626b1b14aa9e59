import { z } from 'zod';
import { operatorTimesSchema } from '../../engines/layers/result.js';
import { measureSchema } from '../../quality/verify/result.js';

const count = z.int().nonnegative();
const text = z.string().nullable();

const tensorSchema = z.strictObject({
  name: z.string(),
  /** As numpy spells it; null where it is not known. */
  dtype: text,
  /** Null in place of dimensions that are open. */
  shape: z.array(count.nullable()).nullable(),
  /** The library's words for layout and type. */
  format: text,
  /** With the padding of the layout. */
  bytes: count.nullable(),
});

const rowSchema = z.strictObject({
  name: z.string(),
  /** Of an engine the library's own (`CaskConvolution`, `kgen`, `corrltn`), of a model the operator. */
  type: text,
  precision: text,
  /** Why it is in this precision, in a sentence; null where nothing that was read states it. */
  why: text,
  /** Layout and type of its first output, in the library's words. */
  format: text,
  /** That it writes in a run; null where a shape is open. */
  bytes: count.nullable(),
  weightBytes: count,
  tactic: text,
  /** Names of the ONNX nodes that it computes. */
  onnx: z.array(z.string()),
  /** The ONNX operator that its time is counted for. */
  operator: z.string(),
  /** Of all its nodes; null where the model or a size is not known. */
  flops: z.number().nonnegative().nullable(),
  /** Milliseconds of a run, and its share of all; null where nothing was timed. */
  ms: z.number().nonnegative().nullable(),
  share: z.number().nonnegative().nullable(),
  /** The worst tensor of its nodes in a result of `compare layers`. */
  error: z.strictObject({ tensor: z.string(), sqnrDb: measureSchema, outcome: z.string() }).nullable(),
  /** Of its unit in a result of `convert advise`: decibels where this unit alone is quantized. */
  sensitivityDb: measureSchema.nullable(),
  /** Whether it only moves data. */
  copies: z.boolean(),
  /** Whether it only holds or moves weights. */
  constant: z.boolean(),
  /** Positions in `tensors`. */
  inputs: z.array(count),
  outputs: z.array(count),
  /** Every other field of the library, or the node's attributes, as text. */
  attributes: z.array(z.tuple([z.string(), z.string()])),
});

const sideSchema = z.strictObject({
  file: z.string(),
  /** `engine`: a loaded engine; `layers`: a file of its layers; `program`: TensorRT-RTX's compiled program in the plan; `bench`: a measurement alone; `onnx`: a model. */
  kind: z.enum(['engine', 'layers', 'program', 'bench', 'onnx']),
  /** Files that facts of the layers come from. */
  from: z.array(z.string()),
  /** The optimization profile whose layers these are; null for models. */
  profile: count.nullable(),
  /** Null where nothing was timed. `totalMs`: all rows together; `measuredMs`: the median of a run as a whole, without the cost of timing its layers. */
  timing: z
    .strictObject({ file: z.string(), runs: count, totalMs: z.number(), measuredMs: z.number().nullable() })
    .nullable(),
  totals: z.strictObject({
    rows: count,
    copies: count,
    bytes: count,
    weightBytes: count,
    flops: z.number().nullable(),
  }),
  tensors: z.array(tensorSchema),
  /** In the order of execution. */
  rows: z.array(rowSchema),
  /** What a reader should know of it, in sentences. */
  notes: z.array(z.string()),
});

const groupSchema = z.strictObject({
  /** Positions in the rows of A and of B: layers that compute the same ONNX nodes. One side may have none. */
  a: z.array(count),
  b: z.array(count),
  /** `fused`: the same nodes, put together into other layers. */
  change: z.enum(['same', 'changed', 'fused', 'only-a', 'only-b']),
  /** Of `changed`: what differs. */
  changes: z.array(z.string()),
  copies: z.boolean(),
  aMs: z.number().nullable(),
  bMs: z.number().nullable(),
});

const comparisonSchema = z.strictObject({
  /** In the order of A; what B alone has stands behind what precedes it there. Every row is in one of them. */
  groups: z.array(groupSchema),
  counts: z.strictObject({ same: count, changed: count, fused: count, onlyA: count, onlyB: count }),
  /** Reformats that B has and A has not, and the other way round. */
  newReformats: count,
  goneReformats: count,
});

/** The result of `trtforge explore`: everything that its page shows. */
export const exploreSchema = z.strictObject({
  schema: z.literal('trtforge.explore/1'),
  /** The version of trtforge that ran. */
  version: z.string(),
  /** A, and B where two are beside each other. */
  sides: z.array(sideSchema).min(1).max(2),
  /** Layers and time by ONNX operator, the largest time first. Columns add up to all rows. */
  operators: operatorTimesSchema,
  comparison: comparisonSchema.nullable(),
  /** Files that were written. */
  written: z.array(z.string()),
});

export type Explored = z.infer<typeof exploreSchema>;
export type Side = Explored['sides'][number];
export type Row = Side['rows'][number];
export type Tensor = Side['tensors'][number];
export type Comparison = NonNullable<Explored['comparison']>;
export type Group = Comparison['groups'][number];
