import { z } from 'zod';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { type CommandOutcome, runCommand } from '../../../base/process/command.js';
import { shellQuote } from '../../../base/text/shell-line.js';
import { type ExitCode, TrtforgeError } from '../../../errors.js';
import type { Work } from '../../../events.js';

/** Who builds targets: a key of `where` in an engines file, with what it is asked for there. One file each; `where.ts` lists them. */
export interface Scheduler<W> {
  /** Of what `where` has under its key. */
  readonly schema: z.ZodType<W>;
  /** Of `fleet submit`: only its targets, or with `instead` every target there. */
  readonly option: { readonly flags: string; readonly describe: string; readonly trust?: true };
  /** Where every target goes, by the option's value. */
  instead?(value: string): unknown;
  /** The script that a person can hand to it, or run, in place of `fleet submit`. Throws TF_USAGE for text that would end a line. */
  script(submission: Submission, where: W): Script;
  /** A machine works its batches one after the other, by this name; a queue has none and takes all at once. */
  machine?(where: W): string;
  /** Throws TF_SCHEDULER_FAILED, TF_CANCELLED and, where it works in this process, what that throws. */
  submit(batch: Handed, work: Work): Promise<Done>;
  /** Its report of a plan's jobs; absent where it keeps no list. Never rejects. */
  jobs?(wheres: readonly W[], asked: Asked): Promise<readonly Answered[]>;
  /** The key that `where` lacks for a target, `tensorrt@10.13.3.9:sm_89`, and why. */
  lacks?(where: W, target: string): readonly [key: string, why: string] | undefined;
  /** Why its tasks do not see a folder of this machine, and what helps. */
  blind?(where: W): { readonly who: string; readonly remedy: string } | undefined;
}

/** The jobs handed to a scheduler at once: those of one target. */
export interface Submission {
  readonly plan: { readonly id: string; readonly folder: string };
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

export interface Script {
  readonly ending: 'sbatch' | 'yaml' | 'sh';
  readonly content: string;
}

/** A batch on its way. */
export interface Handed {
  readonly target: string;
  readonly script: Script;
  /** Works its jobs in this process. */
  work(): Promise<Done>;
}

/** The outcome of a batch: the job's name of a queue, else how the work ended. */
export interface Done {
  readonly job?: string;
  /** Number of engines by outcome: `6 built, 10 failed`. */
  readonly did?: string;
  readonly exitCode?: ExitCode;
}

/** Where a job is, and in the scheduler's words why it waits, its state, or how it ended. */
export interface Task {
  readonly node: string | null;
  readonly reason: string;
}

/** Asks of a plan's jobs. */
export interface Asked {
  readonly plan: string;
  /** Number of jobs in the plan. */
  readonly count: number;
  /** The answer of a scheduler's program, empty with the reason where it gave none. */
  ask(
    program: string,
    ...args: readonly string[]
  ): Promise<{ readonly answer: string; readonly why: string | null }>;
  note(index: number, state: 'queued' | 'running' | 'ended', task: Task): void;
}

/** A scheduler that was asked; `why` states why it was not. */
export interface Answered {
  readonly name: string;
  readonly why: string | null;
}

/** One line of a script: no control character or end of line. Without \p, which the regular expressions of many JSON Schema validators lack. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it rejects.
const LINE = /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$/u;
export const line = z.string().regex(LINE, 'must be one line of text');
export const count = z.int().min(1);

/** Returns text for a script. Throws TF_USAGE for text that would end its line. */
export function oneLine(what: string, text: string): string {
  if (LINE.test(text)) return text;
  throw new TrtforgeError('TF_USAGE', `${what} is not one line of text: ${JSON.stringify(text)}.`, {
    remedy: 'Rename it: a script has one line for each value.',
  });
}

/** By what a scheduler's list has the jobs of a plan. */
export const planName = (id: string): string => `trtforge-${id}`;

/** A line for the shell of a machine that works the jobs one after the other; no work ends with 126. */
export const workLine = ({ plan, address, jobs }: Submission, folder = plan.folder): string =>
  `cd ${quoted('The folder', folder)} || exit 126; exec trtforge fleet work ${quoted('The address of the plan', address)} --jobs ${jobs.join(',')}`;

/** As a word for a POSIX shell. Throws TF_USAGE for more than a line. */
export const quoted = (what: string, text: string): string => shellQuote(oneLine(what, text));

/** Why a scheduler's program gave no answer, as what follows its name and its last line; null where it did. */
export function failureOf({ outcome, exitCode, stderr }: CommandOutcome): string | null {
  if (exitCode === 0) return null;
  const ended = `ended with exit code ${exitCode}: ${stderr.trim().split('\n').at(-1) || 'it printed nothing'}`;
  const whys = { absent: 'is not installed here', 'timed-out': 'does not answer', failed: 'does not start' };
  return outcome === 'ended' ? ended : whys[outcome];
}

/** The numbers below `count` of `0-2,5`, as Slurm and Kubernetes write them. */
export const indicesIn = (text: string | undefined, count: number): readonly number[] =>
  (text ?? '').split(',').flatMap((part) => {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (from === undefined) return [];
    const length = Math.min(Number(to), count - 1) - Number(from) + 1;
    return Array.from({ length: Math.max(0, length) }, (_, at) => Number(from) + at);
  });

/** Hands a script to a queue by a program that reads it and prints the job's name last. */
export const enqueue =
  (program: string, ...args: readonly string[]): Scheduler<never>['submit'] =>
  async ({ target, script }, { emit, signal, environment }) => {
    throwIfCancelled(signal, `submitting ${target}`);
    const ran = await runCommand(program, args, { timeoutMs: 60_000, environment, input: script.content });
    const why = failureOf(ran);
    if (why !== null) throw new TrtforgeError('TF_SCHEDULER_FAILED', `${program} ${why}`);
    const job = ran.stdout.trim().split('\n').at(-1) ?? '';
    emit({ type: 'log', source: 'trtforge', severity: 'info', message: `${target}: ${program} made ${job}` });
    return { job };
  };
