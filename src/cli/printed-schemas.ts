import { z } from 'zod';

/** What every failing command prints with --json. */
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

/** What --print-config prints with --json. */
export const configSchema = z.object({
  schema: z.literal('trtforge.config/1'),
  /** The configuration file that was read; null without one. */
  file: z.string().nullable(),
  /** By option name, as they were written. */
  options: z.looseObject({}),
});

/** What --version prints with --json. */
export const versionSchema = z.object({ schema: z.literal('trtforge.version/1'), version: z.string() });

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
