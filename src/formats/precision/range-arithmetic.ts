import type { WeightFacts } from '../onnx/weight.js';
import { type Flow, isFloat32, isStored, type Operation, operatorName, type Value } from './flow.js';
import type { FloatFormat } from './formats/format.js';
import type { Masks } from './masks.js';
import { leavesRange, lookups, movers, sums, weightRole } from './operator-traits.js';
import { comesFromIntegers, isClassOffset, isCounted, isNormOf } from './value-origins.js';

/**
 * Searches for values that are too small, too large or too near 1 for a format where something depends on the difference: the logarithm of 1e-10 or of a square, a division by
 * it, 1 minus 0.999999. What makes such a value, hands it on and reads it stays FP32, all of it: a cast in between would make it 0, infinite or 1.
 */

/** Questions of a search. Sizes are magnitudes (least of small, greatest of large values): of a constant if above 0 and finite, else by operator. */
interface Search {
  /** The size of what the operation makes even of ordinary values; undefined where that is ordinary. */
  starts(operation: Operation, read: readonly Reading[]): number | undefined;
  /** The size of what it makes of such values; undefined where that is ordinary again. */
  carries(operation: Operation, read: readonly Reading[]): number | undefined;
  ends(operation: Operation, read: readonly Reading[]): boolean;
  /** Whether an output of the model is an end. */
  endsAtOutput(size: number): boolean;
  /** Whether what the operation makes is as it is whatever it reads, so that its inputs are not on the way. */
  isSource(operation: Operation, read: readonly Reading[]): boolean;
}

interface Reading {
  readonly index: number;
  readonly size: number;
}

export interface RangeFacts {
  readonly format: FloatFormat;
  readonly convertOps: ReadonlySet<string>;
  readonly masks: Masks;
  /** The weights that reach an input of the operation unchanged. */
  weights(operation: Operation): Iterable<WeightAt>;
}

