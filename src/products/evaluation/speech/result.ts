import { z } from 'zod';
import { latencySchema } from '../run/evaluate.js';
import { variantSchema } from '../run/variant.js';
import { werResultSchema } from '../wer/result.js';

/** The run that made transcripts. */
export const recogniserRunSchema = z.object({
  /** The models or engines, the encoder first, with the SHA-256 of each file. */
  files: z.array(z.object({ file: z.string(), sha256: z.string() })),
  backend: z.string(),
  streaming: z.boolean(),
  /** Front end: sample rate, mel bins, window, hop, normalisation. */
  frontEnd: z.record(z.string(), z.union([z.number(), z.string()])),
  /** Utterances of another sample rate, brought to that of the model by a windowed sinc. */
  resampled: z.number(),
  audioSeconds: z.number(),
  frontEndMs: z.number(),
  encodeMs: z.number(),
  decodeMs: z.number(),
  /** Of utterances, each from its features to its text, the first one included; they are of different lengths, so compare it on the same manifest. */
  latency: latencySchema,
  /** Seconds of sound a second, from file to text. */
  speed: z.number(),
});
export type RecogniserRun = z.infer<typeof recogniserRunSchema>;

/** The result of `trtforge eval recogniser`: the scores of `eval wer`, and the run behind them. */
export const recogniserResultSchema = werResultSchema.omit({ form: true }).extend({
  schema: z.literal('trtforge.eval-recogniser/1'),
  /** In metrics.json of a comparison: which variant it is. */
  variant: variantSchema.optional(),
  meta: z.string(),
  manifest: z.string(),
  run: recogniserRunSchema,
  /** The folder with transcripts.tsv, scores.tsv and metrics.json; null: none was requested. */
  output: z.string().nullable(),
});
export interface RecogniserResult extends z.infer<typeof recogniserResultSchema> {}
