import {
  beyondBothOffset,
  type ExtremeSlot,
  extremeOffset,
  KEY_COUNTS,
  outsideOffset,
  place,
  type SumSlot,
  sumOffset,
  UNROLLED,
} from './pair-kernel-layout.js';
import {
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

const unrolled = (step: (offset: number) => Code, bytes: number, times: number): Code =>
  Array.from({ length: times }, (_, turn) => step(turn * bytes)).flat();

const advance = (at: Local, bytes: number): Code => at.set(i32.add(at.get, i32.constant(bytes)));

const plus = (accumulator: Accumulator, value: Code): Code =>
  accumulator.total.set(f32x4.add(accumulator.total.get, value));

/** Sums, squares and extremes of both sides, from byte `at` to `end`. */
export function measureSides(): FunctionSpec {
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
export function measureErrors(name: string, zeros: boolean): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32', 'f32', 'f32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const vector = () => writer.local('v128');
  const [reference, error, size, ratio, excess] = [vector(), vector(), vector(), vector(), vector()];
  const [allowed, slope, epsilon, outside, beyondBoth] = [vector(), vector(), vector(), vector(), vector()];
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
    ...beyondBoth.set(
      i32x4.subtract(
        beyondBoth.get,
        v128.and(f32x4.greaterThan(error.get, allowed.get), f32x4.greaterThan(ratio.get, slope.get)),
      ),
    ),
  ];
  const outsideAddress = i32.constant(outsideOffset);
  const beyondBothAddress = i32.constant(beyondBothOffset);
  return {
    name,
    writer,
    body: [
      ...allowed.set(f32x4.splat(writer.parameter(2).get)),
      ...slope.set(f32x4.splat(writer.parameter(3).get)),
      ...epsilon.set(f32x4.splat(f32.constant(2 ** -52))),
      ...outside.set(v128.load(outsideAddress)),
      ...beyondBoth.set(v128.load(beyondBothAddress)),
      ...loadExtremes(extremes),
      ...block.doWhile(
        [...unrolled(step, 16, UNROLLED), ...advance(at, 16 * UNROLLED)],
        i32.lessThan(at.get, end.get),
      ),
      ...storeExtremes(extremes),
      ...v128.store(outsideAddress, outside.get),
      ...v128.store(beyondBothAddress, beyondBoth.get),
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
export function classify(name: string, brackets: number): FunctionSpec {
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
export function collect(): FunctionSpec {
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

/** How many of the values from byte `at` to `end` are zero; whole steps. */
export function countZeros(): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const [zeros, none] = [writer.local('v128'), writer.local('v128')];
  const step = (offset: number): Code =>
    zeros.set(i32x4.subtract(zeros.get, f32x4.equals(v128.load(at.get, offset), none.get)));
  const counts = i32.constant(place.counts);
  return {
    name: 'countZeros',
    writer,
    body: [
      ...block.doWhile(
        [...unrolled(step, 16, UNROLLED), ...advance(at, 16 * UNROLLED)],
        i32.lessThan(at.get, end.get),
      ),
      ...v128.store(counts, zeros.get),
    ],
  };
}

/** The end of the first step from byte `at` on that has a value above `limit`, or where `end` was reached. */
export function stepAbove(): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32', 'f32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const [limit, found] = [writer.local('v128'), writer.local('v128')];
  const above = (offset: number): Code => f32x4.greaterThan(v128.load(at.get, offset), limit.get);
  const any = Array.from({ length: UNROLLED }, (_, turn) => above(16 * turn)).reduce((all, one) =>
    v128.or(all, one),
  );
  return {
    name: 'stepAbove',
    writer,
    result: 'i32',
    body: [
      ...limit.set(f32x4.splat(writer.parameter(2).get)),
      ...block.doWhile(
        [...found.set(any), ...advance(at, 16 * UNROLLED)],
        i32.and(i32.isZero(v128.anyTrue(found.get)), i32.lessThan(at.get, end.get)),
      ),
      ...at.get,
    ],
  };
}

/** Adds the values from byte `at` to `end` to the counts of their keys. */
export function countKeys(): FunctionSpec {
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
