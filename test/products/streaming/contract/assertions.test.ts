import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Assertion, StatePair } from '../../../../src/formats/contract/contract.js';
import { filledTensor, fitToCapacity, nextState } from '../../../../src/formats/contract/state.js';
import {
  float32Values,
  integerTensor,
  numbersOf,
  type Tensor,
  tensorFrom,
} from '../../../../src/formats/tensor/tensor.js';
import { checkAssertions, type Step } from '../../../../src/products/streaming/contract/assertions.js';
import { refusal } from '../../../support/refusal.js';

const lengths = (...values: number[]) => integerTensor('int64', [values.length], values);
const floats = (shape: number[], values: number[]) => tensorFrom('float32', shape, Float32Array.from(values));
const step = (chunk: number, outputs: Record<string, Tensor>, inputs: Record<string, Tensor> = {}): Step => ({
  chunk,
  inputs: new Map(Object.entries(inputs)),
  outputs: new Map(Object.entries(outputs)),
});
type Rule = Assertion extends infer A
  ? A extends unknown
    ? Omit<A, 'id' | 'sentence' | 'tensor'>
    : never
  : never;
const found = (rule: Rule, now: Step, before?: Step) =>
  checkAssertions(
    { assertions: [{ id: 'a', sentence: 's', tensor: 'y', ...rule } as Assertion] },
    now,
    before,
  ).map((violation) => violation.found);

describe('an assertion', () => {
  test('without a sentence of its own is called by its id', () => {
    const assertion = { id: 'three', tensor: 'y', kind: 'equal', value: 3 } as const;
    const sentences = ['', ' ', 'y is 3.'].map((sentence) => ({ ...assertion, sentence }));
    const broken = checkAssertions({ assertions: sentences }, step(0, { y: lengths(4) }));
    expect(broken.map(({ sentence }) => sentence)).toEqual(['three', 'three', 'y is 3.']);
  });

  const equal = { kind: 'equal', value: 3 } as const;
  const bounded = { kind: 'bounded-by-capacity', capacity: 256 } as const;
  const time = { kind: 'dimension-equals', axis: -1, value: 3 } as const;
  test.each<[string, Rule, Tensor, string[]]>([
    ['equal, kept', equal, lengths(3, 3), []],
    ['equal, broken', equal, lengths(3, 4), ['[4] where 3 was promised']],
    ['equal, many broken', equal, lengths(1, 2, 4, 5, 6), ['[1, 2, 4, 5, … 5 values] where 3 was promised']],
    ['equal, NaN', equal, floats([1], [Number.NaN]), ['[NaN] where 3 was promised']],
    ['range, open below', { kind: 'range', min: null, max: 1 }, lengths(-5), []],
    [
      'range, broken',
      { kind: 'range', min: 0, max: null },
      lengths(-67),
      ['[-67] where at least 0 was promised'],
    ],
    ['range, text', { kind: 'range', min: 0, max: 1 }, lengths(2), ['[2] where 0 to 1 was promised']],
    ['bounded, kept', bounded, lengths(256), []],
    ['bounded, broken', bounded, lengths(257), ['[257] where 0 to 256 was promised']],
    ['dimension, kept', time, floats([1, 3], [1, 2, 3]), []],
    [
      'dimension, broken',
      time,
      floats([3, 1], [1, 2, 3]),
      ['shape [3, 1] where the last dimension must be 3'],
    ],
    ['dimension of a scalar', time, floats([], [1]), ['shape [] where the last dimension must be 3']],
  ])('%s', (_, rule, tensor, expected) => {
    expect(found(rule, step(0, { y: tensor }))).toEqual(expected);
  });

  test('about growth compares with the input of the step, or with the step before', () => {
    const against = { kind: 'monotonic', than: 'x', until: 8 } as const;
    expect(found(against, step(1, { y: lengths(4) }, { x: lengths(4) }))).toEqual([]);
    expect(found(against, step(1, { y: lengths(3) }, { x: lengths(4) }))).toEqual([
      '3 after 4, which must not shrink',
    ]);
    expect(found(against, step(1, { y: lengths(8) }, { x: lengths(9) }))).toEqual([]);
    expect(found(against, step(1, { y: lengths(8) }))).toEqual(['there is no x to compare it with']);
    const own = { kind: 'monotonic', than: null, until: null } as const;
    expect(found(own, step(0, { y: lengths(4) }))).toEqual([]);
    expect(found(own, step(1, { y: lengths(3) }), step(0, { y: lengths(4) }))).toHaveLength(1);
  });

  test('about a tensor that is not there is broken', () => {
    expect(found(equal, step(5, {}))).toEqual(['the tensor is missing']);
  });
});

const pair = (changes: Partial<StatePair>): StatePair => ({
  input: 'x',
  output: 'y',
  initial: 0,
  axis: 1,
  capacity: 4,
  padSide: 'right',
  fillValue: 9,
  validLength: null,
  ...changes,
});

describe('state that is fed back', () => {
  const two = floats([2, 2, 1], [1, 2, 3, 4]);
  const five = floats([1, 5], [1, 2, 3, 4, 5]);
  test.each<[string, Partial<StatePair>, Tensor, number[]]>([
    ['is filled up on the right', {}, two, [1, 2, 9, 9, 3, 4, 9, 9]],
    ['is filled up on the left', { padSide: 'left' }, two, [9, 9, 1, 2, 9, 9, 3, 4]],
    ['is cut on the right', {}, five, [1, 2, 3, 4]],
    ['is cut on the left', { padSide: 'left' }, five, [2, 3, 4, 5]],
    ['stays as it is without an axis', { axis: null }, five, [1, 2, 3, 4, 5]],
  ])('%s', (_, changes, tensor, expected) => {
    expect([...float32Values(fitToCapacity(pair(changes), tensor))]).toEqual(expected);
  });

  test('is the same tensor where it fits already', () => {
    const fitting = floats([1, 4], [1, 2, 3, 4]);
    expect(fitToCapacity(pair({}), fitting)).toBe(fitting);
  });

  test('filled and cut again is what it was', () => {
    fc.assert(
      fc.property(
        fc.nat(5),
        fc.integer({ min: 0, max: 6 }),
        fc.constantFrom('right' as const, 'left' as const),
        (rows, width, padSide) => {
          const tensor = floats(
            [rows, width],
            Array.from({ length: rows * width }, (_, i) => i),
          );
          const filled = fitToCapacity(pair({ capacity: width + 3, padSide }), tensor);
          expect(fitToCapacity(pair({ capacity: width, padSide }), filled)).toEqual(tensor);
        },
      ),
    );
  });

  test('has the dtype of the input it becomes', () => {
    const contract = {
      state: [pair({ axis: null, capacity: null })],
      inputs: [{ name: 'x', dtype: 'int64', shape: [1], role: 'state' }],
    } as const;
    const next = nextState(contract, new Map([['y', integerTensor('int32', [1], [2_000_000_001])]]));
    expect(next.get('x')?.dtype).toBe('int64');
    expect(Array.from(numbersOf(next.get('x')!))).toEqual([2_000_000_001]);
    expect(refusal(() => nextState(contract, new Map())).message).toContain('no output y');
  });

  test('begins as the contract states', () => {
    expect(Array.from(numbersOf(filledTensor('int64', [2], 7)))).toEqual([7, 7]);
    expect([...float32Values(filledTensor('float16', [2], 0.5))]).toEqual([0.5, 0.5]);
    expect([...filledTensor('bool', [2], 1).bytes]).toEqual([1, 1]);
    expect(refusal(() => filledTensor('bool', [1], 7)).code).toBe('TF_CONTRACT_INVALID');
  });
});
