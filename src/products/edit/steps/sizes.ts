import { TrtforgeError } from '../../../errors.js';
import { visitGraphs } from '../../../formats/onnx/graph.js';
import { fixedSizes } from '../../../formats/onnx/lint/fixed-sizes.js';
import type { TensorShapeProto_Dimension, ValueInfoProto } from '../../../formats/onnx/onnx_pb.js';
import { type AxisPlace, isPlaceholder } from '../../../formats/onnx/open-dimensions.js';
import { openedSize } from '../../../formats/onnx/opened-size.js';
import { inferShapes } from '../../../formats/onnx/shapes/infer.js';
import { dimensionsOf, dimensionValue, feedInputs } from '../../../formats/onnx/values.js';
import { type Done, type Editing, impossible } from '../edited-model.js';
import type { AskedName } from './interface.js';

/** An open dimension by its name, or axes by their places, and the size or the name that it gets. */
export interface AskedSize {
  readonly dimension: string | readonly AxisPlace[];
  readonly becomes: number | string;
}

const symbolOf = ({ value }: TensorShapeProto_Dimension): string | null =>
  value.case === 'dimParam' && value.value !== '' ? value.value : null;

const storedOf = ({ value }: TensorShapeProto_Dimension): number | undefined =>
  value.case === 'dimValue' && value.value >= 0n ? Number(value.value) : undefined;

/** Everything that declares a shape, in bodies too. */
const declarations = ({ model }: Editing): readonly ValueInfoProto[] =>
  [...visitGraphs(model.proto)].flatMap(({ graph }) =>
    graph === undefined ? [] : [...graph.input, ...graph.output, ...graph.valueInfo],
  );

interface OpenAxis extends AxisPlace {
  readonly dim: TensorShapeProto_Dimension;
}

const axesOf = (editing: Editing): readonly OpenAxis[] =>
  feedInputs(editing.graph).flatMap((input) =>
    dimensionsOf(input).map((dim, axis) => ({ input: input.name, axis, dim })),
  );

const listed = (axes: readonly AxisPlace[]): string =>
  axes.map(({ input, axis }) => `${input}:${axis}`).join(',');

/** Gives an open dimension a size or a name, and opens axes that are stored with one size. Throws TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE. */
export function setSize(editing: Editing, { dimension, becomes }: AskedSize): Done {
  if (typeof becomes === 'string' && !Number.isNaN(Number(becomes)))
    throw impossible(
      `"${becomes}" is a number, and no name of a dimension.`,
      '--set-dim gives sizes, from 1 on.',
    );
  const axes = axesOf(editing);
  const asked = placesOf(editing, axes, dimension);
  const [first] = asked;
  const symbol = symbolOf(first.dim);
  const isShared = symbol !== null && !isPlaceholder(symbol);
  if (typeof dimension === 'string' && !isShared && asked.length > 1)
    throw impossible(
      `"${symbol}" stands for no one dimension: ${listed(asked)} have it.`,
      `Name the axis: --set-dim ${first.input}:${first.axis}=${becomes}`,
    );
  const isNamed = ({ dim }: OpenAxis) => isShared && symbolOf(dim) === symbol;
  const places = axes.filter((axis) => asked.includes(axis) || isNamed(axis));
  const stored = asked.map(({ dim }) => storedOf(dim)).find((size) => size !== undefined);
  if (stored === becomes && asked.every(({ dim }) => storedOf(dim) === stored)) return null;
  const taken = axes.find((axis) => symbolOf(axis.dim) === becomes && !places.includes(axis));
  if (taken !== undefined)
    throw impossible(
      `Axis ${taken.axis} of ${taken.input} is called "${becomes}" already, and axes of one name have one size.`,
    );
  if (typeof becomes === 'string' && typeof dimension !== 'string') {
    const opened = open(editing, places, becomes, symbol, stored);
    if (opened !== null) return opened;
  } else if (stored !== undefined)
    throw impossible(
      `Axis ${first.axis} of ${first.input} is stored as ${stored}, and nodes may depend on it.`,
      `Only open dimensions get a size. Open the axis first: --set-dim ${listed(asked)}=batch`,
    );
  if (becomes === symbol) return null;
  const changed = isShared
    ? declarations(editing)
        .flatMap(dimensionsOf)
        .filter((dim) => symbolOf(dim) === symbol)
    : [];
  for (const dim of new Set([...changed, ...places.map(({ dim }) => dim)]))
    dim.value = dimensionValue(becomes);
  if (typeof becomes === 'number') note(editing, places, symbol, becomes);
  forgetShapes(editing);
  return `${isShared ? symbol : listed(places)} = ${becomes}`;
}

