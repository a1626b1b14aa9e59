import { attributeOf } from '../attributes.js';
import type { GraphView } from '../graph.js';
import type { NodeProto, TensorProto } from '../onnx_pb.js';
import { isDequantize, isQuantize, type QuantizedGraph } from '../quantized-operations.js';
import type { ModelShapes } from '../shapes/infer.js';
import type { Shape } from '../shapes/size.js';

/** A node with what is known of its inputs. */
export interface Checked {
  readonly node: NodeProto;
  readonly view: GraphView;
  readonly types: QuantizedGraph;
  readonly inferred: ModelShapes;
  dtype(input: number): string | undefined;
  shape(input: number): Shape | undefined;
  constant(input: number): TensorProto | undefined;
}

/** A use that a version of TensorRT rejects of an operator that its parser knows. */
export interface ParserCheck {
  /** Operators of ONNX, separated by spaces. */
  readonly operators: string;
  /** The TensorRT that rejects it. */
  readonly by: string;
  /** The part of the node that is rejected; undefined where nothing is. */
  readonly find: (checked: Checked) => string | undefined;
  /** The remedy. */
  readonly cure: string;
  /** Whether the step that settles the sizes of the inputs cures it. */
  readonly isOfSizes?: boolean;
}

/** Axes of a tensor in TensorRT. */
export const MOST_AXES = 8;

/** An attribute with other values than these. */
export const attribute =
  (name: string, ...taken: readonly (string | number)[]) =>
  ({ node }: Checked): string | undefined => {
    const found = attributeOf(node, name);
    if (found === undefined) return undefined;
    const text = Buffer.from(found.s).toString('latin1');
    const values = found.ints.length > 0 ? found.ints.map(Number) : [text === '' ? Number(found.i) : text];
    const other = values.find((value) => !taken.includes(value));
    return other === undefined ? undefined : `${name} is ${other}, and only ${taken.join(', ')} is taken`;
  };

export const hasAttribute =
  (...names: readonly string[]) =>
  ({ node }: Checked): string | undefined => {
    const found = names.find((name) => attributeOf(node, name) !== undefined);
    return found === undefined ? undefined : `${found} is set`;
  };

export const outputs =
  (most: number) =>
  ({ node }: Checked): string | undefined =>
    node.output.slice(most).some((name) => name !== '') ? 'more than its first output is used' : undefined;

export const type =
  (...rejected: readonly string[]) =>
  (checked: Checked): string | undefined => {
    const dtype = checked.dtype(0);
    return dtype !== undefined && rejected.includes(dtype) ? `its input is ${dtype}` : undefined;
  };

export const axes =
  (least: number, most: number) =>
  (checked: Checked): string | undefined => {
    const rank = checked.shape(0)?.length;
    return rank !== undefined && (rank < least || rank > most) ? `its input has ${rank} axes` : undefined;
  };

/** Whether a value is an input of the model as it comes. */
export const isFed = (name: string, view: GraphView, types: QuantizedGraph): boolean =>
  types.producer(name, view) === undefined &&
  types.constant(name, view) === undefined &&
  types.views[0]?.graph?.input.some((input) => input.name === name) === true;

/** Types that no version has for values inside a network. */
const NO_VALUES = /^(?:u?int16|uint32|uint64|string|complex\w*)$/;

/** Types of values that no operator of TensorRT takes, outside of quantized pairs. */
export function foreignType(
  { node, view, types, dtype, constant }: Checked,
  results: ReadonlySet<string>,
): string | undefined {
  if (isQuantize(node) || isDequantize(node)) return undefined;
  const made = node.output.map((name) => ({ name, dtype: types.dtype(name, view) ?? '' }));
  const stored = node.input.flatMap((name, index) =>
    constant(index) === undefined ? [] : [{ name, dtype: dtype(index) ?? '' }],
  );
  const foreign = [...made, ...stored].find((value) => NO_VALUES.test(value.dtype));
  if (foreign !== undefined)
    return `"${foreign.name}" is ${foreign.dtype}. Cast to INT32, INT64 or a floating-point type.`;
  const isInner = ({ name, dtype }: { name: string; dtype: string }) =>
    dtype === 'uint8' && !results.has(name) && !types.isStored(node.input[0] ?? '', view);
  const inner = node.opType === 'Constant' ? undefined : made.find(isInner);
  const read = node.input.find((name, index) => dtype(index) === 'uint8' && isFed(name, view, types));
  const name = inner?.name ?? (node.opType === 'Cast' || node.opType === 'Identity' ? undefined : read);
  return name === undefined
    ? undefined
    : `"${name}" is UINT8, which is taken only as an input that a Cast reads and an output that a Cast writes. Move the Cast there.`;
}

export function checkedNode(
  node: NodeProto,
  view: GraphView,
  types: QuantizedGraph,
  inferred: ModelShapes,
): Checked {
  const name = (input: number) => node.input[input] ?? '';
  return {
    node,
    view,
    types,
    inferred,
    dtype: (input) => types.dtype(name(input), view),
    constant: (input) => types.constant(name(input), view),
    shape: (input) => {
      const producer = types.producer(name(input), view);
      if (producer !== undefined)
        return inferred.nodes.get(producer)?.shapes[producer.output.indexOf(name(input))];
      return types.constant(name(input), view)?.dims.map(Number) ?? inferred.inputs.get(name(input));
    },
  };
}
