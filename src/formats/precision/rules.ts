import { attributeOf } from '../onnx/attributes.js';
import { nodeName } from '../onnx/graph.js';
import { firstOpset, formalAt, plainDomain } from '../onnx/operators.js';
import { isPairPart } from '../onnx/quantized-operations.js';
import { smallIntegers } from '../onnx/shapes/stored-value.js';
import { isControl } from './control-flow.js';
import { isFloat32, type Operation, operatorName, type Scope } from './flow.js';
import type { FloatFormat } from './formats/format.js';
import { MASK_VALUE } from './masks.js';
import { keptByDefault, weightRole } from './operator-traits.js';
import type { ResolvedConversion } from './options.js';
import type { WeightAt } from './range-arithmetic.js';
import { slotsOf } from './slots.js';
import type { ShapeOf } from './value-shapes.js';

/** The facts that a rule may use besides the node itself. */
export interface RuleFacts {
  readonly options: ResolvedConversion;
  /** The operations a search over the whole graph has singled out. */
  readonly shapeArithmetic: ReadonlySet<Operation>;
  readonly angles: ReadonlySet<Operation>;
  readonly variance: ReadonlySet<Operation>;
  /** With why values on their way are too small, too large or too near 1. */
  readonly ranges: ReadonlyMap<Operation, string>;
  /** Set when most matrix products and convolutions already are in 16 bits: how many of how many. */
  readonly alreadyTyped: { readonly low: number; readonly all: number } | undefined;
  /** The FP32 weights that reach an input of the operation unchanged, without the masks that are clamped. */
  weights(operation: Operation): Iterable<WeightAt>;
  readonly shapeOf: ShapeOf;
}

/** Decides whether one kind of reason keeps a node in FP32 that would be converted to a format. */
interface Rule {
  /** Stable; reports and scripts refer to it. */
  readonly id: string;
  readonly title: string;
  /** Why the rule is there: one or two sentences for the documentation. */
  readonly reason: string;
  /** The reason that holds for this node, or undefined when the rule does not apply. */
  readonly decide: (operation: Operation, facts: RuleFacts, format: FloatFormat) => string | undefined;
}

const recurrent: ReadonlySet<string> = new Set(['LSTM', 'GRU', 'RNN']);

/** Why TensorRT does not build the operation in a type that ONNX allows. */
export function notBuilt({ node }: Operation, { label, notBuilt }: FloatFormat): string | undefined {
  if (notBuilt.has(node.opType)) return `TensorRT does not build ${node.opType} in ${label}`;
  return recurrent.has(node.opType) && (node.input[4] ?? '') !== ''
    ? `TensorRT does not build ${node.opType} with sequence_lens in ${label}`
    : undefined;
}

/** The user's requests to leave nodes as they are: the first two rules of everything that decides on nodes. */
export const requestedRules = [
  {
    id: 'keep-node',
    title: 'Named by --keep-nodes',
    reason: 'Requested, by a regular expression that the node name matches.',
    decide: ({ node }: Operation, { options }: { readonly options: ResolvedConversion }) => {
      const pattern = options.keepNodes.find((regex) => regex.test(nodeName(node)));
      return pattern && `its name matches ${pattern}`;
    },
  },
  {
    id: 'keep-op',
    title: 'Named by --keep-ops',
    reason: 'Requested, by the operator type.',
    decide: (operation: Operation, { options }: { readonly options: ResolvedConversion }) =>
      options.keepOps.has(operatorName(operation))
        ? `--keep-ops names ${operatorName(operation)}`
        : undefined,
  },
] as const;

