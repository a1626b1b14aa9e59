import { z } from 'zod';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';

const dtype = z.enum(Object.keys(dtypes) as [Dtype, ...Dtype[]]);
const whole = z.number().int();
const range = z.strictObject({
  min: whole.nonnegative(),
  opt: whole.nonnegative(),
  max: whole.nonnegative(),
});
const binding = z.strictObject({
  name: z.string().min(1),
  dtype: dtype.nullable().default(null),
  shape: z
    .array(z.union([whole.nonnegative(), z.string(), z.null()]))
    .max(32)
    .nullable()
    .default(null),
  role: z.enum(['signal', 'length', 'state', 'state-length', 'result', 'other']).default('other'),
});
const assertion = { id: z.string().min(1), tensor: z.string(), sentence: z.string().default('') };

/** `trtforge.contract/1`, the file; `docs/contracts.md` explains it. A key that is misspelt would never be checked, so unknown ones are rejected. */
export const contractSchema = z.strictObject({
  schema: z.literal('trtforge.contract/1'),
  name: z.string(),
  inputs: z.array(binding),
  outputs: z.array(binding),
  state: z
    .array(
      z.strictObject({
        input: z.string(),
        output: z.string(),
        initial: z.number().default(0),
        axis: whole.nonnegative().nullable().default(null),
        capacity: whole.nonnegative().nullable().default(null),
        padSide: z.enum(['right', 'left']).default('right'),
        fillValue: z.number().default(0),
        validLength: z.string().nullable().default(null),
      }),
    )
    .default([]),
  lengths: z
    .object({
      signal: z.string().nullable().default(null),
      result: z.string().nullable().default(null),
      stateIn: z.string().nullable().default(null),
      stateOut: z.string().nullable().default(null),
    })
    .default({ signal: null, result: null, stateIn: null, stateOut: null }),
  cacheLengthRule: z
    .strictObject({ capacity: whole.nonnegative(), dropExtra: whole, drop: whole })
    .nullable()
    .default(null),
  schedule: z
    .object({
      tensor: z.string(),
      axis: whole.nonnegative(),
      first: whole.positive(),
      rest: whole.positive(),
      shift: z.strictObject({ first: whole, rest: whole }).nullable().default(null),
      preEncode: z.strictObject({ first: whole, rest: whole }).default({ first: 0, rest: 0 }),
      stated: z.array(whole).default([]),
    })
    .nullable()
    .default(null),
  profiles: z
    .array(z.strictObject({ name: z.string(), ranges: z.record(z.string(), z.array(range)) }))
    .default([]),
  assertions: z
    .array(
      z.discriminatedUnion('kind', [
        z.strictObject({ ...assertion, kind: z.literal('equal'), value: z.number() }),
        z.strictObject({
          ...assertion,
          kind: z.literal('range'),
          min: z.number().nullable().default(null),
          max: z.number().nullable().default(null),
        }),
        z.strictObject({
          ...assertion,
          kind: z.literal('monotonic'),
          than: z.string().nullable().default(null),
          until: z.number().nullable().default(null),
        }),
        z.strictObject({ ...assertion, kind: z.literal('bounded-by-capacity'), capacity: whole }),
        z.strictObject({ ...assertion, kind: z.literal('dimension-equals'), axis: whole, value: whole }),
      ]),
    )
    .default([]),
  tolerances: z
    .array(
      z.strictObject({
        tensor: z.string().nullable().default(null),
        absolute: z.number().nullable().default(null),
        relative: z.number().nullable().default(null),
      }),
    )
    .default([]),
  notExecutable: z.array(z.strictObject({ sentence: z.string(), why: z.string() })).default([]),
});
export type ContractFile = z.infer<typeof contractSchema>;
