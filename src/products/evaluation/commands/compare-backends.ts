import { allBut, type OptionTable, valuesOf } from '../../../base/options/option.js';
import { formatMs } from '../../../base/text/quantity.js';
import { broughtBy, type CommandContext, defineCommand, type TextOutput } from '../../../cli/command.js';
import { advanced, choice, inConfig } from '../../../cli/option.js';
import { placeOptions } from '../../../cli/options/comparison.js';
import { messageLines } from '../../../cli/text.js';
import { enginesOptions } from '../../../engines/runtime/tensorrt/options.js';
import { speechOptions } from '../../../quality/tasks/options.js';
import { compareBackEnds, compareOptions } from '../compare/compare-backends.js';
import { countText } from '../compare/page.js';
import type { Comparison } from '../compare/result.js';
import { comparedOpenOptions } from '../compare/runnable-file.js';
import { detectionOptions, imageRunOptions } from '../options.js';
import { preprocessSpec } from './image-options.js';

const { data, imagesDir, backEnds, candidates, precisions, output, store } = compareOptions;

const commandOptions = {
  ...{ data, imagesDir, backEnds, candidates, precisions, output },
  preprocess: choice(preprocessSpec(['yolo', 'rt-detr', 'imagenet', 'arcface'])),
  device: { ...placeOptions.device, describe: 'which of the visible GPUs runs what needs one (default: 0)' },
  ...grouped('Data and preparation', { ...imageRunOptions, ...detectionOptions, ...speechOptions }),
  preNmsTopk: inConfig(detectionOptions.preNmsTopk),
  ...allBut(placeOptions, 'provider', 'device'),
  ...enginesOptions,
  ...advanced({ store }),
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
    compareBackEnds(
      { ...options, model, open: valuesOf(comparedOpenOptions, options) },
      await contextOf(context),
    ),
  render: renderComparison,
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
