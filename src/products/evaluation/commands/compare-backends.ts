import { allBut, valuesOf } from '../../../base/options/option.js';
import { splitAtCommas } from '../../../base/options/readers.js';
import { formatMs } from '../../../base/text/quantity.js';
import { broughtBy, type CommandContext, defineCommand, type TextOutput } from '../../../cli/command.js';
import {
  advanced,
  choice,
  inConfig,
  type OptionTable,
  type OptionValues,
  option,
  text,
} from '../../../cli/option.js';
import { imagesFolder, placeOptions, speechOptions } from '../../../cli/options/comparison.js';
import { messageLines } from '../../../cli/text.js';
import { enginesOptions } from '../../../engines/runtime/tensorrt/engine-options.js';
import { storeOptions as stores } from '../../../engines/store/open-stores.js';
import { TrtforgeError } from '../../../errors.js';
import { type FormatId, formatNamed } from '../../../formats/precision/formats/index.js';
import { backEndNames } from '../compare/back-end-names.js';
import { type CompareBackEndsRequest, compareBackEnds } from '../compare/compare-backends.js';
import { precisionsWithoutSamples } from '../compare/compared-models.js';
import { countText } from '../compare/page.js';
import type { Comparison } from '../compare/result.js';
import { detectionOptions, imageRunOptions } from '../options.js';
import { preprocessSpec } from './image-options.js';

const onnxRuntimeOptions = allBut(placeOptions, 'provider', 'device');

const commandOptions = {
  data: text({
    flags: '--data <file>',
    describe:
      'what all are scored on: COCO instances (JSON), a TSV of image and label, or a manifest of utterances',
    required: '--data FILE',
  }),
  images: text(imagesFolder),
  backends: option({
    flags: '--backends <names>',
    describe: `what runs each model, separated by commas: ${backEndNames().join(', ')}; trt builds the engines`,
    parse: splitAtCommas,
    required: '--backends ort-cpu',
  }),
  candidate: text({
    flags: '--candidate <file>',
    describe: 'FILE or NAME=FILE: a typed or Q/DQ model, or an engine, beside MODEL',
    repeat: true,
  }),
  precision: option({
    flags: '--precision <types>',
    describe: `also MODEL converted to ${precisionsWithoutSamples.join(', ')}, separated by commas`,
    parse: precisions,
    repeat: true,
  }),
  output: text({
    flags: '-o, --output <folder>',
    describe:
      'the run root; figures of the same identity that are there are kept (default: tmp/compare-MODEL/DATE_TIME)',
    writes: true,
  }),
  preprocess: choice(preprocessSpec(['yolo', 'rt-detr', 'imagenet', 'arcface'])),
  device: { ...placeOptions.device, describe: 'which of the visible GPUs runs what needs one (default: 0)' },
  ...grouped('Data and preparation', { ...imageRunOptions, ...detectionOptions, ...speechOptions }),
  preNmsTopk: inConfig(detectionOptions.preNmsTopk),
  ...onnxRuntimeOptions,
  ...enginesOptions,
  ...advanced({ store: stores.store }),
};

export const command = defineCommand({
  arguments: [
    { name: 'MODEL', describe: 'a detector or a classifier, or the model_meta.json of a bundle, in FP32' },
  ],
  examples: [
    'trtforge compare-backends yolov10m.onnx --candidate yolov10m-qdq.onnx --data instances.json --images val2017/ --backends ort-cuda,trt',
    'trtforge compare-backends yolov10m.onnx --precision fp16 --data instances.json --images val2017/ --backends ort-cpu -o tmp/yolov10m',
  ],
  options: commandOptions,
  schema: async () => (await import('../compare/result.js')).comparisonSchema,
  run: async ([model = ''], options, context): Promise<Comparison> =>
    compareBackEnds(requestOf(model, options), await contextOf(context)),
  render: renderComparison,
});

const requestOf = (model: string, options: OptionValues<typeof commandOptions>): CompareBackEndsRequest => ({
  ...options,
  model,
  candidates: options.candidate,
  precisions: options.precision.flat(),
  backEnds: options.backends,
  imagesDir: options.images,
  open: {
    ...valuesOf(enginesOptions, options),
    toolchain: options.toolchain,
    ...valuesOf(onnxRuntimeOptions, options),
    device: options.device,
  },
});

const contextOf = async (context: CommandContext) => ({
  ...context,
  recognisers: await broughtBy(context.products, 'recognisers'),
});

/** The options under a heading of their own, in the long help. */
function grouped<O extends OptionTable>(group: string, table: O): O {
  const entries = Object.entries(table).map(([key, spec]) => [key, { ...spec, group, advanced: true }]);
  return Object.fromEntries(entries) as unknown as O;
}

function precisions(list: string): readonly FormatId[] {
  return splitAtCommas(list).map((name) => {
    const format = formatNamed(name);
    if (format !== undefined) return format.id;
    throw new TrtforgeError('TF_USAGE', `"${name}" is not a precision.`, {
      remedy: `Pass some of: ${precisionsWithoutSamples.join(', ')}.`,
    });
  });
}

export function renderComparison(result: Comparison, output: TextOutput): void {
  const { line, colors } = output;
  const { bold, dim, yellow } = colors;
  line(`${bold(result.root)}  ${countText(result)} ran, compared by ${result.metric}`);
  for (const { name, status, figures, error } of result.variants) {
    const metric = figures?.metrics[0];
    const latency = figures?.latency ?? null;
    const difference = result.accuracy.find(({ variant }) => variant === name);
    const parts = [
      metric === undefined
        ? yellow(`not run: ${error?.code}`)
        : `${metric.name} ${metric.value?.toFixed(4) ?? '–'}`,
      difference === undefined ? '' : `drop ${difference.drop.toFixed(4)}`,
      latency === null ? '' : `${formatMs(latency.median_ms)} median, ${formatMs(latency.p90_ms)} p90`,
      figures === null ? '' : dim(`${figures.providers.join(', ')}${status === 'kept' ? ', kept' : ''}`),
    ];
    line(`  ${name.padEnd(24)}  ${parts.filter((part) => part !== '').join('  ')}`);
    if (error !== null) messageLines('   ', error.message, output);
  }
  for (const { file, error } of result.damaged) {
    line(`  ${file.padEnd(24)}  ${yellow(`damaged: ${error.code}`)}`);
    line(dim(`    ${error.message}`));
  }
  for (const { variant, reference, share } of result.latency)
    line(`  ${variant} takes ${(100 * share).toFixed(1)} % of the time of ${reference}`);
  for (const { variant, reference, why } of result.notCompared)
    line(yellow(`  ${variant} is not compared with ${reference}: ${why}`));
  for (const warning of result.warnings) line(yellow(`  ${warning}`));
  line(`  ${result.root}: comparison.json, summary.md, report.html`);
}
