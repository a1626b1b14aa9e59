import { GraphUses, nodeLabel, visitMainGraphs } from '../../formats/onnx/graph.js';
import type { ModelLike } from '../../formats/onnx/model.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';
import { inferShapes, type ModelShapes, shapesByName } from '../../formats/onnx/shapes/infer.js';
import { isNumber, type Shape, symbolsOf } from '../../formats/onnx/shapes/size.js';
import { inlined } from '../../formats/precision/normalise.js';
import { isSameShape, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';
import type { ReferenceRun, SampleRuns } from '../../quality/verify/sample-runs.js';
import type { Editing } from './edited-model.js';

/** Pairs of samples that are put together: they show what mixes samples, and more of them cost as much as the first proof. */
const MOST_PAIRS = 3;

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

/**
 * For axes that an edit opened: samples two by two in one run, and where the original takes several at once the first and the last of them alone, each with the outputs that the
 * original has of them. A graph of independent items computes the same.
 */
export async function regrouped(
  { model, inputs, outputs, opened }: Pick<Editing, 'model' | 'inputs' | 'outputs' | 'opened'>,
  reference: ReferenceRun,
  runs: SampleRuns,
): Promise<Regrouped> {
  const { plan, samples } = reference;
  const items = new Map<string, Items | null>(opened.map((one) => [one.input, one]));
  const flat = inlined(model);
  const inferred = inferShapes(flat);
  const shapes = shapesByName(inferred);
  const stored = new Map<string, number>();
  for (const [name, { source }] of inputs) {
    const own = items.get(source ?? '');
    const size = own ? shapes.get(name)?.[own.axis] : undefined;
    if (own && size !== undefined && !isNumber(size)) stored.set(symbolsOf(size)[0]!, own.stored);
  }
  const unknown: string[] = [];
  for (const [name, { source }] of outputs) {
    if (source === null) continue;
    const own = itemsOf(shapes.get(name), stored, inferred.openSizes);
    if (own === undefined) unknown.push(source);
    else items.set(source, own);
  }
  const pairs = reference.outputs
    .flatMap((_, at) => (at % 2 === 0 && at + 1 < reference.outputs.length ? [at] : []))
    .filter((at) => {
      const other = plan.tensors(at + 1);
      return [...plan.tensors(at)].every(([name, tensor]) => isSameShape(tensor, other.get(name)!));
    })
    .slice(0, MOST_PAIRS);
  // What is no item of a batch is the same for all of it.
  const besides = (at: number): NamedTensors =>
    new Map(
      [...plan.tensors(at)].map(([name, own]) => [
        name,
        items.has(name) ? plan.tensors(at + 1).get(name)! : own,
      ]),
    );
  const isWhole = [...inputs.values()].every(({ source }) => items.has(source ?? ''));
  let next = 0;
  const [changed = []] = isWhole ? [] : await runs.changed(reference, pairs, [() => besides(pairs[next++]!)]);
  const alike = [...outputs.values()].flatMap(({ source }) => {
    const isAlike = (at: number, index: number) => {
      const [own, other] = [reference.outputs[at], changed[index] ?? reference.outputs[at + 1]].map((run) =>
        run?.get(source!),
      );
      return own !== undefined && other !== undefined && Buffer.compare(own.bytes, other.bytes) === 0;
    };
    return items.get(source ?? '') && pairs.every(isAlike) ? [source!] : [];
  });
  const sizes = new Set(opened.map((one) => one.stored));
  const [size = 1] = sizes;
  const ranges =
    sizes.size > 1 || size === 1
      ? [[0, 2]]
      : [
          [0, 2],
          [0, 1 / size],
          [2 - 1 / size, 2],
        ];
  const groups = pairs.flatMap((at, index) =>
    ranges.map(([from = 0, to = 0]) => {
      const joined = (a: NamedTensors, b: NamedTensors): NamedTensors =>
        new Map(
          [...a].flatMap(([name, own]) => {
            const of = items.get(name);
            if (of === undefined && !plan.tensors(at).has(name)) return [];
            return [[name, of ? part(own, b.get(name)!, of.axis, from, to) : own] as const];
          }),
        );
      return {
        inputs: joined(plan.tensors(at), plan.tensors(at + 1)),
        outputs: joined(reference.outputs[at]!, changed[index] ?? reference.outputs[at + 1]!),
        info: samples[at]!,
      };
    }),
  );
  return {
    reference: {
      ...reference,
      plan: { ...plan, tensors: (at) => groups[at]!.inputs },
      samples: groups.map(({ info }) => info),
      outputs: groups.map((group) => group.outputs),
    },
    unknown,
    alike,
    mixing: mixing(flat, inferred, shapes, new Set(stored.keys())),
  };
}

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

/** Of two tensors behind each other along an axis, the part from and to multiples of their size. */
function part(a: Tensor, b: Tensor, axis: number, from: number, to: number): Tensor {
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
