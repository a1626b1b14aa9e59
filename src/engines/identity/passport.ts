import { z } from 'zod';
import { readText } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { faultText } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import { formatIds } from '../../formats/precision/formats/index.js';
import { type Dtype, dtypes, elementCount, packedBytes } from '../../formats/tensor/dtype.js';
import { isIntegerDtype } from '../../formats/tensor/tensor.js';
import { passportPath } from './engine-name.js';
import { identitiesOf, identityDigest } from './identity.js';
import { identityDocumentSchema, sha256Schema } from './recipe.js';

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

const count = z.int().nonnegative();

/** The types that convolutions and matrix products of a quantized model compute in, by the program in their plan. */
export const layerPrecisionsSchema = z.object({
  /** `types`: nodes by the type they compute in; `unknown` for those that the program does not name. */
  operators: z.array(z.object({ op: z.string(), nodes: count, types: z.record(z.string(), count) })),
  /** Nodes that compute in floating point, those with quantized operands first; at most 100. */
  floating: z.array(
    z.object({
      node: z.string(),
      op: z.string(),
      /** Type of the codes that it multiplies in the model; null where the model does not quantize it, or its weights alone. */
      requested: z.string().nullable(),
      computes: z.string(),
      reason: z.string(),
      /** The finding of `inspect` on it; null without one. */
      finding: z.string().nullable(),
    }),
  ),
  /** Those with quantized operands, those of them that are one kernel, and why the others are not, as far as it is known. */
  attentions: z.object({ quantized: count, fused: count, reasons: z.array(z.string()) }),
  /** Kernels that compute nothing but codes, values of codes, or another layout; of all profiles together. */
  conversions: z.object({ quantize: count, dequantize: count, move: count }),
});

export type LayerPrecisions = z.infer<typeof layerPrecisionsSchema>;

/** What the bytes of a plan are, the rest being names and tables. */
export const planContentsSchema = z.strictObject({
  weightsBytes: count,
  /** The code of kernels: each that was generated for the network with all that it includes, some 130 KiB in TensorRT-RTX 1.7. */
  kernelsBytes: count,
  /** The program that runs them, as text. */
  programBytes: count,
});

export type PlanContents = z.infer<typeof planContentsSchema>;

/** A model's graph apart from the values of its weights, which another model of the same graph may replace in an engine (builder flag `refit`). */
const modelGraphSchema = z.object({
  /** SHA-256 over the model as `digestModel` has it, without the values of weights. */
  digest: z.string(),
  /** Number of nodes by operator. */
  operators: z.record(z.string(), z.int().positive()),
  /** Floating-point initializers and constants that nodes use: type and shape, and the first digits of the SHA-256 of their values. */
  weights: z.record(z.string(), z.object({ type: z.string(), values: z.string() })),
  /** Of these, what the parser computes other weights from (batch normalizations): the engine does not have them by these names. */
  folded: z.array(z.string()),
  /** Four digits of the SHA-256 of each node, in their order, and constants that are no weights by name: they name what differs. Absent in passports of versions before. */
  nodes: z.string().optional(),
  constants: z.record(z.string(), z.string()).optional(),
});

export type ModelGraph = z.infer<typeof modelGraphSchema>;

const networkTensorSchema = z.object({
  name: z.string(),
  dtype: z.string(),
  /** null where nobody stated the rank. */
  shape: z.array(z.int().nonnegative().nullable()).nullable(),
  /** The model's name for each axis that it leaves open; null for the others. Absent: the model names none, or the passport is older. */
  symbols: z.array(z.string().nullable()).optional(),
});

