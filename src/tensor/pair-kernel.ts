import {
  assembleModule,
  block,
  type Code,
  type FunctionSpec,
  FunctionWriter,
  f32,
  f32x4,
  f64x2,
  i16x8,
  i32,
  i32x4,
  i64,
  type Local,
  v128,
} from './wasm-assembler.js';

/** Keys are the upper 16 bits of a float32 that is not negative: ordered as the values, 128 to the octave. */
export const KEYS = 1 << 15;

/** Pairs that the kernel holds at a time: four arrays of this many float32 stay in the processor's second-level cache. */
export const CHUNK_PAIRS = 32_768;
/** Pairs between two flushes of the float32 accumulators into float64. */
export const BLOCK_PAIRS = 2048;

const CHUNK_BYTES = 4 * CHUNK_PAIRS;
/** Where things are in the kernel's memory, in bytes. */
const place = {
  candidate: 0,
  reference: CHUNK_BYTES,
  absolute: 2 * CHUNK_BYTES,
  relative: 3 * CHUNK_BYTES,
  /** What `classify` collects, as many as there are at most. */
  collected: 4 * CHUNK_BYTES,
  slots: 5 * CHUNK_BYTES + 64,
  thresholds: 5 * CHUNK_BYTES + 1024,
  counts: 5 * CHUNK_BYTES + 2048,
  /** One bit for each value that is in a bracket. */
  masks: 5 * CHUNK_BYTES + 3072,
} as const;
const KEY_COUNTS = Math.ceil((place.masks + CHUNK_PAIRS / 8) / 65536) * 65536;
const PAGES = KEY_COUNTS / 65536 + (4 * KEYS) / 65536;

/** Sums kept as two float64 each; the slot number times 16 is the offset. */
const sumSlots = [
  'candidate',
  'candidateSquares',
  'reference',
  'referenceSquares',
  'absolute',
  'absoluteSquares',
  'relative',
  'relativeSquares',
] as const;
/** Extremes kept as four float32 each. */
const extremeSlots = [
  'candidateMin',
  'candidateMax',
  'referenceMin',
  'referenceMax',
  'absoluteMax',
  'relativeMax',
  'excessMax',
  'smallestReference',
] as const;
type SumSlot = (typeof sumSlots)[number];
type ExtremeSlot = (typeof extremeSlots)[number];

const sumOffset = (slot: SumSlot): number => place.slots + 16 * sumSlots.indexOf(slot);
const extremeOffset = (slot: ExtremeSlot): number =>
  place.slots + 16 * (sumSlots.length + extremeSlots.indexOf(slot));
const outsideOffset = place.slots + 16 * (sumSlots.length + extremeSlots.length);

/** Brackets of keys that `classify` knows at once. */
export const BRACKETS = 4;
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
  sum(slot: SumSlot): number;
  minimum(slot: ExtremeSlot): number;
  maximum(slot: ExtremeSlot): number;
  outside(): number;
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
  /** How many of the values have which key. The answer is overwritten by the next call. */
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
}

/** The part of the WebAssembly interface that is used; TypeScript declares it with the browser's library only. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
}

function instantiate(): PairKernel {
  const { WebAssembly: api } = globalThis as unknown as { readonly WebAssembly: WebAssemblyApi };
  const module = new api.Module(
    assembleModule(PAGES, [
      measureSides(),
      measureErrors('measureErrors', false),
      measureErrors('measureErrorsWithZeros', true),
      classify('classifyTwo', 2),
      classify('classifyFour', 4),
      collect(),
      countKeys(),
    ]),
  );
  const run = new api.Instance(module).exports as KernelExports;
  const { buffer } = run.memory;
  const values = (offset: number, length = CHUNK_PAIRS) => new Float32Array(buffer, offset, length);
  const slots = new Float64Array(buffer, place.slots, 2 * sumSlots.length);
  const extremes = values(extremeOffset('candidateMin'), 4 * extremeSlots.length);
  const outside = new Int32Array(buffer, outsideOffset, 4);
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
    sum: (slot) => {
      const at = 2 * sumSlots.indexOf(slot);
      return slots[at]! + slots[at + 1]!;
    },
    minimum: (slot) => lanes(slot, Math.min),
    maximum: (slot) => lanes(slot, Math.max),
    outside: () => outside[0]! + outside[1]! + outside[2]! + outside[3]!,
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

/** A float32 accumulator that is emptied into a float64 slot. */
interface Accumulator {
  readonly total: Local;
  readonly slot: SumSlot;
}

/** Adds the four lanes of each accumulator to its slot's two. */
const flush = (accumulators: readonly Accumulator[]): Code =>
  accumulators.flatMap(({ total, slot }) => {
    const lanes = f64x2.add(f64x2.promoteLow(total.get), f64x2.promoteLow(v128.upperHalf(total.get)));
    const address = i32.constant(sumOffset(slot));
    return v128.store(address, f64x2.add(v128.load(address), lanes));
  });

/** Extremes live in locals while a block runs. */
interface Extreme {
  readonly value: Local;
  readonly slot: ExtremeSlot;
}

