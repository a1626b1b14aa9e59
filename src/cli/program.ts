import { CommanderError, Option, Command as Parser } from 'commander';
import { throwIfCancelled } from '../base/process/cancel.js';
import { ExitCode, TrtforgeError } from '../errors.js';
import { explaining } from '../quality/explain/failure.js';
import type { ArgumentSpec, Command, CommandEntry, CommandGroup } from './command.js';
import { configText, type KnownKeys, loadConfig } from './config.js';
import { protectingNamedFiles } from './named-files.js';
import { longName, type OptionTable, takesValue } from './option.js';
import { type Console, printable, reportError, reportResult } from './output.js';
import { createProgress } from './progress.js';
import { resolveOptions } from './resolve.js';

export interface Program {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  readonly entries: readonly CommandEntry[];
}

/** Options that every command has; their names are not free for commands. */
interface GlobalOptions {
  readonly json?: boolean;
  readonly events?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly config?: string;
  readonly printConfig?: boolean;
  readonly force?: boolean;
}

/**
 * Runs one command line and returns the process's exit code. Only the chosen command's module is loaded. Once `signal` is aborted, at any time, the command
 * ends with TF_CANCELLED.
 */
export async function runProgram(
  program: Program,
  argv: readonly string[],
  console: Console,
  signal: AbortSignal = new AbortController().signal,
): Promise<ExitCode> {
  const json = argv.includes('--json');
  const words = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv;
  const name = words.find((word) => !word.startsWith('-'));
  const entry = program.entries.find((candidate) => candidate.name === name);
  try {
    const parser = await buildParser(program, entry, console, signal);
    await parser.tree.parseAsync(await wordsUpToUnknown(words, program.entries), { from: 'user' });
    return parser.exitCode();
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return ExitCode.pass;
    // A command or subcommand is missing: commander has shown the help on stderr already.
    if (error instanceof CommanderError && error.code === 'commander.help' && !json) return ExitCode.badInput;
    return reportError(usageError(error), { json, command: name ?? null }, console);
  }
}

/** commander answers --help before it sees that there is no such command: then the words end with the one that it does not know. */
async function wordsUpToUnknown(words: readonly string[], entries: readonly CommandEntry[]) {
  const [first, second] = words;
  const entry = entries.find(({ name }) => name === first);
  if (entry === undefined) return isWord(first) ? [first] : [...words];
  const loaded = isWord(second) && second !== 'help' ? await entry.load() : undefined;
  const isKnown =
    loaded === undefined || 'run' in loaded || loaded.subcommands.some(({ name }) => name === second);
  return isKnown ? [...words] : words.slice(0, 2);
}

const isWord = (word: string | undefined): word is string => word !== undefined && !word.startsWith('-');

