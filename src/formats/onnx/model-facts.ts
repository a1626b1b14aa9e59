import { z } from 'zod';

const bytes = z.int().nonnegative();
const count = z.int().nonnegative();

export const findingSchema = z.strictObject({
  /** Stable; scripts may match on it. The list is in `findings.ts`. */
  code: z.string(),
  severity: z.enum(['error', 'warning', 'info']),
  message: z.string(),
  /** The place: a file, `graph/Conv "name"`, `graph input "x"`. */
  where: z.string(),
});

/** Numbers, symbols and expressions of them, null for unknown dimensions. */
const dimensionsSchema = z.array(z.union([z.int(), z.string(), z.null()]));

/** A number; where open dimensions decide it, an expression of their names in the syntax of Python: `8192*batch*((time + 1)//2)`. */
const amountSchema = z.union([z.number(), z.string()]);

const valueFactsSchema = z.strictObject({
  name: z.string(),
  /** As numpy spells it, plus bfloat16, float8_e4m3fn, int4, …; `sequence(float32)` and the like for values that are no tensors; null when not declared. */
  dtype: z.string().nullable(),
  /** Null as a whole when no shape is declared. */
  shape: dimensionsSchema.nullable(),
});

const scalarSchema = z.union([z.number(), z.string()]);

const nodeFactsSchema = z.strictObject({
  /** Empty for a node without a name. */
  name: z.string(),
  /** Other domains as `domain::Type`. */
  op: z.string(),
  /** `graph`, or the body that has the node: `graph/If "gate".then_branch`. */
  graph: z.string(),
  inputs: z.array(z.string()),
  outputs: z.array(z.string()),
  /** Numbers and text as the file has them; of a tensor its type and shape, of a graph its name. */
  attributes: z.record(z.string(), z.union([scalarSchema, z.array(scalarSchema)])),
  /** Inferred, one for each output; null where the shape is not known. */
  outputShapes: z.array(dimensionsSchema.nullable()),
  /** With those of its bodies; null where they are not known. */
  flops: amountSchema.nullable(),
});

/** The cost of one run of the graph as written, before any fusion. Weights, and what weights alone decide, cost nothing. */
const costSchema = z.strictObject({
  /** The shape of each input that the figures are for: as `--shapes` fixes it, else as declared. */
  inputs: z.record(z.string(), dimensionsSchema.nullable()),
  /** Dimensions that stay open: the figures are expressions of them. Each is taken to be at least 1. */
  openSizes: z.array(z.string()),
  /** Names `tensor[axis]` of sizes in the figures that data decide, or that no rule could compute. */
  otherSizes: z.array(z.string()),
  /** Floating-point operations; a multiply-add is two. Null where the expression is too long. */
  flops: amountSchema.nullable(),
  /** The same by operator, the operators with most FLOPs first. */
  flopsByOp: z.record(z.string(), amountSchema.nullable()),
  /** Nodes that are not in `flops`, since their shapes or their operators are not known. */
  uncountedNodes: count,
  /** The largest sum of tensors that are alive at once, without weights, inputs and outputs. Null where the open sizes decide when that is. */
  peakActivationBytes: amountSchema.nullable(),
  /** The node that runs then. */
  peakNode: z.string().nullable(),
  /** Tensors that are not in the peak, since their sizes are not known. */
  unmeasuredTensors: count,
  /** Where shapes end: operators without a rule, results that nothing in the model determines, inputs without a rank. */
  gaps: z.array(
    z.strictObject({
      reason: z.enum(['no-rule', 'undetermined', 'no-rank']),
      op: z.string(),
      nodes: count,
      /** The first node, or the input. */
      first: z.string(),
    }),
  ),
});

const weightFactsSchema = z.strictObject({
  name: z.string(),
  dtype: z.string(),
  shape: z.array(z.int()),
  /** Of the finite values; null where there is none, and for text and complex numbers. */
  min: z.number().nullable(),
  max: z.number().nullable(),
  zeros: count.nullable(),
  /** Whether every four input channels have two zeros, for sparse tensor cores; null where no convolution or matrix product reads it, or channels are no multiple of four. */
  sparse24: z.boolean().nullable(),
});

/** The report of `inspect` on an ONNX model. Counts "graph and bodies" include the bodies of If, Loop, Scan, but no functions. */
export const modelFactsSchema = z.strictObject({
  schema: z.literal('trtforge.inspect/1'),
  kind: z.literal('onnx'),
  file: z.string(),
  /** Bytes of the .onnx file itself. */
  fileBytes: bytes,
  irVersion: z.int(),
  /** Domain to version; the ONNX domain is `ai.onnx`. */
  opsets: z.record(z.string(), z.int()),
  producer: z.string(),
  producerVersion: z.string(),
  graphName: z.string(),
  /** Key-value pairs that the exporter left in the model. */
  metadata: z.record(z.string(), z.string()),
  inputs: z.array(valueFactsSchema),
  outputs: z.array(valueFactsSchema),
  /** Top level. */
  nodes: count,
  /** With bodies. */
  nodesTotal: count,
  functions: z.array(z.strictObject({ domain: z.string(), name: z.string(), nodes: count })),
  /** Op type to count, graph and bodies, most frequent first; other domains as `domain::Type`. */
  ops: z.record(z.string(), count),
  /** Graph and bodies, with the weights that Constant nodes hold; bytes of the values, packed, wherever they are stored. */
  initializers: z.strictObject({ count, bytes }),
  initializersByDtype: z.record(z.string(), z.strictObject({ count, bytes, parameters: count })),
  /** Elements of all these. */
  parameters: count,
  /** Their number, graph and bodies. */
  sparseInitializers: count,
  /** Paths as the model writes them; bytes null when the file is missing or may not be opened. */
  externalFiles: z.array(z.strictObject({ path: z.string(), bytes: bytes.nullable() })),
  /** Nodes of the graph and its bodies, in the file's order; only where they are requested. */
  nodeList: z.array(nodeFactsSchema).optional(),
  /** Initializers of the graph and its bodies, in the file's order; only where they are requested. */
  weightList: z.array(weightFactsSchema).optional(),
  /** Only `inspect` computes it. */
  cost: costSchema.optional(),
  findings: z.array(findingSchema),
});

export interface Finding extends z.infer<typeof findingSchema> {}
export type ValueFacts = z.infer<typeof valueFactsSchema>;
export interface ModelFacts extends z.infer<typeof modelFactsSchema> {}
