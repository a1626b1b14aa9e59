import { CommanderError, Option, Command as Parser } from 'commander';
import { longName, type OptionTable } from '../../base/options/option.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { shellLine } from '../../base/text/shell-line.js';
import { ExitCode, TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import { explaining } from '../../quality/explain/failure.js';
import { type ArgumentSpec, broughtBy, type Command, type Product, type Verb } from '../command.js';
import { globalOptions } from '../option.js';
import { type Console, printable, reportError, reportResult, toJson } from '../output.js';
import { type PlanResult, planResult } from '../plan.js';
import {
  assertComplete,
  configText,
  isBareFlag,
  type KnownKeys,
  loadConfig,
  onlyInConfig,
  parseValue,
  resolveOptions,
} from '../resolve.js';
import { renderPlan } from '../text.js';
import { openLogFile } from './log-file.js';
import { protectingNamedFiles } from './named-files.js';
import { commandForFile, withNearFile } from './near-file.js';
import { noticeMissingOnnxRuntime } from './onnxruntime-notice.js';
import { createProgress } from './progress.js';

export interface Program {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  readonly products: readonly Product[];
}

/** Options that every command has; their names are not free for commands. */
interface GlobalOptions {
  readonly json?: boolean;
  readonly events?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly logFile?: string;
  readonly config?: string;
  readonly printConfig?: boolean;
  readonly force?: boolean;
}

/**
 * Runs one command line and returns the process's exit code. Only the chosen verb's module is loaded. Once `signal` is aborted, at any time, the command
 * ends with TF_CANCELLED.
 */
export async function runProgram(
  program: Program,
  argv: readonly string[],
  console: Console,
  signal: AbortSignal = new AbortController().signal,
): Promise<ExitCode> {
  const json = argv.includes('--json');
  const { args, everything } = helpArgs(argv);
  const name = args.find((word) => !word.startsWith('-'));
  const verbs = program.products.flatMap((product) => product.verbs);
  const verb = chosenVerb(verbs, args);
  let command: Command | undefined;
  if (json && args.some((arg) => arg === '--version' || arg === '-V') && verb === undefined) {
    console.out(toJson(framedAs('version', null, { version: program.version })));
    return ExitCode.pass;
  }
  try {
    // Only a flag can be one of another tool.
    const own =
      verb !== undefined && args.some((arg) => arg.startsWith('-'))
        ? await (await import('../migrate/own-flags.js')).withOwnFlags(args, verb.path, program.products)
        : args;
    if (verb === undefined && mayBeForeign(args[0]))
      await (await import('../migrate/migration.js')).rejectOtherVerb(args, program.products);
    command = await verb?.load();
    const parser = buildParser({ program, verbs, verb, command, everything, argv, own, signal }, console);
    await parser.tree.parseAsync(argsUpToUnknown(own, verbs), { from: 'user' });
    return parser.exitCode();
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return ExitCode.pass;
    // A command or subcommand is missing: commander has shown the help on stderr already.
    if (error instanceof CommanderError && error.code === 'commander.help' && !json) return ExitCode.badInput;
    return reportError(
      usageError(error, verb?.path, command, args),
      { json, command: name ?? null },
      console,
    );
  }
}

/** Words, and flags of trtexec that begin a line; `--version` and `--help` load no tables. */
const mayBeForeign = (first: string | undefined): boolean =>
  isWord(first) || /^--(?:onnx|loadEngine)\b/.test(first ?? '');

/** `help X` is `X --help`; `--help all` shows every option. */
function helpArgs(argv: readonly string[]): {
  readonly args: readonly string[];
  readonly everything: boolean;
} {
  const args = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv;
  const at = args.findIndex((arg, index) => arg === 'all' && isHelp(args[index - 1]));
  return at < 0 ? { args, everything: false } : { args: args.toSpliced(at, 1), everything: true };
}

const isHelp = (word: string | undefined): boolean => word === '--help' || word === '-h';

/** The verb of two words where there is one, else that of the first. */
const chosenVerb = (verbs: readonly Verb[], [first, second]: readonly string[]): Verb | undefined =>
  verbs.find(({ path }) => path === `${first} ${second}`) ?? verbs.find(({ path }) => path === first);

/** commander answers --help before it sees that there is no such command: then the arguments end with the unknown one. */
function argsUpToUnknown(args: readonly string[], verbs: readonly Verb[]): string[] {
  const [first, second] = args;
  const family = verbs.filter(({ path }) => path.split(' ')[0] === first);
  if (family.length === 0) return isWord(first) ? [first] : [...args];
  const isKnown = !isWord(second) || second === 'help' || chosenVerb(verbs, args) !== undefined;
  return isKnown ? [...args] : args.slice(0, 2);
}

const isWord = (word: string | undefined): word is string => word !== undefined && !word.startsWith('-');

/** One command line on its way: what it chose, and what the chosen command is. */
interface Chosen {
  readonly program: Program;
  readonly verbs: readonly Verb[];
  readonly verb: Verb | undefined;
  readonly command: Command | undefined;
  /** Whether --help shows the options that are rarely needed, too. */
  readonly everything: boolean;
  readonly argv: readonly string[];
  /** The same with every flag under trtforge's own name. */
  readonly own: readonly string[];
  readonly signal: AbortSignal;
}

function buildParser(chosen: Chosen, console: Console) {
  const { program, verbs, verb, command } = chosen;
  let exitCode: ExitCode = ExitCode.pass;
  const tree = quiet(new Parser(program.name), console)
    .description(program.summary)
    .version(program.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help; after a command, --help all shows every option')
    .helpCommand('help [command]', 'show help for a command')
    .enablePositionalOptions();
  const families = Object.assign({}, ...program.products.map((product) => product.families ?? {})) as Record<
    string,
    string
  >;
  const fill = (parser: Parser, path: string) => {
    if (verb === undefined || command === undefined || path !== verb.path) return;
    const order = addOwn(parser, command, chosen);
    const declared = command.arguments?.length ?? 0;
    parser.action(async (...received: unknown[]) => {
      const inputs = received
        .slice(0, declared)
        .flat()
        .filter((input): input is string => typeof input === 'string');
      const excess = command.arguments?.some(({ many }) => many) ? [] : parser.args.slice(declared);
      const called = { ...chosen, verb, command, path, excess, order };
      exitCode = await execution(called, inputs, parser.opts(), console);
    });
  };
  for (const first of new Set(verbs.map(({ path }) => path.split(' ')[0] ?? path))) {
    const own = verbs.find(({ path }) => path === first);
    const members = verbs.filter(({ path }) => path.startsWith(`${first} `));
    const summary = own?.summary ?? families[first] ?? '';
    const parser = quiet(tree.command(first), console)
      .summary(summary)
      .description(summary)
      .helpGroup(`${(own ?? members[0])?.group}:`);
    // Options behind a subcommand are its own, also where this command has one of the same name.
    if (members.length > 0) parser.enablePositionalOptions();
    for (const member of members) {
      const child = quiet(parser.command(member.path.slice(first.length + 1)), console)
        .summary(member.summary)
        .description(member.summary);
      fill(child, member.path);
    }
    fill(parser, first);
  }
  return { tree, exitCode: () => exitCode };
}

/** Adds a command's own arguments and options; returns the names of the options in the order in which they are read. */
function addOwn(parser: Parser, command: Command, { verb, everything }: Chosen): readonly string[] {
  for (const argument of command.arguments ?? []) parser.argument(argumentUsage(argument), argument.describe);
  const order = addOptions(parser, command.options, everything);
  for (const [flags, description] of globalOptions)
    parser.addOption(new Option(flags, description).helpGroup('Of every command:').hideHelp(!everything));
  const hidden = Object.values(command.options).filter(({ advanced }) => advanced).length;
  const more = everything
    ? []
    : [
        `--help all: ${hidden === 0 ? '' : `${hidden} more, and `}options of every command (--json, --config …)`,
      ];
  const examples = (command.examples ?? []).slice(0, everything ? undefined : 3).map((line) => `  ${line}`);
  parser
    .allowExcessArguments()
    .helpOption('-h, --help', 'show help')
    .addHelpText(
      'after',
      [...more, ...(examples.length === 0 ? [] : ['', 'Examples:', ...examples])]
        .map((line) => `\n${line}`)
        .join(''),
    );
  if (verb !== undefined) parser.summary(verb.summary);
  return order;
}

const argumentUsage = ({ name, optional, many }: ArgumentSpec): string => {
  const inner = many ? `${name}...` : name;
  return optional ? `[${inner}]` : `<${inner}>`;
};

function addOptions(parser: Parser, table: OptionTable, everything: boolean): readonly string[] {
  const order: string[] = [];
  const append = (value: string, previous: unknown) => [...(Array.isArray(previous) ? previous : []), value];
  // Options without a group come first.
  const specs = Object.values(table).sort(
    (a, b) => Number(a.group !== undefined) - Number(b.group !== undefined),
  );
  for (const spec of specs) {
    if (spec.configOnly) continue;
    const shown = new Option(spec.flags, describe(spec)).hideHelp(spec.advanced === true && !everything);
    if (spec.group !== undefined) shown.helpGroup(`${spec.group}:`);
    if (spec.repeat) shown.argParser(append);
    parser.addOption(shown).on(`option:${shown.name()}`, () => order.push(longName(spec)));
  }
  return order;
}

function describe(spec: OptionTable[string]): string {
  const facts = [
    spec.choices === undefined ? '' : `one of ${spec.choices.join(', ')}`,
    spec.required === undefined ? '' : 'required',
    spec.default === undefined ? '' : `default ${String(spec.default)}`,
    spec.repeat ? 'may be repeated' : '',
    spec.env === undefined ? '' : `environment ${spec.env}`,
  ].filter((fact) => fact !== '');
  return facts.length === 0 ? spec.describe : `${spec.describe} (${facts.join('; ')})`;
}

interface Execution extends Chosen {
  readonly verb: Verb;
  readonly command: Command;
  /** The command as typed: `cache ls`. */
  readonly path: string;
  /** Arguments beyond those that the command takes. */
  readonly excess: readonly string[];
  readonly order: readonly string[];
}

/** One command: options resolved once, Ctrl-C as an abort signal, events to the terminal, the result as JSON or text. */
async function execution(
  { command, verb, path, argv, own, excess, order, signal, program, verbs }: Execution,
  inputs: readonly string[],
  raw: Record<string, unknown>,
  console: Console,
): Promise<ExitCode> {
  const globals: GlobalOptions = raw;
  const verbose = globals.verbose === true;
  const view = { json: globals.json === true, command: path, verbose };
  const progress = createProgress(console, {
    events: globals.events === true,
    quiet: globals.quiet === true,
    verbose,
  });
  let log: ReturnType<typeof openLogFile> | undefined;
  const cancelling = () => progress.cancelling();
  signal.addEventListener('abort', cancelling, { once: true });
  try {
    const config = await loadConfig(globals.config, path, () => knownKeys(verbs));
    const options = resolveOptions(command.options, raw, config, console.environment);
    const asResolved = () => ({ ...options.shown, ...command.file?.(inputs) });
    if (globals.printConfig === true && view.json) {
      const { path: file } = config;
      console.out(
        toJson(framedAs('config', path, { file: file === '' ? null : file, options: asResolved() })),
      );
      return ExitCode.pass;
    }
    if (globals.printConfig === true) {
      const lines = (await configText(asResolved())).split('\n');
      console.out(lines.map(printable).join('\n'));
      return ExitCode.pass;
    }
    assertComplete(command, options.shown, { path, words: [program.name, ...own], excess });
    throwIfCancelled(signal, 'starting');
    const { environment, ask: put } = console;
    const ask = put && ((question: string) => put(printable(question)));
    const { products } = program;
    const commandLine = shellLine([program.name, ...argv]);
    const shown = options.values.dryRun === true ? asPlanned(command) : command;
    const force = globals.force === true;
    const context = { commandLine, signal, environment, products, ask, verbose, force, order };
    // Whatever a command asks of TensorRT: when it fails, the error states which known issue its lines show.
    const listen: EventListener = (event) => {
      log?.(event);
      progress.listen(event);
    };
    const work = () => {
      if (globals.logFile !== undefined) log = openLogFile(globals.logFile);
      log?.({ type: 'start', version: program.version, commandLine });
      return explaining((emit) => shown.run(inputs, options.values, { ...context, emit }), {
        emit: listen,
        model: inputs.find((input) => input.endsWith('.onnx')),
        knownIssues: () => broughtBy(products, 'knownIssues'),
      });
    };
    const { result } = await protectingNamedFiles(
      command,
      inputs,
      { ...options.shown, config: config.path, 'log-file': globals.logFile },
      { force, work },
    );
    if (globals.quiet !== true) await noticeMissingOnnxRuntime(verb, environment, listen);
    progress.end();
    log?.({ type: 'end', exitCode: result.exitCode ?? ExitCode.pass, error: null });
    return reportResult(shown, result, view, console);
  } catch (thrown) {
    progress.end();
    const error = withNearFile(usageError(thrown), [program.name, ...own], path.split(' ').length + 1);
    const exitCode = reportError(error, view, console);
    const code = error instanceof TrtforgeError ? error.code : 'TF_INTERNAL';
    log?.({ type: 'end', exitCode, error: { code, message: String((error as Error).message) } });
    return exitCode;
  } finally {
    signal.removeEventListener('abort', cancelling);
  }
}

/** Output that is no command's work, in the frame of a result. */
const framedAs = (what: string, command: string | null, fields: Readonly<Record<string, unknown>>) => ({
  schema: `trtforge.${what}/1`,
  ok: true,
  command,
  ...fields,
  exitCode: ExitCode.pass,
});

/** The command with its plan in the place of its work. */
const asPlanned = ({ plan, ...command }: Command): Command =>
  plan === undefined
    ? command
    : {
        ...command,
        run: async (...request) => planResult(await plan(...request)),
        render: (result, output) => renderPlan(result as PlanResult, output),
      };

async function knownKeys(verbs: readonly Verb[]): ReturnType<KnownKeys> {
  const loaded = await Promise.all(verbs.map(async ({ path, load }) => ({ path, ...(await load()) })));
  return new Map(
    loaded.map(({ path, options }) => [
      path,
      new Map(Object.values(options).map((spec) => [longName(spec), spec] as const)),
    ]),
  );
}

/** commander's own complaints become TF_USAGE, with its "did you mean" kept; everything else stays what it is. */
function usageError(error: unknown, path = '', command?: Command, args: readonly string[] = []): unknown {
  if (!(error instanceof CommanderError)) return error;
  const unknown = /unknown option '(--[\w-]+)/.exec(error.message)?.[1];
  const key = Object.values(command?.options ?? {}).find(
    (spec) => spec.configOnly && `--${longName(spec)}` === unknown,
  );
  if (key !== undefined) return onlyInConfig(path, key, args);
  const [, flag = '', value = ''] = /unknown option '(--[\w-]+)=(.*)'/.exec(error.message) ?? [];
  if (isBareFlag(flag, command?.options ?? {}))
    return new TrtforgeError('TF_USAGE', `${flag} takes no value, and ${value || 'one'} stands behind it.`, {
      remedy: `Write ${flag} alone.`,
    });
  const taken = error.code === 'commander.missingArgument' && command && takenArgument(command, args);
  if (taken) return taken;
  if (error.code === 'commander.help')
    return new TrtforgeError('TF_USAGE', 'The command line names no command.');
  const early = error.code === 'commander.unknownOption' ? globalOption(error.message) : undefined;
  if (early !== undefined)
    return new TrtforgeError('TF_USAGE', `There is no command before ${early}.`, {
      remedy: 'Options follow the command: trtforge cache ls --json',
    });
  const [complaint = '', ...hints] = error.message.replace(/^error: /, '').split('\n');
  const isUnknownCommand = error.code === 'commander.unknownCommand';
  const hint = hints.join(' ').replace(/^\(|\)$/g, '');
  const remedy =
    (isUnknownCommand ? commandForFile(args[0] ?? '') : undefined) ??
    (hint !== '' ? hint : isUnknownCommand ? '`trtforge --help` lists the commands.' : undefined);
  return new TrtforgeError(
    'TF_USAGE',
    `${complaint.charAt(0).toUpperCase()}${complaint.slice(1).replace(/\.?$/, '.')}`,
    { remedy },
  );
}

/** Of an option that takes the next word as its value where there is one: the argument that is missing is that word, unless it is such a value. */
function takenArgument({ options }: Command, args: readonly string[]): TrtforgeError | undefined {
  for (const spec of Object.values(options).filter(({ flags }) => flags.includes('['))) {
    const flag = `--${longName(spec)}`;
    const at = args.indexOf(flag);
    const word = at < 0 ? undefined : args[at + 1];
    if (word === undefined || word.startsWith('-')) continue;
    try {
      parseValue(spec, flag, word);
    } catch (error) {
      const line = shellLine(['trtforge', ...args.toSpliced(at, 2), word, flag]);
      return new TrtforgeError('TF_USAGE', (error as Error).message, { remedy: `Run: ${line}` });
    }
  }
  return undefined;
}

/** The option of every command that commander did not expect, which happens before a command only. */
function globalOption(complaint: string): string | undefined {
  const option = /'(--?[a-z-]+)(?:=.*)?'/.exec(complaint)?.[1];
  return globalOptions.some(([flags]) => flags.split(/,? /).includes(option ?? '')) ? option : undefined;
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
