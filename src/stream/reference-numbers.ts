import { LineFault } from './reference-fault.js';

/** Nested lists of numbers, as one array in C order. */
export class NumberList {
  readonly shape: readonly number[];
  /** Whole numbers as doubles, others as float32, which is what every reader makes of them. */
  readonly values: Float64Array | Float32Array;
  /** No number was written with a point or an exponent. */
  readonly integers: boolean;
  constructor(shape: readonly number[], values: Float64Array | Float32Array, integers: boolean) {
    this.shape = shape;
    this.values = values;
    this.integers = integers;
  }
}

const FIRST_ROOM = 4096;
const NUMBER = /^(?:NaN|-?Infinity|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/;
const FRACTION = /[.eENI]/;
/** The powers of ten that a double holds exactly. */
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));
/** So many digits are exact in a double; with a few more, what is computed is off by less than CLOSE. */
const EXACT_DIGITS = 15;
const MOST_DIGITS = 19;
const CLOSE = 2 ** -50;
const [MINUS, POINT, COMMA, ZERO] = [0x2d, 0x2e, 0x2c, 0x30];

/** Collects one tensor after the other in the same memory. */
export class NumberListBuilder {
  #values = new Float64Array(FIRST_ROOM);
  #count = 0;
  #integers = true;
  /** Every whole number is one that a double holds. */
  #isExact = true;
  #shape: number[] = [];
  /** Depth of the lists that hold numbers, once one was seen. */
  #rank = 0;

  begin(): void {
    this.#count = 0;
    this.#integers = true;
    this.#isExact = true;
    this.#shape = [];
    this.#rank = 0;
  }

  /** Numbers separated by commas; gives how many. Throws LineFault. */
  add(text: Uint8Array): number {
    const before = this.#count;
    let at = 0;
    do at = this.#number(text, at);
    while (at <= text.length);
    return this.#count - before;
  }

  /**
   * One number from `start`, straight from its bytes: as a double where it is whole, else as the float32 next to the double it stands for. Gives where
   * the next one begins, behind the comma.
   */
  #number(text: Uint8Array, start: number): number {
    let at = start;
    while (isSpace(text[at])) at++;
    const isNegative = text[at] === MINUS;
    if (isNegative) at++;
    const first = at;
    let mantissa = 0;
    for (; isDigit(text[at]); at++) mantissa = mantissa * 10 + text[at]! - ZERO;
    const point = at;
    const isWhole = text[at] !== POINT;
    if (!isWhole) for (at++; isDigit(text[at]); at++) mantissa = mantissa * 10 + text[at]! - ZERO;
    const places = isWhole ? 0 : at - point - 1;
    const digits = point - first + places;
    const isPlain =
      point > first &&
      (point === first + 1 || text[first] !== ZERO) &&
      (isWhole ? digits <= EXACT_DIGITS : places > 0 && digits <= MOST_DIGITS);
    const end = at;
    while (isSpace(text[at])) at++;
    const size = isPlain && places < POWERS.length ? mantissa / POWERS[places]! : Number.NaN;
    const isSure =
      end - first <= EXACT_DIGITS || Math.fround(size * (1 - CLOSE)) === Math.fround(size * (1 + CLOSE));
    const isOver = at >= text.length || text[at] === COMMA;
    // Not a number is never sure.
    if (!isSure || !isOver || Number.isNaN(size)) return this.#rareNumber(text, start);
    if (!isWhole) this.#integers = false;
    this.#push(isNegative ? -size : size);
    return at + 1;
  }

  /** What has an exponent, is long, not finite or not a number at all. */
  #rareNumber(text: Uint8Array, start: number): number {
    const comma = text.indexOf(COMMA, start);
    const end = comma < 0 ? text.length : comma;
    const token = Buffer.from(text.buffer, text.byteOffset + start, end - start)
      .toString('latin1')
      .trim();
    if (!NUMBER.test(token)) throw new LineFault('a list holds something other than numbers');
    const value = Number(token);
    if (FRACTION.test(token)) this.#integers = false;
    else if (!Number.isSafeInteger(value)) this.#isExact = false;
    this.#push(value);
    return end + 1;
  }

  #push(value: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float64Array(2 * this.#count);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#count++] = value;
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
    if (this.#integers && !this.#isExact) throw new LineFault('a list holds an integer beyond 2^53');
    const values = this.#values.subarray(0, this.#count);
    const isWhole = this.#integers;
    return new NumberList(shape, isWhole ? values.slice() : new Float32Array(values), isWhole);
  }
}

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0d;

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
