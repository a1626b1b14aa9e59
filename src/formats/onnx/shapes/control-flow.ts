import { attributeOf } from '../attributes.js';
import type { GraphProto } from '../onnx_pb.js';
import { type Cost, costlier, repeated } from './cost.js';
import { type Call, type ShapedValue, unknown } from './rule-input.js';
import { equals, isNumber, type MaybeSize, type Shape } from './size.js';

export type MaybeValue = ShapedValue | undefined;

/** The result of a graph, a function or a node. */
export interface Result {
  readonly outputs: readonly MaybeValue[];
  readonly cost: Cost;
}

/** Infers a body with these inputs, in the scope around its node. */
type RunBody = (body: GraphProto, inputs: readonly MaybeValue[]) => Result;

/** Rules by which operators with bodies determine their outputs. */
export const bodyRules: ReadonlyMap<string, (call: Call, run: RunBody) => Result> = new Map([
  ['If', branches],
  ['Loop', loop],
  ['Scan', scan],
]);

const bodyOf = ({ node }: Call, name: string): GraphProto => attributeOf(node, name)?.g ?? unknown();

/** The branch that a constant chooses; else what both have in common, and the cost of the costlier. */
function branches(call: Call, run: RunBody): Result {
  const [condition] = call.inputs[0]?.elements ?? [];
  const [then, otherwise] = [bodyOf(call, 'then_branch'), bodyOf(call, 'else_branch')];
  if (isNumber(condition)) return run(condition === 0 ? otherwise : then, []);
  const [one, other] = [run(then, []), run(otherwise, [])];
  return {
    outputs: one.outputs.map((value, index) => common(value, other.outputs[index])),
    cost: costlier(one.cost, other.cost),
  };
}

/** A value that is one or the other: sizes that differ are not known. */
function common(one: MaybeValue, other: MaybeValue): MaybeValue {
  const [a, b] = [one?.shape, other?.shape];
  const shape =
    a === undefined || a.length !== b?.length
      ? undefined
      : a.map((size, axis) => (equals(size, b[axis]) ? size : undefined));
  return { type: one?.type ?? other?.type, shape, elements: undefined, isConstant: false };
}

const variable = (type: string | undefined, shape: Shape | undefined): ShapedValue => ({
  type,
  shape,
  elements: undefined,
  isConstant: false,
});

/** Carried values keep the sizes that a turn leaves as they were. Turns are counted where the trip count alone decides. */
function loop(call: Call, run: RunBody): Result {
  const body = bodyOf(call, 'body');
  const isTrue = (value: MaybeValue) => value?.elements?.[0] === 1;
  const isOpen = !call.has(1) || isTrue(call.inputs[1]);
  // A condition that the first turn leaves true is true after every turn.
  const scalars = [variable('int64', []), { ...variable('bool', []), elements: isOpen ? [1] : undefined }];
  let carried: readonly MaybeValue[] = call.inputs
    .slice(2)
    .map((value) => variable(value?.type, value?.shape));
  let turn = run(body, [...scalars, ...carried]);
  // Every further turn takes at least one size or shape away.
  for (;;) {
    const { outputs } = turn;
    const next = carried.map((value, index) => common(value, outputs[index + 1]));
    if (next.every((value, index) => isSame(value?.shape, carried[index]?.shape))) break;
    carried = next;
    turn = run(body, [...scalars, ...carried]);
  }
  const isCounted = isOpen && isTrue(turn.outputs[0]) && call.has(0);
  const turns = isCounted ? call.inputs[0]?.elements?.[0] : undefined;
  const stacked = turn.outputs
    .slice(carried.length + 1)
    .map((value) => variable(value?.type, value?.shape && [turns, ...value.shape]));
  return { outputs: [...carried, ...stacked], cost: repeated(turn.cost, turns) };
}

const isSame = (a: Shape | undefined, b: Shape | undefined): boolean =>
  a === undefined || b === undefined
    ? a === b
    : a.length === b.length && a.every((size, axis) => size === b[axis] || equals(size, b[axis]));

/** States keep their shapes; the body runs once for each element of the scanned axes. */
function scan(call: Call, run: RunBody): Result {
  const count = call.int('num_scan_inputs', 0);
  const states = call.inputs.length - count;
  if (call.opset < 9 || count < 1 || states < 0) return unknown();
  let turns: MaybeSize;
  const scanned = call.inputs.slice(states).map((value, index) => {
    const shape = call.shape(states + index);
    const axis = call.axis(call.ints('scan_input_axes')?.[index] ?? 0, shape.length);
    turns ??= shape[axis];
    return variable(value?.type, shape.toSpliced(axis, 1));
  });
  const carried = call.inputs.slice(0, states).map((value) => variable(value?.type, value?.shape));
  const { outputs, cost } = run(bodyOf(call, 'body'), [...carried, ...scanned]);
  const stacked = outputs.slice(states).map((value, index) => {
    const axis = call.ints('scan_output_axes')?.[index] ?? 0;
    const { shape } = value ?? {};
    return variable(value?.type, shape?.toSpliced(axis < 0 ? axis + shape.length + 1 : axis, 0, turns));
  });
  return { outputs: [...carried, ...stacked], cost: repeated(cost, turns) };
}
