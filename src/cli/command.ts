import type { ExitCode } from '../errors.js';
import type { EventListener } from '../events.js';
import type { OptionTable, OptionValues } from './option.js';

/** What a command's `run` is given besides its own options. */
export interface CommandContext {
  readonly emit: EventListener;
  /** Aborted by Ctrl-C. Work that sees it ends its children, removes half-written files and throws TF_CANCELLED. */
  readonly signal: AbortSignal;
  readonly environment: NodeJS.ProcessEnv;
  /** Whether the library's verbose lines are wanted. */
  readonly verbose?: boolean;
  /** Asks whoever sits at the terminal; absent where nobody does. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
}

/** What every result of a command has; the fields that follow are the command's own (`schema` names them). */
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
  /** One line; whatever the values in it hold, it stays one and controls nothing, unless it is a command whose values are escaped in the CI's own way. */
  line(text?: string, kind?: 'workflow-command'): void;
  readonly colors: Colors;
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

/**
 * A command is three plain pieces: its options, `run` (options to a result that is data), `render` (the result as text; never called with --json).
 * Commands with subcommands (`cache ls`) list them; each is a command of its own. `gate` is one itself and has one (`gate init`).
 */
export interface Command<O extends OptionTable = OptionTable, R extends CommandResult = CommandResult> {
  readonly name: string;
  readonly summary: string;
  /** Shown under the options by --help. */
  readonly examples?: readonly string[];
  readonly arguments?: readonly ArgumentSpec[];
  readonly options: O;
  readonly subcommands?: readonly Command[];
  run(inputs: readonly string[], options: OptionValues<O>, context: CommandContext): Promise<R>;
  render(result: R, output: TextOutput): void;
}

export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  readonly subcommands: readonly Command[];
}

/** Types a command by its own option table and result, then forgets them so that commands fit one list. */
export function defineCommand<O extends OptionTable, R extends CommandResult>(
  command: Command<O, R>,
): Command {
  return command as unknown as Command;
}

/** What the top-level help needs to know of a command before it is loaded. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<Command | CommandGroup>;
}
