import { meanOf } from '../../base/statistics.js';
import { isSameShape, type NamedTensors, numbersOf } from '../../formats/tensor/tensor.js';

/** The closeness of a model to FP32 over samples. */
export interface Accuracy {
  /** Decibels, power of the values over power of their errors over all samples: of the tensor where it is least; -Infinity where the error is not a finite number. */
  readonly sqnrDb: number;
  /** Of a sample, over all samples: of the tensor where it is least. */
  readonly cosineMean: number;
  readonly cosineMin: number;
  readonly tensors: readonly {
    readonly name: string;
    readonly sqnrDb: number;
  }[];
}

/** Compares tensors of a candidate with those of a reference, sample by sample. Equal infinities do not differ; other non-finite values and another shape are infinite noise. */
export class AccuracySums {
  readonly #tensors: ReadonlyMap<string, { signal: number; noise: number; readonly cosines: number[] }>;

  constructor(names: readonly string[]) {
    this.#tensors = new Map(names.map((name) => [name, { signal: 0, noise: 0, cosines: [] }]));
  }

  add(reference: NamedTensors, candidate: NamedTensors): void {
    for (const [name, sums] of this.#tensors) {
      const [ours, theirs] = [candidate.get(name)!, reference.get(name)!];
      const [r, c] = [numbersOf(theirs), numbersOf(ours)];
      // Elements of tensors of other shapes do not belong together.
      const zero = isSameShape(ours, theirs) ? 0 : Number.NaN;
      let [signal, noise, other, product] = [zero, zero, zero, zero];
      for (let at = 0; at < r.length; at++) {
        if (r[at] === c[at] && !Number.isFinite(r[at])) continue;
        const error = c[at]! - r[at]!;
        signal += r[at]! * r[at]!;
        other += c[at]! * c[at]!;
        product += r[at]! * c[at]!;
        noise += error * error;
      }
      sums.signal += signal;
      sums.noise += noise;
      sums.cosines.push(cosineOf(signal, other, product));
    }
  }

  result(): Accuracy {
    const tensors = [...this.#tensors].map(([name, sums]) => ({ name, ...sums }));
    // A tensor that is 0 throughout has no signal to lose.
    const counted = tensors.filter(({ signal, noise }) => signal !== 0 || noise !== 0);
    const total = ({ signal, noise }: (typeof tensors)[number]) => {
      const db = decibels(signal, noise);
      return Number.isNaN(db) ? Number.NEGATIVE_INFINITY : db;
    };
    const least = (figure: (tensor: (typeof tensors)[number]) => number, none: number) =>
      counted.reduce((lowest, tensor) => {
        const value = figure(tensor);
        return value < lowest || Number.isNaN(value) ? value : lowest;
      }, none);
    return {
      sqnrDb: least(total, Number.POSITIVE_INFINITY),
      cosineMean: least(({ cosines }) => meanOf(cosines), 1),
      cosineMin: least(({ cosines }) => Math.min(...cosines), 1),
      tensors: tensors.map((tensor) => ({ name: tensor.name, sqnrDb: total(tensor) })),
    };
  }
}

const decibels = (signal: number, noise: number): number => {
  if (noise === 0) return Number.POSITIVE_INFINITY;
  return Number.isFinite(noise) ? 10 * Math.log10(signal / noise) : Number.NaN;
};

/** 1 where both are all zeros, 0 where only one of them is. */
const cosineOf = (signal: number, other: number, product: number): number =>
  signal * other === 0 ? Number(signal === other) : product / Math.sqrt(signal * other);
