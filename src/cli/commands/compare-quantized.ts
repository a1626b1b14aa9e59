import { plural } from '../../base/text/quantity.js';
import { inPhase } from '../../events.js';
import { preparationOptions } from '../../formats/images/preprocess.js';
import {
  type CompareQuantizedRequest,
  compareQuantized,
} from '../../quality/study/quantized/compare-quantized.js';
import type { QuantizedComparison } from '../../quality/study/quantized/result.js';
import { judgingOptions } from '../../quality/verify/request.js';
import type { Measure } from '../../quality/verify/result.js';
import { defineCommand, type TextOutput } from '../command.js';
import { type OptionValues, option, text } from '../option.js';
import { assertImages } from '../options/comparison.js';
import { integer } from '../values.js';

const { preprocess, imgsz } = preparationOptions;

/** Nodes that the text lists; --json has all. */
const LISTED = 10;

const commandOptions = {
  against: text({
    flags: '--against <model>',
    describe: 'the FP32 model that it was quantized from',
    required: '--against model.onnx',
  }),
  calibration: text({
    flags: '--calibration <file>',
    describe:
      'samples that both run on, read as convert reads them: npz, npy, images, a folder or a list (.txt)',
    required: '--calibration samples.npy',
  }),
  output: text({
    flags: '-o, --output <folder>',
    describe: 'metrics.json, precision-scheme.json, io.json, calibration.npy',
    writes: true,
    required: '-o compare',
  }),
  samples: option({
    flags: '--samples <count>',
    describe: 'at most so many of the samples',
    parse: integer(1, 100_000),
    default: 64,
  }),
  preprocess,
  imgsz,
  threads: judgingOptions.threads,
};

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'a quantized ONNX model, of whatever program' }],
  examples: [
    'trtforge compare quantized yolo.int8.onnx --against yolo.onnx --calibration calib.npy -o compare',
    'trtforge compare quantized yolo.int8.onnx --against yolo.onnx --calibration quant100.txt --preprocess yolo -o compare',
  ],
  options: commandOptions,
  schema: async () => (await import('../../quality/study/quantized/result.js')).quantizedComparisonSchema,
  run: async ([quantized = ''], options, { emit, signal, environment }): Promise<QuantizedComparison> => {
    return inPhase('compare', emit, () =>
      compareQuantized(requestOf(quantized, options), { emit, signal, environment }),
    );
  },
  render,
});

const requestOf = (
  quantized: string,
  options: OptionValues<typeof commandOptions>,
): CompareQuantizedRequest => {
  assertImages(options.imgsz, [options.calibration]);
  return {
    baseline: options.against,
    quantized,
    data: [options.calibration],
    preparation: { preprocess: options.preprocess, imgsz: options.imgsz },
    samples: options.samples,
    threads: options.threads,
    output: options.output,
  };
};

function render(result: QuantizedComparison, output: TextOutput): void {
  const { bold, dim } = output.colors;
  const { errors, output_name, per_layer, num_samples } = result;
  const fixed = (value: Measure, digits: number) => Number(value).toFixed(digits);
  const decibels = (value: Measure) => `${value === 'Infinity' ? '∞' : fixed(value, 1)} dB`;
  output.line(`${bold(result.quantized_model)} against ${bold(result.baseline_model)}`);
  output.line(
    `${output_name} over ${plural(num_samples, 'sample')}: ${decibels(errors.mean_sqnr_db)} on average, ${decibels(errors.min_sqnr_db)} at least; cosine ${fixed(errors.mean_cosine_sim, 5)}, ${fixed(errors.min_cosine_sim, 5)} at least`,
  );
  output.line(dim(`${plural(per_layer.length, 'node')} of both, the largest error first:`));
  for (const { name, op_type, precision, metrics } of per_layer.slice(0, LISTED))
    output.line(
      `  ${decibels(metrics.mean_sqnr_db).padStart(10)}  ${op_type} ${bold(name)}  ${dim(precision)}`,
    );
}
