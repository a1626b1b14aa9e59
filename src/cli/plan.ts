import type { z } from 'zod';
import { TrtforgeError } from '../errors.js';
import { flag } from './option.js';
import type { planSchema } from './printed-schemas.js';

/** The output of --dry-run. */
export type PlanResult = z.infer<typeof planSchema>;

export type PlanStep = PlanResult['steps'][number];

/** The work that a command would do, with its decisions. Making the plan reads, and writes nothing that a user keeps. */
export interface Plan {
  readonly steps: readonly PlanStep[];
  readonly resolved: Readonly<PlanResult['resolved']>;
}

/** Every command with a plan has it. */
export const dryRunOption = flag({
  flags: '--dry-run',
  describe: 'print what would be done, and end',
});

/** Of commands that take away what cannot be had back, or send work where a document of others states. */
export const yesOption = flag({ flags: '--yes', describe: 'do not ask first', trust: true });

/** Goes on only with --yes or a yes from the terminal. Throws TF_USAGE without a terminal, TF_CANCELLED for every other answer. */
export async function confirm(
  action: string,
  { yes, ask }: { readonly yes: boolean; readonly ask?: (question: string) => Promise<string> },
): Promise<void> {
  if (yes) return;
  if (ask === undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      `${action} needs a confirmation, and there is no terminal to ask on.`,
      { remedy: 'Add --yes, or see with --dry-run what would be done.' },
    );
  if (!/^y(es)?$/i.test((await ask(`${action}? [y/N] `)).trim()))
    throw new TrtforgeError('TF_CANCELLED', 'Not confirmed; nothing was done.');
}

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
