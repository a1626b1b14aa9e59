import { allBut, namesOf, type OptionValues, valuesOf } from '../../base/options/option.js';
import { calibrationOf, calibrationOptions } from '../../engines/calibration/calibration.js';
import { commonFiles } from '../../engines/calibration/read-samples.js';
import type { PlaceOptions } from '../../engines/runtime/back-end.js';
import { TrtforgeError } from '../../errors.js';
import { preparationOptions } from '../../formats/images/preprocess.js';
import { type FormatId, formatIds, quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import { type ConversionOptions, conversionOptions } from '../../formats/precision/options.js';
import { described } from '../option.js';
import { placeOptions } from './comparison.js';

const { dataMax, maxReductionDepth, rest, ioTypes } = conversionOptions;
const last = { dataMax, maxReductionDepth, rest, ioTypes };
const first = allBut(
  conversionOptions,
  ...namesOf(last),
  'unquantizedNodes',
  'calibration',
  'allowUnconverted',
);

/** Options of a model's conversion; `convert`, `build` and `forge` have the same. `prefix` states in their help what the options belong to. */
export const typedConversionOptions = (prefix = '') => ({
  ...described(first, (text) => prefix + text),
  ...described(
    {
      calibration: calibrationOptions.data,
      calibrationMethod: calibrationOptions.method,
      calibrationCache: calibrationOptions.cache,
    },
    (text) => prefix + text,
  ),
  ...preparationOptions,
  ...described(last, (text) => prefix + text),
});

/** Where the calibration of a command runs that has the GPU among its own options. */
export const calibrationPlaceOptions = {
  ...described(allBut(placeOptions, 'device'), (text) => text.replace('models:', 'calibration:')),
  provider: {
    ...placeOptions.provider,
    describe: 'calibration: what of ONNX Runtime runs it (default: cpu)',
  },
};

type ConversionOptionValues = OptionValues<ReturnType<typeof typedConversionOptions>>;

/**
 * The options as conversions take them, calibrated on the CPU unless another place is passed. A place changes nothing without samples: a configuration file
 * sets it for all commands. A part of the samples is held out of the ranges unless `inputs` names others that judge. Throws TF_USAGE for other options without effect: without a calibration, or where the graph is built as it is.
 */
export function conversionFrom(
  options: ConversionOptionValues & {
    readonly precision: FormatId | 'as-is';
    readonly inputs?: readonly string[];
  },
  place: PlaceOptions = {},
): ConversionOptions {
  const { initMax, dataMax, maxReductionDepth } = options;
  const { calibration: data, preprocess, imgsz, inputs = [] } = options;
  assertApart(inputs, data);
  // Floating-point types read extremes alone, for which the order of samples does not count.
  const method = quantizedFormatNamed(options.precision) === undefined ? 'max' : options.calibrationMethod;
  const { calibrationCache: cache } = options;
  if (dataMax !== undefined && data.length === 0)
    throw new TrtforgeError('TF_USAGE', '--data-max needs a calibration, and there is none.', {
      remedy: 'Pass a sample of inputs: --calibration sample.npz.',
    });
  const converting = {
    '--calibration': data[0],
    '--calibration-cache': cache,
    '--init-max': initMax,
    '--max-reduction-depth': maxReductionDepth,
  };
  const [useless] = Object.entries(converting).flatMap(([flag, value]) =>
    value === undefined ? [] : [flag],
  );
  if (useless !== undefined && options.precision === 'as-is')
    throw new TrtforgeError(
      'TF_USAGE',
      `${useless} is about a conversion, and the model is built as it is.`,
      {
        remedy: `Pass --precision ${formatIds.join(' or ')}, or remove the setting.`,
      },
    );
  return {
    ...valuesOf(conversionOptions, options),
    calibration:
      data.length === 0 && cache === undefined
        ? undefined
        : calibrationOf({
            ...{ data, method, cache, preprocess, imgsz, ...place },
            part: inputs.length === 0 ? 'calibration' : undefined,
          }),
  };
}

/** Throws TF_USAGE for samples that ranges are made from and that would judge them too. */
function assertApart(inputs: readonly string[], data: readonly string[]): void {
  const own = inputs.filter((file) => file !== 'random');
  const [both] = own.length === 0 || data.length === 0 ? [] : commonFiles(own, data);
  if (both === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${both} is in --inputs and in --calibration: what the ranges are made from cannot judge them.`,
    { remedy: 'Remove --inputs: a part of --calibration is held out to judge. Or pass other samples.' },
  );
}
