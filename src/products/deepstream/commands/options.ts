import * as is from '../../../base/options/kinds.js';
import { splitAtCommas } from '../../../base/options/readers.js';
import { choice, flag, type OptionValues, option, text } from '../../../cli/option.js';
import { builderOption, builderSettingsOf, buildOptions } from '../../../cli/options/build.js';
import { storeOptions } from '../../../cli/options/store.js';
import { timeoutOption } from '../../../cli/options/timeout.js';
import { integer, number } from '../../../cli/values.js';
import { TrtforgeError } from '../../../errors.js';
import { defaultFormat, formatIds } from '../../../formats/precision/formats/index.js';
import { benchTools } from '../../../quality/bench/bench-engine.js';
import { modeOptions } from '../../../tensorrt/trtexec/request.js';
import type { StreamsLimits } from '../decision.js';
import { seedMode } from '../effects.js';
import type { StreamsSetup } from '../setup.js';
import type { StreamsRequest } from '../streams.js';

/** Batches beyond this are no streams of one GPU any more. */
const MAX_BATCH = 65_536;

/** Limits that nobody set. */
const defaultLimits: StreamsLimits = {
  fps: [30],
  firstMaxBatch: 64,
  maxBatchLimit: 1024,
  minGainPercent: -5,
  timeLimitSeconds: null,
};

export const sizeOptions = {
  fps: option({
    flags: '--fps <list>',
    describe:
      'frames per second of a stream; several by comma are answered from the same measurements, the first is the one reported (default: 30)',
    parse: parseRates,
  }),
  name: text({
    flags: '--name <name>',
    describe: 'MODEL_NAME (default: the folder after models/ in the path, else the file)',
  }),
  root: text({
    flags: '--root <folder>',
    advanced: true,
    describe: 'the folder that holds models/ (default: the one in the path, else the working folder)',
    writes: true,
  }),
  maxBatch: option({
    flags: '--max-batch <n>',
    describe: "the first engine's largest batch",
    parse: integer(1, MAX_BATCH),
    default: defaultLimits.firstMaxBatch,
  }),
  maxBatchLimit: option({
    flags: '--max-batch-limit <n>',
    advanced: true,
    describe: 'no engine gets a larger batch',
    parse: integer(1, MAX_BATCH),
    default: defaultLimits.maxBatchLimit,
  }),
  minGain: option({
    flags: '--min-gain <percent>',
    advanced: true,
    describe:
      'stop when a doubling changes images per second by less; negative allows a loss, -100 never stops for it',
    parse: number(-100, 100),
    default: defaultLimits.minGainPercent,
  }),
  timeLimit: option({
    flags: '--time-limit <s>',
    describe: 'begin no step that does not fit into this many seconds (default: no limit)',
    parse: number(0, 604_800),
  }),
  sensitivity: flag({
    flags: '--sensitivity',
    describe: 'measure the batches 8 below and 8 above the number of streams too',
  }),
  fresh: flag({ flags: '--fresh', describe: 'build and measure anew, whatever is there' }),
  input: text({
    flags: '--input <name>',
    advanced: true,
    describe: 'the input that takes the images, where there are several',
  }),
  height: option({
    flags: '--height <pixels>',
    advanced: true,
    describe: 'where the model leaves it open',
    parse: integer(1),
  }),
  width: option({
    flags: '--width <pixels>',
    advanced: true,
    describe: 'where the model leaves it open',
    parse: integer(1),
  }),
  dims: buildOptions.dims,
  with: choice({
    flags: '--with <tool>',
    describe: 'what measures: trtforge itself, or the trtexec of the toolchain',
    choices: benchTools,
    default: 'trtforge',
  }),
  graph: modeOptions.graph,
  spinWait: flag({
    flags: '--spin-wait',
    describe: 'the host spins while it waits',
  }),
  warmUp: option({
    flags: '--warm-up <ms>',
    advanced: true,
    describe: 'milliseconds of inferences that are not counted',
    parse: is.decimal(0, 3_600_000).parse,
    default: seedMode.warmUpMs,
  }),
  duration: option({
    flags: '--duration <s>',
    describe: 'seconds to measure, for each batch',
    parse: number(0, 86_400),
    default: seedMode.durationMs / 1000,
  }),
  device: option({
    flags: '--device <number>',
    describe: 'which of the visible GPUs builds and measures',
    parse: is.whole(0).parse,
    default: 0,
  }),
  target: buildOptions.target,
  toolchain: buildOptions.toolchain,
  precision: choice({
    flags: '--precision <type>',
    describe: `${formatIds.join(', ')} convert the model first; as-is builds the graph's own types`,
    choices: [...formatIds, 'as-is'],
    default: defaultFormat.id,
  }),
  weaklyTyped: buildOptions.weaklyTyped,
  workspace: buildOptions.workspace,
  builderConfig: buildOptions.builderConfig,
  plugins: buildOptions.plugins,
  ...builderOption,
  ...timeoutOption,
  store: storeOptions.store,
  noCache: storeOptions.noCache,
};

export type SizeOptionValues = OptionValues<typeof sizeOptions>;

function parseRates(list: string): readonly number[] {
  const rates = splitAtCommas(list).map(number(0.001, 1_000_000));
  if (rates.length > 0) return [...new Set(rates)];
  throw new TrtforgeError('TF_USAGE', `"${list}" is not a list of frame rates.`, {
    remedy: 'Write 30 or 30,15.',
  });
}

export function streamsRequest(model: string, options: SizeOptionValues): StreamsRequest {
  const { name, root, input, height, width, fresh, sensitivity } = options;
  return {
    model,
    names: { name, root },
    input: { input, height, width, dims: options.dims },
    limits: {
      fps: options.fps ?? defaultLimits.fps,
      firstMaxBatch: options.maxBatch,
      maxBatchLimit: options.maxBatchLimit,
      minGainPercent: options.minGain,
      timeLimitSeconds: options.timeLimit ?? null,
    },
    fresh,
    sensitivity,
  };
}

export function streamsSetup(model: string, options: SizeOptionValues): StreamsSetup {
  const { target, toolchain, precision, weaklyTyped, plugins } = options;
  return {
    build: {
      ...{ model, target, toolchain, precision, weaklyTyped, plugins },
      settings: builderSettingsOf(options),
      store: options.noCache ? false : options.store,
      forceRebuild: options.fresh && !options.noCache,
    },
    builder: options.builder,
    meter: options.with,
    mode: {
      warmUpMs: options.warmUp,
      durationMs: options.duration * 1000,
      graph: options.graph,
      spinWait: options.spinWait,
    },
    device: options.device,
  };
}
