import { expect, test } from 'vitest';
import type { PlanProgram } from '../../../src/engines/plan/program.js';
import { fusionGroups, innerTensors } from '../../../src/products/study/fusions.js';
import { castTo, modelFile } from '../../engines/runtime/onnxruntime/models.js';

/** A program of one graph; each kernel by its name and nodes. */
const program = (...kernels: readonly (readonly [string, ...string[]])[]): PlanProgram => ({
  ...{ digest: JSON.stringify(kernels), textBytes: 0, codeBytes: 0 },
  graphs: [
    {
      architectures: ['sm_89'],
      kernels: kernels.map(([name, ...nodes]) => ({
        ...{ kind: 'function', name, nodes, inputs: [], outputs: [], parts: [] },
      })),
    },
  ],
});

const tensor = (name: string, node: string, ...readers: string[]) => ({ name, node, readers });
const chain = [tensor('a', 'A', 'B'), tensor('b', 'B', 'C'), tensor('c', 'C', 'D')];

test('inner tensors are floats between nodes; casts are looked through', async () => {
  const path = await modelFile((graph) => {
    graph.input('x', 'float32', [4]);
    graph.node('Exp', { name: 'exp', inputs: ['x'], outputs: ['e'] });
    graph.node('Cast', { name: 'cast', inputs: ['e'], outputs: ['h'], attributes: castTo('float16') });
    graph.node('Neg', { name: 'neg', inputs: ['h'], outputs: ['y'] });
    graph.node('Shape', { name: 'shape', inputs: ['e'], outputs: ['s'] });
    graph.node('Size', { name: 'size', inputs: ['s'], outputs: ['z'] });
    graph.output('y', 'float16', [4]);
    graph.output('z', 'int64', []);
  });
  expect(innerTensors(path)).toEqual([
    { name: 'e', node: 'exp', op: 'Exp', dtype: 'float32', readers: ['neg', 'shape'], isOutput: false },
  ]);
});

test('a group is what one kernel spans; without a program each tensor is one', () => {
  const fused = program(['_ab', 'A', 'B'], ['_c', 'C'], ['_d', 'D']);
  expect(fusionGroups(chain, fused)).toEqual([{ kernel: '_ab', nodes: ['A', 'B'], tensors: ['a'] }]);
  expect(fusionGroups(chain, null)).toHaveLength(3);
});
