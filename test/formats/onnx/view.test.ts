import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { keepingFiles } from '../../../src/base/files/byte-source.js';
import { findUnreached } from '../../../src/engines/run/unreached.js';
import { buildModel, GraphBuilder, ModelProtoSchema, writeModel } from '../../../src/formats/onnx/index.js';
import { editModel, type OnnxModel, viewModel } from '../../../src/formats/onnx/model.js';
import { bytesOf, everywhereModel, float32, scratchFolder } from './support/models.js';

const folder = scratchFolder();
const itself = (model: OnnxModel) => model;

/** A model whose weight, a kilobyte and more, is outside it. */
async function withWeight(value: number, name: string): Promise<string> {
  const graph = new GraphBuilder('weighted');
  graph.input('x', 'float32', [1, 512]);
  graph.initializer('w', float32([1, 512], new Array(512).fill(value)));
  graph.node('Add', { inputs: ['x', 'w'], outputs: ['y'] });
  graph.output('y', 'float32', [1, 512]);
  const path = join(folder, name);
  await writeModel(buildModel(graph, { opset: 17 }), path, { externalData: 'always' });
  return path;
}

const firstWeight = (model: OnnxModel): number =>
  bytesOf(model.weight(model.proto.graph!.initializer[0]!)).readFloatLE(0);

test('readers of a file that is kept open share one model; a conversion has its own', async () => {
  const path = await withWeight(1, 'shared.onnx');
  await keepingFiles([path], async () => {
    const first = viewModel(path, itself);
    const own = editModel(path, (model) => {
      model.proto.graph!.name = 'changed';
      return model;
    });
    expect(viewModel(path, itself)).toBe(first);
    expect(own.proto).not.toBe(first.proto);
    expect(first.proto.graph!.name).toBe('weighted');
  });
  expect(viewModel(path, itself)).not.toBe(viewModel(path, itself));
});

test('work that goes on after the run reads files of its own', async () => {
  const path = await withWeight(1, 'late.onnx');
  let late: Promise<number> | undefined;
  await keepingFiles([path], async () => {
    viewModel(path, firstWeight);
    late = new Promise(setImmediate).then(() => viewModel(path, firstWeight));
  });
  await expect(late).resolves.toBe(1);
});

test('a view is closed by the end, also where reading it throws or takes its time', async () => {
  const path = await withWeight(1, 'closed.onnx');
  const read: OnnxModel[] = [];
  const failing = async (model: OnnxModel) => {
    await Promise.resolve();
    expect(firstWeight(model)).toBe(1);
    read.push(model);
    throw new Error('failed');
  };
  await expect(viewModel(path, failing)).rejects.toThrow('failed');
  await expect(keepingFiles([path], () => viewModel(path, failing))).rejects.toThrow('failed');
  rmSync(`${path}.data`);
  for (const model of read)
    expect(() => firstWeight(model)).toThrow(expect.objectContaining({ code: 'TF_ONNX_EXTERNAL_MISSING' }));
  expect(read).toHaveLength(2);
});

test('a model that changed while it was kept is read again, and so are its weights', async () => {
  const path = await withWeight(1, 'before.onnx');
  const other = await withWeight(2, 'after.onnx');
  await keepingFiles([path], async () => {
    const before = viewModel(path, itself);
    expect(viewModel(path, firstWeight)).toBe(1);
    renameSync(`${other}.data`, `${path}.data`);
    expect(viewModel(path, firstWeight)).toBe(2);
    renameSync(other, path);
    expect(viewModel(path, itself)).not.toBe(before);
  });
});

test('looking where inputs lead leaves the functions of a view as they are', async () => {
  const path = join(folder, 'functions.onnx');
  await writeModel(everywhereModel(), path);
  await keepingFiles([path], async () => {
    const written = viewModel(path, ({ proto }) => toBinary(ModelProtoSchema, proto));
    viewModel(path, (model) => findUnreached(model, [new Map()]));
    const after = viewModel(path, ({ proto }) => proto);
    expect(after.functions).toHaveLength(1);
    expect(toBinary(ModelProtoSchema, after)).toEqual(written);
  });
});
