import {
  choice,
  flag,
  longName,
  type OptionTable,
  type OptionValues,
  option,
  text,
} from '../../../cli/option.js';
import { graphFlag } from '../../../cli/options/bench.js';
import { builderOption, buildOptions } from '../../../cli/options/build.js';
import { storeOptions } from '../../../cli/options/store.js';
import { timeoutOption } from '../../../cli/options/timeout.js';
import { integer, number, splitAtCommas } from '../../../cli/values.js';
import { defaultRecipe } from '../../../engines/identity/recipe.js';
import { TrtforgeError } from '../../../errors.js';
import { benchTools } from '../../../quality/bench/bench-with.js';
import type { StreamsLimits } from '../decision.js';
import { seedMode } from '../effects.js';
import type { StreamsSetup } from '../setup.js';
import type { StreamsRequest } from '../streams.js';

/** Batches beyond this are no streams of one GPU any more. */
const MAX_BATCH = 65_536;

export const streamsOptions = {
  fps: option({
    flags: '--fps <list>',
    describe:
      'frames per second of a stream; several by comma are answered from the same measurements, the first is the one reported (default: 30)',
    parse: parseRates,
  }),
  maxBatch: option({
    flags: '--max-batch <n>',
    describe: "the first engine's largest batch",
    parse: integer(1, MAX_BATCH),
    default: 64,
  }),
  maxBatchLimit: option({
    flags: '--max-batch-limit <n>',
    describe: 'no engine gets a larger batch',
    parse: integer(1, MAX_BATCH),
    default: 1024,
  }),
  minGain: option({
    flags: '--min-gain <percent>',
    describe:
      'stop when a doubling changes images per second by less; negative allows a loss, -100 never stops for it',
    parse: number(-100, 100),
    default: -5,
  }),
  timeLimit: option({
    flags: '--time-limit <s>',
    describe: 'begin no step that does not fit into so many seconds (default: no limit)',
    parse: number(0, 604_800),
  }),
  sensitivity: flag({
    flags: '--sensitivity',
    describe: 'measure the batches 8 below and 8 above the number of streams too',
  }),
  fresh: flag({ flags: '--fresh', describe: 'build and measure anew, whatever is there' }),
  fromLogs: flag({
    flags: '--from-logs',
    describe:
      'read the logs that are there and write benchmark_data.json anew; needs no GPU. MODEL may be models/NAME',
  }),
  input: text({
    flags: '--input <name>',
    describe: 'the input that takes the images, where there are several',
  }),
  height: option({
    flags: '--height <pixels>',
    describe: 'where the model leaves it open',
    parse: integer(1),
  }),
  width: option({ flags: '--width <pixels>', describe: 'where the model leaves it open', parse: integer(1) }),
  name: text({
    flags: '--name <name>',
    describe: 'MODEL_NAME (default: the folder after models/ in the path, else the file)',
  }),
  root: text({
    flags: '--root <folder>',
    describe: 'the folder that holds models/ (default: the one in the path, else the working folder)',
  }),
  with: choice({
    flags: '--with <tool>',
    describe: 'what measures: trtforge itself, or the trtexec of the toolchain',
    choices: benchTools,
    default: 'trtforge',
  }),
  graph: graphFlag,
  spinWait: flag({
    flags: '--spin-wait',
    describe: 'the host spins while it waits',
    aliases: ['--useSpinWait'],
  }),
  warmUp: option({
    flags: '--warm-up <ms>',
    describe: 'milliseconds of inferences that are not counted',
    parse: number(0, 3_600_000),
    default: seedMode.warmUpMs,
    aliases: ['--warmUp'],
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
    parse: integer(0),
    default: 0,
  }),
  target: buildOptions.target,
  toolchain: buildOptions.toolchain,
  precision: choice({
    flags: '--precision <type>',
    describe: "fp16 and bf16 convert the model first; as-is builds the graph's own types",
    choices: ['fp16', 'bf16', 'as-is'],
    default: 'fp16',
  }),
  weaklyTyped: buildOptions.weaklyTyped,
  workspace: buildOptions.workspace,
  optimizationLevel: buildOptions.optimizationLevel,
  plugin: buildOptions.plugin,
  ...builderOption,
  ...timeoutOption,
  cacheDir: storeOptions.cacheDir,
  noCache: storeOptions.noCache,
};

export type StreamsOptionValues = OptionValues<typeof streamsOptions>;

function parseRates(list: string): readonly number[] {
  const rates = splitAtCommas(list).map(number(0.001, 1_000_000));
  if (rates.length > 0) return [...new Set(rates)];
  throw new TrtforgeError('TF_USAGE', `«${list}» is not a list of frame rates.`, {
    remedy: 'Write 30 or 30,15.',
  });
}

export const streamsLimits = ({
  fps,
  maxBatch,
  maxBatchLimit,
  minGain,
  timeLimit,
}: StreamsOptionValues): StreamsLimits => ({
  fps: fps ?? [30],
  firstMaxBatch: maxBatch,
  maxBatchLimit,
  minGainPercent: minGain,
  timeLimitSeconds: timeLimit ?? null,
});

export function streamsRequest(model: string, options: StreamsOptionValues): StreamsRequest {
  const { name, root, input, height, width, fresh, sensitivity } = options;
  return {
    model,
    names: { name, root },
    input: { input, height, width },
    limits: streamsLimits(options),
    fresh,
    sensitivity,
  };
}

export function streamsSetup(model: string, options: StreamsOptionValues): StreamsSetup {
  const { target, toolchain, precision, weaklyTyped, workspace, optimizationLevel, plugin } = options;
  return {
    build: {
      model,
      target,
      toolchain,
      precision,
      weaklyTyped,
      settings: {
        memoryPools: { ...defaultRecipe.memoryPools, workspace: workspace ?? null },
        optimizationLevel: optimizationLevel ?? null,
      },
      plugins: plugin,
      store: options.noCache ? false : options.cacheDir,
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

/** What means something when only logs are read. */
const WITH_LOGS: ReadonlySet<string> = new Set(['fromLogs', 'fps', 'name', 'root', 'timeout']);

/** Throws TF_USAGE for options that are heard only where something is built or measured. */
export function refuseWithLogs(options: StreamsOptionValues): void {
  const table: OptionTable = streamsOptions;
  const given = Object.entries(options).flatMap(([name, value]) => {
    const spec = table[name];
    return spec === undefined || WITH_LOGS.has(name) || isDefault(spec, value) ? [] : [`--${longName(spec)}`];
  });
  if (given.length === 0) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `--from-logs builds and measures nothing, so ${given.join(', ')} ${given.length === 1 ? 'has' : 'have'} no meaning with it.`,
    { remedy: 'Leave them out; --fps, --name and --root are heard.' },
  );
}

const isDefault = (spec: OptionTable[string], value: unknown): boolean =>
  value === undefined ||
  value === false ||
  value === spec.default ||
  (spec.env !== undefined && typeof value === 'string') ||
  (Array.isArray(value) && value.length === 0);
