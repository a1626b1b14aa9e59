import { TrtforgeError } from '../../errors.js';
import { type Argument, checkArguments, isPlain } from './check.js';
import type { Group } from './kinds.js';
import { longName } from './option.js';

type Renames = ReadonlyMap<string, readonly string[]>;

const renames = (lines: string): Renames =>
  new Map(
    lines
      .split(', ')
      .map((line) => line.split(' '))
      .map(([flag = '', ...names]) => [flag, names]),
  );

/** Options that are neither declared with their flag nor a flag in camelCase; of several the first that the function takes, none where the command line alone has it. */
const renamed = renames(
  'profile profiles, plugin plugins, dim dims, inputs sources data, shapes shapes profiles, against reference, provider-option providerOptions, cache-dir store, trust-key trustKeys, builder-config settings, with tool, onnxruntime onnxRuntime, images imagesDir, audio audioDir, on inventory, max-batch limits.firstMaxBatch, max-batch-limit limits.maxBatchLimit, root names.root, backends backEnds, force, json, local instead',
);

/** Declared options by their flags; of an option in other options the way to it, `verify.atol`, unless the function itself has the flag. */
function renamesIn(groups: readonly Group[], path = ''): Renames {
  const options = groups.flatMap((group) => Object.entries(group));
  const inner = options.flatMap(([name, { kind }]) =>
    kind.forms.flatMap((form) => [...renamesIn(form.options ? [form.options] : [], `${path}${name}.`)]),
  );
  const own = options.flatMap(([name, { flags }]) =>
    flags === undefined ? [] : [[longName({ flags }), [path + name]] as const],
  );
  return new Map([...inner, ...own]);
}

/** Commands, in backticks or to the end of their line: their flags stay. */
export const COMMANDS = /(`[^`]*`|(?<![\w./-])(?:trtforge [a-z].*|trtexec --\S+))/;

/** A sentence for the command line in words of the library, for a function that takes these arguments: `--keep-nodes /x/` is `keepNodes` /x/. */
export function inLibraryWords(sentence: string, taken: readonly Argument[] = [], own?: Renames): string {
  const groups = taken.flatMap((argument) => (isPlain(argument) ? [] : [argument]));
  const known = groups.flatMap((group) => Object.keys(group));
  const declared = renamesIn(groups);
  const optionOf = (flag: string) => {
    const alike = flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    const named = own?.get(flag) ?? declared.get(flag) ?? renamed.get(flag) ?? [alike];
    const name = [...named, alike].find((each) => known.includes(each)) ?? named[0];
    return name === undefined ? `\`--${flag}\` of the command line` : `\`${name}\``;
  };
  return sentence
    .split(COMMANDS)
    .map((part, at) =>
      at % 2 === 1
        ? part
        : part.replace(/(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?![\w-])/g, (_, flag) => optionOf(flag)),
    )
    .join('');
}

/** An error in words of the library, for a caller of a function that takes these arguments. */
export function libraryError(error: unknown, taken?: readonly Argument[], own?: Renames): unknown {
  if (!(error instanceof TrtforgeError)) return error;
  const { code, cause, stack, details } = error;
  const option = typeof details?.option === 'string' ? details.option : '';
  const [message = '', remedy = '', named = ''] = [error.message, error.remedy, option].map((text) =>
    inLibraryWords(text, taken, own),
  );
  if (message === error.message && remedy === error.remedy && named === option) return error;
  const inWords = option === '' ? details : { ...details, option: named.replaceAll('`', '') };
  return Object.assign(new TrtforgeError(code, message, { remedy, details: inWords, cause }), {
    stack: stack?.replace(error.message, message),
  });
}

/**
 * A function as an entry of the package has it: its arguments are checked against the groups of their options, and its errors name options. One that is `async`
 * rejects where another throws.
 */
export function atDoor<F extends (...args: never[]) => unknown>(call: F, ...taken: readonly Argument[]): F {
  const isAsync = Object.prototype.toString.call(call) === '[object AsyncFunction]';
  const inWords = (error: unknown): never => {
    throw libraryError(error, taken);
  };
  const called = (...args: Parameters<F>) => {
    try {
      const result = call(...(checkArguments(args, taken) as Parameters<F>));
      return result instanceof Promise ? result.catch(inWords) : result;
    } catch (error) {
      return isAsync ? Promise.reject(error).catch(inWords) : inWords(error);
    }
  };
  return called as F;
}
