import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { openModel } from '../../formats/onnx/model.js';
import { addOutputs, type BorderValue } from '../../formats/onnx/subgraph.js';
import { writeModel } from '../../formats/onnx/write.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';

/** Writes a copy of a model with some of its values as outputs too; names that it has not, or of unknown type, are left out. Throws what opening and writing a model throw. */
export async function copyWithOutputs(
  path: string,
  copy: string,
  names: Iterable<string>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const model = openModel(path);
  try {
    const { types } = inferDtypes(model.proto).graph;
    const values = [...names].flatMap((name): readonly BorderValue[] => {
      const type = types.get(name);
      return type === undefined || !(type in dtypes) ? [] : [{ name, dtype: type as Dtype, shape: null }];
    });
    addOutputs(model.proto, values);
    await writeModel(model, copy, { signal });
  } finally {
    model.close();
  }
}
