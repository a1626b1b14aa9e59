import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';

/** y = 2x + 1, as the fake GPU computes it, or something else. */
export async function writeAffine(path: string, slope = 2): Promise<void> {
  const graph = new GraphBuilder('affine');
  const scalar = (name: string, value: number) =>
    graph.initializer(name, tensorFrom('float32', [1], Float32Array.of(value)));
  const x = graph.input('x', 'float32', ['batch', 64]);
  const product = graph.value('product', 'float32', ['batch', 64]);
  graph.node('Mul', { inputs: [x, scalar('slope', slope)], outputs: [product] });
  graph.node('Add', {
    inputs: [product, scalar('one', 1)],
    outputs: [graph.output('y', 'float32', ['batch', 64])],
  });
  await writeModel(buildModel(graph), path);
}
