import type { Command } from '../../src/cli/command.js';
import type { Console } from '../../src/cli/output.js';
import type { Program } from '../../src/cli/program/execution.js';
import { runProgram } from '../../src/cli/program/program.js';
import type { ExitCode } from '../../src/errors.js';
import { products } from '../../src/registry.js';
import { recordedConsole } from '../fakes/console.js';
import { faultsOfText, judgedProducts, judgingWritten } from './judged-commands.js';
import { assertLibraryWords, assertRunnable } from './parsed-lines.js';

/** The program with every product, as dist/main.js has it. */
export const program: Program = { name: 'trtforge', version: '0', summary: '', products };

/** What a test has of a terminal: whether there is one, and what its user answers. */
export interface Terminal {
  readonly terminal?: boolean;
  readonly ask?: Console['ask'];
}

/**
 * Runs a command line in this process, as dist/main.js would: its exit code, what it printed, and its JSON. Throws where that or what it wrote is not valid
 * by its published schema.
 */
export async function trtforge(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
  { terminal = false, ask }: Terminal = {},
) {
  const recorded = recordedConsole(environment, terminal);
  const console = ask === undefined ? recorded.console : { ...recorded.console, ask };
  const faults: string[] = [];
  const judged = { ...program, products: judgedProducts(products, faults) };
  const exitCode = await judgingWritten(faults, () => runProgram(judged, args, console));
  if (args.includes('--json')) faults.push(...faultsOfText(recorded.out()));
  if (args.includes('--json') && exitCode !== 0) assertLibraryWords(recorded.out());
  if (faults.length > 0) throw new Error(`${args.join(' ')}\n${[...new Set(faults)].join('\n')}`);
  // Help and completions print usage, which is no line.
  if (!args.some((arg) => /^(?:--help|-h|help|completion)$/.test(arg)))
    for (const printed of [recorded.out(), recorded.err()]) await assertRunnable(program, printed);
  return {
    exitCode,
    out: recorded.out(),
    err: recorded.err(),
    json: <T = Answer>() => JSON.parse(recorded.out()) as T,
  };
}

/** The code of the error of a command line, or of the failure that its result states; null where it has neither. */
export async function codeOfLine(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
): Promise<string | null> {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const { json } = await trtforge(args.toSpliced(end, 0, '--json'), environment);
  return codeIn(json());
}

/** The same of what was printed. */
export function codeIn({ error, failure }: Answer): string | null {
  return error?.code ?? (failure as { readonly code: string } | null | undefined)?.code ?? null;
}

/** What --json prints whatever the verb; its other fields are the verb's. */
export interface Answer {
  readonly [field: string]: unknown;
  readonly schema: string;
  readonly ok: boolean;
  readonly exitCode: ExitCode;
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly remedy: string;
    readonly details?: Readonly<Record<string, unknown>>;
  };
}

/** Every verb of the program with its loaded command. */
export const everyVerb = async (): Promise<readonly { readonly path: string; readonly command: Command }[]> =>
  Promise.all(
    products.flatMap(({ verbs }) => verbs).map(async ({ path, load }) => ({ path, command: await load() })),
  );
