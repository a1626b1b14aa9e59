import type { Assertion, Contract, Violation } from '../../../formats/contract/contract.js';
import { dtypes } from '../../../formats/tensor/dtype.js';
import { type NamedTensors, numbersOf, type Tensor } from '../../../formats/tensor/tensor.js';

/** The inputs and outputs of one step. */
export interface Step {
  readonly chunk: number;
  readonly inputs: NamedTensors;
  readonly outputs: NamedTensors;
}

/** Values that are named in a violation; a tensor may have millions. */
const NAMED_VALUES = 4;

/**
 * Checks every assertion after a step and returns the violations. `before` is the step before, for assertions about growth. NaN violates every assertion
 * about values, and a tensor that the step does not have every assertion about it.
 */
export function checkAssertions(
  contract: Pick<Contract, 'assertions'>,
  step: Step,
  before?: Step,
): readonly Violation[] {
  return contract.assertions.flatMap((assertion): Violation[] => {
    const found = violationOf(assertion, step, before);
    if (found === null) return [];
    const { id, kind, tensor, sentence } = assertion;
    return [{ assertion: id, kind, tensor, chunk: step.chunk, found, sentence: sentence.trim() || id }];
  });
}

/** The violation, or null. */
function violationOf(assertion: Assertion, step: Step, before: Step | undefined): string | null {
  const tensor = tensorOf(step, assertion.tensor);
  if (tensor === undefined) return 'the tensor is missing';
  if (assertion.kind === 'dimension-equals') return wrongDimension(tensor, assertion);
  if (!isNumeric(tensor)) return `its elements are ${tensor.dtype}, not numbers`;
  if (assertion.kind === 'monotonic') return shrunk(tensor, assertion, step, before);
  const [low, high] = boundsOf(assertion);
  return outside(numbersOf(tensor), low, high, promiseOf(low, high));
}

function wrongDimension(
  { shape }: Tensor,
  { axis, value }: Extract<Assertion, { kind: 'dimension-equals' }>,
): string | null {
  const at = axis < 0 ? shape.length + axis : axis;
  return shape[at] === value
    ? null
    : `shape [${shape.join(', ')}] where ${axis === -1 ? 'the last dimension' : `dimension ${axis}`} must be ${value}`;
}

function boundsOf(
  assertion: Extract<Assertion, { kind: 'equal' | 'range' | 'bounded-by-capacity' }>,
): [number, number] {
  if (assertion.kind === 'equal') return [assertion.value, assertion.value];
  if (assertion.kind === 'bounded-by-capacity') return [0, assertion.capacity];
  return [assertion.min ?? Number.NEGATIVE_INFINITY, assertion.max ?? Number.POSITIVE_INFINITY];
}

function promiseOf(low: number, high: number): string {
  if (low === high) return `${low} was promised`;
  if (low === Number.NEGATIVE_INFINITY) return `at most ${high} was promised`;
  if (high === Number.POSITIVE_INFINITY) return `at least ${low} was promised`;
  return `${low} to ${high} was promised`;
}

/** One pass without allocation: signals and states are checked after every step. */
function outside(values: ArrayLike<number>, low: number, high: number, promise: string): string | null {
  const wrong: number[] = [];
  let count = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value >= low && value <= high) continue;
    if (count++ < NAMED_VALUES) wrong.push(value);
  }
  return count === 0 ? null : `${listed(wrong, count)} where ${promise}`;
}

function shrunk(
  tensor: Tensor,
  { tensor: name, than, until }: Extract<Assertion, { kind: 'monotonic' }>,
  step: Step,
  before: Step | undefined,
): string | null {
  const other = than === null ? before?.outputs.get(name) : tensorOf(step, than);
  if (other === undefined) return than === null ? null : `there is no ${than} to compare it with`;
  const now = numbersOf(tensor);
  const past = numbersOf(other);
  if (now.length !== past.length) return `${now.length} values after ${past.length}`;
  for (let i = 0; i < now.length; i++) {
    const least = Math.min(past[i]!, until ?? Number.POSITIVE_INFINITY);
    if (!(now[i]! >= least)) return `${now[i]} after ${past[i]}, which must not shrink`;
  }
  return null;
}

const tensorOf = ({ outputs, inputs }: Step, name: string): Tensor | undefined =>
  outputs.get(name) ?? inputs.get(name);

const isNumeric = ({ dtype }: Tensor): boolean =>
  dtypes[dtype].kind !== 'string' && dtypes[dtype].kind !== 'complex';

const listed = (values: readonly number[], count: number): string =>
  `[${values.join(', ')}${count > values.length ? `, … ${count} values` : ''}]`;
