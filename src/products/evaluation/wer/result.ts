import { z } from 'zod';
import { metricSchema } from '../../../quality/tasks/task.js';

export const utteranceScoreSchema = z.object({
  id: z.string(),
  /** Edits over the words of the reference; 1 where the reference has none and the hypothesis has. */
  wer: z.number(),
  substitutions: z.number(),
  insertions: z.number(),
  deletions: z.number(),
  refWords: z.number(),
  hypWords: z.number(),
  /** Both as they were scored: normalised. */
  reference: z.string(),
  hypothesis: z.string(),
});
export interface UtteranceScore extends z.infer<typeof utteranceScoreSchema> {}

/** Result of `eval wer`. */
export const werResultSchema = z.object({
  schema: z.literal('trtforge.eval-wer/1'),
  /** Edits over reference words of the whole corpus; null where the references have no word and there are edits. */
  wer: z.number().nullable(),
  /** Mean of the utterances' own rates. */
  meanWer: z.number().nullable(),
  /** Edits of characters, spaces included, over those of the references. */
  cer: z.number().nullable(),
  edits: z.number(),
  substitutions: z.number(),
  deletions: z.number(),
  insertions: z.number(),
  refWords: z.number(),
  hypWords: z.number(),
  utterances: z.number(),
  /** With a reference, without a recognised word. */
  emptyHypotheses: z.number(),
  emptyReferences: z.number(),
  /** Utterances of the manifest without a line in the hypotheses: scored as all deleted. */
  missingHypotheses: z.number(),
  normalizer: z.string(),
  form: z.enum(['lines', 'manifest']),
  /** SHA-256 over ids and references as written, and the samples that were transcribed where they are known. */
  dataDigest: z.string(),
  /** SHA-256 over task, revision, normaliser, missing hypotheses and data: only rates with equal keys are compared. */
  comparabilityKey: z.string(),
  metrics: z.array(metricSchema),
  /** The twenty utterances with the most edits. */
  worst: z.array(utteranceScoreSchema),
  /** Where the scores of all utterances are; null: nowhere. */
  scores: z.string().nullable(),
  warnings: z.array(z.string()),
});
export interface WerResult extends z.infer<typeof werResultSchema> {}
