import { join } from 'node:path';
import { formatMs } from '../../../base/text/quantity.js';
import { defineCommand } from '../../../cli/command.js';
import { renderNext } from '../../../cli/text.js';
import { detectorOptions } from '../detection/detector.js';
import { evaluateDetector } from '../detection/evaluate-detector.js';
import type { DetectorResult } from '../detection/result.js';
import { detectionOptions } from '../options.js';
import { preparations } from '../run/candidate.js';
import { renderScores } from './coco.js';
import { imageOptions, imageRunOf, preprocessOption } from './image-options.js';

const preprocess = preprocessOption(preparations.detector);

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'a detector: an ONNX model or a TensorRT engine' }],
  examples: [
    'trtforge eval detector yolo.onnx --instances instances_val2017.json --images val2017/ -o runs/fp32-coco',
    'trtforge eval detector yolo.engine --labels coco.yaml --instances instances_val2017.json --images val2017/ --warmup-runs 10',
  ],
  options: {
    ...imageOptions,
    instances: detectorOptions.instances,
    output: detectorOptions.output,
    preprocess,
    ...detectionOptions,
  },
  schema: async () => (await import('../detection/result.js')).detectorResultSchema,
  run: ([model = ''], options, context): Promise<DetectorResult> =>
    evaluateDetector({ ...options, model, ...imageRunOf(model, options, preprocess) }, context),
  render: (result, output) => {
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
