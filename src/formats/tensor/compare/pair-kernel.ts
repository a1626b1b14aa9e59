import { type FloatArray, type FloatFormat, KEYS } from '../float-format.js';
import { kernelPlan, measureErrors, measureSides } from './pair-kernel-code.js';
import {
  BRACKETS,
  CHUNK_PAIRS,
  type ExtremeSlot,
  extremeSlots,
  STEP_PAIRS,
  type SumSlot,
  sumSlots,
} from './pair-kernel-layout.js';
import { classify, collect, countKeys, countZeros, stepAbove } from './pair-kernel-selection.js';
import { instantiateModule } from './wasm-assembler.js';

/** What is put behind values to fill a vector: below every bracket. */
const PADDING = -1;

/** Vector code for pairs of numbers of one format. */
export interface PairKernel {
  readonly format: FloatFormat;
  /** Views of the kernel's memory, CHUNK_PAIRS long. */
  readonly candidate: FloatArray;
  readonly reference: FloatArray;
  readonly absolute: FloatArray;
  readonly relative: FloatArray;
  readonly collected: FloatArray;
  /** Forgets what was measured, sums as well as extremes. */
  reset(): void;
  /**
   * Writes the errors of pairs `start` to `start + count` (a multiple of 4, at most BLOCK_PAIRS) and adds to sums and extremes.
   * `zeros` says that references of zero may be among them.
   */
  measure(
    start: number,
    count: number,
    absoluteTolerance: number,
    relativeTolerance: number,
    zeros: boolean,
  ): void;
  /** Adds to sums and extremes of both sides, and nothing else. */
  measureSides(start: number, count: number): void;
  sum(slot: SumSlot): number;
  minimum(slot: ExtremeSlot): number;
  maximum(slot: ExtremeSlot): number;
  outside(): number;
  beyondBoth(): number;
  /**
   * Counts how many of the first `count` values have a key above each bracket's `after` and adds to `above`; copies those not above `last` to
   * `collected`. Returns how many were copied. At most BRACKETS brackets.
   */
  classify(
    which: KernelArray,
    count: number,
    brackets: readonly KernelBracket[],
    above: Float64Array,
  ): number;
  /** Adds the keys of the first `count` errors to the counts; gives how many of them have the key of zero. At most 2^32 between two clearings. */
  addKeys(which: KernelArray, count: number): number;
  /** How many of the first `count` errors, whole steps of them, are zero. */
  countZeros(which: KernelArray, count: number): number;
  /** Where the next STEP_PAIRS errors begin of which one is above `limit`, from `start` on, a multiple of STEP_PAIRS as `count` is; `count` where there are none. */
  stepAbove(which: KernelArray, start: number, count: number, limit: number): number;
  /** The counts of keys, as a copy, which begin anew. */
  clearKeys(): Uint32Array;
  /** How many of the values have which key. The answer is overwritten by the next call, and the counts begin anew. */
  countKeys(values: FloatArray): Uint32Array;
}

export type KernelArray = 'absolute' | 'relative';

/** Errors whose key (see KEYS) k has `after` < k <= `last`. */
export interface KernelBracket {
  readonly after: number;
  readonly last: number;
}

const kernels = new Map<FloatFormat, PairKernel>();

/** The kernel for a format, compiled when first needed (about a millisecond). */
export function pairKernel(format: FloatFormat): PairKernel {
  const kernel = kernels.get(format) ?? instantiate(format);
  kernels.set(format, kernel);
  return kernel;
}

interface KernelExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly measureSides: (start: number, end: number) => void;
  readonly measureErrors: (start: number, end: number, atol: number, rtol: number) => void;
  readonly measureErrorsWithZeros: (start: number, end: number, atol: number, rtol: number) => void;
  readonly classifyTwo: (start: number, end: number) => void;
  readonly classifyFour: (start: number, end: number) => void;
  readonly countKeys: (start: number, end: number) => void;
  readonly collect: (start: number, maskEnd: number) => number;
  readonly countZeros: (start: number, end: number) => void;
  readonly stepAbove: (start: number, end: number, limit: number) => number;
}

