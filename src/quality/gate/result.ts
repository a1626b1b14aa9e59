import { z } from 'zod';

/** The check that every policy has: what a result reports of itself. Waivers name it like any other check. */
export const OWN_OUTCOME = 'own-outcome';

/** From best to worst is pass, waived, warn, inconclusive, fail; `skipped` is what the policy lets be absent. */
export const findingOutcomeSchema = z.enum(['pass', 'waived', 'warn', 'inconclusive', 'fail', 'skipped']);

export const gateOutcomeSchema = z.enum(['pass', 'warn', 'inconclusive', 'fail']);

export const scalarSchema = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export const gateFindingSchema = z.object({
  /** Id of the check; null for a result that is itself an error. */
  check: z.string().nullable(),
  /** The policy's own message. */
  why: z.string().nullable(),
  /** The result by name; null when no result fits the check. */
  result: z.string().nullable(),
  /** The path as the policy has it, and the place it led to: `outputs[logits].pass`. */
  field: z.string().nullable(),
  at: z.string().nullable(),
  /** NaN and infinities by name. */
  value: scalarSchema.optional(),
  unit: z.string().nullable(),
  /** The baseline's value, for a check with a regression rule. */
  baseline: z.number().nullable(),
  /** The rule that decided. `within` is a pass. */
  rule: z.enum([
    'within',
    'limit',
    'regression',
    'not-comparable',
    'not-a-number',
    'wrong-type',
    'missing-result',
    'missing-field',
    'missing-baseline',
    'error-result',
    OWN_OUTCOME,
  ]),
  outcome: findingOutcomeSchema,
  /** The outcome without its waiver; the same as `outcome` where there is none. */
  unwaived: findingOutcomeSchema,
  /** One sentence with the number and the limit. */
  message: z.string(),
  waiver: z.object({ reason: z.string(), expires: z.string(), owner: z.string().nullable() }).nullable(),
  /** Line of the check in the policy file; null where it comes from what that extends. */
  line: z.int().positive().nullable(),
});

export const gateWaiverSchema = z.object({
  check: z.string(),
  reason: z.string(),
  owner: z.string().nullable(),
  expires: z.string(),
  /** Days until it ends; negative when it has. */
  daysLeft: z.int(),
  /** `too-weak`: a miss that it is for is worse than its `up-to`, or none that any waiver can excuse. */
  state: z.enum(['used', 'unused', 'too-weak', 'expiring', 'expired']),
  outcome: z.enum(['pass', 'warn', 'fail']),
  message: z.string(),
  line: z.int().positive().nullable(),
});

/** The result of `gate`: a policy over results. */
export const gateResultSchema = z.object({
  schema: z.literal('trtforge.gate/1'),
  policy: z.string(),
  /** Ready rules and files that the policy extends. */
  extended: z.array(z.string()),
  /** Ids of checks of those that the policy takes out. */
  dropped: z.array(z.string()),
  baseline: z.string().nullable(),
  /** Whether the baseline now has the values of this run. */
  baselineUpdated: z.boolean(),
  /** The day that waivers were judged by, UTC. */
  day: z.string(),
  results: z.array(
    z.object({
      name: z.string(),
      path: z.string(),
      schema: z.string().nullable(),
      /** Number of checks that read it; 0 means that the policy reports nothing about it. */
      checks: z.int().nonnegative(),
    }),
  ),
  outcome: gateOutcomeSchema,
  counts: z.object({
    pass: z.int(),
    waived: z.int(),
    warn: z.int(),
    inconclusive: z.int(),
    fail: z.int(),
    skipped: z.int(),
  }),
  /** Worst first. */
  findings: z.array(gateFindingSchema),
  waivers: z.array(gateWaiverSchema),
  /** The reasons that decided, in sentences. */
  reasons: z.array(z.string()),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
  /** With --github: the lines that GitHub's runner makes annotations of. */
  annotations: z.array(z.string()).optional(),
});

export type FindingOutcome = z.infer<typeof findingOutcomeSchema>;
export type GateFinding = z.infer<typeof gateFindingSchema>;
export type GateWaiver = z.infer<typeof gateWaiverSchema>;
export type GateOutcome = z.infer<typeof gateOutcomeSchema>;
export interface GateResult extends z.infer<typeof gateResultSchema> {}
