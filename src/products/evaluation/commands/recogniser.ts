import { join } from 'node:path';
import { formatMs } from '../../../base/text/quantity.js';
import { broughtBy, defineCommand } from '../../../cli/command.js';
import { placeOptions } from '../../../cli/options/comparison.js';
import { renderNext } from '../../../cli/text.js';
import { enginesOptions } from '../../../engines/runtime/tensorrt/options.js';
import { recogniserOptions, speechOptions } from '../../../quality/tasks/options.js';
import { evaluateRecogniser, recogniserRequestOptions } from '../speech/evaluate-recogniser.js';
import type { RecogniserResult } from '../speech/result.js';
import { renderWer } from './wer.js';

const commandOptions = {
  manifest: recogniserRequestOptions.manifest,
  ...speechOptions,
  engines: recogniserOptions.engines,
  output: recogniserRequestOptions.output,
  ...placeOptions,
  ...enginesOptions,
};

export const command = defineCommand({
  arguments: [
    { name: 'META', describe: 'the model_meta.json of a bundle: encoder, predictor, joint network' },
  ],
  examples: [
    'trtforge eval recogniser model_meta.json --manifest dev-clean.tsv --normalizer whisper-en -o runs/fp32-wer',
    'trtforge eval recogniser model_meta.json --engines runs/fp16/engines --manifest dev-clean.tsv',
  ],
  options: commandOptions,
  schema: async () => (await import('../speech/result.js')).recogniserResultSchema,
  run: async ([meta = ''], options, context): Promise<RecogniserResult> =>
    evaluateRecogniser(
      { ...options, meta, open: options },
      await broughtBy(context.products, 'recognisers'),
      context,
    ),
  render: (result, output) => {
    const { bold, dim } = output.colors;
    const { run } = result;
    output.line(bold(`${result.meta} on ${result.manifest}`));
    output.line(
      dim(`  ${run.backend}; ${run.streaming ? 'in chunks, its state fed back' : 'whole utterances'}`),
    );
    renderWer(result, output);
    output.line(
      `  ${run.audioSeconds.toFixed(1)} s of sound at ${run.speed.toFixed(1)} times its speed: features ${formatMs(run.frontEndMs)}, encoder ${formatMs(run.encodeMs)}, decoder ${formatMs(run.decodeMs)}`,
    );
    if (run.latency !== null)
      output.line(
        `  an utterance, from features to text: ${formatMs(run.latency.median_ms)} median, ${formatMs(run.latency.p90_ms)} p90`,
      );
    if (run.resampled > 0)
      output.line(`  ${run.resampled} utterances were resampled to ${run.frontEnd.rate} Hz (windowed sinc)`);
    if (result.output === null) return;
    output.line(`  ${result.output}: transcripts.tsv, scores.tsv, metrics.json`);
    renderNext(
      ['gate', 'init', join(result.output, 'metrics.json'), '-o', join(result.output, 'gate.yaml')],
      output,
    );
  },
});