/** In this order; the first rule that keeps a node is the one recorded. */
export const rules: readonly Rule[] = [
  ...requestedRules,
  {
    id: 'already-typed',
    title: 'The model is typed already',
    reason:
      'When most matrix products and convolutions of a model are in 16 bits, what stays FP32 was chosen before. Converting again changes nothing.',
    decide: (_, { alreadyTyped }) =>
      alreadyTyped &&
      `${alreadyTyped.low} of ${alreadyTyped.all} matrix products and convolutions are in 16 bits already`,
  },
  {
    id: 'unknown-operator',
    title: 'Not an ONNX operator',
    reason:
      'What types a plug-in or an operator of another domain takes is not written in the model, so its types, and all in its bodies, are left alone unless --plugin-types declares them.',
    decide: (operation, { options }, { dtype, label }) => {
      const owner = foreignOwner(operation.scope);
      if (owner !== undefined) return `it is in a body of ${operatorName(owner)}`;
      if (operation.bodies.length > 0)
        return `it calls its bodies in another way than If, Loop and Scan of current opsets`;
      if (options.pluginTypes.has(operatorName(operation)))
        return slotsOf(operation, dtype).includes('follows')
          ? undefined
          : `--plugin-types declares nothing of it in ${label}`;
      if (plainDomain(operation.node.domain) !== '')
        return `${operatorName(operation)} is of another domain than ONNX's`;
      return operation.signature === undefined
        ? `ONNX does not define ${operatorName(operation)} at opset ${operation.opset}`
        : undefined;
    },
  },
  {
    id: 'unknown-type',
    title: 'Fed by a value of unknown type',
    reason:
      'All inputs of an operator must get one type; where one of them has no known type, the result could be badly typed.',
    decide: (operation) => {
      const unknown = operation.inputs.find(
        (value, index) => value !== undefined && value.type === undefined && isTypeVariable(operation, index),
      );
      return unknown && `the type of "${unknown.name}" is not known`;
    },
  },
  {
    id: 'not-built',
    title: 'TensorRT does not build it in this type',
    reason: 'ONNX allows the type but TensorRT rejects it, which was tried operator by operator.',
    decide: (operation, _, format) => notBuilt(operation, format),
  },
  {
    id: 'opset',
    title: 'The operator has no form of this type at this opset',
    reason:
      'ONNX allows FP16 and BF16 per operator from a certain opset on (BF16 convolutions: 22). The opset is raised where that changes nothing else.',
    decide: (operation, _, format) => missingInOpset(operation, format),
  },
  {
    id: 'shape-arithmetic',
    title: 'Computes sizes',
    reason:
      'TensorRT computes shapes in integers or FP32 only, and 16 bits are too few to count with: FP16 ends at 65504 and skips integers from 2049 on.',
    decide: (operation, { shapeArithmetic }) =>
      shapeArithmetic.has(operation) ? 'it computes a shape' : undefined,
  },
  {
    id: 'angle',
    title: 'Computes the angle of a sine or cosine',
    reason:
      'Positions times frequencies reach thousands of radians, of which 16 bits keep whole turns at best.',
    decide: (operation, { angles }) =>
      angles.has(operation) ? 'it computes the argument of Sin, Cos or Tan' : undefined,
  },
  {
    id: 'variance',
    title: 'Part of a normalisation written out in single steps',
    reason:
      'Squares overflow FP16 from 256 on, and small epsilons vanish, so that a constant row is divided by zero. LayerNormalization and related operators are converted: TensorRT computes their statistics in FP32.',
    decide: (operation, { variance }) =>
      variance.has(operation) ? 'it lies between the square and the division of a normalisation' : undefined,
  },
  {
    id: 'op-default',
    title: 'Operator that stays FP32 by default',
    reason:
      'Operators that square, exponentiate, accumulate, count, or take coordinates; --convert-ops overrides it.',
    decide: (operation, { options }) => {
      const name = operatorName(operation);
      const why = options.convertOps.has(name) ? undefined : keptByDefault(name, operation.node);
      if (why === undefined) return undefined;
      return `${operation.node.opType} ${why}`;
    },
  },
  {
    id: 'weight-range',
    title: 'A weight does not fit the type',
    reason:
      'A weight beyond the largest value (or --init-max) would be clamped; a factor of mostly subnormal values would lose its digits. Addends that small change nothing, and masks and limits are clamped instead.',
    decide: (operation, facts, format) => {
      for (const weight of facts.weights(operation)) {
        const why = weightMisfit(operation, weight, facts.options.initMax, format);
        if (why !== undefined) return why;
      }
      return undefined;
    },
  },
  {
    id: 'range',
    title: 'Between what is too small, large or near 1 for the type and what depends on it',
    reason:
      'A value that 16 bits would make 0, infinite or 1 stays FP32 from where it is made up to and including the logarithm, division, root, comparison or product that reads it.',
    decide: (operation, { ranges }) => ranges.get(operation),
  },
  {
    id: 'data-range',
    title: 'An activation went beyond --data-max',
    reason:
      'Calibration ran the model and saw values that FP16 would represent badly or not at all on data only a little different.',
    decide: (operation, { options }) => {
      for (const value of [...operation.inputs, ...operation.outputs]) {
        if (value === undefined || !isFloat32(value)) continue;
        const range = options.ranges?.get(value.name);
        if (range === undefined) continue;
        const magnitude = Math.max(-range.min, range.max);
        if (!(magnitude <= options.dataMax))
          return `"${value.name}" reached ${quantity(range.min)} … ${quantity(range.max)}, beyond ±${quantity(options.dataMax)}`;
      }
      return undefined;
    },
  },
  {
    id: 'reduction-depth',
    title: 'Sums more terms than --max-reduction-depth',
    reason: 'The rounding error of a product or a sum grows with the number of terms added up.',
    decide: (operation, { options, shapeOf }) => {
      if (options.maxReductionDepth === undefined) return undefined;
      const depth = reductionDepth(operation, shapeOf);
      return depth !== undefined && depth > options.maxReductionDepth
        ? `it adds up ${depth} terms, more than ${options.maxReductionDepth}`
        : undefined;
    },
  },
];

