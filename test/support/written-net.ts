import { buildModel, type Dimension, GraphBuilder, writeModel } from '../../src/formats/onnx/index.js';

/** Writes a model of two nodes with one image input of this shape, one weight and one output. */
export async function writeNet(path: string, shape: readonly Dimension[], opset = 17): Promise<void> {
  const graph = new GraphBuilder('net');
  graph.input('weight', 'float32', [8, 3, 1, 1]);
  graph.input('image', 'float32', shape);
  graph.initializer('weight', {
    dtype: 'float32',
    shape: [8, 3, 1, 1],
    *chunks() {
      yield new Uint8Array(new Float32Array(24).fill(1e6).buffer);
    },
  });
  graph.node('Conv', { inputs: ['image', 'weight'], outputs: ['features'], name: 'conv' });
  graph.node('Relu', { inputs: ['features'], outputs: ['scores'], name: 'relu' });
  graph.output('scores', 'float32', ['batch', 8, null, null]);
  // The ONNX domain is not the first one imported, as some exporters do.
  const built = buildModel(graph, { opset, producer: 'tests' });
  built.proto.opsetImport.unshift({ $typeName: 'onnx.OperatorSetIdProto', domain: 'com.acme', version: 3n });
  await writeModel(built, path);
}
