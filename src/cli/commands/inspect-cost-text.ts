import { formatBytes, formatShare, plural } from '../../base/text/quantity.js';
import type { ModelFacts, ValueFacts } from '../../formats/onnx/model-facts.js';

type CostFacts = NonNullable<ModelFacts['cost']>;
type Amount = CostFacts['flops'];

const MOST_OPS = 4;
const LONGEST = 90;

/** FLOPs of one run, and what most of them are spent on. */
export function flopRows(cost: CostFacts): string[][] {
  const { flops, uncountedNodes } = cost;
  const total = [figure(cost, flops, flopCount, uncountedNodes), ...shares(cost)].join('  ');
  if (uncountedNodes === 0) return [[total]];
  return [
    [total, ...shares(cost)],
    [`without ${plural(uncountedNodes, 'node')} of unknown shape or operator`],
  ];
}

/** The peak of activations, and what would make an expression a number. */
export function memoryRows(cost: CostFacts): string[][] {
  const { peakActivationBytes, peakNode, unmeasuredTensors } = cost;
  const peak = figure(cost, peakActivationBytes, formatBytes, unmeasuredTensors);
  const where = peakNode === null ? '' : ` of inner tensors at once, before fusion, at ${peakNode}`;
  const rest =
    unmeasuredTensors === 0 ? [] : [[`without ${plural(unmeasuredTensors, 'tensor')} of unknown size`]];
  return [[`${peak}${where}`], ...rest, ...remedyRows(cost)];
}

/** A figure, or what decides it where its expression is missing or too long to read. */
function figure(
  { openSizes, otherSizes }: CostFacts,
  amount: Amount,
  format: (count: number) => string,
  missing: number,
): string {
  const text = amount === null ? '' : amountText(amount, format);
  if (text !== '' && text.length <= LONGEST) return missing === 0 ? text : `at least ${text}`;
  return `depends on ${[...openSizes, ...otherSizes].join(', ')}`;
}

/** Operators and inputs at which shapes end. */
export const gapRows = ({ gaps }: CostFacts): string[][] =>
  gaps.map(({ reason, op, nodes, first }) => {
    if (reason === 'no-rank')
      return [`the input "${first}" has no declared rank: pass --shapes ${first}:<sizes>`];
    const why = reason === 'no-rule' ? 'no shape rule for this operator' : 'its result is not determined';
    return [`${nodes === 1 ? first : `${plural(nodes, op)}, the first ${first}`}: ${why}`];
  });

/** The shapes and FLOPs of a node. */
export function figuresText(node: NonNullable<ModelFacts['nodeList']>[number]): string {
  const shapes = node.outputShapes.map(shapeText).join(', ');
  const flops = node.flops === null ? '? FLOPs' : `${amountText(node.flops, flopCount)} FLOPs`;
  return node.flops === 0 ? shapes : `${shapes}  ${flops}`;
}

export function shapeText(shape: ValueFacts['shape']): string {
  if (shape === null) return 'no shape';
  return shape.length === 0 ? 'scalar' : shape.map((dim) => dim ?? '?').join(' × ');
}

/** 25557032 is "25.6 M"; billions are `B` of parameters and `G` of FLOPs. */
export function shortCount(count: number, billion: 'B' | 'G' = 'B'): string {
  const units: readonly (readonly [number, string])[] = [
    [1e12, ' T'],
    [1e9, ` ${billion}`],
    [1e6, ' M'],
    [1e3, ' k'],
  ];
  const [scale, unit] = units.find(([least]) => count >= least) ?? [1, ''];
  return scale === 1 ? String(count) : `${(count / scale).toPrecision(3)}${unit}`;
}

const flopCount = (count: number): string => shortCount(count, 'G');

/** A number with its unit, or an expression whose factors have it. */
function amountText(amount: number | string, format: (count: number) => string): string {
  if (typeof amount === 'number') return format(amount);
  return termsOf(amount)
    .map(({ sign, term }) => {
      const [, factor = '1', rest = ''] = /^([\d.]+)(?:\*|$)(.*)$/s.exec(term) ?? ['', '1', term];
      return `${sign}${format(Number(factor))}${rest === '' ? '' : ` × ${rest}`}`;
    })
    .join('');
}

/** The terms of an expression with what stands before them; sums in parentheses are part of a term. */
function termsOf(expression: string): { sign: string; term: string }[] {
  const terms = [{ sign: '', term: '' }];
  let depth = 0;
  for (const part of expression.split(/( [+-] )/)) {
    const last = terms[terms.length - 1]!;
    if (/^ [+-] $/.test(part) && depth === 0) terms.push({ sign: part, term: '' });
    else last.term += part;
    depth += part.split('(').length - part.split(')').length;
  }
  return terms;
}

/** The operators with most of the FLOPs, where their shares are known: of numbers, and of multiples of one product. */
function shares({ flops, flopsByOp }: CostFacts): string[] {
  const [total, product] = multipleOf(flops);
  const parts = Object.entries(flopsByOp).flatMap(([op, amount]) => {
    const [count, rest] = multipleOf(amount);
    return rest === product && total > 0 ? [`${op} ${formatShare(count / total)}`] : [];
  });
  return parts.length === 0 ? [] : [parts.slice(0, MOST_OPS).join(' · ')];
}

/** `12*batch` is 12 times `*batch`. */
function multipleOf(amount: Amount): readonly [factor: number, of: string] {
  if (typeof amount === 'number') return [amount, ''];
  const [, factor = '0', of = ''] = /^(\d+)(\*.*)$/s.exec(amount ?? '') ?? [];
  return [Number(factor), of];
}

/** Options to pass for numbers in the place of expressions. */
function remedyRows({ inputs, openSizes, otherSizes }: CostFacts): string[][] {
  const missing = new Set(openSizes);
  const shapes = Object.entries(inputs).flatMap(([name, shape]) => {
    const named = (shape ?? []).filter(
      (dim): dim is string => typeof dim === 'string' && missing.delete(dim),
    );
    if (named.length === 0) return [];
    return [`${name}:${(shape ?? []).map((dim) => (typeof dim === 'number' ? dim : `<${dim}>`)).join('x')}`];
  });
  return [
    ...(shapes.length === 0 ? [] : [[`for numbers, pass sizes: --shapes ${shapes.join(',')}`]]),
    ...(otherSizes.length === 0
      ? []
      : [[`sizes that are not derived from the inputs: ${otherSizes.join(', ')}`]]),
  ];
}
