import { z } from 'zod';

/** One contradiction between the contract, what was recorded and the model. */
export const contractFindingSchema = z.object({
  /** Stable name of the kind of finding: `layout`, `dtype`, `assertion-against-rule`. */
  id: z.string(),
  /** Which of the three is wrong; `undecided` where only two are known and either may be. */
  wrong: z.enum(['contract', 'data', 'model', 'undecided']),
  severity: z.enum(['error', 'warning']),
  /** Tensor or field. */
  about: z.string(),
  message: z.string(),
  /** The reason. */
  why: z.string(),
  remedy: z.string(),
});
export type ContractFinding = z.infer<typeof contractFindingSchema>;