const loadExtremes = (extremes: readonly Extreme[]): Code =>
  extremes.flatMap(({ value, slot }) => value.set(v128.load(i32.constant(extremeOffset(slot)))));

const storeExtremes = (extremes: readonly Extreme[]): Code =>
  extremes.flatMap(({ value, slot }) => v128.store(i32.constant(extremeOffset(slot)), value.get));

/** Steps written out in a row: a loop's own bookkeeping costs as much as a vector step. */
const UNROLLED = 4;
/** Pairs that one turn of a loop handles: counts are multiples of it. */
export const STEP_PAIRS = 4 * UNROLLED;

const unrolled = (step: (offset: number) => Code, bytes: number, times: number): Code =>
  Array.from({ length: times }, (_, turn) => step(turn * bytes)).flat();

const advance = (at: Local, bytes: number): Code => at.set(i32.add(at.get, i32.constant(bytes)));

const plus = (accumulator: Accumulator, value: Code): Code =>
  accumulator.total.set(f32x4.add(accumulator.total.get, value));

/** Sums, squares and extremes of both sides, from byte `at` to `end`. */
function measureSides(): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const accumulator = (slot: SumSlot): Accumulator => ({ total: writer.local('v128'), slot });
  const extreme = (slot: ExtremeSlot): Extreme => ({ value: writer.local('v128'), slot });
  const value = writer.local('v128');
  const side = (name: 'candidate' | 'reference') => ({
    offset: place[name],
    sum: accumulator(name),
    squares: accumulator(`${name}Squares`),
    min: extreme(`${name}Min`),
    max: extreme(`${name}Max`),
  });
  const sides = [side('candidate'), side('reference')];
  const accumulators = sides.flatMap(({ sum, squares }) => [sum, squares]);
  const extremes = sides.flatMap(({ min, max }) => [min, max]);
  const step = (turn: number): Code =>
    sides.flatMap(({ offset, sum, squares, min, max }) => [
      ...value.set(v128.load(at.get, offset + turn)),
      ...plus(sum, value.get),
      ...plus(squares, f32x4.multiply(value.get, value.get)),
      ...min.value.set(f32x4.pseudoMin(min.value.get, value.get)),
      ...max.value.set(f32x4.pseudoMax(max.value.get, value.get)),
    ]);
  return {
    name: 'measureSides',
    writer,
    body: [
      ...loadExtremes(extremes),
      ...block.doWhile(
        [...unrolled(step, 16, UNROLLED), ...advance(at, 16 * UNROLLED)],
        i32.lessThan(at.get, end.get),
      ),
      ...storeExtremes(extremes),
      ...flush(accumulators),
    ],
  };
}

/** Absolute and relative errors of each pair, their sums and maxima, and what is outside the tolerance. */
function measureErrors(name: string, zeros: boolean): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32', 'f32', 'f32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const vector = () => writer.local('v128');
  const [reference, error, size, ratio, excess] = [vector(), vector(), vector(), vector(), vector()];
  const [allowed, slope, epsilon, outside] = [vector(), vector(), vector(), vector()];
  const accumulator = (slot: SumSlot): Accumulator => ({ total: vector(), slot });
  const extreme = (slot: ExtremeSlot): Extreme => ({ value: vector(), slot });
  const [absolute, absoluteSquares] = [accumulator('absolute'), accumulator('absoluteSquares')];
  const [relative, relativeSquares] = [accumulator('relative'), accumulator('relativeSquares')];
  const [absoluteMax, relativeMax] = [extreme('absoluteMax'), extreme('relativeMax')];
  const [excessMax, smallest] = [extreme('excessMax'), extreme('smallestReference')];
  const extremes = [absoluteMax, relativeMax, excessMax, smallest];
  const isZero = f32x4.equals(size.get, v128.xor(size.get, size.get));
  const divisor = zeros ? v128.or(size.get, v128.and(isZero, epsilon.get)) : size.get;
  const step = (turn: number): Code => [
    ...reference.set(v128.load(at.get, place.reference + turn)),
    ...error.set(f32x4.abs(f32x4.subtract(v128.load(at.get, place.candidate + turn), reference.get))),
    ...size.set(f32x4.abs(reference.get)),
    ...smallest.value.set(f32x4.pseudoMin(smallest.value.get, size.get)),
    ...v128.store(at.get, error.get, place.absolute + turn),
    ...ratio.set(f32x4.divide(error.get, divisor)),
    ...v128.store(at.get, ratio.get, place.relative + turn),
    ...plus(absolute, error.get),
    ...plus(absoluteSquares, f32x4.multiply(error.get, error.get)),
    ...plus(relative, ratio.get),
    ...plus(relativeSquares, f32x4.multiply(ratio.get, ratio.get)),
    ...absoluteMax.value.set(f32x4.pseudoMax(absoluteMax.value.get, error.get)),
    ...relativeMax.value.set(f32x4.pseudoMax(relativeMax.value.get, ratio.get)),
    ...excess.set(f32x4.subtract(error.get, f32x4.multiply(slope.get, size.get))),
    ...excessMax.value.set(f32x4.pseudoMax(excessMax.value.get, excess.get)),
    ...outside.set(i32x4.subtract(outside.get, f32x4.greaterThan(excess.get, allowed.get))),
  ];
  const outsideAddress = i32.constant(outsideOffset);
  return {
    name,
    writer,
    body: [
      ...allowed.set(f32x4.splat(writer.parameter(2).get)),
      ...slope.set(f32x4.splat(writer.parameter(3).get)),
      ...epsilon.set(f32x4.splat(f32.constant(2 ** -52))),
      ...outside.set(v128.load(outsideAddress)),
      ...loadExtremes(extremes),
      ...block.doWhile(
        [...unrolled(step, 16, UNROLLED), ...advance(at, 16 * UNROLLED)],
        i32.lessThan(at.get, end.get),
      ),
      ...storeExtremes(extremes),
      ...v128.store(outsideAddress, outside.get),
      ...flush([absolute, absoluteSquares, relative, relativeSquares]),
    ],
  };
}

