import { join } from 'node:path';
import { plural } from '../../../base/text/quantity.js';
import { type CommandContext, defineCommand, type TextOutput } from '../../../cli/command.js';
import { limited } from '../../../cli/options/timeout.js';
import { renderNext } from '../../../cli/text.js';
import type { StreamsResult } from '../result.js';
import { deepstreamLibraries, requireGpu, streamsEffects, whyNoGpu } from '../setup.js';
import { decideStreams, planStreams, streams } from '../streams.js';
import { streamsSteps } from './dry-run.js';
import { type SizeOptionValues, sizeOptions, streamsRequest, streamsSetup } from './size-options.js';

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model, best in models/NAME/model/' }],
  examples: [
    'trtforge deepstream size models/yolo/model/yolo.onnx',
    'trtforge deepstream size detector.onnx --height 640 --width 640 --fps 30,15 --sensitivity',
    'trtforge deepstream size models/yolo/model/yolo.onnx --builder trtexec --with trtexec --time-limit 1800',
  ],
  options: sizeOptions,
  schema: async () => (await import('../result.js')).streamsResultSchema,
  run: limited(async ([model = ''], options, context): Promise<StreamsResult> => {
    const { plan, effects } = decided(model, options, context);
    requireGpu(options.device);
    return streams(plan, { ...effects, deepstreamLibraries: await deepstreamLibraries() });
  }),
  plan: async ([model = ''], options, context) => {
    const { plan, setup, effects } = decided(model, options, context);
    // Which engines would be taken depends on the GPU; what is built first does not.
    const missing = whyNoGpu(options.device);
    const builder = { find: async () => null, build: (batch: number) => effects.builder.build(batch) };
    const sizing = await decideStreams(plan, missing === null ? effects : { ...effects, builder });
    return streamsSteps(plan, setup, sizing, missing, context);
  },
  render: renderStreams,
});

/** Everything before the first build. Throws what `planStreams` throws. */
function decided(model: string, options: SizeOptionValues, context: CommandContext) {
  const plan = planStreams(streamsRequest(model, options));
  const { build, ...rest } = streamsSetup(model, options);
  const setup = { ...rest, build: { ...build, verbose: context.verbose ?? false } };
  return { plan, setup, effects: streamsEffects(plan, setup, context) };
}

export function renderStreams(streams: StreamsResult, output: TextOutput): void {
  const { bold, dim, yellow } = output.colors;
  for (const line of streams.summary) output.line(line);
  output.line();
  output.line(bold(`Engines of ${streams.model.name}`));
  for (const { maxBatch, source, peak } of streams.engines) {
    const rate =
      peak === null
        ? 'not measured'
        : `${peak.imagesPerSecond.toFixed(1)} images/s  GPU ${peak.gpuMeanMs} ms, ${Number(peak.gpuMsPerImage.toPrecision(4))} ms an image`;
    output.line(`  b${maxBatch}  ${rate}  ${dim(source)}`);
  }
  const measured = streams.engines.filter(({ peak }) => peak !== null && peak.batch !== 1).length;
  const runs = measured + (streams.baseline === null ? 0 : 1);
  output.line(`  ${plural(streams.engines.length, 'engine')}, ${plural(runs, 'measurement')}`);
  for (const { fps, peakGpuStreams, maxBatch, streams: count } of streams.answers)
    output.line(`  @${fps} fps  PEAK_GPU_STREAMS ${peakGpuStreams}, ${count} in one batch of b${maxBatch}`);
  for (const { batch, imagesPerSecond, changePercent } of streams.sensitivity ?? []) {
    const change =
      changePercent === null ? '' : `  ${changePercent >= 0 ? '+' : ''}${changePercent.toFixed(1)} %`;
    output.line(`  batch ${batch}  ${imagesPerSecond.toFixed(1)} images/s${change}`);
  }
  output.line(`  stopped: ${streams.stop.reason}. ${streams.stop.text}`);
  if (streams.data !== null) output.line(`  written: ${streams.data}`);
  const { root, model, engine } = streams;
  if (engine !== null)
    renderNext(
      ['deepstream', 'config', join(root, engine), '-o', join(root, 'models', model.name, 'config')],
      output,
    );
  for (const note of streams.notes) output.line(dim(`  ${note}`));
  for (const warning of streams.warnings) output.line(`${yellow('warning')} ${warning}`);
}