/** The JSON beside a plan. Holds no path, no host and no user name: passports travel with engines. */
export const passportSchema = z.object({
  schema: z.literal('trtforge.passport/1'),
  /** Identity in full; `digest` is the SHA-256 of `document` in canonical form. */
  identity: z.object({ digest: sha256Schema, document: identityDocumentSchema }),
  /** Readable name of the engine: a plain file name, since stores make links of it. */
  name: z.string().regex(/^[A-Za-z0-9_+][A-Za-z0-9._+~-]{0,250}$/),
  model: z.object({
    name: z.string(),
    /** The user's name for this version of the model; null where none was passed. */
    version: z.string().nullable(),
    /** Bytes of the model file and its external files. */
    bytes: z.int().nonnegative(),
    /** Of a model that was built as it is: the formats among its types, the one with the widest tolerance first. Absent: FP32 alone. */
    precisions: z.array(z.enum(formatIds)).optional(),
    /** Preparation of its calibration's images, by the name of `--preprocess`; the engine's caller prepares images in the same way. */
    preprocess: z.string().optional(),
  }),
  plan: z.object({
    sha256: sha256Schema,
    bytes: z.int().positive(),
    /** Layers of the network as the library parsed it; null where the builder did not state it. */
    layers: z.int().nonnegative().nullable(),
    inputs: z.array(networkTensorSchema),
    outputs: z.array(networkTensorSchema),
    /** Of engines of quantized models, where the plan holds a program that can be read. */
    precisions: layerPrecisionsSchema.optional(),
    /** Where the plan states it; absent in passports of versions before. */
    contents: planContentsSchema.optional(),
    /** Of engines with the builder flag `refit`: the graph that the builder read, by which other weights are judged. */
    graph: modelGraphSchema.optional(),
  }),
  built: z.object({
    /** `trtforge 0.1.0` */
    by: z.string(),
    /** Absent: the library itself, through the addon. */
    builder: z.literal('trtexec').optional(),
    /** Version the library itself reported. */
    libraryVersion: z.string(),
    /** The method that found the toolchain, without its path. */
    toolchain: z.string(),
    /** UTC, ISO 8601. */
    at: z.string(),
    ms: z.number().nonnegative(),
    /** Time of the conversion before it; null when the model was built as it is. */
    conversionMs: z.number().nonnegative().nullable(),
    peakMemoryBytes: z.int().nonnegative().nullable(),
    timingCache: z.enum(['none', 'new', 'hit', 'rejected']),
    os: z.string(),
    node: z.string(),
    /** Recorded, not keyed; null on a machine without. */
    gpu: z.string().nullable(),
    driver: z.string().nullable(),
    /** Shapes that the model ran with on ONNX Runtime before the build, and those that it could not be run with, and why. Absent without profiles. */
    sizes: z
      .object({
        ran: z.array(z.string()),
        skipped: z.array(z.object({ sizes: z.string(), reason: z.string() })),
      })
      .optional(),
    /** Of an engine that was not built but refitted: the engine whose weights were replaced. */
    refitted: z.object({ identity: sha256Schema, sha256: sha256Schema }).optional(),
  }),
  /** Absent where no reference could be run, or none within its time. */
  knownAnswer: knownAnswerSchema.optional(),
  warnings: z.array(z.string()),
});

export interface Passport extends z.infer<typeof passportSchema> {}

/** Real passports are a few KiB; one of hundreds of inputs and ten profiles has 1 MiB. What is wrong with a value takes ten times its memory. */
const LARGEST_PASSPORT = 2 << 20;

/**
 * Reads the passport of an engine, which has to be of the identities that it should have (`identitiesOf`). Throws TF_PASSPORT_MISSING, TF_PASSPORT_INVALID,
 * TF_FILE_UNREADABLE.
 */
export function readPassport(planPath: string, expected?: string): Passport {
  const path = passportPath(planPath);
  try {
    const passport = parsePassport(readText(path, LARGEST_PASSPORT, 'TF_PASSPORT_INVALID'), path);
    const { digest } = passport.identity;
    const other = identitiesOf(planPath, expected).find((identity) => identity !== digest);
    if (other === undefined) return passport;
    throw new TrtforgeError('TF_PASSPORT_INVALID', `${path} is the passport of ${digest}, not of ${other}.`, {
      remedy:
        'Use the engine of that identity; `trtforge cache verify` names those that are in the place of another.',
      details: { expected: other, actual: digest },
    });
  } catch (cause) {
    if (!(cause instanceof TrtforgeError) || cause.code !== 'TF_FILE_NOT_FOUND') throw cause;
    throw new TrtforgeError('TF_PASSPORT_MISSING', `${planPath} has no passport (${path}).`, { cause });
  }
}

/** Reads a passport's text; `path` is for messages. Throws TF_PASSPORT_INVALID. */
export function parsePassport(text: string, path: string): Passport {
  const json = parseJson(text, LARGEST_PASSPORT, (why, cause) => invalid(path, why, cause));
  const parsed = passportSchema.safeParse(json);
  if (!parsed.success) throw invalid(path, faultText(parsed.error));
  const { digest, document } = parsed.data.identity;
  if (identityDigest(document) !== digest) {
    throw invalid(path, 'its identity digest does not fit the model, recipe and target it names');
  }
  return parsed.data;
}

const invalid = (path: string, why: string, cause?: unknown) =>
  new TrtforgeError('TF_PASSPORT_INVALID', `${path} is not a passport: ${why}.`, { cause });
