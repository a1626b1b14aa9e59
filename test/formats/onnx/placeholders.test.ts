import { expect, test } from 'vitest';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/index.js';
import { clearPlaceholders } from '../../../src/formats/onnx/open-dimensions.js';
import { interfaceOf } from '../../../src/formats/onnx/values.js';

const model = (shape: readonly (string | number)[]) => {
  const graph = new GraphBuilder('axes');
  graph.input('x', 'float32', shape);
  graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
  graph.output('y', 'float32', shape);
  return buildModel(graph);
};

test.each([
  [
    ['-1', 3, '?', '?'],
    ['-1', 3, null, null],
  ],
  [
    ['None', 'None', 'seq', 'seq'],
    [null, null, 'seq', 'seq'],
  ],
  [['n', '?'], null],
  [['n', 'n'], null],
] as const)('a name that an exporter gives several axes is not the name of one: %j', (shape, cleared) => {
  const { proto } = model(shape);
  expect(clearPlaceholders(proto)).toBe(cleared !== null);
  const { inputs, outputs } = interfaceOf(proto);
  expect([inputs[0]?.shape, outputs[0]?.shape]).toEqual(Array(2).fill([...(cleared ?? shape)]));
});
