import { floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { sampleIdentity } from '../../support/sample-engine.js';
import { fakes } from './library.js';

/** y = 2x + 1 over rows of four, or with other weights: the model of the fake engine `affine` with `inner: 4`; gives the file's path. */
export const affineModel = (weights = { two: 2, one: 1 }): Promise<string> =>
  modelFile((graph) => {
    graph.input('x', 'float32', ['n', 4]);
    for (const [name, value] of Object.entries(weights))
      graph.initializer(name, floats('float32', [], [value]));
    graph.node('Mul', { inputs: ['x', 'two'], outputs: ['m'] });
    graph.node('Add', { inputs: ['m', 'one'], outputs: ['y'] });
    graph.output('y', 'float32', ['n', 4]);
  });

/** What the inspector says of it: no plan is as small as a fake's would be without. */
export const manyLayers = JSON.stringify({ Layers: Array(100).fill('affine') });

/** The sample's identity as of an engine that the fake of TensorRT 10 has built for its GPU. */
export function fakeIdentity() {
  const document = sampleIdentity();
  const { version } = fakes['10'];
  const target = { ...document.target, product: 'tensorrt' as const, version, computeCapabilities: [90] };
  return { ...document, target };
}
