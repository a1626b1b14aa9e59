import { CommanderError, Option, Command as Parser } from 'commander';
import { longName, type OptionTable } from '../../base/options/option.js';
import { ExitCode } from '../../errors.js';
import type { ArgumentSpec, Command, Verb } from '../command.js';
import { globalOptions } from '../option.js';
import { type Console, reportError, toJson } from '../output.js';
import { execution, framedAs, type Program } from './execution.js';
import { usageError } from './usage-error.js';

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
