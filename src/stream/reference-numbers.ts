import { LineFault } from './reference-fault.js';

/** Nested lists of numbers, as one array in C order. */
export class NumberList {
  readonly shape: readonly number[];
  /** Large lists of fractions are kept as float32, which is what their readers make of them. */
  readonly values: Float64Array | Float32Array;
  /** No number was written with a point or an exponent. */
  readonly integers: boolean;
  constructor(shape: readonly number[], values: Float64Array | Float32Array, integers: boolean) {
    this.shape = shape;
    this.values = values;
    this.integers = integers;
  }
}

const SMALL = 4096;
const FRACTION = /[.eENI]/;
const NUMBER = /^(?:NaN|-?Infinity|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/;

/** Collects one tensor after the other in the same memory. */
export class NumberListBuilder {
  #values = new Float64Array(SMALL);
  #count = 0;
  #integers = true;
  #shape: number[] = [];
  /** Depth of the lists that hold numbers, once one was seen. */
  #rank = 0;

  begin(): void {
    this.#count = 0;
    this.#integers = true;
    this.#shape = [];
    this.#rank = 0;
  }

  /** Numbers separated by commas; gives how many. Throws LineFault. */
  add(text: string): number {
    const numbers = parseNumbers(text);
    if (this.#integers && FRACTION.test(text)) this.#integers = false;
    if (this.#integers && !numbers.every(Number.isSafeInteger)) {
      throw new LineFault('a list holds an integer beyond 2^53');
    }
    this.#reserve(this.#count + numbers.length);
    this.#values.set(numbers, this.#count);
    this.#count += numbers.length;
    return numbers.length;
  }

  /** A list at `depth` has ended. Throws LineFault when lists beside each other differ in length. */
  close(depth: number, count: number): void {
    this.#rank = Math.max(this.#rank, depth + 1);
    const known = this.#shape[depth];
    if (known !== undefined && known !== count) {
      throw new LineFault(`its lists are ragged: ${known} elements, then ${count}`);
    }
    this.#shape[depth] = count;
  }

  end(): NumberList {
    const shape = this.#shape.slice(0, this.#rank);
    if (shape.reduce((product, size) => product * size, 1) !== this.#count) {
      throw new LineFault('its lists are ragged: not all are equally deep');
    }
    const values = this.#values.subarray(0, this.#count);
    const narrow = this.#count > SMALL && !this.#integers;
    return new NumberList(shape, narrow ? Float32Array.from(values) : values.slice(), this.#integers);
  }

  #reserve(count: number): void {
    if (count <= this.#values.length) return;
    const larger = new Float64Array(Math.max(count, 2 * this.#values.length));
    larger.set(this.#values.subarray(0, this.#count));
    this.#values = larger;
  }
}

function parseNumbers(text: string): number[] {
  try {
    const numbers: unknown = JSON.parse(`[${text}]`);
    if (Array.isArray(numbers) && numbers.length > 0 && numbers.every((each) => typeof each === 'number'))
      return numbers;
  } catch {
    // Python's NaN and Infinity are no JSON.
    const tokens = text.split(',').map((token) => token.trim());
    if (tokens.every((token) => NUMBER.test(token))) return tokens.map(Number);
  }
  throw new LineFault('a list holds something other than numbers');
}
