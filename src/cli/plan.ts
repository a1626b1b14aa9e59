import type { z } from 'zod';
import { flag } from './option.js';
import type { planSchema } from './printed-schemas.js';

/** What --dry-run prints. */
export type PlanResult = z.infer<typeof planSchema>;

export type PlanStep = PlanResult['steps'][number];

/** What a command would do, with what it decided for it. Making it reads, and writes nothing that a user keeps. */
export interface Plan {
  readonly steps: readonly PlanStep[];
  readonly resolved: Readonly<PlanResult['resolved']>;
}

/** Every command with a plan has it. */
export const dryRunOption = flag({
  flags: '--dry-run',
  describe: 'print what would be done, and end',
});

/** A step that would be done. */
export const step = (
  does: string,
  what: string,
  { detail = null, bytes = null, ms = null, skipped = null }: Partial<Omit<PlanStep, 'does' | 'what'>> = {},
): PlanStep => ({ does, what, detail, bytes, ms, skipped });

export const planResult = ({ steps, resolved }: Plan): PlanResult => ({
  schema: 'trtforge.plan/1',
  steps: [...steps],
  resolved: { ...resolved },
});
