import { COMMANDS, inLibraryWords } from '../../src/base/options/library-arguments.js';
import type { Command, Product } from '../../src/cli/command.js';
import { shellWords } from '../../src/cli/migrate/line.js';
import type { Program } from '../../src/cli/program/execution.js';
import { runProgram } from '../../src/cli/program/program.js';
import { recordedConsole } from '../fakes/console.js';

/** A command line of trtforge in a text. */
export interface TextLine {
  readonly line: string;
  /** It stands in backticks: its arguments may be missing, and it may be the name of a family. */
  readonly isMention: boolean;
}

/** The command as the command line reads it, without its work. */
const parsedOnly = ({ plan, file: _, ...command }: Command, isMention: boolean): Command => ({
  ...command,
  ...(isMention
    ? {
        arguments: command.arguments?.map((argument) => ({ ...argument, optional: true })),
        options: Object.fromEntries(
          Object.entries(command.options).map(([key, { required: _, ...spec }]) => [key, spec]),
        ),
      }
    : {}),
  ...(plan === undefined ? {} : { plan: async () => ({ steps: [], resolved: {} }) }),
  run: async () => ({ schema: 'trtforge.parsed/1' }),
  render: () => {},
});

const inert = (products: readonly Product[], isMention: boolean): readonly Product[] =>
  products.map((product) => ({
    ...product,
    verbs: product.verbs.map((verb) => ({
      ...verb,
      load: async () => parsedOnly(await verb.load(), isMention),
    })),
  }));

/**
 * What the program answers to a line that it would not run (exit code 2), by its own registry, parser and readers of values; null for a line that it would
 * run. Nothing is run. `…` stands for what is left out.
 */
export async function rejectionOf(program: Program, { line, isMention }: TextLine): Promise<string | null> {
  const words = shellWords(line).slice(1);
  const args = words.filter((word) => word !== '…');
  const isPart = isMention || args.length < words.length;
  const isFamily = program.products.some(({ families }) => families?.[args.join(' ')] !== undefined);
  if (isPart && isFamily) return null;
  const { console, err } = recordedConsole({});
  const exitCode = await runProgram({ ...program, products: inert(program.products, isPart) }, args, console);
  // The files that it names need not be here.
  return exitCode === 2 && !err().includes('TF_FILE_NOT_FOUND') ? `${line}\n    ${err()}` : null;
}

/** Where a line begins in code: not in the middle of a sentence, and after a pipe, in `$(…)`, under a profiler. */
const IN_CODE = /(?:^|^\$ |^npx |^nsys profile (?:-\S+ )*|[|;&] |\()(trtforge .*)/;

/** The command lines of code, where comments and what stands beside them are no lines. */
export const linesOfCode = (code: string): readonly TextLine[] =>
  code
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .flatMap((row) => {
      const line = IN_CODE.exec(row)?.[1];
      if (line === undefined) return [];
      return [{ line: row.includes(`$(${line}`) ? line.replace(/\).*/, '') : line, isMention: false }];
    });

/** The command lines of a page: those of its code blocks, and what stands in backticks. */
export function linesOfPage(markdown: string): readonly TextLine[] {
  const blocks = [...markdown.matchAll(/^```(\w*)\n(.*?)^```/gms)].flatMap(([, language = '', block = '']) =>
    /^(?:sh|console)?$/.test(language) ? [block] : [],
  );
  return [...blocks.flatMap(linesOfCode), ...mentionsIn(markdown.replaceAll(/^```.*?^```/gms, ''))];
}

/** `trtforge rules 1` is what a passport states of a converter; `trtforge COMMAND` stands for any. */
const mentionsIn = (text: string): readonly TextLine[] =>
  [...text.matchAll(/`([^`\n]*)`/g)]
    .map(([, line = '']) => ({ line, isMention: true }))
    .filter(({ line }) => /^trtforge (?!rules \d|COMMAND)/.test(line));

/** The command lines in what trtforge printed: mentions in backticks, and every line that a verb begins, to its end. */
export function linesPrinted(program: Program, printed: string): readonly TextLine[] {
  const firsts = new Set(
    program.products.flatMap(({ verbs }) => verbs.map(({ path }) => path.split(' ')[0] ?? '')),
  );
  const texts = textsIn(printed);
  return texts.flatMap((text) => [
    ...mentionsIn(text),
    ...text
      .replaceAll(/`[^`\n]*`/g, '')
      .split('\n')
      .flatMap((row) => [...row.matchAll(/(?<![\w./"'-])trtforge ([a-z-]+)(?![a-z-]*[:.,]).*/g)])
      .filter(([, first = '']) => firsts.has(first))
      .map(([line]) => ({ line, isMention: false })),
  ]);
}

/** The texts of JSON, and text as it is. */
function textsIn(printed: string): readonly string[] {
  try {
    return textsOf(JSON.parse(printed));
  } catch {
    return [printed];
  }
}

const textsOf = (value: unknown): readonly string[] =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(textsOf)
      : [];

const seen = new Set<string>();

/** Throws where a line that trtforge printed, a remedy or a next step, is one that it would not run itself. */
export async function assertRunnable(program: Program, printed: string): Promise<void> {
  for (const line of linesPrinted(program, printed)) {
    if (seen.has(line.line)) continue;
    seen.add(line.line);
    const rejection = await rejectionOf(program, line);
    if (rejection !== null) throw new Error(`A line was printed that does not run: ${rejection}`);
  }
}

/** Throws where an error that trtforge printed as JSON would name a flag to a caller of the library: outside of a command. */
export function assertLibraryWords(printed: string): void {
  const { error } = JSON.parse(printed) as { readonly error?: { readonly remedy: string } };
  const remedy = inLibraryWords(error?.remedy ?? '');
  const prose = remedy.split(COMMANDS).filter((_, at) => at % 2 === 0);
  if (prose.some((part) => /(?<![\w-])--[a-z]/.test(part)))
    throw new Error(`A flag would be named to a caller of the library: ${remedy}`);
}
