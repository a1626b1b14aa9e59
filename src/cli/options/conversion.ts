import { splitAtCommas } from '../../base/options/readers.js';
import { calibrationOf } from '../../engines/calibration/calibration.js';
import { commonFiles } from '../../engines/calibration/read-samples.js';
import type { PlaceOptions } from '../../engines/runtime/place-options.js';
import { TrtforgeError } from '../../errors.js';
import {
  calibrationMethods,
  DEFAULT_METHOD,
  methodText,
  parseMethod,
} from '../../formats/precision/calibrate/method.js';
import {
  defaultFormat,
  type FormatId,
  floatFormats,
  formatIds,
  quantizedFormatNamed,
  restIds,
} from '../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../formats/precision/options.js';
import { parsePluginTypes } from '../../formats/precision/plugin-types.js';
import { choice, type OptionValues, option, text } from '../option.js';
import { numberNamed, pattern } from '../values.js';
import { placeOptions, preparationOptions, sampleFiles } from './comparison.js';

/** Defaults of --data-max lower than the largest value. */
const dataLimits = floatFormats
  .filter(({ dataMax, maxFinite }) => dataMax < maxFinite)
  .map(({ id, dataMax }) => `${dataMax} for ${id}`)
  .join(', ');

const methods = Object.entries(calibrationMethods)
  .map(([name, what]) => `${name} (${what})`)
  .join(' · ');

/** How a model is converted; `convert`, `build` and `forge` have the same. `prefix` reports in their help what the options belong to. */
export const conversionOptions = (prefix = '') => ({
  keepNodes: option({
    flags: '--keep-nodes <regex>',
    group: 'What stays FP32',
    describe: `${prefix}nodes whose name matches stay FP32`,
    parse: pattern,
    repeat: true,
  }),
  keepOps: text({
    flags: '--keep-ops <types>',
    group: 'What stays FP32',
    describe: `${prefix}operators that stay FP32, separated by commas`,
    repeat: true,
  }),
  convertOps: text({
    flags: '--convert-ops <types>',
    group: 'What stays FP32',
    describe: `${prefix}operators converted although they stay FP32 by default`,
    repeat: true,
  }),
  pluginTypes: option({
    flags: '--plugin-types <types>',
    group: 'What stays FP32',
    describe: `${prefix}types of a plug-in's inputs and outputs, OPERATOR:fp16 or OPERATOR:[fp16,int32]:[fp16]; others stay FP32`,
    parse: parsePluginTypes,
    repeat: true,
    advanced: true,
  }),
  initMax: option({
    flags: '--init-max <number>',
    group: 'What stays FP32',
    describe: `${prefix}a weight with a larger magnitude keeps its nodes FP32 (default: the largest value of the type)`,
    parse: numberNamed('initMax'),
  }),
  calibration: text({
    flags: '--calibration <file>',
    group: 'Calibration',
    describe: `${prefix}samples for int8, fp8 and better int4, nvfp4: ${sampleFiles}`,
    repeat: true,
  }),
  calibrationMethod: option({
    flags: '--calibration-method <name>',
    group: 'Calibration',
    // No default: with a cache and no samples the method is the file's unless one is named.
    describe: `${prefix}how ranges of quantized tensors are chosen (default: ${DEFAULT_METHOD}): ${methods}`,
    parse: (value) => methodText(parseMethod(value)),
  }),
  calibrationCache: text({
    flags: '--calibration-cache <file>',
    group: 'Calibration',
    describe: `${prefix}ranges of quantized tensors: read where it is there, else written (.json, or TensorRT's table)`,
    writes: 'missing',
  }),
  ...preparationOptions,
  dataMax: option({
    flags: '--data-max <number>',
    group: 'What stays FP32',
    describe: `${prefix}an activation beyond this in calibration keeps its nodes FP32 (default: ${dataLimits})`,
    parse: numberNamed('dataMax'),
  }),
  maxReductionDepth: option({
    flags: '--max-reduction-depth <terms>',
    group: 'What stays FP32',
    describe: `${prefix}products and sums over more terms stay FP32 (default: no limit)`,
    parse: numberNamed('maxReductionDepth'),
  }),
  rest: choice({
    flags: '--high-precision <type>',
    describe: `${prefix}what is around quantized nodes`,
    choices: restIds,
    default: defaultFormat.id,
  }),
  ioTypes: choice({
    flags: '--io-types <what>',
    describe: `${prefix}the model's own inputs and outputs keep FP32, or convert`,
    choices: ['keep', 'convert'],
    default: 'keep',
  }),
});
/** Where the calibration of a command runs that has the GPU among its own options. */
export const calibrationPlaceOptions = () => {
  const { device: _, provider, ...place } = placeOptions;
  const named = Object.entries(place).map(([key, spec]) => [
    key,
    { ...spec, describe: spec.describe.replace('models:', 'calibration:') },
  ]);
  return {
    provider: { ...provider, describe: 'calibration: what of ONNX Runtime runs it (default: cpu)' },
    ...Object.fromEntries(named),
  } as Omit<typeof placeOptions, 'device'>;
};

type ConversionOptionValues = OptionValues<ReturnType<typeof conversionOptions>>;

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
  const { keepNodes, keepOps, convertOps, ioTypes, initMax, dataMax, maxReductionDepth, rest } = options;
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
    keepNodes,
    keepOps: operators(keepOps),
    convertOps: operators(convertOps),
    pluginTypes: new Map(options.pluginTypes),
    ioTypes,
    initMax,
    dataMax,
    maxReductionDepth,
    rest,
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

const operators = (texts: readonly string[]): ReadonlySet<string> => new Set(texts.flatMap(splitAtCommas));
