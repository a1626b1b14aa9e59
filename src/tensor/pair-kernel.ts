import {
  classify,
  collect,
  countKeys,
  countZeros,
  measureErrors,
  measureSides,
  stepAbove,
} from './pair-kernel-code.js';
import {
  BRACKETS,
  beyondBothOffset,
  CHUNK_PAIRS,
  type ExtremeSlot,
  extremeOffset,
  extremeSlots,
  KEY_COUNTS,
  KEYS,
  outsideOffset,
  PAGES,
  place,
  STEP_PAIRS,
  type SumSlot,
  sumSlots,
} from './pair-kernel-layout.js';
import { instantiateModule } from './wasm-assembler.js';

/** What is put behind values to fill a vector: below every bracket. */
const PADDING = -1;

export interface PairKernel {
  /** Views of the kernel's memory, CHUNK_PAIRS long. */
  readonly candidate: Float32Array;
  readonly reference: Float32Array;
  readonly absolute: Float32Array;
  readonly relative: Float32Array;
  readonly collected: Float32Array;
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
  countKeys(values: Float32Array): Uint32Array;
}

export type KernelArray = 'absolute' | 'relative';

/** Errors whose key (the upper 16 bits of the float32) k has `after` < k <= `last`. */
export interface KernelBracket {
  readonly after: number;
  readonly last: number;
}

let kernel: PairKernel | undefined;

/** The kernel, compiled when first needed (about a millisecond). */
export function pairKernel(): PairKernel {
  kernel ??= instantiate();
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

function instantiate(): PairKernel {
  const run = instantiateModule<KernelExports>(PAGES, [
    measureSides(),
    measureErrors('measureErrors', false),
    measureErrors('measureErrorsWithZeros', true),
    classify('classifyTwo', 2),
    classify('classifyFour', 4),
    collect(),
    countKeys(),
    countZeros(),
    stepAbove(),
  ]);
  const { buffer } = run.memory;
  const values = (offset: number, length = CHUNK_PAIRS) => new Float32Array(buffer, offset, length);
  const slots = new Float64Array(buffer, place.slots, 2 * sumSlots.length);
  const extremes = values(extremeOffset('candidateMin'), 4 * extremeSlots.length);
  const outside = new Int32Array(buffer, outsideOffset, 4);
  const beyondBoth = new Int32Array(buffer, beyondBothOffset, 4);
  const thresholds = new Int16Array(buffer, place.thresholds, 16 * BRACKETS);
  const counts = new Int32Array(buffer, place.counts, 4 * BRACKETS);
  const lanes = (slot: ExtremeSlot, choose: (a: number, b: number) => number) => {
    const at = 4 * extremeSlots.indexOf(slot);
    const low = choose(extremes[at]!, extremes[at + 1]!);
    return choose(low, choose(extremes[at + 2]!, extremes[at + 3]!));
  };
  const keyCounts = new Uint32Array(buffer, KEY_COUNTS, KEYS);
  const collected = values(place.collected);
  const arrays = { absolute: values(place.absolute), relative: values(place.relative) };
  return {
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
          4 * index,
          4 * index + 4,
        );
      }
    },
    measure: (start, count, atol, rtol, zeros) => {
      const [from, to] = [4 * start, 4 * (start + count)];
      run.measureSides(from, to);
      if (zeros) run.measureErrorsWithZeros(from, to, atol, rtol);
      else run.measureErrors(from, to, atol, rtol);
    },
    measureSides: (start, count) => run.measureSides(4 * start, 4 * (start + count)),
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
      classify(place[which], place[which] + 4 * padded);
      const end = run.collect(place[which], padded / 8);
      for (let i = 0; i < brackets.length; i++) {
        above[i]! += counts[4 * i]! + counts[4 * i + 1]! + counts[4 * i + 2]! + counts[4 * i + 3]!;
      }
      return (end - place.collected) / 4;
    },
    addKeys: (which, count) => {
      const before = keyCounts[0]!;
      run.countKeys(place[which], place[which] + 4 * count);
      return keyCounts[0]! - before;
    },
    countZeros: (which, count) => {
      run.countZeros(place[which], place[which] + 4 * count);
      return counts[0]! + counts[1]! + counts[2]! + counts[3]!;
    },
    stepAbove: (which, start, count, limit) => {
      if (start >= count) return count;
      const end =
        (run.stepAbove(place[which] + 4 * start, place[which] + 4 * count, limit) - place[which]) / 4;
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
        run.countKeys(place.collected, place.collected + 4 * part.length);
      }
      return keyCounts;
    },
  };
}

const sumOf = (lanes: Int32Array): number => lanes[0]! + lanes[1]! + lanes[2]! + lanes[3]!;
