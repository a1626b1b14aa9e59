import { float32Values, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';

/** A matrix of values by row and channel, however the tensor orders them. */
export class Rows {
  readonly values: Float32Array;
  readonly count: number;
  readonly channels: number;
  readonly #row: number;
  readonly #channel: number;

  constructor(tensor: Tensor, name: string, channelAxis: 1 | 2) {
    const [, first = 0, second = 0] = tensor.shape.length === 2 ? [1, ...tensor.shape] : tensor.shape;
    this.values = float32Values(tensor, name);
    [this.channels, this.count] = channelAxis === 1 ? [first, second] : [second, first];
    [this.#channel, this.#row] = channelAxis === 1 ? [second, 1] : [1, second];
  }

  at(row: number, channel: number): number {
    return this.values[row * this.#row + channel * this.#channel]!;
  }

  /** Lowest and highest value of some channels. */
  rangeOf(first: number, channels: number): readonly [number, number] {
    let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let row = 0; row < this.count; row++)
      for (let channel = first; channel < first + channels; channel++) {
        const value = this.at(row, channel);
        if (value < low) low = value;
        if (value > high) high = value;
      }
    return [low, high];
  }
}

export const shapesOf = (outputs: NamedTensors): string =>
  [...outputs].map(([name, { shape }]) => `${name} [${shape.join(',')}]`).join(', ');
