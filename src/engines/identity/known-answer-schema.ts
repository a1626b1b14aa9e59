import { z } from 'zod';
import { type Dtype, dtypes, elementCount, packedBytes } from '../../formats/tensor/dtype.js';
import { isIntegerDtype } from '../../formats/tensor/values.js';

/** Distribution of an input's elements: drawn (`formats/tensor/random.ts`), a mask of ones and then zeros, or listed (values of a shape tensor). */
const spreadSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('normal'), mean: z.number(), deviation: z.number() }),
  z.object({
    kind: z.literal('uniform'),
    low: z.number(),
    high: z.number(),
    first: z.array(z.number()).optional(),
  }),
  z.object({ kind: z.literal('mask') }),
  z.object({ kind: z.literal('values'), values: z.array(z.int()) }),
]);

interface DrawnInputs {
  readonly inputs: readonly { readonly dtype: string; readonly shape: readonly number[] }[];
}

/** In bytes; what is not a float is drawn element by element, and counts sixteenfold. */
const drawnBy = ({ inputs }: DrawnInputs): number =>
  inputs.reduce((sum, { dtype, shape }) => {
    const bytes = packedBytes(dtype as Dtype, elementCount(shape));
    return sum + (dtypes[dtype as Dtype].kind === 'float' ? bytes : 16 * bytes);
  }, 0);

/** Whether the inputs of a case may be drawn: they are in memory whole, at every check. */
export const areDrawable = (inputs: DrawnInputs['inputs']) => drawnBy({ inputs }) <= 2 ** 30;

/** Whether all cases may, step by step. */
export const areRunnable = (cases: readonly (DrawnInputs & { readonly steps: number })[]) =>
  cases.reduce((sum, each) => sum + each.steps * drawnBy(each), 0) <= 2 ** 34;

export const madeInputSchema = z
  .object({
    name: z.string(),
    dtype: z.enum(Object.keys(dtypes)),
    shape: z.array(z.int().nonnegative()),
    spread: spreadSchema,
  })
  .refine(
    ({ dtype, shape, spread }) =>
      spread.kind !== 'values' ||
      (isIntegerDtype(dtype as Dtype) && spread.values.length === elementCount(shape)),
    'its values are not integers, or not as many as its shape has',
  );

/** Non-finite numbers have no place in JSON: null stands for them. */
const number = z.number().nullable();

const positions = z.array(z.number().nonnegative()).max(128);

/** The summary that is kept of a tensor instead of its elements (`quality/known-answer/sketch.ts`). */
export const sketchSchema = z.object({
  name: z.string(),
  shape: z.array(z.int().nonnegative()),
  /** `set`: rows that an operator orders or chooses by value; what is kept is of the sorted elements. */
  as: z.enum(['values', 'exact', 'set']),
  nan: z.int().nonnegative(),
  infinite: z.int().nonnegative(),
  /** Of the finite elements: the root of the sum of squares, and the largest magnitude. */
  l2: z.number().nonnegative(),
  max: z.number().nonnegative(),
  /** Elements at places that are spread over the tensor; 64 at most. */
  values: z.array(number).max(64),
  /** Sums of all finite elements with random signs, in as many groups. */
  sums: z.array(z.number()).refine(({ length }) => [4, 16, 64].includes(length), '4, 16 or 64 numbers'),
  /**
   * By position of an axis whose positions differ in size (boxes in pixels beside scores), of 128 at most that are spread over it: root mean square, and sums with
   * random signs, four of each, or none where rows are ordered or there was no room. null: the output has one size. Absent: the answer is older.
   */
  slices: z
    .object({
      axis: z.int().nonnegative(),
      rms: positions,
      sums: z.array(z.number()).max(512),
    })
    .refine(({ rms, sums }) => [0, 4 * rms.length].includes(sums.length), 'four sums a position, or none')
    .nullish(),
  /** Of the elements' bytes. */
  sha256: z.string(),
});

const limitSchema = z.object({
  /** Limits of the errors' root mean square and largest error, in the output's units; of `exact` the share of elements that may differ is `rms`. */
  rms: z.number().nonnegative(),
  max: z.number().nonnegative(),
});

const answeredOutputSchema = sketchSchema.extend({
  /** `slices`: what the root mean square of the errors may be at each position of `slices.rms`. */
  limit: limitSchema.extend({ slices: positions.optional() }),
  /** The engine's error where it was built; null where it did not run there. */
  measured: limitSchema.nullable(),
});

/** By what an engine proves itself where it is loaded: recipes of inputs, and what the FP32 reference makes of them. */
export const knownAnswerSchema = z.object({
  schema: z.literal('trtforge.known-answer/1'),
  /** The back end of the reference: `ONNX Runtime 1.30.0 (CPU)`. */
  reference: z.string(),
  /** The precision that the limits are for, as in `verify`. */
  precision: z.string(),
  seed: z.int(),
  /** The method that makes inputs from seed and recipe. */
  generator: z.literal(1),
  cases: z
    .array(
      z.object({
        /** `profile 0, opt` */
        name: z.string(),
        /** null for an engine of fixed shapes. */
        profile: z.int().nonnegative().nullable(),
        /** Runs one after the other, states fed back; 1 for a model without. */
        steps: z.int().positive().max(16),
        inputs: z
          .array(madeInputSchema)
          .refine(areDrawable, 'they have more than 1 GiB, or 64 MiB of integers'),
        outputs: z.array(answeredOutputSchema),
      }),
    )
    .max(256)
    .refine(areRunnable, 'they draw more than 16 GiB'),
  /** The case whose first axis is a batch: the reference gives rows that are the same the same outputs. null: none is known to be one. */
  rows: z.int().nonnegative().nullable(),
  /** States, input to output, of cases of several steps. */
  state: z.record(z.string(), z.string()),
  /** Cases and outputs without answer, and why. */
  left: z.array(z.string()),
  /** Where `measured` was measured. */
  builtOn: z.object({ gpu: z.string(), driver: z.string().nullable(), library: z.string() }).nullable(),
});