function instantiate(format: FloatFormat): PairKernel {
  const plan = kernelPlan(format);
  const { bytes, layout } = plan;
  const { place } = layout;
  const run = instantiateModule<KernelExports>(layout.pages, [
    measureSides(plan),
    measureErrors(plan, 'measureErrors', false),
    measureErrors(plan, 'measureErrorsWithZeros', true),
    classify(plan, 'classifyTwo', 2),
    classify(plan, 'classifyFour', 4),
    collect(plan),
    countKeys(plan),
    countZeros(plan),
    stepAbove(plan),
  ]);
  const { buffer } = run.memory;
  const values = (offset: number, length = CHUNK_PAIRS) => format.view(buffer, offset, length);
  const vector = 16 / bytes;
  const slots = new Float64Array(buffer, place.slots, 2 * sumSlots.length);
  const extremes = values(layout.extreme('candidateMin'), vector * extremeSlots.length);
  const outside = new Int32Array(buffer, layout.outside, 4);
  const beyondBoth = new Int32Array(buffer, layout.beyondBoth, 4);
  const thresholds = new Int16Array(buffer, place.thresholds, 16 * BRACKETS);
  const counts = new Int32Array(buffer, place.counts, 4 * BRACKETS);
  const lanes = (slot: ExtremeSlot, choose: (a: number, b: number) => number) => {
    const at = vector * extremeSlots.indexOf(slot);
    let chosen = extremes[at]!;
    for (let lane = 1; lane < vector; lane++) chosen = choose(chosen, extremes[at + lane]!);
    return chosen;
  };
  const keyCounts = new Uint32Array(buffer, layout.keyCounts, KEYS);
  const collected = values(place.collected);
  const arrays = { absolute: values(place.absolute), relative: values(place.relative) };
  return {
    format,
    candidate: values(place.candidate),
    reference: values(place.reference),
    ...arrays,
    collected,
    reset: () => {
      slots.fill(0);
      outside.fill(0);
      beyondBoth.fill(0);
      for (const [index, slot] of extremeSlots.entries()) {
        const isMinimum = slot.endsWith('Min') || slot === 'smallestReference';
        extremes.fill(
          isMinimum ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY,
          vector * index,
          vector * (index + 1),
        );
      }
    },
    measure: (start, count, atol, rtol, zeros) => {
      const [from, to] = [bytes * start, bytes * (start + count)];
      run.measureSides(from, to);
      if (zeros) run.measureErrorsWithZeros(from, to, atol, rtol);
      else run.measureErrors(from, to, atol, rtol);
    },
    measureSides: (start, count) => run.measureSides(bytes * start, bytes * (start + count)),
    sum: (slot) => {
      const at = 2 * sumSlots.indexOf(slot);
      return slots[at]! + slots[at + 1]!;
    },
    minimum: (slot) => lanes(slot, Math.min),
    maximum: (slot) => lanes(slot, Math.max),
    outside: () => sumOf(outside),
    beyondBoth: () => sumOf(beyondBoth),
    classify: (which, count, brackets, above) => {
      const padded = Math.ceil(count / 64) * 64;
      arrays[which].fill(PADDING, count, padded);
      for (let i = 0; i < BRACKETS; i++) {
        const bracket = brackets[i] ?? { after: KEYS - 1, last: KEYS - 1 };
        thresholds.fill(bracket.after, 16 * i, 16 * i + 8);
        thresholds.fill(bracket.last, 16 * i + 8, 16 * i + 16);
      }
      counts.fill(0);
      const classify = brackets.length > 2 ? run.classifyFour : run.classifyTwo;
      classify(place[which], place[which] + bytes * padded);
      const end = run.collect(place[which], padded / 8);
      for (let i = 0; i < brackets.length; i++) {
        above[i]! += counts[4 * i]! + counts[4 * i + 1]! + counts[4 * i + 2]! + counts[4 * i + 3]!;
      }
      return (end - place.collected) / bytes;
    },
    addKeys: (which, count) => {
      const before = keyCounts[0]!;
      run.countKeys(place[which], place[which] + bytes * count);
      return keyCounts[0]! - before;
    },
    countZeros: (which, count) => {
      run.countZeros(place[which], place[which] + bytes * count);
      return sumOf(counts);
    },
    stepAbove: (which, start, count, limit) => {
      if (start >= count) return count;
      const first = place[which];
      const end = (run.stepAbove(first + bytes * start, first + bytes * count, limit) - first) / bytes;
      // The last step is where the search ends in either case.
      const step = end - STEP_PAIRS;
      return end < count || arrays[which].subarray(step, end).some((error) => error > limit) ? step : count;
    },
    clearKeys: () => {
      const counted = keyCounts.slice();
      keyCounts.fill(0);
      return counted;
    },
    countKeys: (given) => {
      keyCounts.fill(0);
      for (let start = 0; start < given.length; start += CHUNK_PAIRS) {
        const part = given.subarray(start, start + CHUNK_PAIRS);
        collected.set(part);
        run.countKeys(place.collected, place.collected + bytes * part.length);
      }
      return keyCounts;
    },
  };
}

/** Of counts in 32 bits, or in 64 of which the upper half is zero. */
const sumOf = (lanes: Int32Array): number => lanes[0]! + lanes[1]! + lanes[2]! + lanes[3]!;
