import type { ValueType } from '../onnx/values.js';
import { bodyOutput, controlInput } from './control-flow.js';
import type { Decisions } from './decide.js';
import {
  type Flow,
  isFloat32,
  isStored,
  type Operation,
  operatorName,
  type Use,
  type Value,
} from './flow.js';
import type { ResolvedConversion } from './options.js';
import { inputSlot } from './slots.js';

/** One place that reads a value and the type it must be given; undefined where any type will do. */
interface Requirement {
  readonly use: Use;
  readonly type: ValueType | undefined;
}

/** A value of the result in all the types it is read in. */
export interface Versions {
  readonly value: Value;
  /** The type in which it is made (or stored under its name). */
  readonly own: ValueType;
  /** Every type it is read in besides its own. */
  readonly others: readonly ValueType[];
  readonly requirements: readonly Requirement[];
}

export interface Requirements {
  /** Only values that change their type or are read in a type they are not made in, or through a cast that became superfluous. */
  readonly versions: readonly Versions[];
  /** Casts whose input has their output's type by now; who read the output reads the input. */
  readonly superfluous: ReadonlySet<Operation>;
}

/** From the decisions to the types that every use of every FP32 value must be given. */
export function requirementsOf(flow: Flow, decisions: Decisions, options: ResolvedConversion): Requirements {
  const typeMade = (value: Value): ValueType | undefined =>
    (isFloat32(value) && !isStored(value) ? decisions.formatOf(value)?.dtype : undefined) ?? value.type;
  const aliases = superfluousCasts(flow, typeMade);
  const origin = (value: Value): Value => {
    let at = value;
    for (let next = aliases.get(at); next !== undefined; next = aliases.get(at)) at = next;
    return at;
  };

  const readings = new Map<Value, Requirement[]>();
  const add = (value: Value, requirement: Requirement) => {
    const list = readings.get(value);
    if (list === undefined) readings.set(value, [requirement]);
    else list.push(requirement);
  };
  for (const scope of flow.scopes) {
    for (const value of scope.values.values()) {
      if (!isFloat32(value) && !aliases.has(value)) continue;
      const target = origin(value);
      for (const use of value.uses) {
        if (use.kind === 'input' && aliases.has(use.operation.outputs[0] as Value)) continue;
        const type = isFloat32(value) ? requiredType(use, decisions, options) : value.type;
        const source =
          type === undefined || use.kind === 'output' ? undefined : castFrom(value, type, typeMade);
        if (source === undefined) add(target, { use, type });
        else add(origin(source), { use, type });
      }
    }
  }
  // A value that is never read changes its type with the operator that makes it too, and its declaration must follow.
  for (const { values } of flow.scopes)
    for (const value of values.values())
      if (isFloat32(value) && !aliases.has(value) && !readings.has(value)) readings.set(value, []);
  const versions: Versions[] = [];
  for (const [value, requirements] of readings) {
    const wanted = new Set(requirements.flatMap(({ type }) => (type === undefined ? [] : [type])));
    const own = isStored(value) ? storedType(value, wanted, requirements) : (typeMade(value) ?? value.type);
    if (own === undefined) continue;
    const others = [...wanted].filter((type) => type !== own);
    versions.push({ value, own, others, requirements });
  }
  return { versions, superfluous: new Set([...aliases.keys()].flatMap((value) => value.producer ?? [])) };
}

/** The type under which a weight keeps its name: the one it is read in; FP32 where both are, unless a graph output requires another. */
function storedType(
  value: Value,
  wanted: ReadonlySet<ValueType>,
  requirements: readonly Requirement[],
): ValueType {
  const promised = requirements.find(({ use }) => isModelOutput(use))?.type;
  if (promised !== undefined) return promised;
  if (wanted.size !== 1) return value.type ?? 'float32';
  return [...wanted][0] ?? 'float32';
}

export const isModelOutput = (use: Use): boolean => use.kind === 'output' && use.scope.owner === undefined;

function requiredType(use: Use, decisions: Decisions, options: ResolvedConversion): ValueType | undefined {
  const typeOf = (value: Value | undefined) =>
    (value === undefined ? undefined : decisions.formatOf(value)?.dtype) ?? 'float32';
  if (use.kind === 'output') {
    if (use.scope.owner === undefined) return options.ioTypes === 'keep' ? 'float32' : options.format.dtype;
    const link = bodyOutput(use.scope, use.index);
    return link.kind === 'same' ? typeOf(link.values[0]) : 'float32';
  }
  const decision = decisions.of(use.operation);
  if (decision.kind === 'control') {
    const link = controlInput(use.operation, use.index);
    return link.kind === 'same' ? typeOf(link.values[0]) : 'float32';
  }
  const { dtype } = decision.kind === 'convert' ? decision.format : options.format;
  const slot = inputSlot(use.operation, use.index, dtype);
  if (slot === 'any') return undefined;
  return decision.kind === 'convert' && slot === 'follows' ? dtype : 'float32';
}

/** The value that a value was cast up from, when that already has the type wanted: up and down again keeps the bits. */
function castFrom(
  value: Value,
  wanted: ValueType,
  typeMade: (value: Value) => ValueType | undefined,
): Value | undefined {
  const { producer } = value;
  if (producer === undefined || operatorName(producer) !== 'Cast' || typeMade(value) === wanted)
    return undefined;
  const [input] = producer.inputs;
  return input !== undefined && !isStored(input) && typeMade(input) === wanted ? input : undefined;
}

/** Output value to input value of every Cast that would cast a type to itself. One that makes an output of a graph stays. */
function superfluousCasts(
  flow: Flow,
  typeMade: (value: Value) => ValueType | undefined,
): ReadonlyMap<Value, Value> {
  const aliases = new Map<Value, Value>();
  for (const operation of flow.operations) {
    if (operatorName(operation) !== 'Cast') continue;
    const [input] = operation.inputs;
    const [output] = operation.outputs;
    if (input === undefined || output === undefined || isStored(input)) continue;
    if (output.uses.some((use) => use.kind === 'output')) continue;
    const before = typeMade(input);
    if (before !== undefined && before === typeMade(output)) aliases.set(output, input);
  }
  return aliases;
}
