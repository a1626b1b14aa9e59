/**
 * Sizes of tensors: whole numbers, or expressions of open dimensions such as `batch*((time + 1)//2)`. Expressions are polynomials, so that equal sizes are
 * written in one way and `-1` of a Reshape divides out. Open dimensions are taken to be at least 1. Undefined stands for a size that is not known, and
 * everything computed from one is not known either.
 */
export type Size = number | Expression;
export type MaybeSize = Size | undefined;

/** A factor of a term: an open dimension, or what is not a polynomial of them. Never negative. */
interface Atom {
  readonly text: string;
  readonly kind: 'symbol' | 'quotient' | 'min' | 'max';
  /** The operands of a quotient, minimum or maximum. */
  readonly of: readonly [Size, Size] | readonly [];
  /** Its lower bound. */
  readonly least: number;
}

interface Term {
  readonly factor: number;
  /** Ordered by their text. */
  readonly atoms: readonly Atom[];
  /** The texts of the atoms: what terms of one sum differ in. */
  readonly key: string;
  /** The lower bound of the product of the atoms. */
  readonly least: number;
}

/** A sum of terms by their keys. */
export interface Expression {
  readonly terms: ReadonlyMap<string, Term>;
}

/** Longer expressions are of no use to a reader; sizes beyond are not known. */
const MOST_TERMS = 48;
const MOST_TEXT = 400;
const MOST_FACTORS = 32;
const MOST_DIVISIONS = 64;

export const isNumber = (size: MaybeSize): size is number => typeof size === 'number';

/** An open dimension. */
export const symbol = (name: string): Size => atomSize({ text: name, kind: 'symbol', of: [], least: 1 });

const atomSize = (atom: Atom): Size => ({
  terms: new Map([[atom.text, { factor: 1, atoms: [atom], key: atom.text, least: atom.least }]]),
});

const NO_TERMS: ReadonlyMap<string, Term> = new Map();

function termMap(size: Size): ReadonlyMap<string, Term> {
  if (!isNumber(size)) return size.terms;
  return size === 0 ? NO_TERMS : new Map([['', { factor: size, atoms: [], key: '', least: 1 }]]);
}

const termsOf = (size: Size): Iterable<Term> => termMap(size).values();

const scaled = (term: Term, factor: number): Term => ({ ...term, factor: term.factor * factor });

function product(a: Term, b: Term): Term {
  if (a.atoms.length === 0 || b.atoms.length === 0)
    return a.atoms.length === 0 ? scaled(b, a.factor) : scaled(a, b.factor);
  const atoms = [...a.atoms, ...b.atoms].sort(byText);
  return { factor: a.factor * b.factor, atoms, key: keyOf(atoms), least: a.least * b.least };
}

const byText = (a: Atom, b: Atom) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0);
const keyOf = (atoms: readonly Atom[]): string => atoms.map(({ text }) => text).join('\0');

function sumOf(terms: Iterable<Term>): MaybeSize {
  const sum = new Map<string, Term>();
  for (const term of terms) {
    const known = sum.get(term.key);
    const factor = (known?.factor ?? 0) + term.factor;
    if (!Number.isFinite(factor)) return undefined;
    if (factor === 0) sum.delete(term.key);
    else sum.set(term.key, known === undefined ? term : { ...term, factor });
  }
  if (sum.size === 0) return 0;
  if (sum.size > MOST_TERMS) return undefined;
  return sum.size === 1 && sum.has('') ? sum.get('')?.factor : { terms: sum };
}

export function add(...sizes: readonly MaybeSize[]): MaybeSize {
  if (sizes.every(isNumber)) return finite(sizes.reduce((sum, size) => sum + size, 0));
  if (!areKnown(sizes)) return undefined;
  const parts = sizes.filter((size) => size !== 0);
  return parts.length === 1 ? parts[0] : sumOf(parts.flatMap((size) => [...termsOf(size)]));
}

