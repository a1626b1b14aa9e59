import { nodeName, visitMainGraphs } from '../../formats/onnx/graph.js';
import { editModel, type OnnxModel } from '../../formats/onnx/model.js';
import type { ModelProto } from '../../formats/onnx/onnx_pb.js';
import { writeModel } from '../../formats/onnx/write.js';
import { inlineFunctions, normalise } from '../../formats/precision/normalise.js';
import type { ConversionOptions } from '../../formats/precision/options.js';

/** Reads a model as conversions decide on it: functions inlined and normalised. Throws what opening a model and `read` throw. */
export const asConverted = <T>(
  path: string,
  { pluginTypes }: ConversionOptions,
  read: (model: OnnxModel) => T | Promise<T>,
): Promise<T> =>
  editModel(path, async (model) => {
    normalise(model.proto, pluginTypes);
    return await read(model);
  });

/**
 * The model where each of its nodes has a name of its own, else a copy at `copy` whose nodes have: by their first output, numbered where that is taken.
 * Throws what opening and writing models throw.
 */
export async function withNodeNames(path: string, copy: string, signal?: AbortSignal): Promise<string> {
  return editModel(path, async (model) => {
    if (!nameNodes(model.proto)) return path;
    await writeModel(model, copy, { signal });
    return copy;
  });
}

/** Whether names were missing, or several nodes had the same. */
function nameNodes(proto: ModelProto): boolean {
  let isChanged = inlineFunctions(proto) > 0;
  const taken = new Set<string>();
  for (const { nodes } of visitMainGraphs(proto))
    for (const node of nodes) {
      const wanted = nodeName(node);
      let name = wanted;
      for (let number = 2; taken.has(name); number++) name = `${wanted}:${number}`;
      taken.add(name);
      isChanged ||= name !== node.name;
      node.name = name;
    }
  return isChanged;
}
