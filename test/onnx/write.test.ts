import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ModelProtoSchema, openModel, visitTensors, writeModel } from '../../src/onnx/index.js';
import { MARKER_FIELD } from '../../src/onnx/payload.js';
import { bytesOf, everywhereModel, scratchFolder } from './support/models.js';

const folder = scratchFolder();

const contents = (path: string) => {
  const model = openModel(path);
  const tensors = [...visitTensors(model.proto)].map(({ tensor, role, view }) => {
    const weight = model.weight(tensor);
    return {
      name: tensor.name,
      role,
      place: view.path,
      dtype: weight.dtype,
      bytes: bytesOf(weight).toString('hex'),
    };
  });
  model.close();
  return tensors;
};

describe('writeModel', () => {
  it('writes a built model that reads back the same, in one file or with external data', async () => {
    const one = join(folder, 'one.onnx');
    const two = join(folder, 'two.onnx');
    const built = everywhereModel();
    const before = toBinary(ModelProtoSchema, built.proto);
    expect(await writeModel(built, one)).toEqual({
      path: one,
      bytes: statSync(one).size,
      externalData: null,
    });
    const written = await writeModel(built, two, { externalData: 'always' });
    expect(written.externalData).toEqual({ path: `${two}.data`, bytes: statSync(`${two}.data`).size });
    expect(toBinary(ModelProtoSchema, built.proto)).toEqual(before);
    expect(contents(two)).toEqual(contents(one));
    expect(contents(one)).toHaveLength(7);
  });

  it('leaves no marker and no unpublished file behind', async () => {
    const path = join(folder, 'plain.onnx');
    await writeModel(everywhereModel(), path);
    const proto = fromBinary(ModelProtoSchema, readFileSync(path));
    for (const { tensor } of visitTensors(proto)) {
      expect(tensor.$unknown?.some((field) => field.no === MARKER_FIELD) ?? false).toBe(false);
    }
    expect(readdirSync(folder).filter((name) => name.endsWith('.unpublished'))).toEqual([]);
  });

  it('copies an opened model byte for byte when nothing changes', async () => {
    const first = join(folder, 'first.onnx');
    const second = join(folder, 'second.onnx');
    await writeModel(everywhereModel(), first);
    const model = openModel(first);
    await writeModel(model, second);
    model.close();
    expect(readFileSync(second).equals(readFileSync(first))).toBe(true);
  });

  it('refuses to write over its own input, model or weights', async () => {
    const path = join(folder, 'input.onnx');
    await writeModel(everywhereModel(), path, { externalData: 'always' });
    const before = readFileSync(path);
    const model = openModel(path);
    await expect(writeModel(model, path)).rejects.toMatchObject({ code: 'TF_ONNX_WRITES_INPUT' });
    model.close();
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(existsSync(`${path}.data`)).toBe(true);
  });

  it('writes replaced tensors with their new dtype', async () => {
    const from = join(folder, 'from.onnx');
    const to = join(folder, 'to.onnx');
    await writeModel(everywhereModel(), from);
    const model = openModel(from);
    const tensor = model.proto.graph!.initializer.find(({ name }) => name === 'w')!;
    const half = {
      dtype: 'float16' as const,
      byteLength: 64 * 64 * 2,
      *chunks() {
        for (const chunk of model.weight(tensor).chunks(4096)) yield chunk.subarray(0, chunk.length / 2);
      },
    };
    await writeModel(model, to, { replacements: new Map([[tensor, half]]) });
    const result = openModel(to);
    const written = result.weight(result.proto.graph!.initializer.find(({ name }) => name === 'w')!);
    expect([written.dtype, written.byteLength]).toEqual(['float16', 8192]);
    expect(bytesOf(written)).toEqual(bytesOf(half));
    result.close();
    model.close();
  });
});
