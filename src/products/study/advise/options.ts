import * as is from '../../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import type { Preparation } from '../../../engines/calibration/read-samples.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import {
  defaultQuantizedFormat,
  type FormatId,
  quantizedFormats,
} from '../../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../../formats/precision/options.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import type { LayerTimes } from '../../../quality/bench/result.js';
import type { Scorer } from '../../../quality/tasks/task.js';
import { judgingOptions } from '../../../quality/verify/options.js';

/** The largest allowed cost of a choice. */
export type Budget =
  /** Signal to noise against FP32 on the held-out samples, decibels: no less than this. */
  | { readonly kind: 'sqnr'; readonly db: number }
  /** The metric of the task, in its unit: no more than this worse than FP32's. */
  | { readonly kind: 'metric'; readonly drop: number };

/** The budgets where none is passed, without and with a task. */
export const DEFAULT_DECIBELS = 30;
export const DEFAULT_DROP = 0.01;

/** What is quantized to which cost, and where results go. */
export const adviseOptions = {
  /** The folder for results; what a run that was stopped tried is found there. */
  output: needed(is.text, {
    flags: '-o, --output <folder>',
    describe: 'where the model, the report and what an interrupted run tried are',
    writes: true,
    required: '-o advice',
  }),
  /** A quantized format. */
  precision: needed(is.word<FormatId>(), {
    flags: '--precision <type>',
    describe: 'what nodes are quantized to',
    choices: quantizedFormats.map(({ id }) => id),
    default: defaultQuantizedFormat.id,
  }),
  /** Default: 30 dB; with a task one hundredth of its metric. */
  budget: optional(is.object<Budget>(), {
    flags: '--budget <limit>',
    describe: `what must be kept: 30dB is the least signal to noise, 0.01 the most that the task's metric may lose (default: ${DEFAULT_DECIBELS}dB; with --data ${DEFAULT_DROP})`,
    parse: parseBudget,
  }),
  /** Samples that nothing is calibrated on; without any, part of `data` is held out (`PART_RULE`). */
  heldOut: needed(is.list<string>(), {
    flags: '--held-out <file>',
    describe: 'samples to judge by, read as --calibration is (default: every fourth sample of --calibration)',
    repeat: true,
  }),
  threads: judgingOptions.threads,
};

export interface AdviseRequest extends OptionsOf<typeof adviseOptions> {
  readonly model: string;
  /** Samples of inputs, as `readSamples` takes them. */
  readonly data: readonly string[];
  readonly preparation: Preparation;
  /** The method that chooses ranges, as `parseMethod` reads it; default `mse`. */
  readonly method?: string;
  /** Everything else about the conversion; its calibration is made of `data`. */
  readonly conversion: Omit<ConversionOptions, 'calibration' | 'unquantizedNodes'>;
}

/** Times of an engine of one choice on a GPU. */
export interface EngineTimes {
  readonly medianMs: number;
  readonly layers: LayerTimes;
}

/** Builds an engine of a typed model as it is, at the shapes of a sample, and measures it. Throws what building and measuring throw. */
type TimeEngine = (model: string, sample: NamedTensors) => Promise<EngineTimes>;

export interface AdviseContext extends WorkContext {
  readonly scorer?: Scorer;
  /** Without it nothing is said about latency. */
  readonly timeEngine?: TimeEngine;
}

function parseBudget(value: string): Budget {
  const [, number = '', unit = ''] = /^([0-9.]+)\s*(db)?$/i.exec(value.trim()) ?? [];
  const amount = number === '' ? Number.NaN : Number(number);
  if (Number.isFinite(amount) && unit !== '') return { kind: 'sqnr', db: amount };
  if (Number.isFinite(amount) && amount < 1) return { kind: 'metric', drop: amount };
  throw new TrtforgeError('TF_USAGE', `"${value}" is not a budget.`, {
    remedy: 'Pass decibels, 30dB, or what the metric may lose, 0.01 for one point.',
  });
}
