import { describe, expect, it } from 'vitest';
import {
  add,
  divide,
  divideExactly,
  divideUp,
  equals,
  isAtLeast,
  type MaybeSize,
  maximum,
  minimum,
  multiply,
  roundDown,
  sizeText,
  subtract,
  symbol,
  symbolsOf,
} from '../../../../src/formats/onnx/shapes/size.js';

const [n, t] = [symbol('n'), symbol('t')];
const text = (size: MaybeSize) => (size === undefined ? undefined : sizeText(size));

describe('a size', () => {
  it.each<[string, MaybeSize, string | undefined]>([
    ['a sum in one order', add(t, 3, multiply(n, t, 2), t), '2*n*t + 2*t + 3'],
    ['a difference', subtract(n, 1), 'n - 1'],
    ['what cancels', subtract(add(n, t), t), 'n'],
    ['powers', multiply(n, n, t), 'n**2*t'],
    ['numbers', divideUp(multiply(7, 3), 2), '11'],
    ['a quotient', divide(add(t, 1), 2), '((t + 1)//2)'],
    ['whole multiples before the quotient', divide(add(multiply(n, 4), t, 5), 2), '((t + 1)//2) + 2*n + 2'],
    ['a quotient of a quotient', divide(add(divide(add(t, 1), 2), 1), 2), '((t + 3)//4)'],
    ['a quotient that is smaller than 1', divide(add(multiply(n, 2), 1), 2), 'n'],
    ['rounding up', divideUp(t, 2), '((t + 1)//2)'],
    ['half of an even number', roundDown(multiply(n, 2, 0.5)), 'n'],
    ['a fraction', roundDown(multiply(n, 1.5)), '(n//2) + n'],
    ['a fraction of no power of two', roundDown(multiply(n, 0.3)), undefined],
    ['an exact quotient of products', divideExactly(multiply(n, t, 12), multiply(n, 4)), '3*t'],
    ['an exact quotient of sums', divideExactly(multiply(add(n, 1), add(t, 2)), add(t, 2)), 'n + 1'],
    ['no exact quotient', divideExactly(multiply(n, t), add(n, 1)), undefined],
    ['a minimum', minimum(t, 64), 'min(t, 64)'],
    ['a minimum that is known', minimum(add(t, 1), t), 't'],
    ['a maximum that is known', maximum(0, subtract(t, 1)), 't - 1'],
    ['the maximum of a size and a part of it', maximum(minimum(t, 64), t), 't'],
    ['zero for nothing', divide(n, 0), undefined],
    ['what is too large', multiply(1e300, 1e300), undefined],
  ])('is written as %s', (_, size, expected) => expect(text(size)).toBe(expected));

  it('is compared for all values of its dimensions, which are at least 1', () => {
    expect(isAtLeast(multiply(n, 2), n)).toBe(true);
    expect(isAtLeast(1, add(n, 1))).toBe(false);
    expect(isAtLeast(n, 2)).toBeUndefined();
    expect(isAtLeast(n, undefined)).toBeUndefined();
    expect(equals(add(n, t), add(t, n))).toBe(true);
    expect(equals(undefined, undefined)).toBe(false);
  });

  it('names the dimensions that it depends on', () => {
    const size = add(divide(add(t, 1), 2), minimum(n, symbol('m'))) ?? 0;
    expect([...symbolsOf(size)].sort()).toEqual(['m', 'n', 't']);
  });

  it('is not known where its expression has too many terms', () => {
    const many = Array.from({ length: 60 }, (_, index) => symbol(`s${index}`));
    expect(add(...many)).toBeUndefined();
    expect(multiply(add(...many), 2)).toBeUndefined();
  });
});
