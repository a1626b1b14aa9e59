import { TrtforgeError } from '../../errors.js';
import { type Argument, isPlain } from './check.js';

/** Options that are no flag in camelCase; of several the first that the function takes. */
const renamed: ReadonlyMap<string, readonly string[]> = new Map(
  'profile profiles, plugin plugins, dim dims, inputs sources data, shapes shapes profiles, against reference, val-range ranges, provider-option providerOptions, cache-dir store, trust-key trustKeys, builder-config settings, map names, with tool, runner-a candidateRunner, runner-b referenceRunner'
    .split(', ')
    .map((line) => line.split(' '))
    .map(([flag = '', ...names]) => [flag, names]),
);

/** Commands, in backticks or to the end of their line: their flags stay. */
export const COMMANDS = /(`[^`]*`|(?<![\w./-])(?:trtforge [a-z].*|trtexec --\S+))/;

/** A sentence for the command line in words of the library, for a function that takes these arguments: `--keep-nodes /x/` is `keepNodes` /x/. */
export function inLibraryWords(sentence: string, taken: readonly Argument[] = []): string {
  const known = taken.flatMap((argument) => (isPlain(argument) ? [] : Object.keys(argument)));
  const optionOf = (flag: string) => {
    const named = renamed.get(flag) ?? [flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())];
    return named.find((name) => known.includes(name)) ?? named[0];
  };
  return sentence
    .split(COMMANDS)
    .map((part, at) =>
      at % 2 === 1
        ? part
        : part.replace(
            /(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?![\w-])/g,
            (_, flag) => `\`${optionOf(flag)}\``,
          ),
    )
    .join('');
}

/** An error in words of the library, for a caller of a function that takes these arguments. */
export function libraryError(error: unknown, taken?: readonly Argument[]): unknown {
  if (!(error instanceof TrtforgeError)) return error;
  const [message = '', remedy = ''] = [error.message, error.remedy].map((text) =>
    inLibraryWords(text, taken),
  );
  if (message === error.message && remedy === error.remedy) return error;
  const { code, details, cause, stack } = error;
  return Object.assign(new TrtforgeError(code, message, { remedy, details, cause }), {
    stack: stack?.replace(error.message, message),
  });
}
