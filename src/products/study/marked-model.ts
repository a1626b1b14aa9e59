import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { editModel, type OnnxModel } from '../../formats/onnx/model.js';
import { dimensionsText } from '../../formats/onnx/shapes/cost-facts.js';
import { inferShapes } from '../../formats/onnx/shapes/infer.js';
import { addOutputs, type BorderValue } from '../../formats/onnx/subgraph.js';
import { writeModel } from '../../formats/onnx/write.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';

/** Whether a marked model keeps its own outputs. */
type OwnOutputs = 'kept' | 'dropped';

/**
 * Writes a copy of a model with some of its values as outputs, in their inferred types and shapes; names that it has not, or of unknown type, are left out.
 * Throws what opening and writing a model throw.
 */
export async function writeMarked(
  path: string,
  copy: string,
  names: Iterable<string>,
  own: OwnOutputs,
  signal: AbortSignal | undefined,
): Promise<void> {
  return editModel(path, async (model) => {
    const { types } = inferDtypes(model.proto).graph;
    const shapes = inferredShapes(model);
    const values = [...new Set(names)].flatMap((name): readonly BorderValue[] => {
      const type = types.get(name);
      if (type === undefined || !(type in dtypes)) return [];
      return [{ name, dtype: type as Dtype, shape: shapes.get(name) ?? null }];
    });
    if (own === 'dropped' && model.proto.graph !== undefined) model.proto.graph.output = [];
    addOutputs(model.proto, values);
    await writeModel(model, copy, { signal });
  });
}

/** Shapes of the values that nodes make. ONNX's own checker takes no output without a rank. */
const inferredShapes = (model: OnnxModel): ReadonlyMap<string, BorderValue['shape']> =>
  new Map(
    [...inferShapes(model).nodes].flatMap(([{ output }, { shapes }]) =>
      output.map((name, index) => [name, dimensionsText(shapes[index])] as const),
    ),
  );
