import { type Flow, isConstant, isFloat32, type Operation, type Value } from '../flow.js';
import type { ResolvedConversion } from '../options.js';
import { type PlacementFacts, placementRules, weighted } from './placement-rules.js';
import { type WeightOperand, weightOperand } from './weight-operand.js';

/** An input of an operation that reads dequantized values. */
export interface ActivationInput {
  readonly operation: Operation;
  readonly index: number;
  readonly value: Value;
}

/** The decision on one operation, and its reason. */
export interface PlacementDecision {
  readonly operation: Operation;
  readonly quantized: boolean;
  /** The rule that keeps it out, or what it is quantized as. */
  readonly rule: string;
  readonly reason: string;
  readonly activations: readonly ActivationInput[];
  readonly weight: WeightOperand | undefined;
}

/** Where pairs go. */
export interface Placement {
  /** Every operation that was considered, in graph order. */
  readonly decisions: readonly PlacementDecision[];
  /** The activations with a pair, each once. */
  readonly activations: readonly Value[];
}

/** Why no scale fits a value; undefined where one does, or where that is not known yet. */
export interface Obstacles {
  activation(value: Value): string | undefined;
  weight(operand: WeightOperand): string | undefined;
}

const notKnown: Obstacles = { activation: () => undefined, weight: () => undefined };

/** The roles in which operations are quantized, besides the rules that keep them out. */
export const placements: Readonly<Record<string, string>> = {
  weighted: 'Operations with a stored weight',
  residual: 'Additions to the result of a quantized convolution',
  pooling: 'Poolings between quantized values',
};

/** The reasons that keep an operation out besides the rules. */
export const leftOut: Readonly<Record<string, string>> = {
  range: 'A range or a weight that no scale fits',
  pooling: 'A pooling between values that are not quantized',
};

/**
 * Decides which operations of a model are quantized, by NVIDIA's published rules for explicit quantization and by what plans of tensorrt-rtx show:
 * all inputs of operations with weights, none of their outputs. Nothing is changed. What reads a value with an
 * obstacle is kept out.
 */
export function placeQuantizers(
  flow: Flow,
  options: ResolvedConversion,
  obstacles: Obstacles = notKnown,
): Placement {
  const { quantization } = options;
  if (quantization === undefined) return { decisions: [], activations: [] };
  const { format } = quantization;
  const facts: PlacementFacts = { options, format };
  const decisions = new Map<Operation, PlacementDecision>();
  for (const operation of flow.operations)
    if (weighted.has(operation.node.opType) && hasFloats(operation))
      decisions.set(operation, decideWeighted(operation, facts, obstacles));
  const isQuantized = (operation: Operation) => decisions.get(operation)?.quantized === true;
  if (format.activations) {
    for (const operation of flow.operations) {
      const decision = decideResidual(operation, facts, isQuantized, obstacles);
      if (decision !== undefined) decisions.set(operation, decision);
    }
    const withPair = new Set(activationsOf(decisions.values()));
    for (const operation of flow.operations) {
      const decision = decidePooling(operation, facts, withPair);
      if (decision !== undefined) decisions.set(operation, decision);
    }
  }
  const inOrder = flow.operations.flatMap((operation) => decisions.get(operation) ?? []);
  return { decisions: inOrder, activations: activationsOf(inOrder) };
}

const hasFloats = ({ inputs, outputs }: Operation): boolean => isFloat32(inputs[0]) && isFloat32(outputs[0]);

const activationsOf = (decisions: Iterable<PlacementDecision>): readonly Value[] => [
  ...new Set([...decisions].flatMap(({ activations }) => activations.map(({ value }) => value))),
];

const kept = (operation: Operation, rule: string, reason: string): PlacementDecision => ({
  operation,
  quantized: false,
  rule,
  reason,
  activations: [],
  weight: undefined,
});

