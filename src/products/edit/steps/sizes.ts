import { TrtforgeError } from '../../../errors.js';
import { visitGraphs } from '../../../formats/onnx/graph.js';
import type { TensorShapeProto_Dimension, ValueInfoProto } from '../../../formats/onnx/onnx_pb.js';
import { isPlaceholder } from '../../../formats/onnx/open-dimensions.js';
import { dimensionsOf, feedInputs } from '../../../formats/onnx/value-facts.js';
import { type Done, type Editing, impossible } from '../editing.js';
import type { AskedName } from './interface.js';

/** An open dimension by its name or by its place, and the size or the name that it gets. */
export interface AskedSize {
  readonly dimension: string | { readonly input: string; readonly axis: number };
  readonly becomes: number | string;
}

const symbolOf = ({ value }: TensorShapeProto_Dimension): string | null =>
  value.case === 'dimParam' && value.value !== '' ? value.value : null;

/** Everything that declares a shape, in bodies too. */
const declarations = ({ model }: Editing): readonly ValueInfoProto[] =>
  [...visitGraphs(model.proto)].flatMap(({ graph }) =>
    graph === undefined ? [] : [...graph.input, ...graph.output, ...graph.valueInfo],
  );

interface OpenAxis {
  readonly input: string;
  readonly axis: number;
  readonly dim: TensorShapeProto_Dimension;
}

const axesOf = (editing: Editing): readonly OpenAxis[] =>
  feedInputs(editing.graph).flatMap((input) =>
    dimensionsOf(input).map((dim, axis) => ({ input: input.name, axis, dim })),
  );

/** Gives an open dimension a size or a name. Throws TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE. */
export function setSize(editing: Editing, { dimension, becomes }: AskedSize): Done {
  const axes = axesOf(editing);
  const [first, ...others] = placesOf(editing, axes, dimension);
  const symbol = symbolOf(first.dim);
  if (first.dim.value.case === 'dimValue' && first.dim.value.value >= 0n) {
    if (Number(first.dim.value.value) === becomes) return null;
    throw impossible(
      `Axis ${first.axis} of ${first.input} is stored as ${first.dim.value.value}, and nodes may depend on it.`,
      'Only open dimensions get a size or a name. Export the model with this axis dynamic.',
    );
  }
  const isShared = symbol !== null && !isPlaceholder(symbol);
  if (!isShared && others.length > 0)
    throw impossible(
      `"${symbol}" stands for no one dimension: ${[first, ...others].map(({ input, axis }) => `${input}:${axis}`).join(', ')} have it.`,
      `Name the axis: --set-dim ${first.input}:${first.axis}=${becomes}`,
    );
  const value =
    typeof becomes === 'number'
      ? ({ case: 'dimValue', value: BigInt(becomes) } as const)
      : ({ case: 'dimParam', value: becomes } as const);
  if (typeof becomes === 'string') {
    if (becomes === symbol) return null;
    assertFree(axes, becomes);
  }
  const changed = isShared
    ? declarations(editing)
        .flatMap(dimensionsOf)
        .filter((dim) => symbolOf(dim) === symbol)
    : [first.dim];
  const places = isShared ? axes.filter(({ dim }) => changed.includes(dim)) : [first];
  for (const dim of changed) dim.value = { ...value };
  if (typeof becomes === 'number')
    for (const { input, axis } of places)
      editing.sizes.push({ input: editing.inputs.get(input)?.source ?? null, axis, symbol, size: becomes });
  forgetShapes(editing);
  return `${isShared ? symbol : `${first.input}:${first.axis}`} = ${becomes}`;
}

/** Renames an open dimension wherever it stands. Throws TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE. */
export const renameSize = (editing: Editing, { from, to }: AskedName): Done =>
  setSize(editing, { dimension: from, becomes: to });

function placesOf(
  editing: Editing,
  axes: readonly OpenAxis[],
  dimension: AskedSize['dimension'],
): readonly [OpenAxis, ...OpenAxis[]] {
  if (typeof dimension === 'string') {
    const symbols = axes.flatMap(({ dim }) => symbolOf(dim) ?? []);
    editing.known('open dimension', dimension, new Set(symbols));
    return axes.filter(({ dim }) => symbolOf(dim) === dimension) as [OpenAxis, ...OpenAxis[]];
  }
  const { input, axis } = dimension;
  editing.known('input', input, editing.inputs.keys());
  const own = axes.filter((each) => each.input === input);
  const found = own.find((each) => each.axis === axis);
  if (found !== undefined) return [found];
  throw new TrtforgeError('TF_EDIT_UNKNOWN', `Input ${input} has no axis ${axis}.`, {
    remedy:
      own.length === 0
        ? 'The model declares no rank of it.'
        : `Its axes are 0 to ${own.length - 1}, with the sizes ${own.map(({ dim }) => dim.value.value ?? '?').join(', ')}.`,
    details: { input, axis },
  });
}

/** Two dimensions of one name are one dimension. */
function assertFree(axes: readonly OpenAxis[], name: string): void {
  const taken = axes.find(({ dim }) => symbolOf(dim) === name);
  if (taken !== undefined)
    throw impossible(
      `Axis ${taken.axis} of ${taken.input} is called "${name}" already, and axes of one name have one size.`,
    );
}

/** Shapes inside a graph that were inferred for other sizes. */
function forgetShapes(editing: Editing): void {
  for (const { graph } of visitGraphs(editing.model.proto)) if (graph !== undefined) graph.valueInfo = [];
}