async function buildParser(
  program: Program,
  chosen: CommandEntry | undefined,
  console: Console,
  signal: AbortSignal,
) {
  let exitCode: ExitCode = ExitCode.pass;
  const tree = quiet(new Parser(program.name), console)
    .description(program.summary)
    .version(program.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .enablePositionalOptions();
  for (const entry of program.entries) {
    if (entry !== chosen) {
      tree.command(entry.name, { hidden: false }).summary(entry.summary).helpOption(false);
      continue;
    }
    const loaded = await entry.load();
    const execute = async (
      command: Command,
      path: string,
      inputs: readonly string[],
      raw: Record<string, unknown>,
    ) => {
      exitCode = await execution(
        { command, path, signal, knownKeys: () => knownKeys(program) },
        inputs,
        raw,
        console,
      );
    };
    addCommand(tree, loaded, execute, console);
  }
  return { tree, exitCode: () => exitCode };
}

type Execute = (
  command: Command,
  path: string,
  inputs: readonly string[],
  raw: Record<string, unknown>,
) => Promise<void>;

function addCommand(
  parent: Parser,
  loaded: Command | CommandGroup,
  execute: Execute,
  console: Console,
  prefix = '',
): void {
  const parser = quiet(parent.command(loaded.name), console)
    .summary(loaded.summary)
    .description(loaded.summary);
  const path = `${prefix}${loaded.name}`;
  // Options behind a subcommand are its own, also where this command has one of the same name.
  if (loaded.subcommands !== undefined) parser.enablePositionalOptions();
  for (const subcommand of loaded.subcommands ?? [])
    addCommand(parser, subcommand, execute, console, `${path} `);
  if (!('run' in loaded)) return;
  for (const argument of loaded.arguments ?? []) parser.argument(argumentUsage(argument), argument.describe);
  addOptions(parser, loaded.options);
  addGlobalOptions(parser);
  if (loaded.examples?.length)
    parser.addHelpText('after', `\nExamples:\n${loaded.examples.map((line) => `  ${line}`).join('\n')}`);
  const declared = loaded.arguments?.length ?? 0;
  parser.action(async (...received: unknown[]) => {
    const inputs = received
      .slice(0, declared)
      .flat()
      .filter((input): input is string => typeof input === 'string');
    await execute(loaded, path, inputs, parser.opts());
  });
}

const argumentUsage = ({ name, optional, many }: ArgumentSpec): string => {
  const inner = many ? `${name}...` : name;
  return optional ? `[${inner}]` : `<${inner}>`;
};

function addOptions(parser: Parser, table: OptionTable): void {
  const append = (value: string, previous: unknown) => [...(Array.isArray(previous) ? previous : []), value];
  for (const spec of Object.values(table)) {
    const shown = new Option(spec.flags, describe(spec));
    if (spec.repeat) shown.argParser(append);
    parser.addOption(shown);
    for (const alias of spec.aliases ?? []) {
      const hidden = new Option(takesValue(spec) ? `${alias} <value>` : alias).hideHelp();
      if (spec.repeat) hidden.argParser(append);
      parser.addOption(hidden);
    }
  }
}

function describe(spec: OptionTable[string]): string {
  const facts = [
    spec.choices === undefined ? '' : `one of ${spec.choices.join(', ')}`,
    spec.default === undefined ? '' : `default ${String(spec.default)}`,
    spec.repeat ? 'may be repeated' : '',
    spec.env === undefined ? '' : `environment ${spec.env}`,
  ].filter((fact) => fact !== '');
  return facts.length === 0 ? spec.describe : `${spec.describe} (${facts.join('; ')})`;
}

/** What every command takes: flags as commander reads them, and what they do. */
const globalOptions = [
  ['--json', 'print exactly one JSON object on stdout'],
  ['--events', 'print progress and logs on stderr as JSON lines'],
  ['-q, --quiet', 'print no progress'],
  ['-v, --verbose', "print the library's verbose log lines too"],
  ['--config <file>', 'read options from this file instead of trtforge.config.{json,yaml}'],
  ['--print-config', 'print the options as resolved, and stop'],
  ['--force', 'let results replace files that hold something of another kind, or were edited'],
] as const;

function addGlobalOptions(parser: Parser): void {
  for (const [flags, description] of globalOptions) parser.option(flags, description);
}

interface Execution {
  readonly command: Command;
  /** The command's words: `cache ls`. */
  readonly path: string;
  readonly signal: AbortSignal;
  readonly knownKeys: KnownKeys;
}

/** The way of one command: options resolved once, Ctrl-C as an abort signal, events to the terminal, the result as JSON or text. */
async function execution(
  { command, path, signal, knownKeys }: Execution,
  inputs: readonly string[],
  raw: Record<string, unknown>,
  console: Console,
): Promise<ExitCode> {
  const globals: GlobalOptions = raw;
  const view = { json: globals.json === true, command: path };
  const progress = createProgress(console, {
    events: globals.events === true,
    quiet: globals.quiet === true,
    verbose: globals.verbose === true,
  });
  try {
    const config = await loadConfig(globals.config, path, knownKeys);
    const options = resolveOptions(command.options, raw, config, console.environment);
    if (globals.printConfig === true) {
      const lines = (await configText(options.shown)).split('\n');
      console.out(lines.map(printable).join('\n'));
      return ExitCode.pass;
    }
    throwIfCancelled(signal, 'starting');
    const { environment, ask } = console;
    const context = { signal, environment, ask, verbose: globals.verbose === true };
    // Whatever a command asks of TensorRT: when it fails, the error says which known issue its lines show.
    const work = () =>
      explaining((emit) => command.run(inputs, options.values, { ...context, emit }), {
        emit: progress.listen,
        model: inputs.find((input) => input.endsWith('.onnx')),
      });
    const { result } = await protectingNamedFiles(
      command,
      inputs,
      { ...options.shown, config: config.path },
      { force: globals.force === true, work },
    );
    progress.end();
    return reportResult(command, result, view, console);
  } catch (error) {
    progress.end();
    return reportError(usageError(error), view, console);
  }
}

async function knownKeys(program: Program): ReturnType<KnownKeys> {
  const keys = new Map<string, ReadonlyMap<string, OptionTable[string]>>();
  const note = (loaded: Command | CommandGroup, prefix: string) => {
    for (const subcommand of loaded.subcommands ?? []) note(subcommand, `${prefix}${loaded.name} `);
    if ('run' in loaded) {
      const options = Object.values(loaded.options).map((spec) => [longName(spec), spec] as const);
      keys.set(`${prefix}${loaded.name}`, new Map(options));
    }
  };
  for (const entry of program.entries) note(await entry.load(), '');
  return keys;
}

/** commander's own complaints become TF_USAGE, with its «did you mean» kept; everything else stays what it is. */
function usageError(error: unknown): unknown {
  if (!(error instanceof CommanderError)) return error;
  if (error.code === 'commander.help')
    return new TrtforgeError('TF_USAGE', 'The command line names no command.');
  const early = error.code === 'commander.unknownOption' ? globalOption(error.message) : undefined;
  if (early !== undefined)
    return new TrtforgeError('TF_USAGE', `There is no command before ${early}.`, {
      remedy: 'Options follow the command: trtforge cache ls --json.',
    });
  const [complaint = '', ...hints] = error.message.replace(/^error: /, '').split('\n');
  const hint = hints.join(' ').replace(/^\(|\)$/g, '');
  return new TrtforgeError(
    'TF_USAGE',
    `${complaint.charAt(0).toUpperCase()}${complaint.slice(1).replace(/\.?$/, '.')}`,
    hint === '' ? {} : { remedy: hint },
  );
}

/** The option of every command that commander did not expect, which happens before a command only. */
function globalOption(complaint: string): string | undefined {
  const given = /'(--?[a-z-]+)(?:=.*)?'/.exec(complaint)?.[1];
  return globalOptions.some(([flags]) => flags.split(/,? /).includes(given ?? '')) ? given : undefined;
}

/** Makes commander throw instead of printing and exiting, and sends its help to our console. */
function quiet(parser: Parser, console: Console): Parser {
  return parser
    .exitOverride()
    .showSuggestionAfterError()
    .allowExcessArguments(false)
    .configureOutput({
      writeOut: (text) => console.out(text.trimEnd()),
      writeErr: (text) => console.err(text.trimEnd()),
      outputError: () => {},
    });
}
