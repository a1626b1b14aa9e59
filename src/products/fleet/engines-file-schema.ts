import { z } from 'zod';
import { parseTarget } from '../../engines/identity/target.js';
import { parsed } from './parsed.js';
import { kindOfWhere, schedulerAt, whereSchema } from './schedulers/where.js';

const word = z.string().min(1);

/** A target as --target takes it. */
const targetText = z.string().transform(
  parsed((text) => {
    parseTarget(text);
    return text;
  }),
);

/** Part of files' names and of names that Kubernetes bounds. */
export const targetNameSchema = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?$/,
    'must be a word of at most 24 small letters, digits and dashes',
  );

export const targetEntrySchema = z
  .strictObject({
    target: targetText,
    /** Where it is built; default: on the machine that submits. */
    where: whereSchema.default('local'),
  })
  .superRefine(({ target, where }, { addIssue }) => {
    // Of an invalid `where` its own fault is named.
    if (!whereSchema.safeParse(where).success) return;
    const { by, as } = schedulerAt(where);
    const [key, message] = by.lacks?.(as, target) ?? [];
    if (key !== undefined && message !== undefined)
      addIssue({ code: 'custom', path: ['where', kindOfWhere(where), key], message });
  });

/** Beside these a model has options of `trtforge build`, by their long names. */
export const modelEntryShape = {
  model: word.optional(),
  /** A model_meta.json: each of its components is built. */
  bundle: word.optional(),
  targets: z
    .union([z.literal('all'), z.array(word).min(1)], 'must be all, or a list of targets: [l4, h100]')
    .default('all'),
  /** A policy that a build has to pass; default: that of the file. */
  gate: word.optional(),
};

/** An `engines.yaml`. Paths in it are relative to its folder. */
export const enginesFileSchema = z.strictObject({
  /** A folder, or an address as --remote takes it. */
  store: word,
  targets: z
    .record(targetNameSchema, targetEntrySchema)
    .refine((targets) => Object.keys(targets).length > 0, 'must have a target'),
  models: z.array(z.looseObject(modelEntryShape)).min(1),
  gate: word.optional(),
});
