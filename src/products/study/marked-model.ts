import { editModel } from '../../formats/onnx/model.js';
import { addOutputs, borderValues } from '../../formats/onnx/subgraph.js';
import { writeModel } from '../../formats/onnx/write.js';

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
    const valueAt = borderValues(model);
    const values = [...new Set(names)].flatMap((name) => valueAt(name) ?? []);
    if (own === 'dropped' && model.proto.graph !== undefined) model.proto.graph.output = [];
    addOutputs(model.proto, values);
    await writeModel(model, copy, { signal });
  });
}
