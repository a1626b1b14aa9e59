import { z } from 'zod';

/** What a command would do: printed by --dry-run instead of its result. */
export const planSchema = z.object({
  schema: z.literal('trtforge.plan/1'),
  /** In order. */
  steps: z.array(
    z.object({
      /** `read`, `take`, `convert`, `build`, `keep`, `upload`, `run`, `measure`, `verify`, `download`, `remove`, `write`, … */
      does: z.string(),
      /** The file, engine or place that it is about. */
      what: z.string(),
      detail: z.string().nullable(),
      /** Of what is written, copied or removed; null where that is not known before. */
      bytes: z.number().nullable(),
      /** How long it takes, milliseconds, where that is requested or was measured before; null where it is not known. */
      ms: z.number().nullable(),
      /** Why it would be left out; null: it would be done. */
      skipped: z.string().nullable(),
    }),
  ),
  /** What was decided for it, by the command: identity, target, recipe of a build; limits of a collection. */
  resolved: z.looseObject({
    /** What is left out, and why. */
    warnings: z.array(z.string()).optional(),
  }),
});
