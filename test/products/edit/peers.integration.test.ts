import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { migrationSchema } from '../../../src/cli/commands/migrate.js';
import { shellWords } from '../../../src/cli/migrate/line.js';
import { attribute, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { inspectModel } from '../../../src/formats/onnx/inspect.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { floatTensor } from '../../../src/formats/tensor/tensor.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-peers-'));
const out = join(folder, 'out.onnx');
afterAll(() => rmSync(folder, { recursive: true }));

/** y = relu(x w) with a value inside whose name has a colon, z beside it, and a node that nothing reads. */
beforeAll(async () => {
  const graph = new GraphBuilder('chain');
  graph.input('x', 'float32', ['batch', 4]);
  graph.initializer(
    'w',
    floatTensor(
      'float32',
      [4, 4],
      Float32Array.from({ length: 16 }, (_, at) => Math.cos(at)),
    ),
  );
  graph.node('MatMul', { inputs: ['x', 'w'], outputs: ['h:0'] });
  graph.node('Relu', { inputs: ['h:0'], outputs: ['y'] });
  graph.node('Softmax', { inputs: ['h:0'], outputs: ['z'], attributes: { axis: attribute.int(1) } });
  graph.node('Neg', { inputs: ['x'], outputs: ['unread'] });
  graph.output('y', 'float32', ['batch', 4]);
  graph.output('z', 'float32', ['batch', 4]);
  await writeModel(buildModel(graph), join(folder, 'm.onnx'));
});

const both = ['MatMul', 'Relu', 'Softmax'];

test.each([
  {
    line: 'onnxsim m.onnx out.onnx 2 --overwrite-input-shape x:3,4 --unused-output z --target-opset 18',
    shape: [3, 4],
    outputs: ['y'],
    operators: ['MatMul', 'Relu'],
  },
  { line: 'python -m onnxsim m.onnx out.onnx --test-input-shape x:2,4', operators: both },
  {
    line: 'onnxslim m.onnx out.onnx --input-shapes x:-1,4 --outputs y:fp32 --save-as-external-data',
    outputs: ['y'],
    operators: ['MatMul', 'Relu'],
  },
  {
    line: 'onnxslim m.onnx out.onnx --dtype fp16',
    operators: ['Cast', 'Cast', 'Cast', ...both],
    types: true,
  },
  {
    line: 'polygraphy surgeon sanitize m.onnx --cleanup --override-input-shapes x:[1,4] -o out.onnx',
    shape: [1, 4],
    operators: both,
  },
  {
    line: 'polygraphy surgeon sanitize m.onnx --fold-constants --exclude-outputs y -o out.onnx',
    outputs: ['z'],
    operators: ['MatMul', 'Softmax'],
  },
  {
    line: 'polygraphy surgeon extract m.onnx --inputs x:[2,4]:float32 --outputs h:0:auto -o out.onnx',
    shape: [2, 4],
    outputs: ['h:0'],
    operators: ['MatMul'],
  },
  {
    line: 'polygraphy surgeon extract m.onnx --inputs h:0:auto:auto --outputs y:auto -o out.onnx',
    outputs: ['y'],
    operators: ['Relu'],
  },
])('$line', async ({ line, shape = ['batch', 4], outputs = ['y', 'z'], operators, types = false }) => {
  const placed = line.replaceAll(/(m|out)\.onnx/g, `${folder}/$1.onnx`);
  const migrated = await trtforge(['migrate', '--json', placed]);
  expect(migrated.exitCode).toBe(0);
  const { flags, lines } = migrated.json<ReturnType<typeof migrationSchema.parse>>();
  expect(flags.filter(({ ours }) => ours === null)).toEqual([]);
  for (const { command } of lines) {
    const { exitCode, err } = await trtforge([...shellWords(command).slice(1), '--force']);
    expect(exitCode, err).toBe(0);
  }
  const facts = await inspectModel(out);
  expect(facts.inputs.map((input) => input.shape)).toEqual([shape]);
  expect(facts.outputs.map(({ name }) => name)).toEqual(outputs);
  const found = Object.entries(facts.ops).flatMap(([type, count]) =>
    Array.from({ length: count }, () => type),
  );
  expect(found.sort()).toEqual(operators);
  expect('float16' in facts.initializersByDtype).toBe(types);
});
