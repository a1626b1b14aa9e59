import { observeOnOrt } from '../../engines/runtime/onnxruntime/calibrate.js';
import { TrtforgeError } from '../../errors.js';
import { formatIds, formats } from '../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../formats/precision/options.js';
import { choice, type OptionValues, option, text } from '../option.js';
import { integer, number, pattern, splitAtCommas } from '../values.js';

/** Defaults of --data-max lower than the largest value. */
const dataLimits = formats
  .filter(({ dataMax, maxFinite }) => dataMax < maxFinite)
  .map(({ id, dataMax }) => `${dataMax} for ${id}`)
  .join(', ');

/** How a model is converted; `convert`, `build` and `forge` have the same. `prefix` reports in their help what the options belong to. */
export const conversionOptions = (prefix = '') => ({
  keepNodes: option({
    flags: '--keep-nodes <regex>',
    describe: `${prefix}nodes whose name matches stay FP32`,
    parse: pattern,
    repeat: true,
  }),
  keepOps: text({
    flags: '--keep-ops <types>',
    describe: `${prefix}operators that stay FP32, separated by commas`,
    repeat: true,
  }),
  convertOps: text({
    flags: '--convert-ops <types>',
    describe: `${prefix}operators converted although they stay FP32 by default`,
    repeat: true,
  }),
  initMax: option({
    flags: '--init-max <number>',
    describe: `${prefix}a weight with a larger magnitude keeps its nodes FP32 (default: the largest value of the type)`,
    parse: number(0),
  }),
  calibration: text({
    flags: '--calibration <npz>',
    describe: `${prefix}one sample of inputs; the model runs on it and --data-max applies`,
    repeat: true,
  }),
  dataMax: option({
    flags: '--data-max <number>',
    describe: `${prefix}an activation beyond this in calibration keeps its nodes FP32 (default: ${dataLimits})`,
    parse: number(0),
  }),
  maxReductionDepth: option({
    flags: '--max-reduction-depth <terms>',
    describe: `${prefix}products and sums over more terms stay FP32 (default: no limit)`,
    parse: integer(1),
  }),
  ioTypes: choice({
    flags: '--io-types <what>',
    describe: `${prefix}the model's own inputs and outputs keep FP32, or convert`,
    choices: ['keep', 'convert'],
    default: 'keep',
  }),
});
type ConversionOptionValues = OptionValues<ReturnType<typeof conversionOptions>>;

/** The options as the engine room takes them. Throws TF_USAGE for a limit on a calibration that there is none of. */
export function conversionFrom(options: ConversionOptionValues): ConversionOptions {
  const { keepNodes, ioTypes, initMax, dataMax, maxReductionDepth, calibration } = options;
  if (dataMax !== undefined && calibration.length === 0) {
    throw new TrtforgeError('TF_USAGE', '--data-max needs a calibration, and there is none.', {
      remedy: 'Pass a sample of inputs: --calibration sample.npz.',
    });
  }
  return {
    keepNodes,
    keepOps: operators(options.keepOps),
    convertOps: operators(options.convertOps),
    ioTypes,
    ...(initMax === undefined ? {} : { initMax }),
    ...(dataMax === undefined ? {} : { dataMax }),
    ...(maxReductionDepth === undefined ? {} : { maxReductionDepth }),
    ...(calibration.length === 0 ? {} : { calibration: { samples: calibration, observe: observeOnOrt } }),
  };
}

/** Throws TF_USAGE for an option that judges a conversion where nothing is converted. */
export function assertNothingConverted(options: ConversionOptionValues): void {
  const judged = [
    ['--calibration', options.calibration.length > 0],
    ['--init-max', options.initMax !== undefined],
    ['--max-reduction-depth', options.maxReductionDepth !== undefined],
  ] as const;
  const useless = judged.find(([, isSaid]) => isSaid)?.[0];
  if (useless === undefined) return;
  throw new TrtforgeError('TF_USAGE', `${useless} is about a conversion, and the model is built as it is.`, {
    remedy: `Pass --precision ${formatIds.join(' or ')}, or remove the setting.`,
  });
}

const operators = (texts: readonly string[]): ReadonlySet<string> => new Set(texts.flatMap(splitAtCommas));
