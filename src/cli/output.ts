import { createColors } from 'picocolors';
import { ExitCode, TrtforgeError } from '../errors.js';
import type { Command, CommandResult } from './command.js';

/** Where a command line speaks: the process's streams, or buffers in tests. */
export interface Console {
  out(text: string): void;
  err(text: string): void;
  /** Writes to stderr without a line end, for the live line. */
  errRaw(text: string): void;
  readonly isTerminal: { readonly out: boolean; readonly err: boolean };
  /** Asks whoever sits there; absent where nobody does. The end of the input and Ctrl-C give an empty answer. */
  ask?(question: string): Promise<string>;
  /** Columns of the terminal on stderr. */
  columns(): number;
  readonly environment: NodeJS.ProcessEnv;
}

export interface View {
  readonly json: boolean;
  /** The command's words, null when the command line named none. */
  readonly command: string | null;
}

/** Prints a result, as its one JSON object or as text, and gives the exit code it stands for. */
export function reportResult(
  command: Command,
  result: CommandResult,
  view: View,
  console: Console,
): ExitCode {
  const exitCode = result.exitCode ?? ExitCode.pass;
  if (view.json) {
    const { schema, ...fields } = result;
    console.out(
      toJson({ schema, ok: exitCode === ExitCode.pass, command: view.command, ...fields, exitCode }),
    );
  } else {
    // One write, however many lines: ten thousand would cost more than making them.
    const lines: string[] = [];
    const colors = colorsFor(console, console.isTerminal.out);
    command.render(result, { line: (text = '') => lines.push(text), colors });
    if (lines.length > 0) console.out(lines.join('\n'));
  }
  return exitCode;
}

/** Prints an error with its code and remedy and gives its exit code. An unknown error is a fault of ours: TF_INTERNAL. */
export function reportError(error: unknown, view: View, console: Console): ExitCode {
  const known = error instanceof TrtforgeError ? error : internal(error);
  const { code, message, remedy, exitCode, details } = known;
  if (view.json) {
    const more = details === undefined ? {} : { details };
    console.out(
      toJson({
        schema: 'trtforge.error/1',
        ok: false,
        exitCode,
        command: view.command,
        error: { code, message, remedy, ...more },
      }),
    );
  }
  const colors = colorsFor(console, console.isTerminal.err);
  console.err(`${colors.red('error')} ${colors.dim(code)} ${message}`);
  console.err(`  ${colors.dim('→')} ${remedy}`);
  if (console.environment.TRTFORGE_DEBUG) console.err(String(known.stack));
  return exitCode;
}

function internal(error: unknown): TrtforgeError {
  const message = error instanceof Error ? error.message : String(error);
  const wrapped = new TrtforgeError('TF_INTERNAL', `trtforge itself failed: ${message}`, { cause: error });
  if (error instanceof Error && error.stack !== undefined) wrapped.stack = error.stack;
  return wrapped;
}

/** JSON for stdout. Bigints become numbers where exact and text where not, since JSON has neither NaN nor 64-bit integers. */
function toJson(value: unknown): string {
  return JSON.stringify(
    value,
    (_key, item: unknown) =>
      typeof item === 'bigint' ? (Number.isSafeInteger(Number(item)) ? Number(item) : item.toString()) : item,
    2,
  );
}

/** Colours on a terminal only, and never against NO_COLOR; FORCE_COLOR overrules. */
export function colorsFor(console: Console, isTerminal: boolean) {
  const { NO_COLOR, FORCE_COLOR, TERM } = console.environment;
  return createColors(FORCE_COLOR ? FORCE_COLOR !== '0' : isTerminal && !NO_COLOR && TERM !== 'dumb');
}
