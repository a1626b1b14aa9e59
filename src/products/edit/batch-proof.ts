import { GraphUses, nodeLabel, visitMainGraphs } from '../../formats/onnx/graph.js';
import type { ModelLike } from '../../formats/onnx/model.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';
import { inferShapes, type ModelShapes, shapesByName } from '../../formats/onnx/shapes/infer.js';
import { isNumber, type Shape, symbolsOf } from '../../formats/onnx/shapes/size.js';
import { inlined } from '../../formats/precision/normalise.js';
import { isSameShape, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';
import type { SampleInfo } from '../../quality/verify/judged.js';
import type { ReferenceRun, SampleRuns } from '../../quality/verify/sample-runs.js';
import type { Editing } from './edited-model.js';

/** Pairs of samples that are put together: they show what mixes samples, and more of them cost as much as the first proof. */
const MOST_PAIRS = 3;

interface BatchEditing extends Pick<Editing, 'model' | 'inputs' | 'outputs' | 'opened'> {}

/** The axis of a value that follows the samples, and how many of them the original takes at once. */
interface Items {
  readonly axis: number;
  readonly stored: number;
}

/** What the original computes of samples, put together in numbers that it does not take. */
interface Regrouped {
  /** No outputs where no two samples have one shape. */
  readonly reference: ReferenceRun;
  /** Outputs of the original of which no one axis follows the samples. */
  readonly unknown: readonly string[];
  /** Outputs that are the same for the samples of each pair: they show nothing. */
  readonly alike: readonly string[];
  /** Nodes that make one value of all samples, which these samples may not show. */
  readonly mixing: readonly string[];
}

/** The axes that follow the samples, by the names of values in the original. */
interface SampleAxes {
  /** null for an output that no sample changes. */
  readonly items: ReadonlyMap<string, Items | null>;
  /** How many samples the original takes at once, by the symbols of the sizes that were opened. */
  readonly stored: ReadonlyMap<string, number>;
  /** Outputs of which no one axis follows the samples. */
  readonly unknown: readonly string[];
}

/** Two samples of the same shapes, and what the original computes of each. */
interface Pair {
  /** Those of the second differ in what is an item of a batch alone. */
  readonly inputs: readonly [NamedTensors, NamedTensors];
  /** Save those of which no one axis follows the samples. */
  readonly outputs: readonly [NamedTensors, NamedTensors];
  /** Of the first. */
  readonly info: SampleInfo;
}

/** Of two samples behind each other, in sizes of one: [0, 2] is all of both. */
type PairRange = readonly [from: number, to: number];

/**
 * For axes that an edit opened: samples two by two in one run, and where the original takes several at once the first and the last of them alone, each with the outputs that the
 * original has of them. A graph of independent items computes the same.
 */
export async function regrouped(
  editing: BatchEditing,
  reference: ReferenceRun,
  runs: SampleRuns,
): Promise<Regrouped> {
  const flat = inlined(editing.model);
  const inferred = inferShapes(flat);
  const shapes = shapesByName(inferred);
  const { items, stored, unknown } = sampleAxes(editing, shapes, inferred.openSizes);
  const pairs = await pairsOf(reference, editing, items, runs);
  const isAlike = (output: string) =>
    pairs.every(({ outputs: [first, second] }) => isSameBytes(first.get(output), second.get(output)));
  const sources = [...editing.outputs.values()].flatMap(({ source }) => source ?? []);
  const ranges = rangesOf(editing);
  const groups = pairs.flatMap(({ inputs, outputs, info }) =>
    ranges.map((range) => ({
      inputs: joined(inputs, items, range),
      outputs: joined(outputs, items, range),
      info,
    })),
  );
  return {
    reference: {
      ...reference,
      plan: { ...reference.plan, tensors: (at) => groups[at]!.inputs },
      samples: groups.map(({ info }) => info),
      outputs: groups.map(({ outputs }) => outputs),
    },
    unknown,
    alike: sources.filter((source) => items.get(source) && isAlike(source)),
    mixing: mixing(flat, inferred, shapes, new Set(stored.keys())),
  };
}

function sampleAxes(
  { inputs, outputs, opened }: BatchEditing,
  shapes: ReturnType<typeof shapesByName>,
  open: ReadonlySet<string>,
): SampleAxes {
  const items = new Map<string, Items | null>(opened.map((one) => [one.input, one]));
  const stored = new Map<string, number>();
  for (const [name, { source }] of inputs) {
    const own = items.get(source ?? '');
    const size = own ? shapes.get(name)?.[own.axis] : undefined;
    if (own && size !== undefined && !isNumber(size)) stored.set(symbolsOf(size)[0]!, own.stored);
  }
  const unknown: string[] = [];
  for (const [name, { source }] of outputs) {
    if (source === null) continue;
    const own = itemsOf(shapes.get(name), stored, open);
    if (own === undefined) unknown.push(source);
    else items.set(source, own);
  }
  return { items, stored, unknown };
}

/** Pairs of neighbours among the samples that ran. Throws what running the original throws, where it has inputs that are no item of a batch. */
async function pairsOf(
  reference: ReferenceRun,
  { inputs }: BatchEditing,
  items: SampleAxes['items'],
  runs: SampleRuns,
): Promise<readonly Pair[]> {
  const { plan, samples, outputs } = reference;
  const firsts = outputs
    .flatMap((_, at) => (at % 2 === 0 && at + 1 < outputs.length ? [at] : []))
    .filter((at) => {
      const other = plan.tensors(at + 1);
      return [...plan.tensors(at)].every(([name, tensor]) => isSameShape(tensor, other.get(name)!));
    })
    .slice(0, MOST_PAIRS);
  // What is no item of a batch is the same for all of it.
  const second = (first: number): NamedTensors => {
    const other = plan.tensors(first + 1);
    return new Map(
      [...plan.tensors(first)].map(([name, own]) => [name, items.has(name) ? other.get(name)! : own]),
    );
  };
  const isWhole = [...inputs.values()].every(({ source }) => items.has(source ?? ''));
  const seconds = { ...reference, plan: { ...plan, tensors: second } };
  const [changed = []] = isWhole ? [] : await runs.changed(seconds, firsts, [(sample) => sample]);
  const known = (all: NamedTensors) => new Map([...all].filter(([name]) => items.has(name)));
  return firsts.map((at, index) => ({
    inputs: [plan.tensors(at), second(at)],
    outputs: [known(outputs[at]!), known(changed[index] ?? outputs[at + 1]!)],
    info: samples[at]!,
  }));
}

const isSameBytes = (a: Tensor | undefined, b: Tensor | undefined): boolean =>
  a !== undefined && b !== undefined && Buffer.compare(a.bytes, b.bytes) === 0;

/** Both samples of a pair; where the original takes several items at once, also the first item of all and the last. */
function rangesOf({ opened }: BatchEditing): readonly PairRange[] {
  const sizes = new Set(opened.map((one) => one.stored));
  const [size = 1] = sizes;
  if (sizes.size > 1 || size === 1) return [[0, 2]];
  return [
    [0, 2],
    [0, 1 / size],
    [2 - 1 / size, 2],
  ];
}

/** A range of both samples in one; what is no item of a batch is that of the first. */
const joined = (
  [first, second]: Pair['inputs'],
  items: SampleAxes['items'],
  range: PairRange,
): NamedTensors =>
  new Map(
    [...first].map(([name, own]) => {
      const of = items.get(name);
      return [name, of ? part(own, second.get(name)!, of.axis, range) : own];
    }),
  );

/** Nodes that read samples, and of which a result follows no axis of theirs; sizes are the same for all, and bodies are looked into. */
function mixing(
  { proto }: ModelLike,
  inferred: ModelShapes,
  shapes: ReturnType<typeof shapesByName>,
  names: ReadonlySet<string>,
): readonly string[] {
  const isKnown = (shape: Shape | undefined): shape is Shape => shape?.includes(undefined) === false;
  const follows = (shape: Shape | undefined) =>
    shape?.some((size) => symbolsOf(size ?? 0).some((name) => names.has(name))) === true;
  const readsSize = ({ opType }: NodeProto) => opType === 'Shape' || opType === 'Size';
  return [...visitMainGraphs(proto)].flatMap(({ graph, nodes }) => {
    const uses = new GraphUses(graph!);
    const results = new Set(graph!.output.map(({ name }) => name));
    return nodes.flatMap((node) => {
      const hasBody = node.attribute.some(({ g, graphs }) => g !== undefined || graphs.length > 0);
      if (hasBody || readsSize(node) || !node.input.some((name) => follows(shapes.get(name)))) return [];
      const isMixed = node.output.some((name, at) => {
        const shape = inferred.nodes.get(node)?.shapes[at];
        const isRead = results.has(name) || uses.readers(name).some((reader) => !readsSize(reader));
        return name !== '' && isKnown(shape) && !follows(shape) && isRead;
      });
      return isMixed ? [nodeLabel(node)] : [];
    });
  });
}

/** The one axis of a shape that depends on sizes that were opened; null where none does, undefined where several do or a size is not known. */
function itemsOf(
  shape: Shape | undefined,
  stored: ReadonlyMap<string, number>,
  open: ReadonlySet<string>,
): Items | null | undefined {
  const names = shape?.map((size) => (size === undefined ? [''] : isNumber(size) ? [] : symbolsOf(size)));
  if (names === undefined || names.flat().some((name) => !open.has(name))) return undefined;
  const found = names.flatMap((of, axis) =>
    of.flatMap((name) => (stored.has(name) ? [{ axis, stored: stored.get(name)! }] : [])),
  );
  return found.length > 1 ? undefined : (found[0] ?? null);
}

/** Of two tensors behind each other along an axis, a range of them. */
function part(a: Tensor, b: Tensor, axis: number, [from, to]: PairRange): Tensor {
  const size = a.shape[axis]!;
  const outer = a.shape.slice(0, axis).reduce((all, each) => all * each, 1);
  const whole = a.bytes.length / outer;
  const parts = Array.from({ length: outer }, (_, at) => {
    const rows = Buffer.concat([a, b].map(({ bytes }) => bytes.subarray(at * whole, (at + 1) * whole)));
    return rows.subarray(Math.round(from * whole), Math.round(to * whole));
  });
  return {
    dtype: a.dtype,
    shape: a.shape.with(axis, Math.round((to - from) * size)),
    bytes: new Uint8Array(Buffer.concat(parts)),
  };
}