export function multiply(...sizes: readonly MaybeSize[]): MaybeSize {
  let [factor, product]: [number, Size] = [1, 1];
  for (const size of sizes) {
    if (isNumber(size)) factor *= size;
    else {
      const next: MaybeSize = product === 1 ? size : multiplyTwo(product, size);
      if (next === undefined) return undefined;
      product = next;
    }
  }
  return product === 1 ? finite(factor) : factor === 1 ? product : multiplyTwo(product, factor);
}

function multiplyTwo(a: MaybeSize, b: MaybeSize): MaybeSize {
  if (a === undefined || b === undefined) return undefined;
  if (degree(a) + degree(b) > MOST_FACTORS) return undefined;
  return sumOf(
    Array.from(termsOf(a)).flatMap((one) => Array.from(termsOf(b), (other) => product(one, other))),
  );
}

const degree = (size: Size): number =>
  isNumber(size) ? 0 : Math.max(...Array.from(termsOf(size), ({ atoms }) => atoms.length));

const finite = (size: number): MaybeSize => (Number.isFinite(size) ? size : undefined);
const areKnown = (sizes: readonly MaybeSize[]): sizes is readonly Size[] => !sizes.includes(undefined);

export function subtract(a: MaybeSize, b: MaybeSize): MaybeSize {
  if (isNumber(a) && isNumber(b)) return finite(a - b);
  if (a === undefined || b === undefined) return undefined;
  return sumOf([...termsOf(a), ...Array.from(termsOf(b), (term) => scaled(term, -1))]);
}

export const equals = (a: MaybeSize, b: MaybeSize): boolean =>
  isNumber(a) || isNumber(b) ? a === b : subtract(a, b) === 0;

/** `a / b` where it leaves nothing over; undefined where it does, or where that is not certain. */
export function divideExactly(a: MaybeSize, b: MaybeSize): MaybeSize {
  if (a === undefined || b === undefined || b === 0) return undefined;
  if (isNumber(a) && isNumber(b)) return Number.isInteger(a / b) ? a / b : undefined;
  const divisor = leadingTerm(b);
  let rest: Size = a;
  let result: Size = 0;
  for (let step = 0; rest !== 0; step++) {
    const part = step < MOST_DIVISIONS ? divideTerm(leadingTerm(rest), divisor) : undefined;
    const [sum, left]: MaybeSize[] = [add(result, part), subtract(rest, multiply(part, b))];
    if (sum === undefined || left === undefined) return undefined;
    [result, rest] = [sum, left];
  }
  return result;
}

/** Of a size that is not 0. */
const leadingTerm = (size: Size): Term => orderedTerms(size)[0]!;

/** The highest power first. */
const orderedTerms = (size: Size): readonly Term[] =>
  [...termsOf(size)].sort((a, b) => b.atoms.length - a.atoms.length || (a.key < b.key ? -1 : 1));

function divideTerm(a: Term, b: Term): MaybeSize {
  const factor = a.factor / b.factor;
  const atoms = [...a.atoms];
  for (const atom of b.atoms) {
    const at = atoms.findIndex(({ text }) => text === atom.text);
    if (at < 0) return undefined;
    atoms.splice(at, 1);
  }
  if (!Number.isInteger(factor)) return undefined;
  return atoms.map(atomSize).reduce(multiplyTwo, factor);
}

/** `a / b` rounded down; `b` above 0. */
export function divide(a: MaybeSize, b: MaybeSize): MaybeSize {
  if (a === undefined || b === undefined || b === 0) return undefined;
  if (isNumber(a) && isNumber(b)) return Math.floor(a / b);
  const exact = divideExactly(a, b);
  if (exact !== undefined) return exact;
  if (!isNumber(b)) return quotient(a, b);
  if (b < 0 || !Number.isInteger(b)) return undefined;
  const common = Array.from(termsOf(a), ({ factor }) => factor).reduce(commonDivisor, b);
  if (common > 1) return divide(divideExactly(a, common), b / common);
  // Whole multiples leave the quotient, so that (2n + 1)//2 is n.
  const whole = sumOf(Array.from(termsOf(a), (term) => ({ ...term, factor: Math.floor(term.factor / b) })));
  const rest = subtract(a, multiply(whole, b));
  if (rest === undefined || isNumber(rest)) return rest === undefined ? undefined : whole;
  return add(whole, nestedQuotient(rest, b) ?? quotient(rest, b));
}

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, Math.abs(a % b)));