const note = (editing: Editing, places: readonly AxisPlace[], symbol: string | null, size: number) => {
  for (const { input, axis } of places)
    editing.sizes.push({ input: editing.inputs.get(input)?.source ?? null, axis, symbol, size });
};

/** Opens axes that the inputs or the nodes store with one size; null where none do. */
function open(
  editing: Editing,
  places: readonly OpenAxis[],
  name: string,
  symbol: string | null,
  stored: number | undefined,
): Done {
  const { proto, files } = editing.model;
  const model = { proto, files, weight: editing.weight.bind(editing) };
  const own =
    symbol !== null && !isPlaceholder(symbol) ? [symbol] : places.map((at) => `${at.input}[${at.axis}]`);
  const fixed = fixedSizes(model, inferShapes(model)).find(
    ({ symbol: of, least, most }) => own.includes(of) && least === most,
  );
  const size = stored ?? fixed?.most;
  const other = places.find(({ dim }) => (storedOf(dim) ?? size) !== size);
  if (other !== undefined)
    throw impossible(`${listed(places)} have different sizes, and axes of one name have one size.`);
  if (size === undefined) return null;
  const graph = openedSize(model, places, name, size);
  if (typeof graph === 'string') {
    if (stored === undefined && name !== symbol) return null;
    const others = axesOf(editing).filter(
      ({ axis, dim }) => axis === places[0]?.axis && storedOf(dim) === size,
    );
    throw impossible(
      `${listed(places)} cannot be opened: ${graph}`,
      stored !== undefined && others.length > places.length
        ? `Where they are one dimension, open the others too: --set-dim ${listed(others)}=${name}`
        : 'Export the model with this axis dynamic.',
    );
  }
  const { node, initializer, input, output } = graph;
  const count = node.filter((each) => !proto.graph!.node.includes(each)).length;
  Object.assign(proto.graph!, { node, initializer, input, output });
  forgetShapes(editing);
  note(editing, places, symbol, size);
  for (const { input, axis } of places) {
    const source = editing.inputs.get(input)?.source;
    if (source) editing.opened.push({ input: source, axis, stored: size });
  }
  return `${listed(places)} = ${name}, stored as ${size}: ${count} nodes follow it now`;
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
    const [any] = axes;
    if (symbols.length === 0 && any !== undefined) {
      const open = axes.find(({ dim }) => storedOf(dim) === undefined);
      throw new TrtforgeError(
        'TF_EDIT_UNKNOWN',
        `${editing.model.path} has no open dimension "${dimension}".`,
        {
          remedy:
            open === undefined
              ? `All sizes of its inputs are fixed. Open an axis first: --set-dim ${listed([any])}=${dimension}`
              : `Its open axes have no names. Pass the place of one: --set-dim ${listed([open])}=1`,
        },
      );
    }
    editing.known('open dimension', dimension, new Set(symbols));
    return axes.filter(({ dim }) => symbolOf(dim) === dimension) as [OpenAxis, ...OpenAxis[]];
  }
  return dimension.map(({ input, axis }) => {
    editing.known('input', input, editing.inputs.keys());
    const own = axes.filter((each) => each.input === input);
    const found = own.find((each) => each.axis === axis);
    if (found !== undefined) return found;
    throw new TrtforgeError('TF_EDIT_UNKNOWN', `Input ${input} has no axis ${axis}.`, {
      remedy:
        own.length === 0
          ? 'The model declares no rank of it.'
          : `Its axes are 0 to ${own.length - 1}, with the sizes ${own.map(({ dim }) => dim.value.value ?? '?').join(', ')}.`,
      details: { input, axis },
    });
  }) as [OpenAxis, ...OpenAxis[]];
}

/** Shapes inside a graph that were inferred for other sizes. */
function forgetShapes(editing: Editing): void {
  for (const { graph } of visitGraphs(editing.model.proto)) if (graph !== undefined) graph.valueInfo = [];
}
