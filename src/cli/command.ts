import type { z } from 'zod';
import type { OptionTable, OptionValues } from '../base/options/option.js';
import type { ExitCode } from '../errors.js';
import type { Work } from '../events.js';
import { dryRunOption, type Plan } from './plan.js';
import type { Product } from './product.js';

/** The context of a command's `run`. Ctrl-C aborts its signal: work then ends its children, removes half-written files and throws TF_CANCELLED. */
export interface CommandContext extends Work {
  /** The program's name and its arguments as one shell line without secrets: what repeats this run. */
  readonly commandLine: string;
  /** The core and every product: what they bring is asked for through this list. */
  readonly products: readonly Product[];
  /** Whether the library's verbose lines are wanted. */
  readonly verbose?: boolean;
  /** Whether --force was passed. */
  readonly force?: boolean;
  /** Long names of the options that the command line passes, in its order and as often: for commands whose options are steps. */
  readonly order?: readonly string[];
  /** Asks the user at the terminal; absent without one. */
  readonly ask?: (question: string) => Promise<string>;
}

/** The fields that every command's result has; the fields that follow are the command's own (`schema` names them). */
export interface CommandResult {
  /** `trtforge.<what>/<version>`. */
  readonly schema: string;
  /** Absent means pass. */
  readonly exitCode?: ExitCode;
  /** The frame's own, beside `schema` and `exitCode` in what --json prints. */
  readonly command?: never;
  readonly ok?: never;
}

/** Where the text view of a result goes. */
export interface TextOutput {
  /** One line; whatever the values in it are, it stays one and controls nothing, unless it is a command whose values are escaped in the CI's own way. */
  line(text?: string, kind?: 'workflow-command'): void;
  readonly colors: Colors;
  /** Whether what the store did is wanted too. */
  readonly verbose?: boolean;
}

export interface Colors {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

/** One positional argument: `MODEL`, `[MODEL]` (optional) or `[FILES...]` (any number). */
export interface ArgumentSpec {
  readonly name: string;
  readonly describe: string;
  readonly optional?: true;
  readonly many?: true;
  /** As of an option. */
  readonly writes?: true;
}

/** A command is three plain pieces: its options, `run` (options to a result that is data), `render` (the result as text; never called with --json). */
export interface Command<O extends OptionTable = OptionTable, R extends CommandResult = CommandResult> {
  /** Shown under the options by --help. */
  readonly examples?: readonly string[];
  readonly arguments?: readonly ArgumentSpec[];
  readonly options: O;
  /** The schema of the result, for documentation and tests: loaded only where they ask for it. */
  schema(): Promise<z.ZodType>;
  run(inputs: readonly string[], options: OptionValues<O>, context: CommandContext): Promise<R>;
  /** A user's file as it was understood, which --print-config shows beside the options. */
  file?(inputs: readonly string[]): Readonly<Record<string, unknown>>;
  /** The plan of `run`: with it the command has --dry-run. For commands that build for minutes, download or remove. */
  plan?(inputs: readonly string[], options: OptionValues<O>, context: CommandContext): Promise<Plan>;
  render(result: R, output: TextOutput): void;
}

/** Types a command by its own option table and result, then forgets them so that commands fit one list. */
export function defineCommand<O extends OptionTable, R extends CommandResult>(
  command: Command<O, R>,
): Command {
  const options = command.plan === undefined ? command.options : { ...command.options, dryRun: dryRunOption };
  return { ...command, options } as unknown as Command;
}
