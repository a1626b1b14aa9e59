import type { FloatFormat } from '../float-format.js';
import { type KernelLanes, lanesOf } from './pair-kernel-lanes.js';
import {
  type ExtremeSlot,
  type KernelLayout,
  kernelLayout,
  STEP_PAIRS,
  type SumSlot,
} from './pair-kernel-layout.js';
import {
  block,
  type Code,
  type FunctionSpec,
  FunctionWriter,
  f64x2,
  i32,
  type Local,
  v128,
} from './wasm-assembler.js';

/** What the code of a kernel depends on: the numbers it is for, and where they are. */
export interface KernelPlan extends KernelLanes {
  readonly layout: KernelLayout;
}

export const kernelPlan = (format: FloatFormat): KernelPlan => ({
  ...lanesOf(format),
  layout: kernelLayout(format),
});

/** A vector of the kernel's numbers that is emptied into a float64 slot. */
interface Accumulator {
  readonly total: Local;
  readonly slot: SumSlot;
}

/** Adds the lanes of each accumulator to its slot's two. */
const flush = ({ layout, total: totalOf }: KernelPlan, accumulators: readonly Accumulator[]): Code =>
  accumulators.flatMap(({ total, slot }) => {
    const address = i32.constant(layout.sum(slot));
    return v128.store(address, f64x2.add(v128.load(address), totalOf(total)));
  });

/** Extremes live in locals while a block runs. */
interface Extreme {
  readonly value: Local;
  readonly slot: ExtremeSlot;
}

const loadExtremes = ({ layout }: KernelPlan, extremes: readonly Extreme[]): Code =>
  extremes.flatMap(({ value, slot }) => value.set(v128.load(i32.constant(layout.extreme(slot)))));

const storeExtremes = ({ layout }: KernelPlan, extremes: readonly Extreme[]): Code =>
  extremes.flatMap(({ value, slot }) => v128.store(i32.constant(layout.extreme(slot)), value.get));

/** Where the vectors of one turn of a loop are, in bytes. */
export const turnsOf = ({ bytes }: KernelPlan): readonly number[] =>
  Array.from({ length: (STEP_PAIRS * bytes) / 16 }, (_, turn) => 16 * turn);

/** Does `step` for each vector from byte `at` to `end`, whole turns of them. */
export const eachVector = (plan: KernelPlan, at: Local, end: Local, step: (offset: number) => Code): Code =>
  block.doWhile(
    [...turnsOf(plan).flatMap(step), ...advance(at, STEP_PAIRS * plan.bytes)],
    i32.lessThan(at.get, end.get),
  );

export const advance = (at: Local, bytes: number): Code => at.set(i32.add(at.get, i32.constant(bytes)));

const plus = ({ float }: KernelPlan, accumulator: Accumulator, value: Code): Code =>
  accumulator.total.set(float.add(accumulator.total.get, value));

/** Sums, squares and extremes of both sides, from byte `at` to `end`. */
export function measureSides(plan: KernelPlan): FunctionSpec {
  const { float, layout } = plan;
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const accumulator = (slot: SumSlot): Accumulator => ({ total: writer.local('v128'), slot });
  const extreme = (slot: ExtremeSlot): Extreme => ({ value: writer.local('v128'), slot });
  const value = writer.local('v128');
  const side = (name: 'candidate' | 'reference') => ({
    offset: layout.place[name],
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
      ...plus(plan, sum, value.get),
      ...plus(plan, squares, float.multiply(value.get, value.get)),
      ...min.value.set(float.pseudoMin(min.value.get, value.get)),
      ...max.value.set(float.pseudoMax(max.value.get, value.get)),
    ]);
  return {
    name: 'measureSides',
    writer,
    body: [
      ...loadExtremes(plan, extremes),
      ...eachVector(plan, at, end, step),
      ...storeExtremes(plan, extremes),
      ...flush(plan, accumulators),
    ],
  };
}

/** Absolute and relative errors of each pair, their sums and maxima, and what is outside the tolerance. */
export function measureErrors(plan: KernelPlan, name: string, zeros: boolean): FunctionSpec {
  const { float, layout, scalar } = plan;
  const { place } = layout;
  const writer = new FunctionWriter(['i32', 'i32', scalar, scalar]);
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
  const isZero = float.equals(size.get, v128.xor(size.get, size.get));
  const divisor = zeros ? v128.or(size.get, v128.and(isZero, epsilon.get)) : size.get;
  const step = (turn: number): Code => [
    ...reference.set(v128.load(at.get, place.reference + turn)),
    ...error.set(float.abs(float.subtract(v128.load(at.get, place.candidate + turn), reference.get))),
    ...size.set(float.abs(reference.get)),
    ...smallest.value.set(float.pseudoMin(smallest.value.get, size.get)),
    ...v128.store(at.get, error.get, place.absolute + turn),
    ...ratio.set(float.divide(error.get, divisor)),
    ...v128.store(at.get, ratio.get, place.relative + turn),
    ...plus(plan, absolute, error.get),
    ...plus(plan, absoluteSquares, float.multiply(error.get, error.get)),
    ...plus(plan, relative, ratio.get),
    ...plus(plan, relativeSquares, float.multiply(ratio.get, ratio.get)),
    ...absoluteMax.value.set(float.pseudoMax(absoluteMax.value.get, error.get)),
    ...relativeMax.value.set(float.pseudoMax(relativeMax.value.get, ratio.get)),
    ...excess.set(float.subtract(error.get, float.multiply(slope.get, size.get))),
    ...excessMax.value.set(float.pseudoMax(excessMax.value.get, excess.get)),
    ...outside.set(plan.subtractCounts(outside.get, float.greaterThan(excess.get, allowed.get))),
    ...beyondBoth.set(
      plan.subtractCounts(
        beyondBoth.get,
        v128.and(float.greaterThan(error.get, allowed.get), float.greaterThan(ratio.get, slope.get)),
      ),
    ),
  ];
  const outsideAddress = i32.constant(layout.outside);
  const beyondBothAddress = i32.constant(layout.beyondBoth);
  return {
    name,
    writer,
    body: [
      ...allowed.set(float.splat(writer.parameter(2).get)),
      ...slope.set(float.splat(writer.parameter(3).get)),
      ...epsilon.set(float.splat(plan.constant(2 ** -52))),
      ...outside.set(v128.load(outsideAddress)),
      ...beyondBoth.set(v128.load(beyondBothAddress)),
      ...loadExtremes(plan, extremes),
      ...eachVector(plan, at, end, step),
      ...storeExtremes(plan, extremes),
      ...v128.store(outsideAddress, outside.get),
      ...v128.store(beyondBothAddress, beyondBoth.get),
      ...flush(plan, [absolute, absoluteSquares, relative, relativeSquares]),
    ],
  };
}
