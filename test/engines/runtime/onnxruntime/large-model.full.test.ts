import {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import { afterAll, expect, test } from 'vitest';
import { openOrtSession } from '../../../../src/engines/runtime/onnxruntime/ort-session.js';
import { buildModel, GraphBuilder } from '../../../../src/formats/onnx/builder.js';
import { GraphProtoSchema, ModelProtoSchema } from '../../../../src/formats/onnx/onnx_pb.js';
import { float32Values, integerTensor } from '../../../../src/formats/tensor/tensor.js';
import { describeWith } from '../../../support/needs.js';

const COLUMNS = 1024;
const ROWS = 550_000;
const BYTES = 4 * COLUMNS * ROWS;

const folder = mkdtempSync(join(tmpdir(), 'trtforge-large-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
const field = (number: number, length: number): number[] => [...varint(number * 8 + 2), ...varint(length)];
const message = (number: number, content: readonly number[]): number[] => [
  ...field(number, content.length),
  ...content,
];
const text = (number: number, value: string): number[] => message(number, [...Buffer.from(value)]);

/**
 * Rows of one table, chosen by index, in one file of more than 2 GiB: no library writes such a protobuf, exporters of their own do. The table is a hole in the
 * file but for the first value of a few rows, which is the row's number.
 */
function writeLargeModel(path: string, rows: readonly number[]): void {
  const g = new GraphBuilder('table');
  g.input('ids', 'int64', ['n']);
  g.node('Gather', { inputs: ['table', 'ids'], outputs: ['y'] });
  g.output('y', 'float32', ['n', COLUMNS]);
  const { graph, ...model } = buildModel(g).proto;
  if (graph === undefined) throw new Error('The builder makes graphs.');
  const rest = toBinary(GraphProtoSchema, graph);
  const tensor = [
    ...[8, ...varint(ROWS), 8, ...varint(COLUMNS), 16, 1],
    ...text(8, 'table'),
    ...field(9, BYTES),
  ];
  const initializer = [...field(5, tensor.length + BYTES), ...tensor];
  const head = Buffer.from([
    ...toBinary(ModelProtoSchema, model),
    ...field(7, rest.length + initializer.length + BYTES),
  ]);
  const start = Buffer.concat([head, rest, Buffer.from(initializer)]);
  const file = openSync(path, 'w');
  writeSync(file, start);
  for (const row of rows)
    writeSync(file, Buffer.from(Float32Array.of(row).buffer), 0, 4, start.length + 4 * COLUMNS * row);
  ftruncateSync(file, start.length + BYTES);
  closeSync(file);
}

describeWith('onnxruntime', 'a model of more than 2 GiB in one file', () => {
  test.skipIf(process.env.TRTFORGE_TEST_LARGE !== '1')(
    'runs on ONNX Runtime, which rejects such files, by way of external data (TRTFORGE_TEST_LARGE=1 writes 2.3 GB)',
    async () => {
      const path = join(folder, 'large.onnx');
      writeLargeModel(path, [0, 7, ROWS - 1]);
      expect(statSync(path).size).toBeGreaterThan(2 ** 31);
      const before = readdirSync(tmpdir()).filter((name) => name.startsWith('trtforge-model-'));
      const session = await openOrtSession(path);
      try {
        const outputs = await session.run(new Map([['ids', integerTensor('int64', [3], [7, ROWS - 1, 1])]]));
        const y = outputs.get('y');
        expect(y?.shape).toEqual([3, COLUMNS]);
        const values = y === undefined ? [] : float32Values(y);
        expect([values[0], values[COLUMNS], values[2 * COLUMNS]]).toEqual([7, ROWS - 1, 0]);
      } finally {
        await session.close();
      }
      const after = readdirSync(tmpdir()).filter((name) => name.startsWith('trtforge-model-'));
      expect(after.filter((name) => !before.includes(name))).toEqual([]);
    },
    180_000,
  );
});
