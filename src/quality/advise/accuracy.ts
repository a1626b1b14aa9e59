import { meanOf } from '../../base/statistics.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { numbersOf } from '../../formats/tensor/values.js';

/** How far one sample of one tensor is from FP32. */
export interface SampleError {
  readonly mse: number;
  readonly meanAbs: number;
  readonly maxAbs: number;
  /** Decibels; infinite where nothing differs. */
  readonly sqnrDb: number;
  readonly cosine: number;
}

/** How close a model is to FP32 over samples. */
export interface Accuracy {
  /** Decibels, power of the values over power of their errors over all samples: of the tensor where it is least. */
  readonly sqnrDb: number;
  /** Of a sample, over all samples: of the tensor where it is least. */
  readonly cosineMean: number;
  readonly cosineMin: number;
  readonly tensors: readonly {
    readonly name: string;
    readonly sqnrDb: number;
    readonly samples: readonly SampleError[];
  }[];
}

/** Compares tensors of a candidate with those of a reference, sample by sample. */
export class AccuracySums {
  readonly #tensors: ReadonlyMap<string, { signal: number; noise: number; readonly samples: SampleError[] }>;

  constructor(names: readonly string[]) {
    this.#tensors = new Map(names.map((name) => [name, { signal: 0, noise: 0, samples: [] }]));
  }

  add(reference: NamedTensors, candidate: NamedTensors): void {
    for (const [name, sums] of this.#tensors) {
      const [r, c] = [numbersOf(reference.get(name)!), numbersOf(candidate.get(name)!)];
      let [signal, noise, other, product, absolute, largest] = [0, 0, 0, 0, 0, 0];
      for (let at = 0; at < r.length; at++) {
        const error = c[at]! - r[at]!;
        signal += r[at]! * r[at]!;
        other += c[at]! * c[at]!;
        product += r[at]! * c[at]!;
        noise += error * error;
        absolute += Math.abs(error);
        if (!(Math.abs(error) <= largest)) largest = Math.abs(error);
      }
      sums.signal += signal;
      sums.noise += noise;
      const elements = Math.max(1, r.length);
      sums.samples.push({
        mse: noise / elements,
        meanAbs: absolute / elements,
        maxAbs: largest,
        sqnrDb: decibels(signal, noise),
        cosine: cosineOf(signal, other, product),
      });
    }
  }

  result(): Accuracy {
    const tensors = [...this.#tensors].map(([name, sums]) => ({ name, ...sums }));
    // A tensor that is 0 throughout has no signal to lose.
    const counted = tensors.filter(({ signal, noise }) => signal > 0 || noise > 0);
    const least = (figure: (tensor: (typeof tensors)[number]) => number, none: number) =>
      counted.reduce((lowest, tensor) => {
        const value = figure(tensor);
        return value < lowest || Number.isNaN(value) ? value : lowest;
      }, none);
    const cosines = ({ samples }: (typeof tensors)[number]) => samples.map(({ cosine }) => cosine);
    return {
      sqnrDb: least(({ signal, noise }) => decibels(signal, noise), Number.POSITIVE_INFINITY),
      cosineMean: least((tensor) => meanOf(cosines(tensor)), 1),
      cosineMin: least((tensor) => Math.min(...cosines(tensor)), 1),
      tensors: tensors.map(({ name, samples, signal, noise }) => ({
        name,
        sqnrDb: decibels(signal, noise),
        samples,
      })),
    };
  }
}

/** Not a number, as NaN in either makes it, is not a signal. */
const decibels = (signal: number, noise: number): number => {
  const db = 10 * Math.log10(signal / noise);
  return noise === 0 ? Number.POSITIVE_INFINITY : Number.isNaN(db) ? Number.NEGATIVE_INFINITY : db;
};

/** 1 where both are all zeros, 0 where only one of them is. */
const cosineOf = (signal: number, other: number, product: number): number =>
  signal * other === 0 ? Number(signal === other) : product / Math.sqrt(signal * other);