/** A weight with the input that it reaches. */
export interface WeightAt {
  readonly index: number;
  readonly name: string;
  readonly facts: WeightFacts;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** Every operation that a search finds, with the reason. */
export function rangeArithmetic(flow: Flow, facts: RangeFacts): ReadonlyMap<Operation, string> {
  const { label } = facts.format;
  const nearOne = nearOneSearch(facts);
  const small = search(flow, smallSearch(facts, search(flow, nearOne).sizes));
  const complement = search(flow, {
    ...nearOne,
    ends: (operation) => small.found.has(operation) || operatorName(operation) === 'Atanh',
  });
  const product = search(flow, productSearch(facts));
  const large = search(flow, largeSearch(facts, small.sizes, product.found));
  const because = (found: Iterable<Operation>, reason: string) =>
    [...found].map((operation) => [operation, reason] as const);
  return new Map([
    ...because(facts.masks.limiters, `it limits a mask before that is cast to ${label}`),
    ...because(complement.found, `${label} takes a value near 1 for 1, which makes the difference 0`),
    ...because(
      small.found,
      `it lies on the way from a value too small for ${label} to what depends on its difference to 0`,
    ),
    ...because(
      product.found,
      `it lies on the way from a product, which leaves the range of ${label} before its factors do, to a logarithm, root or division`,
    ),
    ...because(
      large.found,
      `it lies on the way from a value beyond the range of ${label} to what makes it small again`,
    ),
  ]);
}

const nothing: Search = {
  starts: () => undefined,
  carries: () => undefined,
  ends: () => false,
  endsAtOutput: () => false,
  isSource: () => false,
};

/** Follows values of a size through the graph, and goes back from what depends on them to where they are made. */
function search(flow: Flow, { starts, carries, ends, endsAtOutput, isSource }: Search) {
  const sizes = new Map<Value, number>();
  const found = new Set<Operation>();
  const readings = ({ inputs }: Operation): readonly Reading[] =>
    inputs.flatMap((value, index) => {
      const size = value === undefined ? undefined : sizes.get(value);
      return size === undefined ? [] : [{ index, size }];
    });
  for (const operation of flow.operations) {
    const read = readings(operation);
    if (read.length > 0 && ends(operation, read)) found.add(operation);
    const size = starts(operation, read) ?? (read.length > 0 ? carries(operation, read) : undefined);
    if (size === undefined) continue;
    for (const output of operation.outputs) {
      if (output === undefined || !isFloat32(output)) continue;
      sizes.set(output, size);
      if (endsAtOutput(size) && output.uses.some(({ kind }) => kind === 'output')) found.add(operation);
    }
  }
  // The set grows while it is read.
  for (const operation of found) {
    const read = readings(operation);
    for (const { index } of isSource(operation, read) ? [] : read) {
      const producer = operation.inputs[index]?.producer;
      if (producer !== undefined) found.add(producer);
    }
  }
  return { sizes, found };
}

const averages = words('ReduceMean ReduceSum AveragePool GlobalAveragePool');
const isSelfProduct = ({ inputs }: Operation): boolean => inputs[0] === inputs[1];
const least = (read: readonly Reading[]): number => Math.min(...read.map(({ size }) => size));
const greatest = (read: readonly Reading[]): number => Math.max(...read.map(({ size }) => size));

/** The magnitude of a stored exponent, 0 where it is computed. */
const exponentOf = (stored: readonly WeightAt[]): number =>
  stored.find(({ index }) => index === 1)?.facts.maxAbs ?? 0;

const saturating = words('Sigmoid Softmax Tanh Erf Exp');

/** Tables whose differences to 1 have fewer than 6 bits, as those of noise schedules. */
const TABLE_RESOLUTIONS = 64;

/** Values that differ from 1 by less than the format resolves; of a table, by little more. */
function nearOneSearch({ format, weights }: RangeFacts): Search {
  const isNearOne = ({ maxAbs }: WeightFacts) => maxAbs !== 1 && Math.abs(1 - maxAbs) <= format.resolution;
  const isTable = ({ index, facts: { elements, maxAbs } }: WeightAt) =>
    index === 0 && elements > 1 && maxAbs <= 1 && 1 - maxAbs <= TABLE_RESOLUTIONS * format.resolution;
  const limits = (operation: Operation) =>
    ['Clip', 'Min'].includes(operatorName(operation))
      ? [...weights(operation)].filter(({ index }) => index !== 1 || operatorName(operation) === 'Min')
      : [];
  return {
    ...nothing,
    starts: (operation) => {
      const name = operatorName(operation);
      if (saturating.has(name) || limits(operation).some(({ facts }) => isNearOne(facts))) return 1;
      const table = lookups.has(name) ? [...weights(operation)].find(isTable) : undefined;
      // Where the largest is 1 itself, others are just below it.
      return table && Math.min(table.facts.maxAbs, 1 - 2 ** -24);
    },
    carries: (operation, read) => {
      const name = operatorName(operation);
      if (limits(operation).some(({ facts }) => facts.maxAbs < 1)) return undefined;
      const size = greatest(read);
      if (movers.has(name) || name === 'Cast' || name === 'Pow') return size;
      if (name === 'Div') return read.length === 2 ? size : undefined;
      return name === 'Mul' && (isSelfProduct(operation) || read.length === 2) ? size : undefined;
    },
  };
}

/** Smaller addends leave a small value as small as it was. */
const LEAST_ADDEND = 2 ** -6;

const undefinedAtZero = words('Log Reciprocal Pow');
const changedByGuard = words('Sqrt Equal Greater Less GreaterOrEqual LessOrEqual');
const smallByNature = words('Exp Softmax Sigmoid');

/** Values that the format takes for 0: of a constant such as 1e-10, of operators whose results have no lower bound, and 1 minus what is near 1. */
function smallSearch(
  { format, convertOps, weights }: RangeFacts,
  nearOne: ReadonlyMap<Value, number>,
): Search {
  const isTiny = ({ name, facts }: WeightAt) => format.weightLoss?.(name, facts) !== undefined;
  const isUnit = ({ facts }: WeightAt) => facts.maxAbs === 1;
  /** The difference of 1 and a value near it. */
  const complement = (name: string, value: Value | undefined) => {
    const size = value === undefined ? undefined : nearOne.get(value);
    const isDifference = name === 'Sub' || (name === 'Add' && value?.producer?.node.opType === 'Neg');
    return size === undefined || !isDifference ? [] : [1 - size];
  };
  return {
    ...nothing,
    starts: (operation) => {
      const name = operatorName(operation);
      const stored = [...weights(operation)];
      const complements = operation.inputs.flatMap((value) => complement(name, value));
      if (complements.length > 0 && stored.some(isUnit)) return Math.min(...complements);
      if (smallByNature.has(name)) return format.narrowRange && !convertOps.has(name) ? 0 : undefined;
      const tiny = stored.find(isTiny);
      if (tiny === undefined) return undefined;
      const role = weightRole(name, tiny.index);
      if (role === 'factor') return 0;
      // Values per channel that a product is shifted by are a bias, which guards nothing.
      const isBias = tiny.facts.elements > 1 && role === 'addend' && operation.inputs.some(isOfProduct);
      return operation.inputs.length < 2 || isBias || !guards.has(name) ? undefined : tiny.facts.maxAbs;
    },
    carries: (operation, read) => {
      const name = operatorName(operation);
      const stored = [...weights(operation)];
      const size = least(read);
      if (name === 'Sqrt') return Math.sqrt(size);
      if (name === 'Pow') return exponentOf(stored) < 1 ? size ** exponentOf(stored) : undefined;
      if (name === 'Max' || name === 'Clip')
        return stored.some((weight) => weight.index !== 2 && weight.facts.maxAbs > 0 && !isTiny(weight))
          ? undefined
          : size;
      if (movers.has(name) || averages.has(name) || name === 'Cast') return size;
      const others = operation.inputs.length - read.length;
      if (sums.has(name))
        return stored.filter(({ facts }) => facts.maxAbs < LEAST_ADDEND).length === others ? size : undefined;
      if (name === 'Mul') return stored.length === others ? size : undefined;
      return name === 'Div' && read[0]?.index === 0 && stored.length === 1 ? size : undefined;
    },
    ends: (operation, read) => {
      const name = operatorName(operation);
      if (name === 'Div') return read.some(({ index }) => index === 1);
      return undefinedAtZero.has(name) || (changedByGuard.has(name) && least(read) > 0);
    },
  };
}

const guards = words('Add Sub Sum Max Min Clip Where');
const products = words('Conv ConvTranspose Gemm MatMul BatchNormalization');
const isOfProduct = (value: Value | undefined): boolean =>
  value?.producer !== undefined && products.has(operatorName(value.producer));

/** Sizes of products. A square may pass a stored matrix, as powers pass a filter bank: it is as a product of two values then. */
const SQUARE = 1;
const PRODUCT = 0;
/** Ordinary values of a network again, unless a product is divided by a root of others: roots, and what passed a matrix that it may not. */
const ROOT = -1;
const PASSED = -2;
const multiplying = words('Mul MatMul Einsum');
const squaring = words('ReduceSumSquare ReduceProd');
const linear = words('MatMul Gemm Conv');
const roots = words('Log Sqrt Reciprocal ReduceLogSum');

/** Products of computed values, squares among them: 1e-4 and 300 are ordinary, and their squares are beyond FP16. */
function productSearch({ format, weights }: RangeFacts): Search {
  if (!format.narrowRange) return nothing;
  const isProduct = (operation: Operation) =>
    multiplying.has(operatorName(operation)) &&
    operation.inputs.length > 1 &&
    operation.inputs.every((value) => value !== undefined && !isStored(value)) &&
    [...weights(operation)].length === 0;
  const exponent = (operation: Operation) =>
    operatorName(operation) === 'Pow' ? exponentOf([...weights(operation)]) : 0;
  const isSquare = (operation: Operation) =>
    squaring.has(operatorName(operation)) ||
    exponent(operation) > 1 ||
    (isProduct(operation) && isSelfProduct(operation));
  const isOrdinary = (read: readonly Reading[]) => read.every(({ size }) => size < PRODUCT);
  return {
    ...nothing,
    isSource: (operation, read) => isSquare(operation) || (isOrdinary(read) && isProduct(operation)),
    starts: (operation, read) => {
      if (isSquare(operation)) return SQUARE;
      return isProduct(operation) ? Math.max(PRODUCT, ...read.map(({ size }) => size)) : undefined;
    },
    carries: (operation, read) => {
      const name = operatorName(operation);
      const size = isOrdinary(read) ? greatest(read) : least(read.filter((one) => one.size >= PRODUCT));
      if (name === 'Sqrt') return ROOT;
      if (linear.has(name)) return size === SQUARE ? PRODUCT : size === PRODUCT ? PASSED : undefined;
      if (movers.has(name) || sums.has(name) || averages.has(name) || name === 'Mul' || name === 'Cast')
        return size;
      return name === 'Div' && read[0]?.index === 0 ? size : undefined;
    },
    ends: (operation, read) => {
      const name = operatorName(operation);
      if (name !== 'Div')
        return !isOrdinary(read) && (roots.has(name) || (name === 'Pow' && exponent(operation) <= 1));
      const denominator = read.filter(({ index }) => index === 1);
      if (denominator.length === 0) return false;
      if (!isOrdinary(denominator)) return true;
      const isByRoot = read.length === 2 && greatest(denominator) === ROOT;
      return isByRoot && !isNormOf(operation.inputs[1], operation.inputs[0]);
    },
  };
}

/** Bring values of any size back into range, or may. */
const endings = words('Mul Div Sqrt Log Reciprocal Sigmoid Tanh Softmax LogSoftmax NonMaxSuppression');
const integerSums = words('MatMulInteger ConvInteger');

/** Values beyond the format's range: of a constant, of operators that square or add up, of integers, and 1 divided by what is small. */
function largeSearch(
  { format, convertOps, masks, weights }: RangeFacts,
  small: ReadonlyMap<Value, number>,
  ofProducts: ReadonlySet<Operation>,
): Search {
  const isMasked = ({ inputs }: Operation) =>
    inputs.some((value) => value !== undefined && masks.weights.has(value));
  const carries = (operation: Operation, read: readonly Reading[]): number | undefined => {
    const name = operatorName(operation);
    const size = greatest(read);
    if (isMasked(operation)) return undefined;
    const [stored] = weights(operation);
    if (
      (name === 'Clip' || name === 'Min') &&
      stored !== undefined &&
      stored.facts.maxAbs <= format.maxFinite
    )
      return undefined;
    if (movers.has(name) || sums.has(name) || name === 'ReduceMean' || name.endsWith('AveragePool'))
      return size;
    if (name !== 'Mul') return undefined;
    if (isSelfProduct(operation)) return Number.POSITIVE_INFINITY;
    const product = size * (stored?.facts.maxAbs ?? 0);
    return Number.isFinite(size) && product > format.maxFinite ? product : undefined;
  };
  return {
    ...nothing,
    carries,
    starts: (operation) => {
      const name = operatorName(operation);
      const [stored] = isMasked(operation) ? [] : weights(operation);
      const step = name === 'Mul' ? (stored?.facts.maxAbs ?? 0) : 0;
      if (step >= LARGE_STEP && operation.inputs.some(comesFromIntegers)) return step * format.maxFinite;
      if (name === 'Mul' && isClassOffset(operation)) return LARGE_STEP * format.maxFinite;
      if (!format.narrowRange) return undefined;
      if (leavesRange(name, operation.node))
        return convertOps.has(name) ? undefined : Number.POSITIVE_INFINITY;
      if (name === 'Cast') return sizeOfCast(operation, weights);
      if (isMasked(operation)) return undefined;
      const isInverse = name === 'Reciprocal' || (name === 'Div' && stored?.index === 0);
      if (isInverse && ofProducts.has(operation)) return Number.POSITIVE_INFINITY;
      if (name === 'Reciprocal') return largeQuotient(1, operation.inputs[0], small, format);
      if (name === 'Div' && stored?.index !== 1) return sizeOfDivision(operation, stored, small, format);
      if (stored === undefined || weightRole(name, stored.index) === 'limit') return undefined;
      const { maxAbs } = stored.facts;
      if (name === 'Div') return maxAbs * format.maxFinite < 1 ? 1 / maxAbs : undefined;
      return maxAbs > format.maxFinite ? maxAbs : undefined;
    },
    ends: (operation, read) => {
      const name = operatorName(operation);
      if (name === 'Cast' || carries(operation, read) !== undefined) return false;
      if (isMasked(operation) || name === 'Clip' || name === 'Min') return false;
      return Number.isFinite(greatest(read)) || endings.has(name);
    },
    endsAtOutput: Number.isFinite,
  };
}

/** Integers of classes or positions times at least this leave FP16 where there are a thousand of them, and BF16 keeps three digits of the result. */
const LARGE_STEP = 64;

/** A numerator divided by a small value, where the format does not hold the quotient. */
function largeQuotient(
  numerator: number,
  denominator: Value | undefined,
  small: ReadonlyMap<Value, number>,
  { maxFinite }: FloatFormat,
): number | undefined {
  const divisor = denominator && small.get(denominator);
  if (divisor === undefined || numerator / divisor <= maxFinite) return undefined;
  return numerator / divisor;
}

/** A division by a computed value; a computed numerator may have any size, so what is large then has no limit. */
function sizeOfDivision(
  { inputs: [numerator, denominator] }: Operation,
  stored: WeightAt | undefined,
  small: ReadonlyMap<Value, number>,
  format: FloatFormat,
): number | undefined {
  if (stored !== undefined) return largeQuotient(stored.facts.maxAbs, denominator, small, format);
  if (isNormOf(denominator, numerator)) return undefined;
  const ofOne = largeQuotient(1, denominator, small, format);
  return ofOne === undefined ? undefined : Number.POSITIVE_INFINITY;
}

/** Sums of products of integers, and integers that are divided or scaled down. */
function sizeOfCast(operation: Operation, weights: RangeFacts['weights']): number | undefined {
  const [input] = operation.inputs;
  if (input === undefined || !isCounted(input)) return undefined;
  if (input.producer !== undefined && integerSums.has(operatorName(input.producer))) return 2 ** 31;
  const scales = (operation.outputs[0]?.uses ?? []).some((use) => {
    if (use.kind !== 'input') return false;
    const [factor] = weights(use.operation);
    const name = operatorName(use.operation);
    return name === 'Div' || (name === 'Mul' && factor !== undefined && factor.facts.maxAbs < 1);
  });
  return scales ? Number.POSITIVE_INFINITY : undefined;
}
