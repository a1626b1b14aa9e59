import { isRecord } from '../text/lenient-json.js';
import { numberRanges } from '../text/number-range.js';
import * as is from './kinds.js';

/**
 * What options may be that are declared by their names alone, which mean the same in every function; a name that is in several lists may be any of them. Where one
 * function has another meaning its list of names has the too: `samples:file`. Numbers are in `numberRanges`.
 */
const kinds: readonly (readonly [is.Kind<unknown>, names: string])[] = [
  [
    is.text,
    'model candidate reference file a b tool log policy baseline day wheel folder version command from target toolchain precision modelName modelVersion extension timingCache builder logFolder store remote signKey output runRoot method cache part preprocess ioTypes rest externalData batch candidateRunner referenceRunner voidDtype commandLine trtexecLog platform architecture model:nodes',
  ],
  [is.identity, ''],
  [is.words('automatic'), ''],
  [is.words('auto', 'always', 'never'), ''],
  [is.words('refuse', 'warn', 'off'), 'check'],
  [
    is.flag,
    'knownAnswer weaklyTyped verbose forceRebuild requireSignature requirePassport errorMap checkWeights allowUnconverted updateBaseline acceptLicense allowDtypeDifference strictNonFinite allowLoose',
  ],
  [is.only(false), 'store remote'],
  [is.only(null), 'timingCache'],
  [
    is.list(),
    'profiles plugins layers trustKeys skip sources atol rtol ranges keepNodes unquantizedNodes data:files files results outputs checks knownIssues backEnds profileFrom',
  ],
  [
    is.object(),
    'target toolchain conversion settings verify dims batch data calibration keepCalls environment machine exporter wheels model:nodes',
  ],
  [is.map(), 'shapes pluginTypes names'],
  [is.set(), 'keepOps convertOps'],
  [is.pattern, 'nodes weights'],
  [is.callback(), 'emit build answer sections now work built knownIssues:load'],
  [is.signal, 'signal'],
  [
    is.like('what layersOf returns', (value) => isRecord(value) && Array.isArray(value.layers)),
    'a:layers b:layers',
  ],
];

/** The options that a text names; `!` is behind those that are needed. */
export const optionsNamed = (names: string): is.Group =>
  Object.fromEntries(names.split(' ').map((word) => [valueNamed(word).name, valueNamed(word)]));

export function valueNamed(text: string) {
  const word = text.replace('!', '');
  const named = { name: word.replace(/:.*/, ''), kind: kindOf(word) };
  return text.endsWith('!') ? { ...named, needed: true as const } : named;
}

function kindOf(word: string): is.Kind<unknown> {
  const range = (numberRanges as Readonly<Record<string, (typeof numberRanges)['seed']>>)[word];
  const numbers = range === undefined ? [] : [(range.whole ? is.whole : is.decimal)(range.from, range.to)];
  const others = kinds.filter(([, names]) => names.split(' ').includes(word)).map(([kind]) => kind);
  return { forms: [...numbers, ...others].flatMap((kind) => kind.forms) };
}
