import { existsSync } from 'node:fs';
import { z } from 'zod';
import { sha256OfFileInPieces } from '../../../base/files/digest.js';
import { passportPath } from '../../../engines/identity/engine-name.js';
import { type Passport, readPassport } from '../../../engines/identity/passport.js';
import type { OpenedSession, OpenOptions } from '../../../engines/runtime/back-end.js';
import { ortFactsSchema } from '../../../engines/runtime/onnxruntime/ort-facts.js';
import { openSession } from '../../../engines/runtime/open-session.js';
import type { WorkContext } from '../../../events.js';

/** The candidate that was evaluated, beside every metric. */
export const candidateSchema = z.object({
  file: z.string(),
  kind: z.enum(['engine', 'model']),
  /** Of the file; weights of a model in other files are not in it. */
  sha256: z.string(),
  /** Of an engine with a passport: digest of model, recipe and target, readable name, and precision of its recipe. */
  identity: z.string().nullable(),
  name: z.string().nullable(),
  precision: z.string().nullable(),
  /** The preparation of its calibration images, as its passport states it. */
  preprocess: z.string().nullable(),
  backEnd: z.string(),
  /** `ONNX Runtime 1.30.0 (CPU)`. */
  backend: z.string(),
  arithmetic: z.string(),
  /** Of a model: library, options and placement; absent for engines. */
  onnxRuntime: ortFactsSchema.optional(),
  /** Nodes that ran somewhere else, for one. */
  warnings: z.array(z.string()),
});
export type Candidate = z.infer<typeof candidateSchema>;

/** The passport beside an engine, where there is one. */
export const passportOf = (file: string) => (existsSync(passportPath(file)) ? readPassport(file) : null);

/** The preparations of images for these tasks; the first where nothing states it. */
export const preparations = {
  detector: ['yolo', 'rt-detr'],
  classifier: ['imagenet', 'yolo', 'rt-detr', 'arcface'],
  embeddings: ['arcface', 'imagenet', 'yolo', 'rt-detr'],
} as const;

/** As requested, else as the passport of one of the files states that its calibration did, else the first of the choices. */
export function preparationOf(
  requested: string | undefined,
  files: readonly string[],
  choices: readonly string[],
): string {
  const calibrated = files.map((file) => passportOf(file)?.model.preprocess);
  return requested ?? calibrated.find((id) => id !== undefined && choices.includes(id)) ?? choices[0]!;
}

/** The warning of an engine that was calibrated on images of another preparation than this one. */
export function otherPreparation(
  passport: Passport | null,
  preprocess: string | null = null,
): readonly string[] {
  const calibrated = passport?.model.preprocess ?? preprocess;
  if (preprocess === null || calibrated === preprocess) return [];
  return [`Calibrated on images that were prepared as "${calibrated}", and --preprocess is ${preprocess}.`];
}

/** Opens an engine or a model, runs it, and closes it. Throws what opening and `use` throw. */
export async function withCandidate<T>(
  file: string,
  options: OpenOptions,
  context: WorkContext & { readonly preprocess?: string },
  use: (session: OpenedSession) => Promise<T>,
): Promise<{ readonly candidate: Candidate; readonly result: T }> {
  await using session = await openSession(file, options, context);
  const result = await use(session);
  const passport = session.kind === 'engine' ? passportOf(file) : null;
  const { warnings, onnxRuntime } = await session.facts();
  return {
    result,
    candidate: {
      file,
      kind: session.kind,
      sha256: await sha256OfFileInPieces(file),
      identity: passport?.identity.digest ?? null,
      name: passport?.name ?? null,
      precision: passport?.identity.document.recipe.precision ?? null,
      preprocess: passport?.model.preprocess ?? null,
      backEnd: session.backEnd,
      backend: session.backend,
      arithmetic: session.arithmetic,
      ...(onnxRuntime === null ? {} : { onnxRuntime }),
      warnings: [...warnings, ...otherPreparation(passport, context.preprocess)],
    },
  };
}
