import type { PlanProgram, ProgramKernel } from '../../engines/plan/program.js';
import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { usedNames } from '../../formats/onnx/graph.js';
import { openModel } from '../../formats/onnx/model.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';

/** A floating-point tensor that nodes pass on to nodes. */
export interface InnerTensor {
  readonly name: string;
  /** Names of nodes. A cast is none of them: its readers read the tensor. */
  readonly maker: string;
  readonly readers: readonly string[];
}

/** Nodes that one kernel computes, and the tensors that it need not store for that. */
export interface FusionGroup {
  /** null where the compiled program cannot be read. */
  readonly kernel: string | null;
  readonly nodes: readonly string[];
  readonly tensors: readonly string[];
}

const floats: ReadonlySet<string> = new Set(['float16', 'bfloat16', 'float32']);

/** The inner tensors of a model's graph, in its order. Throws what opening a model throws. */
export function innerTensors(path: string): readonly InnerTensor[] {
  const model = openModel(path);
  try {
    const { graph } = model.proto;
    if (graph === undefined) return [];
    const { types } = inferDtypes(model.proto).graph;
    const outputs = new Set(graph.output.map(({ name }) => name));
    const readers = new Map<string, NodeProto[]>();
    for (const node of graph.node)
      for (const name of usedNames(node)) readers.set(name, [...(readers.get(name) ?? []), node]);
    const readersOf = (name: string): readonly string[] =>
      (readers.get(name) ?? []).flatMap((node) =>
        node.opType === 'Cast' ? node.output.flatMap(readersOf) : [node.name],
      );
    return graph.node
      .filter(({ opType }) => opType !== 'Cast' && opType !== 'Constant')
      .flatMap((node) =>
        node.output
          .filter((name) => floats.has(types.get(name) ?? '') && !outputs.has(name))
          .map((name) => ({ name, maker: node.name, readers: readersOf(name) }))
          .filter((tensor) => tensor.readers.length > 0),
      );
  } finally {
    model.close();
  }
}

/** What the kernels of a program span; without a program each tensor may lie inside of one. */
export function fusionGroups(
  tensors: readonly InnerTensor[],
  program: PlanProgram | null,
): readonly FusionGroup[] {
  if (program === null)
    return tensors.map(({ name, maker, readers }) => ({
      kernel: null,
      nodes: [maker, ...readers],
      tensors: [name],
    }));
  const taken = new Set<string>();
  return kernelsOf(program).flatMap((kernel) => {
    const inside = insideOf(kernel, tensors).filter(({ name }) => !taken.has(name));
    for (const { name } of inside) taken.add(name);
    if (inside.length === 0) return [];
    return [{ kernel: kernel.name, nodes: kernel.nodes, tensors: inside.map(({ name }) => name) }];
  });
}

/** What a program spans that another does not: the tensors that this alone leaves out come first. */
export function addedFusion(
  tensors: readonly InnerTensor[],
  before: PlanProgram,
  after: PlanProgram,
): FusionGroup | null {
  const earlier = new Map<string, number>();
  for (const kernel of kernelsOf(before))
    earlier.set(natureOf(kernel), (earlier.get(natureOf(kernel)) ?? 0) + 1);
  const added = kernelsOf(after).filter((kernel) => {
    const left = earlier.get(natureOf(kernel)) ?? 0;
    earlier.set(natureOf(kernel), left - 1);
    return left <= 0;
  });
  const [first] = added.toSorted((a, b) => b.nodes.length - a.nodes.length);
  if (first === undefined) return null;
  const inside = added.flatMap((kernel) => insideOf(kernel, tensors));
  const earlierInside = new Set(kernelsOf(before).flatMap((kernel) => insideOf(kernel, tensors)));
  const ordered = [
    ...inside.filter((tensor) => !earlierInside.has(tensor)),
    ...inside.filter((tensor) => earlierInside.has(tensor)),
  ];
  return {
    kernel: first.name,
    nodes: [...new Set(added.flatMap(({ nodes }) => nodes))],
    tensors: [...new Set(ordered.map(({ name }) => name))],
  };
}

/** The kernels of every graph of a program; none where there is no program. */
export const kernelsOf = (program: PlanProgram | null): readonly ProgramKernel[] =>
  program?.graphs.flatMap(({ kernels }) => kernels) ?? [];

/** What generated kernels compute is in their names; names of others are numbered. */
const natureOf = ({ kind, name, nodes }: ProgramKernel): string =>
  JSON.stringify([kind, /^_/.test(name) ? name : '', [...nodes].sort()]);

function insideOf({ nodes }: ProgramKernel, tensors: readonly InnerTensor[]): readonly InnerTensor[] {
  const own = new Set(nodes);
  return tensors.filter(({ maker, readers }) => own.has(maker) && readers.some((reader) => own.has(reader)));
}