/** Keys of eight values at `at`: their upper 16 bits, which are ordered as the values are, since errors are not negative. */
const keysOf = (at: Local): Code => {
  const upper = (offset: number) => i32x4.shiftRightUnsigned(v128.load(at.get, offset), i32.constant(16));
  return i16x8.narrowUnsigned(upper(0), upper(16));
};

/** Counts keys above each bracket's start and copies the values whose key is in a bracket. */
function classify(name: string, brackets: number): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const vector = () => writer.local('v128');
  const [keys, above] = [vector(), vector()];
  const mask = writer.local('i32');
  const each = Array.from({ length: brackets }, (_, index) => ({
    index,
    after: vector(),
    last: vector(),
    count: vector(),
  }));
  const threshold = (index: number) => v128.load(i32.constant(place.thresholds + 16 * index));
  const inBrackets = each.map(
    ({ after, last, count }): Code => [
      ...above.set(i16x8.greaterThan(keys.get, after.get)),
      ...count.set(i16x8.subtract(count.get, above.get)),
      ...v128.andNot(above.get, i16x8.greaterThan(keys.get, last.get)),
    ],
  );
  const anyBracket = inBrackets.reduce((all, one) => v128.or(all, one));
  return {
    name,
    writer,
    body: [
      ...each.flatMap(({ index, after, last }) => [
        ...after.set(threshold(2 * index)),
        ...last.set(threshold(2 * index + 1)),
      ]),
      ...block.doWhile(
        [
          ...keys.set(keysOf(at)),
          ...i32.store8(mask.get, i16x8.bitmask(anyBracket), place.masks),
          ...mask.set(i32.add(mask.get, i32.constant(1))),
          ...at.set(i32.add(at.get, i32.constant(32))),
        ],
        i32.lessThan(at.get, end.get),
      ),
      ...each.flatMap(({ index, count }) => {
        const address = i32.constant(place.counts + 16 * index);
        return v128.store(address, i32x4.add(v128.load(address), i32x4.addPairwise(count.get)));
      }),
    ],
  };
}

/** Copies the values from byte `at` on whose bit is set in the masks, 64 to a word, up to mask byte `end`; gives where the copies end. */
function collect(): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const [mask, out, bits] = [writer.local('i32'), writer.local('i32'), writer.local('i64')];
  const byteOfBit = i32.shiftLeft(i64.toI32(i64.trailingZeros(bits.get)), i32.constant(2));
  const eachBit = block.doWhile(
    [
      ...i32.store(out.get, i32.load(i32.add(at.get, byteOfBit))),
      ...out.set(i32.add(out.get, i32.constant(4))),
      ...bits.set(i64.and(bits.get, i64.subtract(bits.get, i64.constant(1)))),
    ],
    i32.isZero(i64.isZero(bits.get)),
  );
  return {
    name: 'collect',
    writer,
    result: 'i32',
    body: [
      ...out.set(i32.constant(place.collected)),
      ...block.doWhile(
        [
          ...bits.set(i64.load(mask.get, place.masks)),
          ...block.when(i32.isZero(i64.isZero(bits.get)), eachBit),
          ...advance(at, 256),
          ...mask.set(i32.add(mask.get, i32.constant(8))),
        ],
        i32.lessThan(mask.get, end.get),
      ),
      ...out.get,
    ],
  };
}

/** Adds the values from byte `at` to `end` to the counts of their keys. */
function countKeys(): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const counter = writer.local('i32');
  const step = [
    ...counter.set(i32.shiftLeft(i32.load16(at.get, 2), i32.constant(2))),
    ...i32.store(counter.get, i32.add(i32.load(counter.get, KEY_COUNTS), i32.constant(1)), KEY_COUNTS),
  ];
  return {
    name: 'countKeys',
    writer,
    body: block.when(
      i32.lessThan(at.get, end.get),
      block.doWhile([...step, ...advance(at, 4)], i32.lessThan(at.get, end.get)),
    ),
  };
}
