import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { catalogue, ExitCode, noMoreFiles, systemErrorCode, TrtforgeError } from '../errors.js';
import type { Colors, Command, CommandResult } from './command.js';

/** Where a command line prints: the process's streams, or buffers in tests. */
export interface Console {
  out(text: string): void;
  err(text: string): void;
  /** Writes to stderr without a line end, for the live line. */
  errRaw(text: string): void;
  readonly isTerminal: { readonly out: boolean; readonly err: boolean };
  /** Asks the user at the terminal; absent without one. The end of the input and Ctrl-C are an empty answer. */
  ask?(question: string): Promise<string>;
  /** Columns of the terminal on stderr. */
  columns(): number;
  readonly environment: NodeJS.ProcessEnv;
}

export interface View {
  readonly json: boolean;
  /** The command's words, null when the command line named none. */
  readonly command: string | null;
  readonly verbose?: boolean;
}

/** Prints a result, as its one JSON object or as text, and returns its exit code. */
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
    const line = (text = '', kind?: 'workflow-command') =>
      lines.push(kind === undefined ? printable(text) : visible(text));
    command.render(result, { line, colors, verbose: view.verbose });
    if (lines.length > 0) console.out(lines.join('\n'));
  }
  return exitCode;
}

/** Prints an error with its code and remedy, and returns its exit code. An unknown error is a fault of ours: TF_INTERNAL. */
export function reportError(error: unknown, view: View, console: Console): ExitCode {
  const known = error instanceof TrtforgeError ? error : internal(error);
  const { code, message, exitCode, details } = known;
  // A caller of the library has no --help.
  const isPlainUsage = code === 'TF_USAGE' && known.remedy === catalogue.TF_USAGE.remedy;
  const remedy = isPlainUsage
    ? 'Correct what is named; --help after a command lists its options.'
    : known.remedy;
  if (view.json) {
    console.out(
      toJson({
        schema: 'trtforge.error/1',
        ok: false,
        exitCode,
        command: view.command,
        error: { code, message, remedy, details },
      }),
    );
  }
  const colors = colorsFor(console, console.isTerminal.err);
  const [first = '', ...quoted] = message.split('\n');
  console.err(printable(`${colors.red('error')} ${colors.dim(code)} ${first}`));
  // Lines of a log, each behind a mark, so that none of them passes for a line of ours.
  for (const line of quoted) console.err(printable(`  ${colors.dim('|')} ${line}`));
  console.err(printable(`  ${colors.dim('→')} ${remedy}`));
  if (console.environment.TRTFORGE_DEBUG)
    for (const line of String(known.stack).split('\n')) console.err(printable(line));
  return exitCode;
}

function internal(error: unknown): TrtforgeError {
  const system = systemErrorCode(error);
  // Without a descriptor for its package.json, Node takes a package to have no other entry than index.js.
  const [, guessed] = /'(.+)index\.js'/.exec(system === 'ERR_MODULE_NOT_FOUND' ? String(error) : '') ?? [];
  if (system === 'EMFILE' || system === 'ENFILE' || (guessed && existsSync(`${guessed}package.json`)))
    return noMoreFiles(String(system), error);
  const message = error instanceof Error ? error.message : String(error);
  const wrapped = new TrtforgeError('TF_INTERNAL', `trtforge itself failed: ${message}`, { cause: error });
  if (error instanceof Error && error.stack !== undefined) wrapped.stack = error.stack;
  return wrapped;
}

/**
 * JSON for stdout, or with `indent` 0 a line of it. Bigints become numbers where exact and text where not, since JSON has neither NaN nor 64-bit integers.
 * What JSON leaves as it is and a terminal or a CI obeys is escaped.
 */
export function toJson(value: unknown, indent = 2): string {
  return JSON.stringify(
    value,
    (_key, item: unknown) =>
      typeof item === 'bigint' ? (Number.isSafeInteger(Number(item)) ? Number(item) : item.toString()) : item,
    indent,
  )
    .replace(/[\p{Cf}\u007f-\u009f\u2028\u2029]/gu, (character) =>
      [...Array(character.length).keys()]
        .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
        .join(''),
    )
    .replace(MARKED_COMMAND, '#\\u0023');
}

/** Commands of Actions runners and Azure pipelines count anywhere in a line: `##[add-mask]`, `##vso[`. */
const MARKED_COMMAND = /##(?=\w*\[)/g;

/**
 * One line of text view as it leaves: control, format and line-end characters of the values in it become visible, our own colours become what a terminal
 * takes, and nothing at its beginning is a workflow command (`::error`).
 */
export function printable(line: string): string {
  const [first = '', ...painted] = line.split(PAINT);
  const parts = painted.map((part) => {
    const end = part.indexOf('m') + 1;
    return `\x1b[${part.slice(0, end)}${visible(part.slice(end))}`;
  });
  return [visible(first).replace(/^(\s*):(?=:)/, '$1\\u{3a}'), ...parts]
    .join('')
    .replace(MARKED_COMMAND, '#\\u{23}');
}

const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

const visible = (text: string): string =>
  text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => NAMED[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );

/** Stands for ESC in our own colours until a line leaves: a value that holds ESC, or any text we could choose now, is not taken for one. */
const PAINT = randomUUID();

const paint =
  (on: number, off: number) =>
  (text: string): string =>
    `${PAINT}${on}m${text}${PAINT}${off}m`;
const painted: Colors = {
  bold: paint(1, 22),
  dim: paint(2, 22),
  red: paint(31, 39),
  green: paint(32, 39),
  yellow: paint(33, 39),
  cyan: paint(36, 39),
};
const asIs = (text: string): string => text;
const plain: Colors = { bold: asIs, dim: asIs, red: asIs, green: asIs, yellow: asIs, cyan: asIs };

/** Colours on a terminal only, and never against NO_COLOR; FORCE_COLOR overrules. What they paint leaves through `printable`. */
export function colorsFor(console: Console, isTerminal: boolean): Colors {
  const { NO_COLOR, FORCE_COLOR, TERM } = console.environment;
  const isOn = FORCE_COLOR ? FORCE_COLOR !== '0' : isTerminal && !NO_COLOR && TERM !== 'dumb';
  return isOn ? painted : plain;
}