/** Not decided node by node: what lies between nodes that stay. */
export const betweenRule: Omit<Rule, 'decide'> = {
  id: 'between',
  title: 'Lies between nodes that stay FP32',
  reason:
    'Operators that only move, choose or combine values one by one stay with FP32 neighbours: casting down and up again would round and save nothing.',
};

/** The operation around a scope that calls its bodies in a way that ONNX does not define. */
function foreignOwner({ owner }: Scope): Operation | undefined {
  return owner === undefined || !isControl(owner) ? owner : foreignOwner(owner.scope);
}

const isTypeVariable = (operation: Operation, index: number): boolean => {
  const formal = formalAt(operation.signature?.inputs ?? [], index);
  return formal?.variable !== undefined && formal.variadic !== 'mixed';
};

function missingInOpset(operation: Operation, { dtype, label }: FloatFormat): string | undefined {
  const slots = slotsOf(operation, dtype);
  if (!slots.includes('unsupported') && (slots.includes('follows') || !slots.includes('fixed')))
    return undefined;
  const { node, opset } = operation;
  const since = firstOpset(node.domain, node.opType, opset, (signature) =>
    [...signature.inputs, ...signature.outputs].some(
      (formal) => formal.variable !== undefined && formal.allowed.has('float32') && formal.allowed.has(dtype),
    ),
  );
  const newer = since === undefined || since === opset ? 'no opset' : `opset ${since}`;
  return newer === 'no opset'
    ? `ONNX does not define ${node.opType} in ${label}`
    : `${node.opType} takes ${label} from ${newer} on, and the model is opset ${opset}`;
}

function weightMisfit(
  operation: Operation,
  { index, name, facts }: WeightAt,
  initMax: number,
  { weightLoss }: FloatFormat,
): string | undefined {
  const role = weightRole(operatorName(operation), index);
  if (role === 'limit') return undefined;
  if (facts.maxAbs > initMax && !(role === 'addend' && facts.elements === 1 && facts.maxAbs >= MASK_VALUE))
    return `weight "${name}" reaches ${quantity(facts.maxAbs)}, beyond ±${quantity(initMax)}`;
  // One channel whose scale becomes 0 is lost whole, however good the others are.
  const isScale = index === 1 && isPairPart(operation.node);
  if (isScale && weightLoss !== null && facts.toZero > 0)
    return `${facts.toZero} of the ${facts.elements} scales in "${name}" would become 0`;
  return role === 'addend' ? undefined : weightLoss?.(name, facts);
}

const quantity = (value: number): string => String(Number(value.toPrecision(5)));

/**
 * The number of terms added up for one output element of a product, convolution or reduction, as far as shapes are known;
 * undefined for other operators and unknown shapes.
 */
function reductionDepth(operation: Operation, shapeOf: ShapeOf): number | undefined {
  const { node, inputs } = operation;
  const shape = (index: number) => shapeOf(inputs[index]);
  switch (node.opType) {
    case 'MatMul':
      return shape(1)?.at(-2) ?? shape(1)?.at(-1) ?? shape(0)?.at(-1);
    case 'Gemm': {
      const transposed = (name: string) => Number(attributeOf(node, name)?.i ?? 0) !== 0;
      return shape(1)?.[transposed('transB') ? 1 : 0] ?? shape(0)?.[transposed('transA') ? 0 : 1];
    }
    case 'Conv':
      return product(shape(1)?.slice(1));
    case 'ConvTranspose': {
      const weight = shape(1);
      const channels = weight?.[0];
      if (weight === undefined || channels === undefined) return undefined;
      return product([channels / Number(attributeOf(node, 'group')?.i ?? 1), ...weight.slice(2)]);
    }
    case 'GlobalAveragePool':
      return product(shape(0)?.slice(2));
    case 'AveragePool':
      return product((attributeOf(node, 'kernel_shape')?.ints ?? []).map(Number));
    case 'CumSum':
      return undefined;
    default:
      return node.opType.startsWith('Reduce') ? reduced(operation, shapeOf) : undefined;
  }
}

function reduced({ node, inputs }: Operation, shapeOf: ShapeOf): number | undefined {
  if (node.opType === 'ReduceMax' || node.opType === 'ReduceMin') return undefined;
  const shape = shapeOf(inputs[0]);
  if (shape === undefined) return undefined;
  const axes = attributeOf(node, 'axes')?.ints.map(Number) ?? smallIntegers(inputs[1]?.tensor);
  if (axes === undefined && inputs[1] !== undefined) return undefined;
  return product(axes === undefined || axes.length === 0 ? shape : axes.map((axis) => shape.at(axis)));
}

function product(dims: readonly (number | undefined)[] | undefined): number | undefined {
  if (dims === undefined || dims.some((dim) => dim === undefined)) return undefined;
  return dims.reduce<number>((result, dim) => result * (dim ?? 1), 1);
}
