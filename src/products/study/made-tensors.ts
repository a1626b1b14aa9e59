import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { GraphUses, inOrder, qualifiedOpType } from '../../formats/onnx/graph.js';
import { viewModel } from '../../formats/onnx/model.js';
import type { Dtype } from '../../formats/tensor/dtype.js';

/** A floating-point value that a node of a graph makes. */
export interface MadeTensor {
  readonly name: string;
  readonly node: string;
  readonly op: string;
  readonly dtype: Dtype;
  /** Names of the nodes that read it. A cast is none of them: its readers read the value. */
  readonly readers: readonly string[];
  readonly isOutput: boolean;
}

/** FP8 and FP4 are codes of quantized values, not values. */
const floats: ReadonlySet<string> = new Set(['float16', 'bfloat16', 'float32', 'float64']);

/** The floating-point values of a graph in its order, save for constants, which are weights. Throws what opening a model throws. */
export function madeTensors(path: string): readonly MadeTensor[] {
  return viewModel(path, (model) => {
    const graph = model.proto.graph!;
    const { types } = inferDtypes(model.proto).graph;
    const outputs = new Set(graph.output.map(({ name }) => name));
    const uses = new GraphUses(graph);
    const readersOf = (name: string): readonly string[] =>
      uses
        .readers(name)
        .flatMap((node) => (node.opType === 'Cast' ? node.output.flatMap(readersOf) : [node.name]));
    return inOrder(graph.node).nodes.flatMap((node) =>
      node.opType === 'Constant'
        ? []
        : node.output.flatMap((name) => {
            const type = types.get(name) ?? '';
            if (name === '' || !floats.has(type)) return [];
            const made = { name, node: node.name, op: qualifiedOpType(node), dtype: type as Dtype };
            return [{ ...made, readers: readersOf(name), isOutput: outputs.has(name) }];
          }),
    );
  });
}
