import { TrtforgeError } from '../../errors.js';
import { viewModel } from '../../formats/onnx/model.js';
import { isPlaceholder } from '../../formats/onnx/open-dimensions.js';
import { inferShapes } from '../../formats/onnx/shapes/infer.js';
import { symbolsOf } from '../../formats/onnx/shapes/size.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import type { Session } from '../runtime/session.js';

type Bindings = Pick<Session, 'inputs' | 'outputs'>;

/**
 * Which output of a run has another size than the model declares of it by the name of an input's dimension, in one sentence; undefined where none has. Where the graph
 * computes the size from that dimension (frames after subsampling), the name is the exporter's mistake and nothing is fixed.
 */
export function declaredOtherwise(
  path: string,
  declared: Bindings,
  inputs: NamedTensors,
  outputs: NamedTensors,
): string | undefined {
  const sizes = new Map(
    declared.inputs.flatMap(({ name, shape }) =>
      (shape ?? []).flatMap((dimension, axis) =>
        typeof dimension === 'string' && !isPlaceholder(dimension)
          ? [[dimension, inputs.get(name)?.shape[axis]] as const]
          : [],
      ),
    ),
  );
  for (const { name, shape } of declared.outputs) {
    const ran = outputs.get(name)?.shape;
    for (const [axis, dimension] of (shape ?? []).entries()) {
      const wanted = typeof dimension === 'string' ? sizes.get(dimension) : undefined;
      if (wanted === undefined || ran?.[axis] === wanted || !isFixed(path, name, axis, `${dimension}`))
        continue;
      return `Output "${name}" is declared as [${shape!.map((size) => size ?? '?').join(', ')}] and is [${ran?.join(', ')}] where ${dimension} is ${wanted}`;
    }
  }
  return undefined;
}

/** Throws TF_OUTPUT_SIZE. */
export function assertAsDeclared(...[path, ...run]: Parameters<typeof declaredOtherwise>): void {
  const fault = declaredOtherwise(path, ...run);
  if (fault !== undefined) throw new TrtforgeError('TF_OUTPUT_SIZE', `${path}: ${fault}.`);
}

/** Whether the inputs decide the size of an output's axis without that dimension. */
const isFixed = (path: string, output: string, axis: number, dimension: string): boolean =>
  viewModel(path, (model) => {
    const { nodes, openSizes } = inferShapes(model);
    const producer = model.proto.graph!.node.find((node) => node.output.includes(output));
    const size = producer && nodes.get(producer)?.shapes[producer.output.indexOf(output)]?.[axis];
    const names = size === undefined ? [dimension] : symbolsOf(size);
    return names.every((name) => name !== dimension && openSizes.has(name));
  });
