import { formatCount, formatMs, formatShare } from '../../../base/text/quantity.js';
import { defineCommand } from '../../../cli/command.js';
import { classifierOptions, evaluateClassifier } from '../classification/evaluate-classifier.js';
import type { ClassificationResult } from '../classification/result.js';
import { preparations } from '../run/candidate.js';
import { renderFindings } from './coco.js';
import { imageOptions, imageRunOf, preprocessOption } from './image-options.js';

const { truth, labels, allowMissing } = classifierOptions;
const preprocess = preprocessOption(preparations.classifier);

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'a classifier: an ONNX model or a TensorRT engine' }],
  examples: [
    'trtforge eval classify resnet50.onnx --images val/ --truth val.tsv --json',
    'trtforge eval classify resnet50.engine --images val/ --truth val.tsv --labels imagenet.txt',
  ],
  options: {
    ...imageOptions,
    ...{ truth, labels, allowMissing },
    preprocess,
  },
  schema: async () => (await import('../classification/result.js')).classificationResultSchema,
  run: ([model = ''], options, context): Promise<ClassificationResult> =>
    evaluateClassifier({ ...options, model, ...imageRunOf(model, options, preprocess) }, context),
  render: (result, output) => {
    const { bold, dim } = output.colors;
    output.line(bold(`${result.candidate.file} on ${result.truth}`));
    output.line(dim(`  ${result.candidate.backend}, ${result.preprocess}`));
    output.line(
      `  top-1 ${bold(formatShare(result.top1))}  top-5 ${formatShare(result.top5)}  ${dim(`${formatCount(result.images)} images, ${formatCount(result.classes)} classes`)}`,
    );
    for (const { label, taken, count } of result.confusion.slice(0, 5))
      output.line(`  ${formatCount(count)} times ${label} was taken for ${taken}`);
    const { latency } = result.run;
    if (latency !== null)
      output.line(`  run ${formatMs(latency.median_ms)} median, ${formatMs(latency.p90_ms)} p90`);
    renderFindings(result.warnings, output);
  },
});
