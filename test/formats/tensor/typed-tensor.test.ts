import { expect, test } from 'vitest';
import { tensor } from '../../../src/formats/tensor/tensor.js';
import { refusal } from '../../support/refusal.js';

/** As JavaScript calls it, whatever the declaration states. */
const loosely = tensor as (...values: readonly unknown[]) => unknown;

test.each([
  ['the type first, as onnxruntime-node takes it', ['float32', new Float32Array(4), [2, 2]]],
  ['null', [null]],
  ['nothing', []],
  ['a list', [[1, 2], [2]]],
  ['another number of elements', [new Float32Array(3), [2, 2]]],
  ['dimensions as a text', [new Float32Array(4), '2x2']],
  ['no dimensions', [new Float32Array(4), null]],
  ['negative dimensions', [new Float32Array(4), [-2, -2]]],
  ['a type that there is not', [new Float32Array(4), [4], 'flot16']],
  ['a type of another array', [new Float32Array(4), [4], 'float16']],
  ['a list of a type', [[1.5], [1], 'int32']],
])('is not made of %s', (_, values) => {
  expect(refusal(() => loosely(...values))).toMatchObject({ code: 'TF_USAGE' });
});

test('is made of a typed array and its dimensions', () => {
  expect(tensor(new Float32Array(4), [2, 2])).toMatchObject({ dtype: 'float32', shape: [2, 2] });
});
