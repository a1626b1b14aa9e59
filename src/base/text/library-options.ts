import { inspect } from 'node:util';
import { TrtforgeError } from '../../errors.js';
import { isRecord } from './lenient-json.js';
import { isWithin, type NumberRange, numberRanges, rangeText } from './number-range.js';
import { didYouMean } from './suggest-name.js';

/**
 * What options may be, by their names, which mean the same in every function; a name that is in several lists may be any of them. Where one function has
 * another meaning its list of names has the kind too: `samples:file`. Numbers are in `numberRanges`. `made` is what the function gets of one that is written
 * otherwise.
 */
const kinds: Readonly<
  Record<
    string,
    readonly [names: string, isOne: (value: unknown) => boolean, made?: (value: never) => object]
  >
> = {
  'a text': [
    'model candidate reference file a b engine tool log policy baseline day wheel folder version command from target toolchain precision modelName modelVersion extension timingCache builder logFolder store remote signKey output runRoot provider onnxRuntime method cache part preprocess ioTypes rest externalData batch candidateRunner referenceRunner voidDtype commandLine trtexecLog samples:file kind model:nodes',
    (value) => typeof value === 'string' && value !== '',
  ],
  'a SHA-256 in hexadecimal digits': [
    'identity',
    (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value),
  ],
  '"automatic"': ['weightBudget', (value) => value === 'automatic'],
  '"auto", "always" or "never"': [
    'cudaGraph',
    (value) => ['auto', 'always', 'never'].some((when) => when === value),
  ],
  '"refuse", "warn" or "off"': ['check', (value) => ['refuse', 'warn', 'off'].some((when) => when === value)],
  'true or false': [
    'knownAnswer weaklyTyped verbose forceRebuild requireSignature requirePassport allowHostCode allowFallback errorMap checkWeights allowUnconverted transfers graph spinWait layers:flag wait updateBaseline acceptLicense allowDtypeDifference strictNonFinite allowLoose',
    (value) => typeof value === 'boolean',
  ],
  false: ['store remote', (value) => value === false],
  null: ['timingCache', (value) => value === null],
  'a list': [
    'profiles plugins layers trustKeys skip sources atol rtol ranges keepNodes unquantizedNodes data:files files results percentiles batches outputs checks knownIssues backEnds',
    Array.isArray,
  ],
  'an object': [
    'target toolchain conversion settings verify dims batch providerOptions data calibration shapes:case inputs mode candidate:bench reference:bench keepCalls environment model:nodes',
    isRecord,
  ],
  'an object or a Map': [
    'shapes pluginTypes names',
    isRecord,
    (value: object) => (value instanceof Map ? value : new Map(Object.entries(value))),
  ],
  'a list or a Set': [
    'keepOps convertOps',
    (value) => Array.isArray(value) || value instanceof Set,
    (value: Iterable<unknown>) => new Set(value),
  ],
  'a regular expression': ['nodes weights', (value) => value instanceof RegExp],
  'a function': ['emit work built knownIssues:load', (value) => typeof value === 'function'],
  'an AbortSignal': ['signal', (value) => value instanceof AbortSignal],
  'what layersOf returns': ['a:layers b:layers', (value) => isRecord(value) && Array.isArray(value.layers)],
};

/** What a function takes as one argument: the names of its options, with `!` behind those it needs, or the one name of a plain value. */
export type Argument = string | { readonly is: string };

/** The names of the options in objects that are options themselves, by the name of these: `mode`, `candidate:bench`. */
export type Nested = Readonly<Record<string, string>>;

/**
 * Checks the arguments of a function of the library, which JavaScript's callers can misspell or mistake, and returns them: with a Map for an object of values by
 * name, and a Set for a list of which order says nothing. Throws TF_USAGE that names the option, its value and its forms.
 */
export function checkArguments(
  args: readonly unknown[],
  taken: readonly Argument[],
  nested: Nested = {},
): unknown[] {
  return Array.from({ length: Math.max(args.length, taken.length) }, (_, at) => {
    const [value, argument] = [args[at], taken[at]];
    if (argument === undefined) return value;
    if (typeof argument === 'string') return checkOptions(value, argument, { nested, path: '' });
    return checkValue(value, readWord(argument.is), { nested, path: '' });
  });
}

interface Word {
  /** As it stands in the table of kinds: `samples:file`. */
  readonly word: string;
  readonly name: string;
  readonly isNeeded: boolean;
}

const readWord = (text: string): Word => {
  const word = text.replace('!', '');
  return { word, name: word.replace(/:.*/, ''), isNeeded: text.endsWith('!') };
};

interface ArgumentPlace {
  readonly nested: Nested;
  /** What stands before the names: `mode.`. */
  readonly path: string;
}

function checkOptions(passed: unknown, names: string, place: ArgumentPlace): unknown {
  const words = names.split(' ').map(readWord);
  const known = words.map(({ name }) => name);
  const remedy = `Options are ${known.join(', ')}.`;
  if (passed !== undefined && !isRecord(passed))
    throw new TrtforgeError('TF_USAGE', `${shown(passed)} is not an object of options.`, { remedy });
  const unknown = Object.keys(passed ?? {}).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      `"${place.path}${unknown}" is not an option.${didYouMean(unknown, known)}`,
      { remedy, details: { option: `${place.path}${unknown}` } },
    );
  const made = words.flatMap((word) => {
    const given = passed?.[word.name];
    const value = checkValue(given, word, place, remedy);
    return value === given ? [] : [[word.name, value] as const];
  });
  return made.length === 0 ? passed : { ...passed, ...Object.fromEntries(made) };
}

function checkValue(
  value: unknown,
  { word, name, isNeeded }: Word,
  { nested, path }: ArgumentPlace,
  remedy?: string,
): unknown {
  if (value === undefined && !isNeeded) return value;
  const range = (numberRanges as Readonly<Record<string, NumberRange>>)[word];
  const forms = Object.entries(kinds).filter(([, [all]]) => all.split(' ').includes(word));
  const inside = nested[word];
  const form = forms.find(([, [, isOne]]) => isOne(value))?.[1];
  if (form !== undefined || (range !== undefined && isWithin(range, value))) {
    if (inside !== undefined) return checkOptions(value, inside, { nested, path: `${path}${name}.` });
    return form?.[2]?.(value as never) ?? value;
  }
  const accepted = [...(range === undefined ? [] : [rangeText(range)]), ...forms.map(([what]) => what)];
  throw new TrtforgeError(
    'TF_USAGE',
    `The option "${path}${name}" is ${value === undefined ? 'missing' : shown(value)}: it must be ${accepted.join(', or ')}.`,
    { remedy, details: { option: `${path}${name}` } },
  );
}

const shown = (value: unknown): string =>
  inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 80, maxArrayLength: 3 });

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
  const known = taken.flatMap((argument) =>
    typeof argument === 'string' ? argument.split(' ').map((text) => readWord(text).name) : [],
  );
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
