import type { ModelLike } from '../onnx/model.js';
import { inferShapes } from '../onnx/shapes/infer.js';
import type { MaybeSize } from '../onnx/shapes/size.js';
import { valueFacts } from '../onnx/values.js';
import type { Value } from './flow.js';

/** The dimensions of a value as far as they are known; undefined where not even the rank is. */
export type ShapeOf = (value: Value | undefined) => readonly (number | undefined)[] | undefined;

/** Shapes of the weights, and what is inferred of the others when the first is asked for. */
export function valueShapes(model: ModelLike): ShapeOf {
  let inferred: ReturnType<typeof inferShapes> | undefined;
  const shapeOf = (value: Value): readonly (MaybeSize | string | null)[] | null | undefined => {
    const { name, scope, tensor, producer } = value;
    if (tensor !== undefined) return tensor.dims.map(Number);
    inferred ??= inferShapes(model);
    if (producer !== undefined)
      return inferred.nodes.get(producer.node)?.shapes[producer.outputs.indexOf(value)];
    if (scope.owner === undefined) return inferred.inputs.get(name);
    const declared = scope.graph.input.find((input) => input.name === name);
    return declared && valueFacts(declared).shape;
  };
  return (value) => (value && shapeOf(value))?.map((size) => (typeof size === 'number' ? size : undefined));
}
