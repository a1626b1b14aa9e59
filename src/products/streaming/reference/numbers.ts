import { areDigits, digitsIn, lastDigits, numberOf } from './digit-words.js';
import { LineFault } from './fault.js';

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
/** Deeper than any tensor; one that is made to hurt stops here. */
const MAX_DEPTH = 32;
/** No number is longer: with fewer bytes at hand the next one may not be whole. */
export const LONGEST_NUMBER = 1024;
const NUMBER = /^(?:NaN|-?Infinity|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/;
const FRACTION = /[.eENI]/;
/** The powers of ten that a double holds exactly. */
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));
const LARGEST_POWER = 22;
/** Below it a double holds the digits exactly: what a power of ten makes of it is the nearest double (Clinger 1990). */
const EXACT_MANTISSA = 2 ** 53;
/** Up to 19 digits, put together in a few steps and divided twice at most, are off by less than CLOSE. */
const LARGEST_MANTISSA = 1e19;
const CLOSE = 2 ** -49;
const [MINUS, PLUS, POINT, COMMA, ZERO, SMALL_E] = [0x2d, 0x2b, 0x2e, 0x2c, 0x30, 0x65];
const [SPACE, TAB, RETURN, NEWLINE] = [0x20, 0x09, 0x0d, 0x0a];
const [OPEN_LIST, CLOSE_LIST] = [0x5b, 0x5d];

/** Bytes of a file and the same as words; what follows the last byte is a zero, and more room. */
export interface NumberBytes {
  readonly bytes: Uint8Array;
  readonly view: DataView;
}

/** Reads nested lists of numbers, one tensor after the other in the same memory, as many bytes at a time as there are. */
export class NumberListReader {
  #values = new Float64Array(FIRST_ROOM);
  #count = 0;
  #integers = true;
  /** Every whole number is one that a double holds. */
  #isExact = true;
  #shape: number[] = [];
  /** Depth of the lists that hold numbers, once one was seen. */
  #rank = 0;
  #depth = 0;
  /** Depth of the lists that hold numbers; 0 while none was seen. */
  #numberDepth = 0;
  #expectsValue = true;
  /** Of each open list: how many items it has so far, and whether they are lists. */
  readonly #items = new Float64Array(MAX_DEPTH + 1);
  readonly #holdsLists = new Uint8Array(MAX_DEPTH + 1);

  begin(): void {
    this.#count = 0;
    this.#integers = true;
    this.#isExact = true;
    this.#shape = [];
    this.#rank = 0;
    this.#depth = 0;
    this.#numberDepth = 0;
    this.#expectsValue = true;
  }

  /** The outermost list has ended. */
  get isDone(): boolean {
    return this.#depth === 0 && !this.#expectsValue;
  }

  /**
   * Reads from byte `start` on, up to the end of the outermost list or as far as numbers are surely whole: LONGEST_NUMBER before `limit`, or up to it
   * where nothing follows. Gives where it stopped; that may also be at something that has no place in a list. Throws LineFault.
   */
  read({ bytes, view }: NumberBytes, start: number, limit: number, isEnd: boolean): number {
    const safe = isEnd ? limit : limit - LONGEST_NUMBER;
    let at = start;
    while (at < safe && !this.isDone) {
      const byte = bytes[at]!;
      if (byte === SPACE || byte === TAB || byte === RETURN) at++;
      else if (byte === NEWLINE) return at;
      else if (!this.#expectsValue) {
        if (byte === COMMA) this.#expectsValue = true;
        else if (byte === CLOSE_LIST) this.#close();
        else return at;
        at++;
      } else if (byte === OPEN_LIST) {
        this.#open();
        at++;
      } else if (byte === CLOSE_LIST && this.#depth > 0 && this.#items[this.#depth] === 0) {
        this.#close();
        at++;
      } else {
        const next = this.#numbers(bytes, view, at, safe, limit);
        if (next === at) return at;
        at = next;
      }
    }
    return at;
  }

