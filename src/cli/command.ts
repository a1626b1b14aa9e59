import type { z } from 'zod';
import type { OptionTable, OptionValues } from '../base/options/option.js';
import type { BundleParts } from '../engines/builder/options.js';
import type { Exporter } from '../engines/exports/exporter.js';
import type { ProfileSource } from '../engines/profiles/sample-profile.js';
import type { ErrorCode, ExitCode } from '../errors.js';
import type { Work } from '../events.js';
import type { Healer } from '../forge/options.js';
import type { KnownIssue } from '../quality/explain/known-issues/issue.js';
import type { Recogniser, ScorerOf, TaskKind } from '../quality/tasks/task.js';
import type { AfterFailure } from '../quality/verify/verify.js';
import type { ReportKind, RunRootSections } from '../report/pages/report.js';
import type { ForeignFlag } from './foreign-flag.js';
import { dryRunOption, type Plan } from './plan.js';

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

/** The parts that one folder adds to the program. Values only: everything heavy stands behind a function. */
export interface Product {
  readonly name: string;
  readonly verbs: readonly Verb[];
  /** Codes that it alone throws. Their text stands in `errors.ts`: a child or a program that loads no descriptor needs it too. */
  readonly errors?: readonly ErrorCode[];
  /** Summaries of verbs of two words, by the first: `cache`. */
  readonly families?: Readonly<Record<string, string>>;
  /** Schemas of files that no command prints, by the name of their JSON Schema. */
  readonly files?: Readonly<Record<string, () => Promise<z.ZodType>>>;
  /** Schemas of what any command prints in the place of its result, by the name of their JSON Schema. */
  readonly printed?: Readonly<Record<string, () => Promise<z.ZodType>>>;
  /** Flags of the tools and scripts that it replaces. */
  readonly foreignFlags?: () => Promise<readonly ForeignFlag[]>;
  /** Errors and warnings of its own that `explain` and every failing command recognize, beside the core's. */
  readonly knownIssues?: () => Promise<readonly KnownIssue[]>;
  /** Results of its own that `report` renders. */
  readonly reports?: () => Promise<readonly ReportKind[]>;
  /** Sections on its results for the run root of another command. */
  readonly runRootSections?: () => Promise<RunRootSections>;
  /** Tasks that outputs are scored by. */
  readonly tasks?: () => Promise<readonly TaskKind[]>;
  /** Recognisers, which open models that turn speech features into tokens. */
  readonly recognisers?: () => Promise<readonly Recogniser[]>;
  /** The scorer of a model by the task that data are for. */
  readonly scorer?: () => Promise<ScorerOf>;
  /** The search after a failed comparison. */
  readonly afterFailure?: () => Promise<AfterFailure>;
  /** What searches with `forge --heal`. */
  readonly healer?: () => Promise<Healer>;
  /** Files of its own that `--profile-from` reads. */
  readonly profileSources?: () => Promise<readonly ProfileSource[]>;
  /** The reader of a file that describes several models, as the builds of each. */
  readonly bundleParts?: () => Promise<BundleParts>;
  /** Layouts that `cache export --as` writes. */
  readonly exporters?: () => Promise<readonly Exporter[]>;
}

type Part = Exclude<
  keyof Product,
  'name' | 'verbs' | 'errors' | 'families' | 'files' | 'printed' | 'afterFailure' | 'healer'
>;

type Brought<P extends Part> = Awaited<ReturnType<NonNullable<Product[P]>>>;

type Each<T> = T extends readonly (infer E)[] ? E : T;

/** The values of products for one part of the descriptor, in the products' order. */
export const broughtBy = async <P extends Part>(products: readonly Pick<Product, P>[], part: P) =>
  (await Promise.all(products.map((product) => product[part]?.() ?? []))).flat() as Each<Brought<P>>[];

/** The sections of products on their results in the run roots of others. */
export async function sectionsOfProducts(products: readonly Product[]): Promise<RunRootSections> {
  const all = await broughtBy(products, 'runRootSections');
  return (runs) => all.flatMap((sections) => sections(runs));
}

/** The searches after a failed comparison and with `--heal`: each is loaded when it is called. No healer where no product has one. */
export function searchesOf(products: readonly Product[]) {
  const afterFailure: AfterFailure = async (...failed) =>
    (await products.find((product) => product.afterFailure)?.afterFailure?.())?.(...failed);
  const load = products.find((product) => product.healer)?.healer;
  const healer: Healer | undefined = load && (async (...failed) => (await load())(...failed));
  return { afterFailure, healer };
}

/** The facts of a command that are known before its module is loaded; one verb has one result. */
export interface Verb {
  /** As typed: `verify`, `engine layers`. */
  readonly path: string;
  readonly summary: string;
  /** The heading that --help lists it under. */
  readonly group: 'Engines' | 'Quality' | 'Store' | 'Machine' | 'Products';
  load(): Promise<Command>;
}

type Room = () => Promise<Readonly<Record<string, unknown>>>;

/** A verb of a group, as a product lists it. Its module exports `command`, or a module of several verbs each under `name`: by default the verb's second word. */
export const verbOf =
  (group: Verb['group']) =>
  (path: string, summary: string, load: Room, name = path.split(' ')[1] ?? ''): Verb => ({
    path,
    group,
    summary,
    load: async () => {
      const room = await load();
      return (room.command ?? room[name]) as Command;
    },
  });