/** (x//a + c)//b is (x + a·c)//(a·b). */
function nestedQuotient(size: Expression, by: number): MaybeSize {
  const [inner, ...others] = [...size.terms.values()].filter(({ atoms }) => atoms.length > 0);
  const [atom] = inner?.atoms ?? [];
  if (others.length > 0 || inner?.factor !== 1 || inner.atoms.length > 1 || atom?.kind !== 'quotient')
    return undefined;
  const [of, divisor] = atom.of;
  if (!isNumber(divisor)) return undefined;
  const constant = size.terms.get('')?.factor ?? 0;
  return divide(add(of, divisor * constant), divisor * by);
}

const quotient = (a: Size, b: Size): MaybeSize =>
  lowerBound(a) < 0 ? undefined : atomOf('quotient', `(${operand(a)}//${operand(b)})`, [a, b]);

const operand = (size: Size): string => {
  const text = sizeText(size);
  return / [+-] |\*/.test(text) ? `(${text})` : text;
};

function atomOf(kind: Exclude<Atom['kind'], 'symbol'>, text: string, of: readonly [Size, Size]): MaybeSize {
  if (text.length > MOST_TEXT) return undefined;
  const [a, b] = [lowerBound(of[0]), lowerBound(of[1])];
  const least = {
    quotient: isNumber(of[1]) ? Math.floor(a / b) : 0,
    min: Math.min(a, b),
    max: Math.max(a, b),
  };
  return atomSize({ text, kind, of, least: Math.max(0, least[kind]) });
}

export const divideUp = (a: MaybeSize, b: MaybeSize): MaybeSize =>
  isNumber(a) && isNumber(b) ? finite(Math.ceil(a / b)) : divide(add(a, b, -1), b);

/** The whole number below a size that was multiplied by a fraction. */
export function roundDown(size: MaybeSize): MaybeSize {
  if (isNumber(size)) return Math.floor(size);
  for (const denominator of [1, 2, 4, 8, 16, 32, 64]) {
    const multiple = multiply(size, denominator);
    if (
      multiple !== undefined &&
      Array.from(termsOf(multiple)).every(({ factor }) => Number.isInteger(factor))
    )
      return divide(multiple, denominator);
  }
  return undefined;
}

/** Whether `a >= b` for all sizes of the open dimensions; undefined where it depends on them. */
export function isAtLeast(a: MaybeSize, b: MaybeSize): boolean | undefined {
  if (isNumber(a) && isNumber(b)) return a >= b;
  if (a === undefined || b === undefined) return undefined;
  if (leastDifference(a, b) >= 0) return true;
  return leastDifference(b, a) > 0 ? false : undefined;
}

const lowerBound = (size: Size): number => leastDifference(size, 0);

/** The lower bound of `a - b`; -Infinity where a dimension is subtracted. */
function leastDifference(a: Size, b: Size): number {
  const [more, less] = [termMap(a), termMap(b)];
  let bound = 0;
  for (const { key, factor, least } of more.values()) {
    const difference = factor - (less.get(key)?.factor ?? 0);
    if (difference < 0 && key !== '') return Number.NEGATIVE_INFINITY;
    bound += difference * least;
  }
  for (const { key, factor, least } of less.values()) {
    if (more.has(key)) continue;
    if (factor > 0 && key !== '') return Number.NEGATIVE_INFINITY;
    bound -= factor * least;
  }
  return bound;
}

