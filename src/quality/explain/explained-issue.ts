import { z } from 'zod';

/** One line of a log, numbered from 1. */
export const logLineSchema = z.object({ line: z.int().positive(), text: z.string() });

const valueSchema = z.object({
  name: z.string(),
  dtype: z.string().nullable(),
  /** Numbers, symbols, null for unknown dimensions; null as a whole where the model declares none. */
  shape: z.array(z.union([z.int(), z.string(), z.null()])).nullable(),
});

const modelNodeSchema = z.object({
  name: z.string(),
  /** `Conv`, `ai.acme::Gelu`. */
  operator: z.string(),
  /** `graph`, `graph/If "gate".then_branch`. */
  graph: z.string(),
  inputs: z.array(valueSchema),
  outputs: z.array(valueSchema),
});

/** The place in the model that an issue's lines name. */
export const modelPlaceSchema = z.object({
  /** `name`: the lines name the nodes. `path`: all that lies between the first and last node they name. `order`: no path joins these two; all nodes that stand between them in the file. */
  found: z.enum(['name', 'path', 'order']),
  /** Number of nodes; the first of them are listed. */
  total: z.int().positive(),
  nodes: z.array(modelNodeSchema),
  /** Operator to count, most frequent first. */
  operators: z.record(z.string(), z.int().positive()),
  /** Nodes that are known to cause such failures, and why. */
  suspects: z.array(z.object({ nodes: z.array(z.string()), why: z.string() })),
});

/** A known issue that a log shows. */
export const explainedIssueSchema = z.object({
  id: z.string(),
  /** `error`: the work fails or its result is wrong. `warning`: it works, worse than it could. `note`: harmless. */
  severity: z.enum(['error', 'warning', 'note']),
  cause: z.string(),
  remedy: z.string(),
  versions: z.string(),
  source: z.string(),
  count: z.int().positive(),
  /** The first of them. */
  lines: z.array(logLineSchema),
  /** Null without the model, and where the lines name nothing that is in it. */
  model: modelPlaceSchema.nullable(),
});

export interface ExplainedIssue extends z.infer<typeof explainedIssueSchema> {}
export type ModelPlace = z.infer<typeof modelPlaceSchema>;
export type ModelNode = z.infer<typeof modelNodeSchema>;
