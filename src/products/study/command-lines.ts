import { allBut, wordsOf } from '../../base/options/option.js';
import { quotedInRange, shapeText } from '../../base/options/readers.js';
import { shellLine } from '../../base/text/shell-line.js';
import { isEngineFile } from '../../engines/plan/header.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import {
  type ConversionOptions,
  conversionOptions,
  type JudgingSamples,
} from '../../formats/precision/options.js';
import type { VerifyRequest } from '../../quality/verify/options.js';
import { type Change, type Conversion, changedOptions } from './conversion.js';

type Words = readonly string[];

/** The command line that writes the model of a change; null where none adds its outputs, or states its calibration. */
export function convertLine(
  { model, precision, options }: Conversion,
  change: Change,
  output: string,
  calibration = calibrationWords(options),
): string | null {
  const adds = (change.outputs ?? []).length > 0;
  if (precision === null || adds || calibration === null) return null;
  const changed = changedOptions(options, change);
  return shellLine([
    ...['trtforge', 'convert', model, '--precision', precision],
    ...wordsOf(conversionOptions, changed),
    ...calibration,
    ...preparationWords(options.calibration?.judging),
    ...['-o', output],
  ]);
}

/** The command line that searches why a comparison failed; null where none states how the candidate is converted or run. */
export function bisectLine(
  request: Omit<VerifyRequest, 'precision' | 'conversion'>,
  { precision, options }: Omit<Conversion, 'model'>,
): string | null {
  const { reference, candidate, seed, samples, shapes, ranges = [], data, provider = 'cpu' } = request;
  const calibration = calibrationWords(options);
  if (provider !== 'cpu' || calibration === null || hasMore(options)) return null;
  const named = (name: string | null, value: string | number) =>
    name === null ? String(value) : `${quotedInRange(name)}:${value}`;
  const limits = (asked: VerifyRequest['atol'] = []) => asked.map(({ name, value }) => named(name, value));
  return shellLine([
    ...['trtforge', 'bisect', candidate, '--against', reference],
    ...words('--precision', precision),
    ...[...(shapes ?? [])].flatMap(([name, dims]) => words('--shapes', shapeText(name, dims))),
    // Samples held out of a calibration come with it.
    ...words('--inputs', data?.part === undefined ? data?.files : null),
    ...preparationWords(data),
    ...words('--seed', seed),
    ...words('--samples', samples),
    ...ranges.flatMap(({ name, low, high }) => words('--val-range', named(name, `[${low},${high}]`))),
    ...words('--atol', limits(request.atol)),
    ...words('--rtol', limits(request.rtol)),
    // Of an engine its passport states the rest.
    ...(isEngineFile(candidate) ? [] : wordsOf(allBut(conversionOptions, 'ioTypes'), options)),
    ...calibration,
    ...['-o', 'bisect'],
  ]);
}

/** The command line that chooses what to quantize of a reference, by the samples that made the ranges or that judged; null where no file has any. */
export function adviseLine(
  { reference, data, conversion = {} }: Pick<VerifyRequest, 'reference' | 'data' | 'conversion'>,
  precision: FormatId,
): string | null {
  const { calibration } = conversion;
  const samples = calibration?.judging ?? data;
  if (samples === undefined || samples.files.every((file) => file === 'random')) return null;
  return shellLine([
    ...['trtforge', 'convert', 'advise', reference, '--precision', precision],
    ...words('--calibration', samples.files),
    ...preparationWords(samples),
    ...words('--calibration-method', calibration?.method === 'unknown' ? null : calibration?.method),
    ...wordsOf(allBut(conversionOptions, 'dataMax', 'unquantizedNodes'), conversion),
    ...['--budget', '30dB', '-o', 'advice'],
  ]);
}

/** Whether it has parts of `convert` alone. */
const hasMore = ({ pluginTypes, unquantizedNodes = [] }: ConversionOptions): boolean =>
  (pluginTypes?.size ?? 0) + unquantizedNodes.length > 0;

/** null where nobody knows what the calibration was read from. */
function calibrationWords({ calibration }: ConversionOptions): Words | null {
  if (calibration === undefined) return [];
  const facts = calibration.facts?.();
  if (facts === undefined) return null;
  return [
    ...words('--calibration', facts.data),
    ...words('--calibration-cache', facts.cache),
    ...words('--calibration-method', calibration.method === 'unknown' ? null : calibration.method),
  ];
}

const preparationWords = ({ preprocess, imgsz }: Partial<JudgingSamples> = {}): Words => [
  ...words('--preprocess', preprocess),
  ...words('--imgsz', imgsz),
];

/** An option once for each of its values. */
function words(option: string, value: string | number | Iterable<string> | null | undefined): Words {
  if (value === null || value === undefined) return [];
  const values = typeof value === 'string' || typeof value === 'number' ? [value] : [...value];
  return values.flatMap((each) => [option, String(each)]);
}