export function minimum(a: MaybeSize, b: MaybeSize): MaybeSize {
  if (isAtLeast(a, b) === true) return b;
  if (isAtLeast(b, a) === true) return a;
  return a === undefined || b === undefined || lowerBound(a) < 0 || lowerBound(b) < 0
    ? undefined
    : atomOf('min', `min(${sizeText(a)}, ${sizeText(b)})`, [a, b]);
}

/** The larger; where one is the minimum of the other and something, the other. */
export function maximum(a: MaybeSize, b: MaybeSize): MaybeSize {
  if (isAtLeast(a, b) === true) return a;
  if (isAtLeast(b, a) === true) return b;
  if (a === undefined || b === undefined) return undefined;
  if (isOneOf('min', a, b) || isOneOf('max', b, a)) return b;
  if (isOneOf('min', b, a) || isOneOf('max', a, b)) return a;
  return Math.max(lowerBound(a), lowerBound(b)) < 0
    ? undefined
    : atomOf('max', `max(${sizeText(a)}, ${sizeText(b)})`, [a, b]);
}

/** Whether `size` is the minimum or maximum of `part` and something. */
function isOneOf(kind: 'min' | 'max', size: Size, part: Size): boolean {
  const [term, ...others] = termsOf(size);
  const [atom] = term?.atoms ?? [];
  return (
    others.length === 0 &&
    term?.factor === 1 &&
    term.atoms.length === 1 &&
    atom?.kind === kind &&
    atom.of.some((each) => equals(each, part))
  );
}

/** In the syntax of Python, the highest power first: `batch*((time + 1)//2)`. Names of dimensions stand as the model has them. */
export const sizeText = (size: Size): string =>
  isNumber(size)
    ? String(size)
    : namedTerms(size)
        .map(({ factor, names }, index) => {
          const amount = Math.abs(factor);
          const text = [...(amount === 1 && names.length > 0 ? [] : [amount]), ...names].join('*');
          if (index === 0) return factor < 0 ? `-${text}` : text;
          return `${factor < 0 ? '-' : '+'} ${text}`;
        })
        .join(' ');

const namedTerms = (size: Size) =>
  orderedTerms(size).map(({ factor, atoms }) => {
    const powers = new Map<string, number>();
    for (const { text } of atoms) powers.set(text, (powers.get(text) ?? 0) + 1);
    return { factor, names: [...powers].map(([name, power]) => (power === 1 ? name : `${name}**${power}`)) };
  });

/** The open dimensions that a size depends on. */
export function symbolsOf(size: Size): readonly string[] {
  const names = Array.from(termsOf(size), ({ atoms }) =>
    atoms.flatMap(({ kind, text, of }) => (kind === 'symbol' ? [text] : of.flatMap(symbolsOf))),
  );
  return [...new Set(names.flat())];
}

/** The value of a size where its open dimension `name` is `value`; NaN where it depends on others. */
export function evaluated(size: Size, name: string, value: number): number {
  const atom = ({ kind, text, of }: Atom): number => {
    if (kind === 'symbol') return text === name ? value : Number.NaN;
    const [a = 0, b = 0] = of.map((part) => evaluated(part, name, value));
    return kind === 'quotient' ? Math.floor(a / b) : Math[kind](a, b);
  };
  const terms = Array.from(termsOf(size), ({ factor, atoms }) =>
    atoms.reduce((product, each) => product * atom(each), factor),
  );
  return terms.reduce((sum, term) => sum + term, 0);
}

export type Shape = readonly MaybeSize[];

/** A number as it is, an expression in the syntax of Python. */
export const amountText = (size: MaybeSize): number | string | null =>
  size === undefined ? null : isNumber(size) ? size : sizeText(size);

export const dimensionsText = (shape: Shape | undefined): (number | string | null)[] | null =>
  shape?.map(amountText) ?? null;
