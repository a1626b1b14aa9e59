import { z } from 'zod';
import { formatIds } from '../../formats/precision/formats/index.js';
import { identityDocumentSchema, sha256Schema } from './identity-schema.js';
import { knownAnswerSchema } from './known-answer-schema.js';
import { layerPrecisionsSchema } from './precisions-schema.js';

const networkTensorSchema = z.object({
  name: z.string(),
  dtype: z.string(),
  /** null where nobody stated the rank. */
  shape: z.array(z.int().nonnegative().nullable()).nullable(),
  /** What the model calls each axis that it leaves open; null for the others. Absent: it names none, or the passport is older. */
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
    /** What the user called this version of the model; null where none was passed. */
    version: z.string().nullable(),
    /** Bytes of the model file and its external files. */
    bytes: z.int().nonnegative(),
    /** Of a model that was built as it is: the formats among its types, the one with the widest tolerance first. Absent: FP32 alone. */
    precisions: z.array(z.enum(formatIds)).optional(),
    /** How the images of its calibration were prepared, by the name of `--preprocess`; whoever feeds the engine prepares them so. */
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
  }),
  built: z.object({
    /** `trtforge 0.1.0` */
    by: z.string(),
    /** Absent: the library itself, through the addon. */
    builder: z.literal('trtexec').optional(),
    /** Version the library itself reported. */
    libraryVersion: z.string(),
    /** How the toolchain was found, without its path. */
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
  }),
  /** Absent where no reference could be run, or none within its time. */
  knownAnswer: knownAnswerSchema.optional(),
  warnings: z.array(z.string()),
});
