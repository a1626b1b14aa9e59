import { openModel, writeModel } from 'trtforge/onnx';

/** The outputs of detector.onnx: three views of one network. */
export const HEADS = ['end_to_end', 'one_to_many', 'raw'] as const;

/** Writes the part of a model that one of its outputs needs, with the weights of that part. Throws a RangeError where there is no such output. */
export async function cutOutput(model: string, output: string, path: string): Promise<void> {
  const opened = openModel(model);
  try {
    const graph = opened.proto.graph!;
    const kept = graph.output.filter(({ name }) => name === output);
    if (kept.length === 0) throw new RangeError(`${model} has no output "${output}".`);
    const needed = new Set([output]);
    // Nodes come after those whose values they read.
    const nodes = graph.node.toReversed().filter((node) => {
      if (!node.output.some((name) => needed.has(name))) return false;
      for (const name of node.input) needed.add(name);
      return true;
    });
    graph.output = kept;
    graph.node = nodes.toReversed();
    graph.initializer = graph.initializer.filter(({ name }) => needed.has(name));
    graph.valueInfo = graph.valueInfo.filter(({ name }) => needed.has(name));
    await writeModel(opened, path);
  } finally {
    opened.close();
  }
}
