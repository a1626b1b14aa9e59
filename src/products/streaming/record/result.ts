import { z } from 'zod';
import { contractSchema, undecidedSchema, violationSchema } from '../../../formats/contract/contract.js';
import { provenanceSchema } from '../../../formats/reference/reference.js';

/** The result of `stream record MODEL -o REFERENCE`. */
export const recordResultSchema = z.object({
  schema: z.literal('trtforge.stream-record/1'),
  file: z.string(),
  backend: z.string(),
  /** null: the contract was drafted from the model. */
  contract: z.string().nullable(),
  provenance: provenanceSchema,
  output: z.string(),
  chunks: z.number().int().nonnegative(),
  /** Of the file. */
  bytes: z.number().nonnegative(),
  warnings: z.array(z.string()),
  /** Contract violations of the recording, each once with the first chunk. */
  violations: z.array(violationSchema),
  /** Of one step of the session, in milliseconds. */
  stepMs: z.object({ first: z.number(), median: z.number().nullable() }),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
});
export interface RecordResult extends z.infer<typeof recordResultSchema> {}

/** The result of `stream draft MODEL -o FILE`. */
export const draftedContractSchema = z.object({
  schema: z.literal('trtforge.stream-draft/1'),
  file: z.string(),
  output: z.string(),
  contract: contractSchema,
  /** Inputs that may be states and are not in the contract: what they could come back as, and why nothing was decided. */
  undecided: z.array(undecidedSchema),
});
export type DraftedContract = z.infer<typeof draftedContractSchema>;
