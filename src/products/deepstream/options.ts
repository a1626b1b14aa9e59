import * as is from '../../base/options/kinds.js';
import { defaultsOf, needed, type OptionsOf, optional } from '../../base/options/option.js';
import { splitAtCommas } from '../../base/options/readers.js';
import { parseVersion } from '../../behaviour/versions.js';
import { buildOptions } from '../../engines/builder/options.js';
import type { SizeRange } from '../../engines/profiles/sizes.js';
import { TrtforgeError } from '../../errors.js';
import { modeOptions, paceOptions } from '../../tensorrt/trtexec/options.js';

export const nameOptions = {
  name: optional(is.text, {
    flags: '--name <name>',
    describe: 'MODEL_NAME (default: the folder after models/ in the path, else the file)',
  }),
  root: optional(is.text, {
    flags: '--root <folder>',
    advanced: true,
    describe: 'the folder that holds models/ (default: the one in the path, else the working folder)',
    writes: true,
  }),
};

export interface StreamsNaming extends OptionsOf<typeof nameOptions> {}

export const inputOptions = {
  /** Which input takes the images; needed only where that is not plain. */
  input: optional(is.text, {
    flags: '--input <name>',
    advanced: true,
    describe: 'the input that takes the images, where there are several',
  }),
  height: optional(is.whole(1), {
    flags: '--height <pixels>',
    advanced: true,
    describe: 'where the model leaves it open',
  }),
  width: optional(is.whole(1), {
    flags: '--width <pixels>',
    advanced: true,
    describe: 'where the model leaves it open',
  }),
  /** Sizes of open dimensions besides the batch, by the names that the model gives them. */
  dims: { ...buildOptions.dims, kind: is.object<Readonly<Record<string, SizeRange>>>() },
};

export interface StreamsSizes extends OptionsOf<typeof inputOptions> {}

/** Batches beyond this are no streams of one GPU any more. */
const MAX_BATCH = 65_536;

export const limitOptions = {
  /** Frames per second that a stream delivers; several are answered from the same measurements. */
  fps: needed(is.list<number>(), {
    flags: '--fps <list>',
    describe:
      'frames per second of a stream; several by comma are answered from the same measurements, the first is the one reported (default: 30)',
    parse: parseRates,
    make: (rates: readonly number[] = [30]) => rates,
  }),
  firstMaxBatch: needed(is.whole(1, MAX_BATCH), {
    flags: '--max-batch <n>',
    describe: "the first engine's largest batch",
    default: 64,
  }),
  maxBatchLimit: needed(is.whole(1, MAX_BATCH), {
    flags: '--max-batch-limit <n>',
    advanced: true,
    describe: 'no engine gets a larger batch',
    default: 1024,
  }),
  /** Least gain of images per second that a doubling must bring, in percent; negative allows a loss. */
  minGainPercent: needed(is.decimal(-100, 100), {
    flags: '--min-gain <percent>',
    advanced: true,
    describe:
      'stop when a doubling changes images per second by less; negative allows a loss, -100 never stops for it',
    default: -5,
  }),
  timeLimitSeconds: needed(is.either(is.decimal(0, 604_800), is.only(null)), {
    flags: '--time-limit <s>',
    describe: 'begin no step that does not fit into this many seconds (default: no limit)',
    make: (seconds: number | null = null) => seconds,
  }),
};

export interface StreamsLimits extends OptionsOf<typeof limitOptions> {}

/** Limits that nobody set. */
export const defaultLimits: StreamsLimits = defaultsOf(limitOptions);

export const sizingOptions = {
  /** Measure the batches beside the number of streams too. */
  sensitivity: needed(is.flag, {
    flags: '--sensitivity',
    describe: 'measure the batches 8 below and 8 above the number of streams too',
  }),
  /** Believe nothing that lies on disk. */
  fresh: needed(is.flag, { flags: '--fresh', describe: 'build and measure anew, whatever is there' }),
};

export const streamsOptions = {
  /** Path of an ONNX model. */
  model: needed(is.text),
  names: needed(is.object<StreamsNaming>(nameOptions)),
  input: needed(is.object<StreamsSizes>(inputOptions)),
  limits: needed(is.object<StreamsLimits>(limitOptions)),
  ...sizingOptions,
};

export interface StreamsRequest extends OptionsOf<typeof streamsOptions> {}

