import type { WeightFacts } from '../onnx/weight.js';
import { type Flow, isStored, type Operation, operatorName, type Value } from './flow.js';
import { movers } from './operator-traits.js';

/** Single values at least this large are "minus infinity" of masks and "no limit" of clips, not data. */
export const MASK_VALUE = 1e9;

/**
 * Values clamped to a format's `maskLimit`, which leaves room for the scores that a mask is added to: -65504 and a score of -20 are minus infinity in FP16, and a
 * row masked whole would be NaN.
 */
export interface Masks {
  /** Stored values that are added to others, perhaps as factors of a mask of 0 and 1. */
  readonly weights: ReadonlySet<Value>;
  /** Values that the model computes in FP32 or is given, and that are added to scores in front of a softmax. */
  readonly addends: ReadonlySet<Value>;
  /** The operations that add them, or hand them on to those. */
  readonly readers: ReadonlySet<Operation>;
  /** Operations that limit such values already. */
  readonly limiters: ReadonlySet<Operation>;
}

const sums: ReadonlySet<string> = new Set(['Add', 'Sub', 'Sum', 'Where']);
const steps: ReadonlySet<string> = new Set([...movers, ...sums, 'Mul', 'Div', 'Cast', 'ConstantOfShape']);
const softmaxes: ReadonlySet<string> = new Set(['Softmax', 'LogSoftmax']);

const exponentials: ReadonlySet<string> = new Set(['Exp']);
/** Add their input 3 to the scores. */
const attentions: ReadonlySet<string> = new Set(['Attention']);

/** The input of a softmax written out by hand: the scores, of which it subtracts the largest. */
function scoresOf(difference: Value | undefined): Value | undefined {
  const producer = difference?.producer;
  if (producer === undefined || operatorName(producer) !== 'Sub') return undefined;
  const [scores, largest] = producer.inputs;
  let at = largest?.producer;
  while (at !== undefined && operatorName(at) !== 'ReduceMax' && movers.has(operatorName(at)))
    at = at.inputs[0]?.producer;
  return at !== undefined && operatorName(at) === 'ReduceMax' ? scores : undefined;
}

/** A model that was converted before has its masks behind casts. */
const isFloat = ({ type }: Value): boolean => ['float32', 'float16', 'bfloat16'].includes(String(type));

/** `weight`: what was read of a stored value. */
export function masksOf(flow: Flow, limit: number, weight: (value: Value) => WeightFacts | undefined): Masks {
  const weights = new Set<Value>();
  const addends = new Set<Value>();
  const readers = new Set<Operation>();
  const limiters = new Set<Operation>();
  // Back over steps from softmaxes, where each addend is a mask or a score, then from sums, of which the seen have been walked.
  const seen = new Set<Value>();
  const walk = (start: Value | undefined, isScore: boolean, isMaskItself = false) => {
    const stack = [{ value: start, isAdded: isMaskItself }];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      const { value, isAdded } = at;
      if (value === undefined || !isFloat(value) || seen.has(value)) continue;
      seen.add(value);
      const facts = weight(value);
      const isMask = isScore || (facts?.elements === 1 && facts.maxAbs >= MASK_VALUE);
      const { producer } = value;
      const name = producer === undefined ? undefined : operatorName(producer);
      if (isMask && ((facts?.maxAbs ?? 0) > limit || name === 'ConstantOfShape')) weights.add(value);
      if (isStored(value) || (name !== undefined && !steps.has(name))) continue;
      const isLimiter =
        name === 'Max' &&
        producer?.inputs.some((input) => (input && weight(input)?.maxAbs) === limit) === true;
      if (isAdded && isLimiter) limiters.add(producer);
      else if (isAdded) addends.add(value);
      const isSum = isScore && name !== undefined && sums.has(name);
      const hands = isAdded && !isLimiter && name !== 'Mul' && name !== 'Div';
      if (producer !== undefined && (isSum || hands)) readers.add(producer);
      for (const [index, input] of (producer?.inputs ?? []).entries())
        stack.push({ value: input, isAdded: isSum ? !(name === 'Sub' && index === 1) : hands });
    }
  };
  const named = (names: ReadonlySet<string>) =>
    flow.operations.filter((operation) => names.has(operatorName(operation)));
  for (const { inputs } of named(softmaxes)) walk(inputs[0], true);
  for (const { inputs } of named(exponentials)) walk(scoresOf(inputs[0]), true);
  for (const operation of named(attentions)) {
    walk(operation.inputs[3], true, true);
    readers.add(operation);
  }
  for (const { inputs } of named(sums)) for (const input of inputs) walk(input, false);
  return { weights, addends, readers, limiters };
}
