import type { Tensor } from '../../tensor/tensor.js';
import { float32Values } from '../../tensor/values.js';
import { type ChannelMoments, ChannelSums } from './channels.js';
import { type Extremes, extremesOf, type Histogram, MagnitudeHistogram } from './histogram.js';

/** The data kept of the outputs of a run besides their extremes. */
export interface Observing {
  readonly histograms: boolean;
  /** The outputs whose channels are summed up, with the axis of the channels. */
  readonly channels: ReadonlyMap<string, number>;
}

/** Of the outputs by name, over all samples. */
export interface Observed {
  readonly histograms: ReadonlyMap<string, Histogram>;
  readonly channels: ReadonlyMap<string, ChannelMoments>;
}

/** Keeps what the outputs of runs were, in the process that has them. */
export class OutputObserver {
  readonly #histograms = new Map<string, MagnitudeHistogram>();
  readonly #channels = new Map<string, ChannelSums>();

  add(name: string, tensor: Tensor, { histograms, channels }: Observing): Extremes {
    const values = float32Values(tensor, name);
    const axis = channels.get(name);
    if (axis !== undefined)
      kept(this.#channels, name, () => new ChannelSums()).add(values, tensor.shape, axis);
    return histograms
      ? kept(this.#histograms, name, () => new MagnitudeHistogram()).add(values)
      : extremesOf(values);
  }

  result(): Observed {
    return { histograms: results(this.#histograms), channels: results(this.#channels) };
  }
}

function kept<T>(map: Map<string, T>, name: string, make: () => T): T {
  const known = map.get(name) ?? make();
  map.set(name, known);
  return known;
}

const results = <R>(map: ReadonlyMap<string, { result(): R }>): ReadonlyMap<string, R> =>
  new Map([...map].map(([name, each]) => [name, each.result()]));