/** The mode of every measurement, by default as the seed scripts have it: `--noDataTransfers --duration=10 --warmUp=1000`. */
export const streamsModeOptions = {
  graph: modeOptions.graph,
  spinWait: { ...modeOptions.spinWait, group: undefined, describe: 'the host spins while it waits' },
  warmUpMs: { ...paceOptions.warmUpMs, group: undefined, default: 1000 },
  durationMs: { ...paceOptions.durationMs, group: undefined, default: 10 },
};

/** Every default filled in. Nothing is copied between inferences: DeepStream's frames are on the GPU already. */
export interface StreamsMode extends OptionsOf<typeof streamsModeOptions> {}

export const seedMode: StreamsMode = defaultsOf(streamsModeOptions);

export const checkOptions = {
  config: needed(is.text),
  /** `sm_89`, or a name as `L4`. */
  gpu: optional(is.text, {
    flags: '--gpu <gpu>',
    describe: 'the GPU of the pipeline, sm_89 or L4 (default: it is not compared)',
  }),
  /** `10.14` or a whole version. */
  tensorrt: optional(is.text, {
    flags: '--tensorrt <version>',
    describe: 'the TensorRT of the pipeline, 10.14 (default: it is not compared)',
    parse: parseVersion,
  }),
  image: optional(is.text, {
    flags: '--image <file>',
    describe: 'run the model on this image, prepared as configured and in other ways, and compare scores',
  }),
};

export interface CheckRequest extends OptionsOf<typeof checkOptions> {}

export const configOptions = {
  /** An engine or a model. */
  file: needed(is.text),
  folder: needed(is.text, {
    flags: '-o, --output <folder>',
    describe: 'where the configurations go; of a folder named config the parser goes beside it',
    required: '-o models/NAME/config',
    writes: true,
  }),
  /** The model of the engine, from which nvinfer builds when the engine does not fit. */
  onnx: optional(is.text, {
    flags: '--onnx <model>',
    describe: 'the model of the engine (default: the one in models/NAME/model)',
  }),
  name: optional(is.text, {
    flags: '--name <name>',
    describe: "the model's name in files (default: as its folder)",
  }),
  labels: optional(is.text, {
    flags: '--labels <file>',
    describe: 'names of the classes, one a line or YAML (default: those beside or in the model)',
  }),
  batch: optional(is.whole(1, 1024), {
    flags: '--batch <n>',
    describe: "batch-size (default: the engine's largest, else 1)",
  }),
  // nvinfer ignores a scale of 0, and the offsets with it.
  scale: optional(is.decimal(1e-9), {
    flags: '--scale <factor>',
    describe: 'net-scale-factor (default: from the files beside the model)',
  }),
  offsets: optional(is.list<number>(), {
    flags: '--offsets <r;g;b>',
    describe: 'what is subtracted before, as 123.675;116.28;103.53',
    parse: (list) => list.split(';').map(is.decimal(0, 255).parse),
  }),
  color: optional(is.words('rgb', 'bgr'), { flags: '--color <order>', describe: 'order of the channels' }),
  /** `letterbox` pads on both sides, `corner` right and below alone. */
  fit: optional(is.words('stretch', 'letterbox', 'corner'), {
    flags: '--fit <how>',
    describe: 'how a picture fills the input; corner pads right and below alone',
  }),
  /** Height, width, where the model leaves them open. */
  size: optional(is.list() as is.Kind<readonly [number, number]>, {
    flags: '--size <HxW>',
    describe: 'height and width, where the model leaves them open',
    parse: parseSides,
  }),
};

export interface ConfigRequest extends OptionsOf<typeof configOptions> {}

function parseRates(list: string): readonly number[] {
  const rates = splitAtCommas(list).map(is.decimal(0.001, 1_000_000).parse);
  if (rates.length > 0) return [...new Set(rates)];
  throw new TrtforgeError('TF_USAGE', `"${list}" is not a list of frame rates.`, {
    remedy: 'Write 30 or 30,15.',
  });
}

function parseSides(sides: string): readonly [number, number] {
  const [, height, width] = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(sides) ?? [];
  if (height !== undefined && width !== undefined) return [Number(height), Number(width)];
  throw new TrtforgeError('TF_USAGE', `"${sides}" is not a size.`, { remedy: 'Write 640x640.' });
}
