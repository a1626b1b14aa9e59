import { z } from 'zod';
import { isFieldPath } from './field-path.js';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const finite = z.number().refine(Number.isFinite, 'must be a finite number');
const word = z.string().min(1);
const fieldPath = word.refine(
  isFieldPath,
  'is not a path such as verdicts.contract or outputs[name=y].checks[0].measured',
);

/** The values that a limit forbids. Several operators in one limit: any of them is enough. */
export const limitSchema = z
  .strictObject({
    above: finite.optional(),
    'at-least': finite.optional(),
    below: finite.optional(),
    'at-most': finite.optional(),
    is: scalar.optional(),
    'is-not': scalar.optional(),
    'one-of': z.array(scalar).min(1).optional(),
    'none-of': z.array(scalar).min(1).optional(),
  })
  .refine((limit) => Object.keys(limit).length > 0, 'is empty: it must forbid something');

/** `10%` of the baseline, `0.5` in the field's own unit, or the larger of both; `-25%`: it must be so much better. */
export const marginSchema = z.union([
  finite.nonnegative(),
  z.string().regex(/^-?\d+(\.\d+)?\s*%$/, 'must be a number or a percentage such as 10%'),
  z.strictObject({
    relative: z.string().regex(/^\d+(\.\d+)?\s*%$/, 'must be a percentage such as 10%'),
    absolute: finite.nonnegative(),
  }),
]);

export const regressionSchema = z
  .strictObject({
    better: z.enum(['lower', 'higher']),
    fail: marginSchema.optional(),
    warn: marginSchema.optional(),
    /** Fields of the result that must be what they were when the baseline was made: `gpu.name`; else the check is inconclusive. */
    same: z.array(fieldPath).optional(),
    'missing-baseline': z.enum(['fail', 'inconclusive', 'warn', 'skip']).optional(),
  })
  .refine(({ fail, warn }) => fail !== undefined || warn !== undefined, 'needs a margin: fail, warn or both');

/** Which results are meant: all that is passed must fit. */
export const selectorSchema = z
  .strictObject({
    /** `trtforge.bench/1`; a star matches anything: `trtforge.stream-verify/*`. */
    schema: word.optional(),
    /** The name on the command line (`NAME=FILE`), or the file's name without `.json`; a pattern too. */
    name: word.optional(),
    /** Fields and the values they must have. */
    where: z.record(fieldPath, scalar).optional(),
  })
  .refine((selector) => Object.keys(selector).length > 0, 'is empty: it selects nothing');

const checkFields = {
  id: z.string().regex(/^[A-Za-z0-9][\w.-]*$/, 'must be a word of letters, digits, dots and dashes'),
  /** Why this is checked, for the caller that reads the failure. */
  why: word.optional(),
  result: z.union([word, selectorSchema]),
  field: fieldPath,
  unit: word.optional(),
  fail: limitSchema.optional(),
  inconclusive: limitSchema.optional(),
  warn: limitSchema.optional(),
  regression: regressionSchema.optional(),
  /** The outcome of a missing result or field; default fail. */
  missing: z.enum(['fail', 'inconclusive', 'warn', 'skip']).optional(),
};

/** As written; a check that an extended policy has too may change a part of it. */
export const writtenCheckSchema = z.strictObject({
  ...checkFields,
  result: checkFields.result.optional(),
  field: checkFields.field.optional(),
});

/** Whole, after `extends`. */
export const checkSchema = z.strictObject(checkFields);

export const waiverSchema = z.strictObject({
  check: word,
  /** Only for the result of this name; stars stand for anything. */
  result: word.optional(),
  /** Only for this place where the check's field has several: `outputs[logits].pass`; stars stand for anything. */
  at: word.optional(),
  /** Waives nothing worse than this number. */
  'up-to': finite.optional(),
  reason: z.string().trim().min(1, 'must be a reason'),
  /** The last day it contains, in UTC. */
  expires: z.string().refine(isDate, 'must be a day of the calendar, as 2027-01-31'),
  owner: word.optional(),
});

/** A policy file as written. */
export const policyFileSchema = z.strictObject({
  schema: z.literal('trtforge.gate-policy/1'),
  extends: z.union([word, z.array(word)]).optional(),
  results: z.record(word, selectorSchema).optional(),
  checks: z.array(writtenCheckSchema).optional(),
  /** Ids of checks of extended policies that do not apply. */
  without: z.array(word).optional(),
  waivers: z.array(waiverSchema).optional(),
  /** A waiver that ends within so many days is a warning; default 14. */
  'expires-soon-days': z.int().nonnegative().optional(),
});

export type Scalar = z.infer<typeof scalar>;
export type Limit = z.infer<typeof limitSchema>;
export type Margin = z.infer<typeof marginSchema>;
export type Regression = z.infer<typeof regressionSchema>;
export type Selector = z.infer<typeof selectorSchema>;
export type Check = z.infer<typeof checkSchema>;
export type Waiver = z.infer<typeof waiverSchema>;
export type PolicyFile = z.infer<typeof policyFileSchema>;

/** A day that the calendar has: 2026-02-30 is none. */
function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}
