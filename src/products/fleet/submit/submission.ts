import { shellQuote } from '../../../base/process/shell-quote.js';
import type { FleetPlan } from '../plan-schema.js';
import { oneLine } from '../where.js';

/** What is handed to a scheduler at once: jobs of one target. */
export interface Submission {
  readonly plan: Pick<FleetPlan, 'id' | 'folder'>;
  /** Of the plan's document, as tasks read it. */
  readonly address: string;
  /** The target's name in the engines file, and what it is: `tensorrt@10.13.3.9:sm_89`. */
  readonly target: string;
  readonly builds: string;
  /** Indices of the plan, ascending. */
  readonly jobs: readonly number[];
  /** A word that no earlier submission of the target had: Kubernetes changes no Job, so that sending again makes another. Of what is only written it follows from the jobs. */
  readonly attempt: string;
}

/** By what a scheduler's list has the jobs of a plan. */
export const planName = (id: string): string => `trtforge-${id}`;

/** A line for the shell of a machine that works the jobs one after the other; no work ends with 126. */
export const workLine = ({ plan, address, jobs }: Submission, folder = plan.folder): string =>
  `cd ${quoted('The folder', folder)} || exit 126; exec trtforge fleet work ${quoted('The address of the plan', address)} --jobs ${jobs.join(',')}`;

/** As a word for a POSIX shell. Throws TF_USAGE for more than a line. */
export const quoted = (what: string, text: string): string => shellQuote(oneLine(what, text));
