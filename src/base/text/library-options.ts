import { TrtforgeError } from '../../errors.js';
import { didYouMean } from './suggest-name.js';

/** What options may be, by their names, which mean the same in every function; a name that is in several lists may be any of them. */
const kinds: Readonly<Record<string, readonly [names: string, isOne: (value: unknown) => boolean]>> = {
  'a text': [
    'model candidate reference file a b target toolchain precision modelName modelVersion extension timingCache builder logFolder store remote signKey output runRoot provider onnxRuntime weightBudget cudaGraph method cache part preprocess ioTypes rest externalData batch',
    (value) => typeof value === 'string' && value !== '',
  ],
  'a number': [
    'device seed samples threads iterations profile maxBytes weightBudget initMax dataMax maxReductionDepth imgsz batch',
    (value) => typeof value === 'number' && Number.isFinite(value),
  ],
  'true or false': [
    'weaklyTyped verbose forceRebuild requireSignature allowHostCode allowFallback errorMap checkWeights allowUnconverted',
    (value) => typeof value === 'boolean',
  ],
  false: ['store remote', (value) => value === false],
  null: ['timingCache', (value) => value === null],
  'a list': [
    'profiles plugins layers trustKeys skip sources atol rtol ranges keepNodes unquantizedNodes',
    Array.isArray,
  ],
  'an object': [
    'target toolchain conversion settings verify dims batch providerOptions data calibration',
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  ],
  'a Map': ['shapes pluginTypes', (value) => value instanceof Map],
  'a Set': ['keepOps convertOps', (value) => value instanceof Set],
  'a regular expression': ['nodes weights', (value) => value instanceof RegExp],
};

/**
 * Checks the options of a function of the library, which JavaScript's callers can misspell or mistake. `names` are those that it has, with `!` behind
 * those it needs. Throws TF_USAGE that names the option and its forms.
 */
export function checkLibraryOptions(passed: unknown, names: string): void {
  const known = names.split(' ').map((name) => name.replace('!', ''));
  const options = typeof passed === 'object' && passed !== null ? passed : undefined;
  const unknown = Object.keys(options ?? {}).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TrtforgeError('TF_USAGE', `"${unknown}" is not an option.${didYouMean(unknown, known)}`, {
      remedy: `Options are ${known.join(', ')}.`,
    });
  for (const name of known) {
    const value: unknown = (options as Readonly<Record<string, unknown>> | undefined)?.[name];
    const forms = Object.entries(kinds).filter(([, [all]]) => all.split(' ').includes(name));
    const isMissing = value === undefined && names.split(' ').includes(`${name}!`);
    if (!isMissing && (value === undefined || forms.some(([, [, isOne]]) => isOne(value)))) continue;
    throw new TrtforgeError(
      'TF_USAGE',
      `The option "${name}" is ${isMissing ? 'missing' : 'of another kind'}: it is ${forms.map(([what]) => what).join(', or ')}.`,
      { remedy: `Options are ${known.join(', ')}.`, details: { option: name } },
    );
  }
}
