import { z } from 'zod';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import {
  type DecisionDetails,
  decisionDetailsSchema,
  minAgreementSchema,
} from '../../quality/tasks/decisions.js';
import type { TaskKind } from '../../quality/tasks/task.js';
import { TokenTask } from '../../quality/tasks/tokens.js';
import type { TokenDecoder } from '../../quality/tasks/transducer-decoder.js';
import { openDecoder } from './open-decoder.js';

const settingsSchema = z.object({
  /** The encoder output that is decoded. */
  output: z.string(),
  /** The output with the valid steps of each row; null: all are. */
  lengths: z.string().nullable(),
  /** The `model_meta.json` of a bundle whose predictor and joint network decode the outputs of both. */
  decoder: z.string(),
  /** The same of the candidate's own predictor and joint network: both decoders are exchanged. */
  swap: z.string().optional(),
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
  open: async ({ output, lengths, decoder: path, swap, minAgreement }, context) => {
    const decoder = await openDecoder(path, context);
    try {
      const own = swap === undefined ? null : await openOwn(swap, decoder, context);
      return new TokenTask(taskKind, { output, lengths, decoder, own, minAgreement });
    } catch (error) {
      await decoder.close();
      throw error;
    }
  },
};

/** The candidate's own decoder, which must decide about the same things as the reference's. */
async function openOwn(path: string, { facts }: TokenDecoder, context: WorkContext): Promise<TokenDecoder> {
  const own = await openDecoder(path, context);
  const { tokenLogits, blankId, durations } = own.facts;
  if (
    tokenLogits === facts.tokenLogits &&
    blankId === facts.blankId &&
    durations.join() === facts.durations.join()
  )
    return own;
  await own.close();
  throw new TrtforgeError(
    'TF_BUNDLE_MISMATCH',
    `${path} decides about other tokens or durations than the bundle of --decoder, so the two cannot be exchanged.`,
  );
}
