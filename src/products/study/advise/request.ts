import type { Preparation } from '../../../engines/calibration/read-samples.js';
import type { OpenContext } from '../../../engines/runtime/back-end.js';
import type { FormatId } from '../../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../../formats/precision/options.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import type { LayerTimes } from '../../../quality/bench/result.js';
import type { Scorer } from '../../../quality/tasks/scorer.js';

/** The largest allowed cost of a choice. */
export type Budget =
  /** Signal to noise against FP32 on the held-out samples, decibels: no less than this. */
  | { readonly kind: 'sqnr'; readonly db: number }
  /** The metric of the task, in its unit: no more than this worse than FP32's. */
  | { readonly kind: 'metric'; readonly drop: number };

/** Which model is to be quantized how, what it is judged by, and where results go. */
export interface AdviseRequest {
  readonly model: string;
  /** A quantized format. */
  readonly precision: FormatId;
  /** Samples of inputs, as `readSamples` takes them. */
  readonly data: readonly string[];
  /** Samples that nothing is calibrated on; without any, part of `data` is held out (`PART_RULE`). */
  readonly heldOut: readonly string[];
  readonly preparation: Preparation;
  /** The method that chooses ranges, as `parseMethod` reads it; default `mse`. */
  readonly method?: string;
  /** Everything else about the conversion; its calibration is made of `data`. */
  readonly conversion: Omit<ConversionOptions, 'calibration' | 'unquantizedNodes'>;
  /** Default: 30 dB; with a task one hundredth of its metric. */
  readonly budget?: Budget;
  /** The folder for results; what a run that was stopped tried is found there. */
  readonly output: string;
  readonly threads?: number;
}

/** Times of an engine of one choice on a GPU. */
export interface EngineTimes {
  readonly medianMs: number;
  readonly layers: LayerTimes;
}

/** Builds an engine of a typed model as it is, at the shapes of a sample, and measures it. Throws what building and measuring throw. */
type TimeEngine = (model: string, sample: NamedTensors) => Promise<EngineTimes>;

export interface AdviseContext extends OpenContext {
  readonly scorer?: Scorer;
  /** Without it nothing is said about latency. */
  readonly timeEngine?: TimeEngine;
}
