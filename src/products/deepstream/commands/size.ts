import { plural } from '../../../base/text/quantity.js';
import { decidedBuild, engineSteps, resolvedOf } from '../../../cli/build-plan.js';
import { type CommandContext, defineCommand, type TextOutput } from '../../../cli/command.js';
import { limited } from '../../../cli/options/timeout.js';
import { type Plan, type PlanStep, step } from '../../../cli/plan.js';
import { engineRequest } from '../builder.js';
import type { StreamsResult } from '../result.js';
import {
  deepstreamLibraries,
  requestedBuild,
  requireGpu,
  type SetupContext,
  type StreamsSetup,
  streamsEffects,
} from '../setup.js';
import type { DecidedSizing } from '../sizing.js';
import { decideStreams, planStreams, type StreamsPlan, streams } from '../streams.js';
import { type SizeOptionValues, sizeOptions, streamsRequest, streamsSetup } from './options.js';

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model, best in models/NAME/model/' }],
  examples: [
    'trtforge deepstream size models/yolo/model/yolo.onnx',
    'trtforge deepstream size detector.onnx --height 640 --width 640 --fps 30,15 --sensitivity',
    'trtforge deepstream size models/yolo/model/yolo.onnx --builder trtexec --with trtexec --time-limit 1800',
  ],
  options: sizeOptions,
  schema: async () => (await import('../schema.js')).streamsResultSchema,
  run: limited(async ([model = ''], options, context): Promise<StreamsResult> => {
    const { plan, effects } = decided(model, options, context);
    return streams(plan, { ...effects, deepstreamLibraries: await deepstreamLibraries() });
  }),
  plan: async ([model = ''], options, context) => {
    const { plan, setup, effects } = decided(model, options, context);
    return streamsSteps(plan, setup, await decideStreams(plan, effects), context);
  },
  render: renderStreams,
});

/** Everything before the first build. Throws what `planStreams` and `requireGpu` throw. */
function decided(model: string, options: SizeOptionValues, context: CommandContext) {
  const plan = planStreams(streamsRequest(model, options));
  requireGpu(options.device);
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
  for (const note of streams.notes) output.line(dim(`  ${note}`));
  for (const warning of streams.warnings) output.line(`${yellow('warning')} ${warning}`);
}

/** What is taken over, what is due, and what then depends on the measured rates. */
async function streamsSteps(
  { request, names, paths, inputs }: StreamsPlan,
  setup: StreamsSetup,
  { engines, baseline, due }: DecidedSizing,
  context: SetupContext,
): Promise<Plan> {
  const measured = [baseline, ...engines.map(({ peak }) => peak)].flatMap((each) => each ?? []);
  const steps: PlanStep[] = [
    ...engines.map(({ engine }) => step('take', engine.path, { detail: 'of an earlier run' })),
    ...measured.map(({ log }) => step('take', log, { detail: 'of an earlier run' })),
  ];
  let resolved: Plan['resolved'] = {};
  const { warmUpMs, durationMs } = setup.mode;
  for (const each of due) {
    if (each.do === 'build') {
      const { environment = process.env } = context;
      const engine = { requested: requestedBuild(setup), inputs, paths, environment };
      const requested = await engineRequest(engine, each.maxBatch);
      const build = await decidedBuild(requested, context);
      resolved = resolvedOf(build);
      steps.push(
        ...engineSteps(build),
        step('write', paths.engine(each.maxBatch), { detail: 'with its passport' }),
      );
    } else if (each.do === 'measure') {
      const detail = `batch ${each.batch} with ${setup.meter}`;
      steps.push(step('measure', paths.log(each.batch), { detail, ms: warmUpMs + durationMs }));
    }
  }
  const { fps, maxBatchLimit } = request.limits;
  const last = due.at(-1);
  const stop = last?.do === 'stop' ? last.text : null;
  return {
    steps: [
      ...steps,
      step('build', 'engines of twice the batch', {
        detail: `and measure them, up to batch ${maxBatchLimit}, while more streams of ${Math.min(...fps)} fps fit than the batch`,
        skipped: stop,
      }),
      ...(request.sensitivity
        ? [step('measure', 'the batches 8 below and 8 above the number of streams')]
        : []),
      step('write', paths.data),
    ],
    resolved: { ...resolved, name: names.modelName, model: request.model, input: inputs.image },
  };
}
