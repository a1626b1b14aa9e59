import { attributeOf, typeAttribute } from './attributes.js';
import type { NodeProto } from './onnx_pb.js';
import { operatorRows, typeSets } from './operator-schemas.js';
import { declaredType, tensorType, unwrap, type ValueType, wrap } from './values.js';

/** One formal input or output of an operator: a type variable, or one fixed type. */
interface FormalValue {
  /** The type variable that fixes its type together with every other value of that variable; undefined for a fixed type. */
  readonly variable: string | undefined;
  /** The types it may have; one entry for a fixed type. */
  readonly allowed: ReadonlySet<string>;
  readonly optional: boolean;
  /** `same`: any number of values of one type; `mixed`: any number, each of its own type. */
  readonly variadic: 'no' | 'same' | 'mixed';
}

/** The types of one version of one operator, as ONNX states them. */
export interface OperatorSignature {
  readonly since: number;
  readonly inputs: readonly FormalValue[];
  readonly outputs: readonly FormalValue[];
}

type Versions = readonly { readonly since: number; readonly row: readonly string[] }[];

/** The operators of a domain; at opsets beyond the newest that was known when they were written down, each may have changed. */
interface Table {
  readonly operators: ReadonlyMap<string, Versions>;
  readonly newest: number;
}

const tables = new Map<string, Table>();
const parsed = new Map<string, OperatorSignature>();
const allowedSets = new Map<number, ReadonlySet<string>>();

/** The domain as the table spells it: `ai.onnx` is the default domain, spelled as the empty string. */
export const plainDomain = (domain: string): string => (domain === 'ai.onnx' ? '' : domain);

/** The signature of an operator at an opset, or undefined when the operator or the opset is unknown (0 where a model imports none), newer, or withdrawn by then. */
export function operatorSignature(
  domain: string,
  type: string,
  opset: number,
): OperatorSignature | undefined {
  const { operators, newest } = tableOf(plainDomain(domain));
  const version = operators.get(type)?.findLast((candidate) => candidate.since <= opset);
  if (version === undefined || version.row[2] === '-' || opset > newest) return undefined;
  const key = `${plainDomain(domain)}:${type}:${version.since}`;
  let signature = parsed.get(key);
  if (signature === undefined) {
    signature = parse(version.row, version.since);
    parsed.set(key, signature);
  }
  return signature;
}

/** Whether ONNX has an operator of this name, at any opset. */
export const isOnnxOperator = (type: string): boolean => tableOf('').operators.has(type);

/** The first opset from `from` on whose version of the operator satisfies `accepts`, or undefined. */
export function firstOpset(
  domain: string,
  type: string,
  from: number,
  accepts: (signature: OperatorSignature) => boolean,
): number | undefined {
  const versions = tableOf(plainDomain(domain)).operators.get(type) ?? [];
  const now = operatorSignature(domain, type, from);
  if (now !== undefined && accepts(now)) return from;
  for (const { since } of versions) {
    const signature = since > from ? operatorSignature(domain, type, since) : undefined;
    if (signature !== undefined && accepts(signature)) return since;
  }
  return undefined;
}

/** The formal value that stands for actual position `index`; positions past the end belong to a variadic last one. */
export function formalAt(formals: readonly FormalValue[], index: number): FormalValue | undefined {
  const last = formals.at(-1);
  return formals[index] ?? (last !== undefined && last.variadic !== 'no' ? last : undefined);
}

function tableOf(domain: string): Table {
  const known = tables.get(domain);
  if (known !== undefined) return known;
  const operators = new Map<string, { since: number; row: readonly string[] }[]>();
  let newest = 0;
  for (const line of (operatorRows.get(domain) ?? '').split('\n')) {
    if (line === '') continue;
    const row = line.split(';');
    const [name = '', since = '0'] = row;
    const versions = operators.get(name) ?? [];
    versions.push({ since: Number(since), row });
    operators.set(name, versions);
    newest = Math.max(newest, Number(since));
  }
  const table = { operators, newest };
  tables.set(domain, table);
  return table;
}

function parse(row: readonly string[], since: number): OperatorSignature {
  const [, , inputs = '', outputs = '', variables = ''] = row;
  const sets = new Map<string, ReadonlySet<string>>();
  for (const pair of variables.split(',').filter(Boolean)) {
    const [name = '', index = ''] = pair.split('=');
    sets.set(name, allowedSet(Number(index)));
  }
  const formals = (text: string) =>
    text
      .split(',')
      .filter(Boolean)
      .map((part) => formal(part, sets));
  return { since, inputs: formals(inputs), outputs: formals(outputs) };
}

function formal(text: string, sets: ReadonlyMap<string, ReadonlySet<string>>): FormalValue {
  const name = text.replace(/[?*]+$/, '');
  const set = sets.get(name);
  return {
    variable: set === undefined ? undefined : name,
    allowed: set ?? new Set([name]),
    optional: text.endsWith('?'),
    variadic: text.endsWith('**') ? 'mixed' : text.endsWith('*') ? 'same' : 'no',
  };
}

function allowedSet(index: number): ReadonlySet<string> {
  let set = allowedSets.get(index);
  if (set === undefined) {
    set = new Set((typeSets[index] ?? '').split(' '));
    allowedSets.set(index, set);
  }
  return set;
}

type Types = readonly (ValueType | undefined)[];

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
