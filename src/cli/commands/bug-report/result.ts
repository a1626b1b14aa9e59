import { z } from 'zod';

/** The result of `report-bug`. `report.json` in the archive is the same without `archive` and `bytes`. */
export const bugReportSchema = z.object({
  schema: z.literal('trtforge.report-bug/1'),
  version: z.string(),
  archive: z.string(),
  bytes: z.int().positive(),
  /** The line that failed, with the files as the archive has them: run it in the folder of the archive. */
  repeat: z.string(),
  failure: z.object({ exitCode: z.int(), code: z.string().nullable(), message: z.string().nullable() }),
  /** `seeded`: random ones stand for the weights of every model. */
  weights: z.enum(['seeded', 'original', 'none']),
  /** Whether the packed files fail as the user's do; null where that was not tried: the weights are the user's own, or no model was read. */
  isReproduced: z.boolean().nullable(),
  /** The command's result with seeded weights; null where it was not run with them. */
  seeded: z.object({ exitCode: z.int(), code: z.string().nullable() }).nullable(),
  /** The packed models with seeded weights: how many of their weights are random, and which stay as they are, since they are structure. */
  models: z.array(
    z.object({ path: z.string(), nodes: z.int(), replaced: z.int(), kept: z.array(z.string()) }),
  ),
  /** The search for a part that fails, `nodes` of the `of` nodes of the models; null where it was not requested. */
  reduced: z
    .object({
      /** null: the models are packed whole, for the reason. */
      nodes: z.int().nullable(),
      of: z.int(),
      tried: z.int(),
      why: z.string().nullable(),
    })
    .nullable(),
  /** The capture of TensorRT's API in the builds of the line; null where it was not requested. */
  capture: z.object({ files: z.array(z.string()), why: z.string().nullable() }).nullable(),
  files: z.array(z.object({ path: z.string(), bytes: z.int() })),
  /** Files that the command read and the archive does not have. */
  leftOut: z.array(z.object({ path: z.string(), why: z.string() })),
});
export type BugReport = z.infer<typeof bugReportSchema>;
