import { join } from 'node:path';
import { formatMs } from '../../../base/text/quantity.js';
import { defineCommand } from '../../../cli/command.js';
import { flag, option, text } from '../../../cli/option.js';
import { renderNext } from '../../../cli/text.js';
import { numberNamed } from '../../../cli/values.js';
import type { DetectorResult } from '../detection/detector-result.js';
import { evaluateDetector } from '../detection/evaluate-detector.js';
import { preparations } from '../run/candidate.js';
import { renderScores } from './coco.js';
import { imageOptions, imageRunOf, preprocessOption } from './image-options.js';

const preprocess = preprocessOption(preparations.detector);

/** What decides detections besides the model and its data. */
export const detectionOptions = {
  labels: text({
    flags: '--labels <file>',
    describe:
      'names of the classes: one a line, or YAML with "names" (default: the metadata of the ONNX model)',
  }),
  imageIds: text({
    flags: '--image-ids <file>',
    describe: 'run only these images: one id a line, # begins a comment',
  }),
  maxImages: option({
    flags: '--max-images <n>',
    describe: 'run only so many images, those of the lowest ids (default: all)',
    parse: numberNamed('maxImages'),
  }),
  allowMissing: option({
    flags: '--allow-missing <n>',
    describe:
      'so many images may have no file, or one that cannot be read; what is on them counts as not found',
    parse: numberNamed('allowMissing'),
    default: 0,
  }),
  conf: option({
    flags: '--conf <score>',
    describe: 'detections of this score or less are dropped',
    parse: numberNamed('conf'),
    default: 0.001,
  }),
  iou: option({
    flags: '--iou <overlap>',
    describe: 'of two boxes of a class that overlap more, the lower score goes',
    parse: numberNamed('iou'),
    default: 0.7,
  }),
  maxDet: option({
    flags: '--max-det <n>',
    describe: 'most detections of an image',
    parse: numberNamed('maxDet'),
    default: 300,
  }),
  preNmsTopk: option({
    flags: '--pre-nms-topk <n>',
    describe: 'most candidates of an image that are compared with one another',
    parse: numberNamed('preNmsTopk'),
    default: 30_000,
  }),
  agnosticNms: flag({
    flags: '--agnostic-nms',
    describe: 'boxes of different classes suppress one another, too',
  }),
  multiLabel: flag({
    flags: '--multi-label',
    describe:
      "each class of a box above --conf counts, not its best class alone: the rule of Ultralytics' val",
  }),
};

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'a detector: an ONNX model or a TensorRT engine' }],
  examples: [
    'trtforge eval detector yolo.onnx --instances instances_val2017.json --images val2017/ -o runs/fp32-coco',
    'trtforge eval detector yolo.engine --labels coco.yaml --instances instances_val2017.json --images val2017/ --warmup-runs 10',
  ],
  options: {
    ...imageOptions,
    instances: text({
      flags: '--instances <file>',
      describe: 'the annotations: a file of COCO instances',
      required: '--instances FILE',
    }),
    output: text({
      flags: '-o, --output <folder>',
      describe: 'metrics.json and detections.json, a COCO results file',
      writes: true,
    }),
    preprocess,
    ...detectionOptions,
  },
  schema: async () => (await import('../detection/detector-result.js')).detectorResultSchema,
  run: ([model = ''], options, { emit, signal }): Promise<DetectorResult> =>
    evaluateDetector({ ...options, model, ...imageRunOf(model, options, preprocess) }, { emit, signal }),
  render: (result: DetectorResult, output) => {
    const { bold, dim } = output.colors;
    const { candidate, head, latency, imagesPerSecond } = result.run;
    output.line(bold(`${candidate.file} against ${result.instances}`));
    output.line(dim(`  ${candidate.backend}; ${head.reason}${head.needsNms ? '' : '; no suppression'}`));
    renderScores(result, output);
    if (latency !== null)
      output.line(
        `  run ${formatMs(latency.median_ms)} median, ${formatMs(latency.p90_ms)} p90; ${imagesPerSecond.toFixed(1)} images a second with decoding`,
      );
    if (result.output === null) return;
    output.line(`  ${result.output}: metrics.json, detections.json`);
    renderNext(
      ['gate', 'init', join(result.output, 'metrics.json'), '-o', join(result.output, 'gate.yaml')],
      output,
    );
  },
});
