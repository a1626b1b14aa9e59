import type { PlanProgram, ProgramKernel } from '../../engines/plan/program.js';
import { type MadeTensor, madeTensors } from './made-tensors.js';

/** A value that a kernel may leave out: nodes pass it on to nodes. */
export type InnerTensor = Pick<MadeTensor, 'name' | 'node' | 'readers'>;

/** Nodes that one kernel computes, and the tensors that it need not store for that. */
export interface FusionGroup {
  /** null where the compiled program cannot be read. */
  readonly kernel: string | null;
  readonly nodes: readonly string[];
  readonly tensors: readonly string[];
}

/** The inner tensors of a model's graph, in its order. Throws what opening a model throws. */
export const innerTensors = (path: string): readonly InnerTensor[] =>
  madeTensors(path).filter(
    ({ op, dtype, readers, isOutput }) =>
      op !== 'Cast' && dtype !== 'float64' && readers.length > 0 && !isOutput,
  );

/** The nodes and tensors that each kernel spans; without a program each tensor may lie inside of one. */
export function fusionGroups(
  tensors: readonly InnerTensor[],
  program: PlanProgram | null,
): readonly FusionGroup[] {
  if (program === null)
    return tensors.map(({ name, node, readers }) => ({
      kernel: null,
      nodes: [node, ...readers],
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

/** The kernels of every graph of a program; none where there is no program. */
export const kernelsOf = (program: PlanProgram | null): readonly ProgramKernel[] =>
  program?.graphs.flatMap(({ kernels }) => kernels) ?? [];

function insideOf({ nodes }: ProgramKernel, tensors: readonly InnerTensor[]): readonly InnerTensor[] {
  const own = new Set(nodes);
  return tensors.filter(({ node, readers }) => own.has(node) && readers.some((reader) => own.has(reader)));
}
