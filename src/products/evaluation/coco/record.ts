import { isRecord } from '../../../base/files/json.js';
import type { Findings } from '../findings.js';

type Values = Readonly<Record<string, unknown>>;

/** Left, top, width and height, in pixels. */
export type Box = readonly [number, number, number, number];

/** Width and height, in pixels. */
export type Size = readonly [number, number];

/** One object of a COCO list. What is missing or invalid of it becomes a finding as it is read, and the record is then no longer `isValid`. */
export class CocoRecord {
  readonly #values: Values;
  readonly #list: string;
  readonly #index: number;
  readonly #findings: Findings;
  isValid = true;

  constructor(value: unknown, list: string, index: number, findings: Findings) {
    this.#list = list;
    this.#index = index;
    this.#findings = findings;
    this.#values = isRecord(value) ? value : {};
    if (!isRecord(value)) this.#reject('', 'is not an object');
  }

  /** Its place in the file: `annotations[3]`. */
  get place(): string {
    return `${this.#list}[${this.#index}]`;
  }

  /** A whole number below 2^53: larger ones are not exact, so two ids could become one. */
  id(field: string): number {
    const value = this.#values[field];
    if (Number.isSafeInteger(value)) return value as number;
    this.#reject(`.${field}`, why(value, 'a whole number'));
    return 0;
  }

  number(field: string): number {
    const value = this.#values[field];
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    this.#reject(`.${field}`, why(value, 'a finite number'));
    return 0;
  }

  /** 0 or 1, or a truth value. */
  bit(field: string): boolean {
    const value = this.#values[field];
    if (value === 1 || value === true) return true;
    if (value !== 0 && value !== false) this.#reject(`.${field}`, why(value, '0 or 1'));
    return false;
  }

  has(field: string): boolean {
    return this.#values[field] !== undefined;
  }

  text(field: string): string | null {
    const value = this.#values[field];
    return typeof value === 'string' ? value : null;
  }

  /** `width` and `height`, where the record has both. */
  size(): Size | null {
    const { width, height } = this.#values;
    return typeof width === 'number' && typeof height === 'number' ? [width, height] : null;
  }

  /** `bbox`; all zero where it is invalid. */
  box(): Box {
    const box = this.#values.bbox;
    if (!Array.isArray(box) || box.length !== 4 || !box.every(isCoordinate))
      this.#reject('.bbox', why(box, 'a list of four numbers below 1e100'));
    else if (box[2] >= 0 && box[3] >= 0) return box as unknown as Box;
    else {
      this.#findings.add('negative-size', `${this.place}.bbox of ${box[2]} by ${box[3]}`);
      this.isValid = false;
    }
    return [0, 0, 0, 0];
  }

  /** The first problem of a record is its finding. */
  #reject(field: string, problem: string): void {
    if (this.isValid) this.#findings.add('bad-record', `${this.place}${field} ${problem}`);
    this.isValid = false;
  }
}

/** The area of larger ones would not be a number. */
const isCoordinate = (value: unknown): boolean => typeof value === 'number' && Math.abs(value) < 1e100;

const why = (value: unknown, expected: string): string =>
  value === undefined
    ? 'is missing'
    : `is not ${expected}${typeof value === 'string' ? `, but the text "${value.slice(0, 20)}"` : ''}`;
