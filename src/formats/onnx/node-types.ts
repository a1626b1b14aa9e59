import { create } from '@bufbuild/protobuf';
import {
  type AttributeProto,
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type NodeProto,
} from './onnx_pb.js';
import { formalAt, type OperatorSignature, plainDomain } from './operators.js';
import { declaredType, tensorType, unwrap, type ValueType, wrap } from './value-facts.js';

type Types = readonly (ValueType | undefined)[];

export const attributeOf = (node: NodeProto, name: string): AttributeProto | undefined =>
  node.attribute.find((attribute) => attribute.name === name);

/** An attribute of one integer. */
export const integerAttribute = (name: string, value: number): AttributeProto =>
  create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.INT, i: BigInt(value) });

/** A text of ASCII in an attribute. */
export function textAttribute(node: NodeProto, name: string, otherwise: string): string {
  const attribute = attributeOf(node, name);
  return attribute === undefined ? otherwise : Buffer.from(attribute.s).toString('latin1');
}

/** A `dtype`-like attribute (`to`, `dtype`, `output_dtype`) as a type; undefined where it is absent, 0, or a function's parameter. */
export function typeAttribute(node: NodeProto, name: string): ValueType | undefined {
  const attribute = attributeOf(node, name);
  if (attribute === undefined || attribute.refAttrName !== '') return undefined;
  return tensorType(Number(attribute.i));
}

/** Operators whose output type an attribute chooses, and the type when it does not. */
const attributeChosen: ReadonlyMap<string, readonly [attribute: string, otherwise: 'input' | ValueType]> =
  new Map([
    ['Cast', ['to', 'unknown']],
    ['BitCast', ['to', 'unknown']],
    ['EyeLike', ['dtype', 'input']],
    ['RandomNormal', ['dtype', 'float32']],
    ['RandomUniform', ['dtype', 'float32']],
    ['RandomNormalLike', ['dtype', 'input']],
    ['RandomUniformLike', ['dtype', 'input']],
    ['Bernoulli', ['dtype', 'input']],
    ['Multinomial', ['dtype', 'int32']],
    ['HannWindow', ['output_datatype', 'float32']],
    ['HammingWindow', ['output_datatype', 'float32']],
    ['BlackmanWindow', ['output_datatype', 'float32']],
    ['MelWeightMatrix', ['output_datatype', 'float32']],
  ]);

/** Every attribute that an output's type depends on. */
const typing = /^(to|dtype|output_dtype|output_datatype|stash_type|type|(sparse_)?value.*)$/;

/**
 * The attribute that chooses a node's output type, where its operator has one, and the type without it: one of the table, or `input` for
 * that of the first input. DequantizeLinear is not among them: its scale chooses.
 */
export function typeChoice(
  node: NodeProto,
): { readonly attribute: string; readonly otherwise: ValueType } | undefined {
  const chosen = plainDomain(node.domain) === '' ? attributeChosen.get(node.opType) : undefined;
  return chosen && { attribute: chosen[0], otherwise: chosen[1] };
}

/**
 * The output types of a node that has no bodies, from its input types: bound type variables, the attribute that chooses a type, or the
 * few operators whose rule is neither. Undefined entries are types that cannot be known.
 */
export function nodeOutputTypes(node: NodeProto, inputs: Types, signature: OperatorSignature): Types {
  const byOperator = operatorRule(node, inputs);
  const bound = bindVariables(inputs, signature);
  return node.output.map((_, index) => {
    if (byOperator !== undefined && index < byOperator.length) return byOperator[index];
    const formal = formalAt(signature.outputs, index);
    if (formal === undefined) return undefined;
    const chosen = formal.variable === undefined ? undefined : bound.get(formal.variable);
    if (chosen !== undefined) return chosen;
    return formal.allowed.size === 1 ? [...formal.allowed][0] : undefined;
  });
}

/** The type each variable takes: that of the first input of known type in its place. */
function bindVariables(inputs: Types, signature: OperatorSignature): Map<string, ValueType> {
  const bound = new Map<string, ValueType>();
  for (const [index, type] of inputs.entries()) {
    const formal = formalAt(signature.inputs, index);
    if (type === undefined || formal?.variable === undefined || formal.variadic === 'mixed') continue;
    if (!bound.has(formal.variable)) bound.set(formal.variable, type);
  }
  return bound;
}

function operatorRule(node: NodeProto, inputs: Types): Types | undefined {
  if (plainDomain(node.domain) !== '') return undefined;
  // Inside a function the attribute may be a parameter, and each call may choose another type.
  if (node.attribute.some(({ name, refAttrName }) => refAttrName !== '' && typing.test(name)))
    return node.output.map(() => undefined);
  const chosen = attributeChosen.get(node.opType);
  if (chosen !== undefined) {
    const [attribute, otherwise] = chosen;
    const type = typeAttribute(node, attribute);
    if (type !== undefined) return [type];
    if (otherwise === 'unknown') return [undefined];
    return [otherwise === 'input' ? inputs[0] : otherwise];
  }
  switch (node.opType) {
    case 'Constant':
      return [constantType(node)];
    case 'ConstantOfShape':
      return [tensorType(attributeOf(node, 'value')?.t?.dataType ?? 1)];
    case 'QuantizeLinear':
      if ((node.input[2] ?? '') !== '') return [inputs[2]];
      return [typeAttribute(node, 'output_dtype') ?? 'uint8'];
    case 'DequantizeLinear':
      return [typeAttribute(node, 'output_dtype') ?? inputs[1]];
    case 'LayerNormalization': {
      const statistics = typeAttribute(node, 'stash_type') ?? 'float32';
      return [inputs[0], statistics, statistics];
    }
    case 'SequenceEmpty':
      return [wrap('seq', typeAttribute(node, 'dtype') ?? 'float32')];
    case 'SequenceConstruct':
    case 'SplitToSequence':
      return [wrap('seq', inputs[0])];
    case 'SequenceAt':
    case 'ConcatFromSequence':
      return [unwrap('seq', inputs[0])];
    case 'Optional':
      return [wrap('optional', inputs[0] ?? declaredType(attributeOf(node, 'type')?.tp))];
    case 'OptionalGetElement':
      return [unwrap('optional', inputs[0])];
    default:
      return undefined;
  }
}

function constantType(node: NodeProto): ValueType | undefined {
  const attribute = node.attribute[0];
  switch (attribute?.name) {
    case 'value':
      return tensorType(attribute.t?.dataType ?? 0);
    case 'value_float':
    case 'value_floats':
      return 'float32';
    case 'value_int':
    case 'value_ints':
      return 'int64';
    case 'value_string':
    case 'value_strings':
      return 'string';
    case 'sparse_value':
      return tensorType(attribute.sparseTensor?.values?.dataType ?? 0);
    default:
      return undefined;
  }
}
