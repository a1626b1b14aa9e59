import type { QuantizedFormat } from '../formats/format.js';
import {
  add,
  advance,
  and,
  type Code,
  get,
  greatest,
  integer,
  least,
  load,
  loadSplat,
  multiply,
  set,
  store,
  subtract,
  untilZero,
  type VectorFunction,
  vectorFunction,
} from './wasm.js';

/** What the values that are multiplied by a weight were, by their place along the sum. */
export interface InputMoments {
  /** Zeros where a bias takes up the mean of the error. */
  readonly mean: Float32Array;
  readonly variance: Float32Array;
}

/** Columns that are rounded together. */
export const LANES = 4;

/** Tiles that are in memory together. */
export const TILES = 4;

const VECTOR = 16;
const PAGE = 1 << 16;

/** Vectors in the kernel's memory: the grid, the mask of an exponent, reciprocals of the scales, results. Moments and the tile follow. */
const at = {
  share: 0,
  step: VECTOR,
  lowest: 2 * VECTOR,
  highest: 3 * VECTOR,
  exponent: 4 * VECTOR,
  reciprocals: 5 * VECTOR,
  squares: 6 * VECTOR,
  sums: 7 * VECTOR,
  moments: 8 * VECTOR,
} as const;

/** Adding this times a step and taking it away rounds a 32-bit float to a multiple of the step, ties to even. */
const WHOLE_STEPS = 1.5 * 2 ** 23;

/**
 * Rounds tiles of a weight to the codes of one format and sums up the errors, in units of the scales. A tile has four columns: row after row their values are in the lanes of a vector.
 * One kernel at a time: they share a memory.
 */
export class ErrorKernel {
  /** The bits of what is rounded: four floats a row, for each of `TILES`. */
  readonly tile: Int32Array;
  /** By lane, the sum of variance * d^2 and that of mean * d for differences d between codes and scaled values. */
  readonly squares: Float32Array;
  readonly sums: Float32Array;
  readonly #tileBytes: number;
  readonly #reciprocals: Float32Array;
  readonly #addresses: { readonly variance: number; readonly mean: number; readonly tile: number };

  /** For tiles of at most `rows`. */
  constructor({ grid }: QuantizedFormat, rows: number, { mean, variance }: InputMoments) {
    const { memory } = kernel();
    const momentBytes = Math.ceil((4 * mean.length) / VECTOR) * VECTOR;
    const tile = at.moments + 2 * momentBytes;
    this.#addresses = { variance: at.moments, mean: at.moments + momentBytes, tile };
    this.#tileBytes = rows * VECTOR;
    const missing = tile + TILES * this.#tileBytes - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE));
    const floats = (address: number, count: number) => new Float32Array(memory.buffer, address, count);
    floats(at.share, LANES).fill(grid.share * WHOLE_STEPS);
    floats(at.step, LANES).fill(grid.step * WHOLE_STEPS);
    floats(at.lowest, LANES).fill(grid.lowest);
    floats(at.highest, LANES).fill(grid.highest);
    new Int32Array(memory.buffer, at.exponent, LANES).fill(0x7f800000);
    floats(this.#addresses.variance, mean.length).set(variance);
    floats(this.#addresses.mean, mean.length).set(mean);
    this.#reciprocals = floats(at.reciprocals, LANES);
    this.squares = floats(at.squares, LANES);
    this.sums = floats(at.sums, LANES);
    this.tile = new Int32Array(memory.buffer, tile, TILES * rows * LANES);
  }

  /** Rounds the first `rows` of a tile with a scale for each lane; the inputs have the moments from `place` on. */
  round(tile: number, rows: number, place: number, scales: Float64Array): void {
    for (let lane = 0; lane < LANES; lane++) this.#reciprocals[lane] = 1 / scales[lane]!;
    const { variance, mean, tile: tiles } = this.#addresses;
    kernel().run(tiles + tile * this.#tileBytes, rows, variance + 4 * place, mean + 4 * place);
  }
}

let compiled: VectorFunction | undefined;

function kernel(): VectorFunction {
  if (compiled !== undefined) return compiled;
  const [tile, rows, variance, mean] = [0, 1, 2, 3] as const;
  const [share, step, lowest, highest, exponent, reciprocal] = [4, 5, 6, 7, 8, 9] as const;
  const [scaled, steps, error, squares, sums] = [10, 11, 12, 13, 14] as const;
  const begin: Code = (
    [
      [share, at.share],
      [step, at.step],
      [lowest, at.lowest],
      [highest, at.highest],
      [exponent, at.exponent],
      [reciprocal, at.reciprocals],
    ] as const
  ).flatMap(([local, address]) => set(local, load(integer(address))));
  const rounded = subtract(add(get(scaled), get(steps)), get(steps));
  const row = [
    ...set(scaled, multiply(load(get(tile)), get(reciprocal))),
    ...set(steps, greatest(multiply(and(get(scaled), get(exponent)), get(share)), get(step))),
    ...set(error, subtract(least(greatest(rounded, get(lowest)), get(highest)), get(scaled))),
    ...set(squares, add(get(squares), multiply(multiply(get(error), get(error)), loadSplat(get(variance))))),
    ...set(sums, add(get(sums), multiply(get(error), loadSplat(get(mean))))),
    ...advance(tile, VECTOR),
    ...advance(variance, 4),
    ...advance(mean, 4),
    ...advance(rows, -1),
  ];
  compiled = vectorFunction(4, 11, [
    ...begin,
    ...untilZero(rows, row),
    ...store(integer(at.squares), get(squares)),
    ...store(integer(at.sums), get(sums)),
  ]);
  return compiled;
}
