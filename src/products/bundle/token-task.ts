import { z } from 'zod';
import {
  type DecisionDetails,
  decisionDetailsSchema,
  minAgreementSchema,
} from '../../quality/tasks/decisions.js';
import type { TaskKind } from '../../quality/tasks/task.js';
import { TokenTask } from '../../quality/tasks/tokens.js';
import { openDecoder } from './open-decoder.js';

const settingsSchema = z.object({
  /** The encoder output that is decoded. */
  output: z.string(),
  /** The output with the valid steps of each row; null: all are. */
  lengths: z.string().nullable(),
  /** The `model_meta.json` of a bundle whose predictor and joint network decode the outputs of both. */
  decoder: z.string(),
  /** The share of tokens and of durations that must be the same. */
  minAgreement: minAgreementSchema,
});

/** Encoder outputs, decoded by the predictor and the joint network of a bundle. */
export const taskKind: TaskKind<z.infer<typeof settingsSchema>, DecisionDetails> = {
  id: 'tokens',
  revision: 3,
  summary: 'encoder outputs decode to the tokens and durations of the reference',
  settings: settingsSchema,
  details: decisionDetailsSchema,
  module: new URL('../../../dist/products/bundle/token-task.js', import.meta.url),
  open: async ({ output, lengths, decoder: path, minAgreement }, context) =>
    new TokenTask(taskKind, {
      ...{ output, lengths, minAgreement },
      decoder: await openDecoder(path, context),
    }),
};
