import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { recordingInputs } from '../../../base/files/user-files.js';
import { longName, type OptionSpec } from '../../../base/options/option.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import { packageVersion } from '../../../version.js';
import type { Command, CommandContext, Verb } from '../../command.js';
import { writesTo } from '../../option.js';
import { type Console, reportError } from '../../output.js';
import { runProgram } from '../../program/program.js';

/** A verb, and the arguments behind it. */
export interface Line {
  readonly verb: Verb;
  readonly command: Command;
  readonly args: readonly string[];
}

/** The results of one run of a line. */
export interface FailingRun {
  readonly exitCode: number;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly output: string;
  readonly progress: string;
  readonly events: string;
  /** Paths of what it read. */
  readonly inputs: readonly string[];
}

/** Time that a line has to end after a fault. */
const ENDING_MS = 2000;

/** The verb of a line, with or without the program's name. Throws TF_USAGE. */
export async function lineOf(words: readonly string[], { products }: CommandContext): Promise<Line> {
  const line = words[0] === 'trtforge' ? words.slice(1) : words;
  const verbs = products.flatMap((product) => product.verbs);
  const verb =
    verbs.find(({ path }) => path === line.slice(0, 2).join(' ')) ??
    verbs.find(({ path }) => path === line[0]);
  if (verb === undefined || verb.path === 'report-bug')
    throw new TrtforgeError(
      'TF_USAGE',
      `"${line.join(' ')}" is not a command whose failure can be reported.`,
      {
        remedy: 'Pass the line that fails behind --: trtforge report-bug -o bug.tar.gz -- build model.onnx',
      },
    );
  return { verb, command: await verb.load(), args: line.slice(verb.path.split(' ').length) };
}

/**
 * Runs a line in this process, as JSON; whatever it would write goes into `folder`. A fault that nothing catches ends the line with TF_INTERNAL, not this
 * process. Throws only when cancelled.
 */
export async function runLine(
  { verb, command, args }: Line,
  folder: string,
  { products, signal }: CommandContext,
  environment: NodeJS.ProcessEnv,
): Promise<FailingRun> {
  const [output, progress]: [string[], string[]] = [[], []];
  const log = join(folder, 'events.jsonl');
  const argv = [...verb.path.split(' '), '--json', ...redirected(command, args, folder), '--log-file', log];
  let isOver = false;
  const console: Console = {
    out: (text) => isOver || output.push(text),
    err: (text) => isOver || progress.push(text),
    errRaw: (text) => isOver || progress.push(text),
    isTerminal: { out: false, err: false },
    columns: () => 100,
    // With it, an error is followed by its stack.
    environment: { ...environment, TRTFORGE_DEBUG: '1' },
  };
  const program = { name: 'trtforge', version: packageVersion(), summary: '', products };
  const { result: exitCode, inputs } = await recordingInputs(async () => {
    const fault = uncaughtFault();
    try {
      const ended = runProgram(program, argv, console, AbortSignal.any([signal, fault.signal]));
      const first = await Promise.race([ended, fault.thrown]);
      if (typeof first === 'number') return first;
      const code = reportError(first.error, { json: true, command: verb.path }, console);
      isOver = true;
      // It may never end: nobody knows what the fault left undone.
      await Promise.race([ended, setTimeout(ENDING_MS)]);
      return code;
    } finally {
      fault.stop();
    }
  });
  throwIfCancelled(signal, 'running the command again');
  return {
    exitCode,
    error: resultIn<Pick<FailingRun, 'error'>>(output.join('\n'))?.error ?? null,
    output: output.join('\n'),
    progress: progress.join('\n'),
    events: existsSync(log) ? readFileSync(log, 'utf8') : '',
    inputs,
  };
}

/** What a failure is the same by: the code of its error and what the message states beside names and numbers, the verdicts of a comparison, else the exit code. */
export function isSameFailure(run: FailingRun, other: FailingRun): boolean {
  if (run.exitCode !== other.exitCode || run.error?.code !== other.error?.code) return false;
  const statements = ({ error }: FailingRun) =>
    (error?.message ?? '').split('\n').map((line) => line.replaceAll(/\S*[\d/._"]\S*/g, ''));
  const known = statements(other);
  if (run.error !== null) return statements(run).every((line) => known.includes(line));
  return verdictsIn(run) === verdictsIn(other);
}

const verdictsIn = ({ output }: FailingRun): string =>
  JSON.stringify(resultIn<{ readonly verdicts?: unknown }>(output)?.verdicts ?? null);

/** The printed result of a line, where it is one. */
export function resultIn<T>(output: string): T | null {
  try {
    return JSON.parse(output) as T;
  } catch {
    return null;
  }
}

/** Collects an error that nothing catches, from now on until `stop`; it aborts `signal`. */
function uncaughtFault() {
  const ending = new AbortController();
  let take = (_error: unknown) => {};
  const thrown = new Promise<{ readonly error: unknown }>((resolve) => {
    take = (error) => {
      resolve({ error });
      ending.abort();
    };
  });
  process.on('uncaughtException', take);
  return { thrown, signal: ending.signal, stop: () => process.off('uncaughtException', take) };
}

/** The arguments with every place to write to replaced by one in the folder: nothing of the user's is touched. */
function redirected(command: Command, args: readonly string[], folder: string): readonly string[] {
  const specs = new Map<string, Pick<OptionSpec<never>, 'writes'>>([['--log-file', { writes: true }]]);
  for (const spec of Object.values(command.options))
    for (const [flag] of spec.flags.matchAll(/-{1,2}[A-Za-z][\w-]*/g)) specs.set(flag, spec);
  const place = (flag: string, value: string) =>
    value === '-' || writesTo(specs.get(flag), value) === undefined
      ? value
      : join(folder, 'outputs', basename(value));
  const moved = args.map((arg, at) => {
    const [, flag = '', value = ''] = /^(--[\w-]+)=(.*)$/.exec(arg) ?? [];
    return flag === '' ? place(args[at - 1] ?? '', arg) : `${flag}=${place(flag, value)}`;
  });
  // Without it, forge writes into the working folder.
  const root = Object.values(command.options).find((spec) => longName(spec) === 'run-root');
  const isNamed = args.some((arg) => arg === '--run-root' || arg.startsWith('--run-root='));
  return root === undefined || isNamed ? moved : [...moved, '--run-root', join(folder, 'outputs')];
}

/** The same line without the stores that the user named, for runs whose engines nobody wants. */
export function withoutStores({ args, ...line }: Line): Line {
  const stores = ['--cache-dir', '--remote'];
  return {
    ...line,
    args: args.filter(
      (arg, at) =>
        !stores.includes(arg) &&
        !stores.includes(args[at - 1] ?? '') &&
        !stores.some((flag) => arg.startsWith(`${flag}=`)),
    ),
  };
}