function decideWeighted(
  operation: Operation,
  facts: PlacementFacts,
  obstacles: Obstacles,
): PlacementDecision {
  for (const rule of placementRules) {
    const reason = rule.decide(operation, facts);
    if (reason !== undefined) return kept(operation, rule.id, reason);
  }
  const weight = weightOperand(operation);
  const [value] = operation.inputs;
  const activations = facts.format.activations && value !== undefined ? [{ operation, index: 0, value }] : [];
  const obstacle =
    activations.map((each) => obstacles.activation(each.value)).find((why) => why !== undefined) ??
    (weight && obstacles.weight(weight));
  if (obstacle !== undefined) return kept(operation, 'range', obstacle);
  return {
    ...kept(operation, 'weighted', 'it multiplies by a stored weight'),
    quantized: true,
    activations,
    weight,
  };
}

function decideResidual(
  operation: Operation,
  { format }: PlacementFacts,
  isQuantized: (operation: Operation) => boolean,
  obstacles: Obstacles,
): PlacementDecision | undefined {
  if (!format.operators.has('Add') || operation.node.opType !== 'Add' || !hasFloats(operation))
    return undefined;
  const index = residualInput(operation, isQuantized);
  const value = index === undefined ? undefined : operation.inputs[index];
  if (index === undefined || value === undefined || isConstant(value)) return undefined;
  const obstacle = obstacles.activation(value);
  if (obstacle !== undefined) return kept(operation, 'range', obstacle);
  return {
    ...kept(operation, 'residual', `"${value.name}" is added to the result of a quantized convolution`),
    quantized: true,
    activations: [{ operation, index, value }],
  };
}

function decidePooling(
  operation: Operation,
  { format }: PlacementFacts,
  withPair: ReadonlySet<Value>,
): PlacementDecision | undefined {
  const [value] = operation.inputs;
  const [output] = operation.outputs;
  if (!/^(Global)?AveragePool$/.test(operation.node.opType) || !format.operators.has(operation.node.opType))
    return undefined;
  if (value === undefined || output === undefined) return undefined;
  if (!withPair.has(value) || !withPair.has(output))
    return kept(operation, 'pooling', 'what it reads or what reads it is not quantized');
  return {
    ...kept(operation, 'pooling', 'what it reads and what reads it are quantized'),
    quantized: true,
    activations: [{ operation, index: 0, value }],
  };
}

/** Branches longer than this are not followed. */
const LONGEST_BRANCH = 64;

/**
 * Which operand of an addition is the residual: the one that the quantized convolution of the other branch is not fused with. Where both branches end in a
 * quantized convolution, the longer branch is the one fused (as ModelOpt has it). Undefined where no branch ends in one.
 */
function residualInput(add: Operation, isQuantized: (operation: Operation) => boolean): number | undefined {
  const [left, right] = add.inputs;
  if (left === undefined || right === undefined || left === right || isConstant(left) || isConstant(right))
    return undefined;
  const [fromLeft, fromRight] = [left, right].map((value) => convolutionBehind(value, isQuantized));
  if (fromLeft === undefined) return fromRight === undefined ? undefined : 0;
  if (fromRight === undefined) return 1;
  return branchLength(left) >= branchLength(right) ? 1 : 0;
}

/** The quantized convolution whose result, read by nothing else, reaches a value by what is fused into it. */
function convolutionBehind(
  value: Value,
  isQuantized: (operation: Operation) => boolean,
): Operation | undefined {
  const { producer } = value;
  if (producer === undefined || value.uses.length !== 1) return undefined;
  const { node, inputs } = producer;
  if (node.opType === 'Conv') return isQuantized(producer) ? producer : undefined;
  const [first, ...others] = inputs;
  const isFused =
    node.opType === 'BatchNormalization' ||
    ((node.opType === 'Add' || node.opType === 'Mul') &&
      others.every((other) => other !== undefined && isConstant(other)));
  return isFused && first !== undefined ? convolutionBehind(first, isQuantized) : undefined;
}

/** Operations back to where the branches part: the first value that more than one reads. */
function branchLength(value: Value): number {
  let length = 0;
  for (let at: Value | undefined = value; at !== undefined && length < LONGEST_BRANCH; length++) {
    if (length > 0 && at.uses.length > 1) return length;
    at = at.producer?.inputs.find((input) => input !== undefined && !isConstant(input));
  }
  return length;
}
