import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openModel, visitTensors, writeModel } from '../../../src/formats/onnx/index.js';
import { bytesOf, everywhereModel, scratchFolder } from './support/models.js';

const python = (script: string, ...args: string[]) =>
  spawnSync('python3', ['-c', script, ...args], { encoding: 'utf8', maxBuffer: 1 << 28 });
const hasOnnx = python('import onnx').status === 0;
const folder = scratchFolder();

/** Everything onnx itself reads from a file, in the order of our own walk. */
const readWithOnnx = `
import sys, json, onnx
from onnx import numpy_helper as nh, AttributeProto
onnx.checker.check_model(sys.argv[1], full_check=True)
m = onnx.load(sys.argv[1])
out = []
def graph(g):
    for t in g.initializer: out.append([t.name, nh.to_array(t).tobytes().hex()])
    for n in g.node: attributes(n)
    for n in g.node:
        for a in n.attribute:
            if a.type == AttributeProto.GRAPH: graph(a.g)
def attributes(n):
    for a in n.attribute:
        if a.type == AttributeProto.TENSOR: out.append([a.t.name, nh.to_array(a.t).tobytes().hex()])
graph(m.graph)
for f in m.functions:
    for n in f.node: attributes(n)
print(json.dumps(out))
`;

describe.skipIf(!hasOnnx)('the onnx package (skipped where python3 has none)', () => {
  it.each(['never', 'always'] as const)(
    'accepts our files and reads the same values (external data: %s)',
    async (externalData) => {
      const path = join(folder, `${externalData}.onnx`);
      await writeModel(everywhereModel(), path, { externalData });
      const { status, stdout, stderr } = python(readWithOnnx, path);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      const model = openModel(path);
      const ours = [...visitTensors(model.proto)].map(({ tensor }) => [
        tensor.name,
        bytesOf(model.weight(tensor)).toString('hex'),
      ]);
      model.close();
      expect(ours).toEqual(JSON.parse(stdout));
    },
  );
});