  /** A number by itself, as a tensor without dimensions. Throws LineFault. */
  scalar(word: string): NumberList {
    this.begin();
    this.#reserve(1);
    this.#push(word);
    return this.end();
  }

  end(): NumberList {
    const shape = this.#shape.slice(0, this.#rank);
    if (shape.reduce((product, size) => product * size, 1) !== this.#count) {
      throw unevenDepth();
    }
    if (this.#integers && !this.#isExact) throw new LineFault('a list holds an integer beyond 2^53');
    const values = this.#values.subarray(0, this.#count);
    const isWhole = this.#integers;
    return new NumberList(shape, isWhole ? values.slice() : new Float32Array(values), isWhole);
  }

  #open(): void {
    if (this.#depth >= MAX_DEPTH) throw new LineFault('its lists are deeper than any');
    if (this.#depth > 0) {
      if (this.#items[this.#depth]! > 0 && this.#holdsLists[this.#depth] === 0) throw bothKinds();
      this.#items[this.#depth]!++;
      this.#holdsLists[this.#depth] = 1;
    }
    this.#depth++;
    this.#items[this.#depth] = 0;
    this.#holdsLists[this.#depth] = 0;
  }

  /** Throws LineFault when lists beside each other differ in length. */
  #close(): void {
    const count = this.#items[this.#depth]!;
    this.#rank = Math.max(this.#rank, this.#depth);
    this.#depth--;
    this.#expectsValue = false;
    const known = this.#shape[this.#depth];
    if (known !== undefined && known !== count)
      throw new LineFault(`its lists are ragged: ${known} elements, then ${count}`);
    this.#shape[this.#depth] = count;
  }

  /** Numbers with commas between them from `start` on. Gives where the last one has ended, or where one begins that may not be whole. */
  #numbers(bytes: Uint8Array, view: DataView, start: number, safe: number, limit: number): number {
    if (this.#items[this.#depth]! > 0 && this.#holdsLists[this.#depth] === 1) throw bothKinds();
    if (this.#numberDepth !== 0 && this.#numberDepth !== this.#depth) throw unevenDepth();
    this.#numberDepth = this.#depth;
    const before = this.#count;
    // A number and its comma are two bytes.
    this.#reserve((limit - start) / 2 + 1);
    let at = start;
    while (at < safe && this.#expectsValue) {
      at = this.#plainNumbers(bytes, view, at, safe);
      if (at >= safe || !this.#expectsValue) break;
      while (bytes[at] === SPACE) at++;
      if (bytes[at] === OPEN_LIST) break;
      const end = tokenEnd(bytes, at, limit);
      if (end < 0) break;
      this.#push(
        Buffer.from(bytes.buffer, bytes.byteOffset + at, end - at)
          .toString('latin1')
          .trim(),
      );
      at = end;
      this.#expectsValue = bytes[at] === COMMA;
      if (this.#expectsValue) at++;
    }
    this.#items[this.#depth]! += this.#count - before;
    return at;
  }

  /**
   * Numbers as nearly all are, straight from their bytes: as doubles where they are whole, else as float32 next to the double they stand for. Gives where
   * the last one has ended when something other than a comma follows it, or where one begins that is another kind of number.
   */
  #plainNumbers(bytes: Uint8Array, view: DataView, start: number, safe: number): number {
    const values = this.#values;
    let count = this.#count;
    let isWhole = this.#integers;
    let token = start;
    let at = start;
    let follows = COMMA;
    while (token < safe) {
      at = token;
      while (bytes[at] === SPACE) at++;
      // Signs are as good as random, so they are no branches.
      const isNegative = ((bytes[at]! ^ MINUS) - 1) >>> 31;
      at += isNegative;
      const first = at;
      let mantissa = 0;
      for (let digit = bytes[at]! ^ ZERO; digit < 10; digit = bytes[++at]! ^ ZERO)
        mantissa = 10 * mantissa + digit;
      const point = at;
      let exponent = 0;
      const isFraction = bytes[at] === POINT;
      if (isFraction) {
        at++;
        for (;;) {
          const low = view.getInt32(at, true);
          const high = view.getInt32(at + 4, true);
          if (!areDigits(low) || !areDigits(high)) break;
          mantissa = 1e8 * mantissa + (10_000 * numberOf(low) + numberOf(high));
          at += 8;
        }
        const four = view.getInt32(at, true);
        if (areDigits(four)) {
          mantissa = 10_000 * mantissa + numberOf(four);
          at += 4;
        }
        const rest = view.getInt32(at, true);
        const more = digitsIn(rest);
        mantissa = POWERS[more]! * mantissa + lastDigits(rest, more);
        at += more;
        exponent = point + 1 - at;
        // A point without digits behind it.
        if (exponent === 0) break;
      }
      const hasExponent = (bytes[at]! | 0x20) === SMALL_E;
      if (hasExponent) {
        at++;
        const isSmall = bytes[at] === MINUS;
        if (isSmall || bytes[at] === PLUS) at++;
        const digitsAt = at;
        let power = 0;
        for (let digit = bytes[at]! ^ ZERO; digit < 10 && at < digitsAt + 4; digit = bytes[++at]! ^ ZERO)
          power = 10 * power + digit;
        if (at === digitsAt) break;
        exponent += isSmall ? -power : power;
      }
      while (bytes[at] === SPACE) at++;
      follows = bytes[at]!;
      if (follows !== COMMA && follows !== CLOSE_LIST) break;
      const isFloat = isFraction || hasExponent;
      if (point === first || (point > first + 1 && bytes[first] === ZERO)) break;
      if (mantissa >= (isFloat ? LARGEST_MANTISSA : EXACT_MANTISSA)) break;
      if (exponent > LARGEST_POWER || exponent < -2 * LARGEST_POWER) break;
      let size = mantissa;
      if (exponent > 0) size *= POWERS[exponent]!;
      else if (exponent >= -LARGEST_POWER) size /= POWERS[0 - exponent]!;
      else size = size / 1e22 / POWERS[0 - exponent - LARGEST_POWER]!;
      const isSure =
        (mantissa < EXACT_MANTISSA && exponent >= -LARGEST_POWER) ||
        Math.fround(size * (1 - CLOSE)) === Math.fround(size * (1 + CLOSE));
      if (!isSure) break;
      if (isFloat) isWhole = false;
      values[count++] = (1 - 2 * isNegative) * size;
      if (follows !== COMMA) {
        token = at;
        this.#expectsValue = false;
        break;
      }
      token = at + 1;
    }
    this.#count = count;
    this.#integers = isWhole;
    return token;
  }

  /** What is long, not finite or not a number at all. Throws LineFault. */
  #push(token: string): void {
    if (!NUMBER.test(token)) throw new LineFault('a list holds something other than numbers');
    const value = Number(token);
    if (FRACTION.test(token)) this.#integers = false;
    else if (!Number.isSafeInteger(value)) this.#isExact = false;
    this.#values[this.#count++] = value;
    this.#expectsValue = false;
  }

  #reserve(more: number): void {
    if (this.#count + more <= this.#values.length) return;
    const larger = new Float64Array(2 * Math.ceil(this.#count + more));
    larger.set(this.#values.subarray(0, this.#count));
    this.#values = larger;
  }
}

/** Where the comma or the bracket behind a token is; -1 when the line ends first. */
function tokenEnd(bytes: Uint8Array, start: number, limit: number): number {
  for (let at = start; at < limit; at++) {
    const byte = bytes[at]!;
    if (byte === COMMA || byte === CLOSE_LIST) return at;
    if (byte === NEWLINE) return -1;
  }
  return -1;
}

const unevenDepth = () => new LineFault('its lists are ragged: not all are equally deep');

const bothKinds = () => new LineFault('a list holds both lists and numbers');
