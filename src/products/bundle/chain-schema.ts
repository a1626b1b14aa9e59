import { z } from 'zod';

const count = z.int().nonnegative();
const measure = z.number().nonnegative().nullable();

const differenceSchema = z.strictObject({
  sample: count,
  /** Of the decision in its sample. */
  index: count,
  /** Encoder step it looked at. */
  step: count,
  what: z.enum(['token', 'duration']),
  reference: count,
  candidate: count,
  /** By how much each prefers its own choice to the other's: how nearly it would have decided otherwise. */
  reference_margin: measure,
  candidate_margin: measure,
  /** The largest distance of the row's other logits from the reference's; null where one is not finite. */
  movement: measure,
  /** Whether the reference's margin is within twice the movement, so that this explains the difference. */
  low_margin: z.boolean(),
});

const driftSchema = z.strictObject({
  component: z.string(),
  /** Decisions that change when this component alone is exchanged. */
  token_changes: count,
  duration_changes: count,
  /** Largest difference of a logit, and the root mean square of the differences over that of the reference's logits; null where some are not finite. */
  max_abs: measure,
  relative_rms: measure,
});

/** The bundle decoded twice on the same features: by the original models on ONNX Runtime in FP32, and by a candidate. */
export const chainCheckSchema = z.strictObject({
  candidate: z.enum(['typed models', 'engines']),
  reference_backend: z.string(),
  candidate_backend: z.string(),
  seed: count,
  samples: count,
  frames: count,
  /** Decisions of the reference; the candidate is led along them, so one difference does not cause the next. */
  decisions: count,
  emitted_tokens: count,
  token_agreement: count,
  duration_agreement: count,
  /** Free decoding: samples whose whole sequence of tokens and durations is the same. */
  equal_sequences: count,
  /** The others, each with its first decision that differs. */
  unequal_sequences: z.array(z.strictObject({ sample: count, index: count })),
  /** The share of tokens and of durations that must be the same: below it the check is inconclusive, and fails below 0.95. */
  min_agreement: z.number(),
  /** The allowed movement of the logits as a whole, by root mean square over that of the reference. */
  drift_limit: z.number(),
  differences: z.array(differenceSchema),
  smallest_margin: measure,
  components: z.array(driftSchema),
  /** The component whose exchange moves the logits most; null where nothing moves. */
  drifts: z.string().nullable(),
  outcome: z.enum(['pass', 'fail', 'inconclusive']),
  reasons: z.array(z.string()),
  ms: z.number().nonnegative(),
});

export type ChainCheck = z.infer<typeof chainCheckSchema>;
export type ComponentDrift = z.infer<typeof driftSchema>;
