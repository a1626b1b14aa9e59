import { z } from 'zod';

/** The output of every failing command with --json. */
export const errorSchema = z.object({
  schema: z.literal('trtforge.error/1'),
  error: z.object({
    /** `TF_…`: docs/errors.md. */
    code: z.string(),
    message: z.string(),
    remedy: z.string(),
    /** By the code: the file, input or flag that it is about. */
    details: z.looseObject({}).optional(),
  }),
});

/** The output of --print-config with --json. */
export const configSchema = z.object({
  schema: z.literal('trtforge.config/1'),
  /** The configuration file that was read; null without one. */
  file: z.string().nullable(),
  /** By option name, as they were written. */
  options: z.looseObject({}),
});

/** The output of --version with --json. */
export const versionSchema = z.object({ schema: z.literal('trtforge.version/1'), version: z.string() });

/** The work that a command would do: printed by --dry-run instead of its result. */
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
      /** Its duration in milliseconds, where that is requested or was measured before; null where it is not known. */
      ms: z.number().nullable(),
      /** Why it would be left out; null: it would be done. */
      skipped: z.string().nullable(),
    }),
  ),
  /** The command's decisions for it: identity, target, recipe of a build; limits of a collection. */
  resolved: z.looseObject({
    /** Parts that are left out, and the reasons. */
    warnings: z.array(z.string()).optional(),
  }),
});
