import { unknown } from './rule-input.js';
import { isNumber, type MaybeSize, multiply, type Shape } from './size.js';

interface Terms {
  readonly result: string;
  readonly sizes: ReadonlyMap<string, MaybeSize>;
}

/** Axes that `...` stands for, counted from the last. */
const ELLIPSIS = 'ABCDEFGHIJKLMNOP';

/** Reads `bij,bjk->bik`; without `->` the result has the letters that occur once, by their order in the alphabet. */
function termsOf(equation: string, shapes: readonly Shape[]): Terms {
  const [left = '', right] = equation.replaceAll(' ', '').split('->');
  const operands = left.split(',');
  if (operands.length !== shapes.length || /[A-Z]/.test(equation)) return unknown();
  let widest = '';
  const sizes = new Map<string, MaybeSize>();
  for (const [index, operand] of operands.entries()) {
    const shape = shapes[index] ?? unknown();
    const rank = shape.length - operand.replace('...', '').length;
    const rest = operand.includes('...') && rank > 0 ? ELLIPSIS.slice(-rank) : '';
    if (rest.length > widest.length) widest = rest;
    const letters = [...operand.replace('...', rest)];
    if (letters.length !== shape.length) return unknown();
    for (const [axis, letter] of letters.entries()) {
      const known = sizes.get(letter);
      if (known === undefined || known === 1 || (!isNumber(known) && isNumber(shape[axis])))
        sizes.set(letter, shape[axis]);
    }
  }
  const letters = [...left.replaceAll(/[.,]/g, '')].sort();
  const once = letters.filter((letter) => letters.indexOf(letter) === letters.lastIndexOf(letter)).join('');
  return { result: (right ?? `...${once}`).replace('...', widest), sizes };
}

export function einsumShape(equation: string, shapes: readonly Shape[]): Shape {
  const { result, sizes } = termsOf(equation, shapes);
  return [...result].map((letter) => (sizes.has(letter) ? sizes.get(letter) : unknown()));
}

/** Multiply-adds of one product over all letters, times the operands but one. */
export function einsumProducts(equation: string, shapes: readonly Shape[]): MaybeSize {
  return multiply(...termsOf(equation, shapes).sizes.values(), Math.max(1, shapes.length - 1));
}
