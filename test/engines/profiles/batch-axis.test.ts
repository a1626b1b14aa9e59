import { expect, it, test } from 'vitest';
import { axesOf, isBatchAxis, otherThanBatch } from '../../../src/engines/profiles/profile.js';
import { samplePassport, samplePlan } from '../../support/sample-engine.js';

type Shape = readonly (number | string | null)[];
const tensors = (shapes: Readonly<Record<string, Shape>>) =>
  Object.entries(shapes).map(([name, shape]) => ({ name, dtype: 'float32', shape }));
const axes = (inputs: Readonly<Record<string, Shape>>, outputs: Readonly<Record<string, Shape>> = {}) => ({
  inputs: tensors(inputs),
  outputs: tensors(outputs),
});
const images: Shape = ['batch', 3, 64, 64];
const sizes = (min: number, max: number) => ({ min: [min], opt: [min], max: [max], values: false });

/** A known answer by the first axes of `x` and `y`. */
const answer = (...rows: readonly (readonly [number, number])[]) =>
  ({
    cases: rows.map(([x, y]) => ({
      inputs: [{ name: 'x', shape: [x, 3] }],
      outputs: [{ name: 'y', shape: [y, 7] }],
    })),
  }) as never;

it.each([
  ['rows of a picture', axes({ images }, { dets: ['num_dets', 7] }), 'dets'],
  ['time first', axes({ images }, { logits: ['time', 'batch', 8] }), 'logits'],
  ['time first in the input too', axes({ x: ['time', 'batch', 80] }, { y: ['time', 'batch', 8] }), 'x'],
  ['a second input of its own', axes({ images, bank: ['entries', 16] }, { y: ['batch', 2] }), 'bank'],
  ['the second input first', axes({ bank: ['entries', 16], images }, { y: ['batch', 2] }), 'bank'],
  [
    'ranges of axes without names',
    {
      ...axes({ x: [null, 3], bank: [null, 16] }, { y: [null, 2] }),
      profiles: [{ x: sizes(1, 4), bank: sizes(1, 50) }],
    },
    'bank',
  ],
  ['a known answer', { ...axes({ x: [null, 3] }, { y: [null, 7] }), knownAnswer: answer([1, 64]) }, 'y'],
  [
    'a known answer against the name of the batch',
    { ...axes({ x: ['batch', 3] }, { y: ['batch', 7] }), knownAnswer: answer([1, 1], [4, 1]) },
    'y',
  ],
])('%s', (_what, given, tensor) => {
  expect(otherThanBatch(given)?.tensor).toBe(tensor);
});

it.each([
  ['one name', axes({ images }, { y: ['batch', 7], n: ['batch'] })],
  ['no names', axes({ x: [null, 3] }, { y: [null, 7] })],
  ['names that exporters number', axes({ x: ['batch', 3] }, { y: ['Concaty_dim_0', 7] })],
  ['two names for a batch', axes({ x: ['N', 3] }, { y: ['batch_size', 7] })],
  ['fixed axes', axes({ x: ['batch', 3] }, { y: [64, 7] })],
  [
    'a name that the known answer contradicts at two batches',
    { ...axes({ x: ['batch', 3] }, { y: ['rows', 7] }), knownAnswer: answer([1, 1], [4, 4]) },
  ],
  [
    'a shape tensor',
    {
      ...axes({ x: ['batch', 3], size: ['two'] }, { y: ['batch', 7] }),
      profiles: [{ x: sizes(1, 4), size: { ...sizes(1, 9), values: true } }],
    },
  ],
])('%s: the batch', (_what, given) => {
  expect(otherThanBatch(given)).toBeUndefined();
});

test('passports keep names, and the batch is found at any axis', () => {
  const passport = samplePassport(samplePlan());
  passport.plan.inputs = [{ name: 'h', dtype: 'float32', shape: [2, null], symbols: [null, 'B'] }];
  const { inputs } = axesOf(passport);
  expect(inputs[0]?.shape).toEqual([2, 'B']);
  expect([0, 1].map((axis) => isBatchAxis(inputs, 'h', axis))).toEqual([false, true]);
});
