import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import {
  buildModel,
  type GeneratedValues,
  GraphBuilder,
  ModelProtoSchema,
  openModel,
  visitTensors,
  writeModel,
} from '../../../src/formats/onnx/index.js';
import { MARKER_FIELD } from '../../../src/formats/onnx/wire.js';
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

  it('rejects to write over its own input, model or weights', async () => {
    const path = join(folder, 'input.onnx');
    await writeModel(everywhereModel(), path, { externalData: 'always' });
    const before = readFileSync(path);
    const model = openModel(path);
    await expect(writeModel(model, path)).rejects.toMatchObject({ code: 'TF_OUTPUT_IS_INPUT' });
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

  const oneWeight = (value: GeneratedValues) => {
    const graph = new GraphBuilder('g');
    graph.initializer('w', value);
    return buildModel(graph);
  };
  const leftIn = (place: string) => (existsSync(place) ? readdirSync(place) : []);

  it('gives external weights offsets that can be mapped, and keeps small tensors in the model', async () => {
    const path = join(folder, 'aligned.onnx');
    await writeModel(everywhereModel(), path, { externalData: 'always' });
    const model = openModel(path);
    const places = [...visitTensors(model.proto)].map(({ tensor }) => model.weight(tensor));
    for (const { where, byteLength } of places) {
      expect(where.kind === 'external').toBe(byteLength >= 1024);
      if (where.kind === 'external') expect(where.offset % 4096).toBe(0);
    }
    model.close();
  });

  it('rejects one file beyond 2 GiB before it writes a byte', async () => {
    const place = join(folder, 'too-large');
    const model = oneWeight({ dtype: 'float32', shape: [1 << 20, 600], chunks: () => [] });
    await expect(writeModel(model, join(place, 'm.onnx'), { externalData: 'never' })).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
    expect(leftIn(place)).toEqual([]);
  });

  it.each(['never', 'always'] as const)(
    'leaves nothing behind when weights cannot be read (external data: %s)',
    async (externalData) => {
      const place = join(folder, `failing-${externalData}`);
      const model = oneWeight({
        dtype: 'float32',
        shape: [1024],
        *chunks() {
          yield new Uint8Array(100);
          throw new TrtforgeError('TF_ONNX_EXTERNAL_SHORT', 'gone');
        },
      });
      await expect(writeModel(model, join(place, 'm.onnx'), { externalData })).rejects.toMatchObject({
        code: 'TF_ONNX_EXTERNAL_SHORT',
      });
      expect(leftIn(place)).toEqual([]);
    },
  );

  it('rejects a stream that is shorter than stated', async () => {
    const place = join(folder, 'short');
    const model = oneWeight({ dtype: 'float32', shape: [1024], chunks: () => [new Uint8Array(8)] });
    await expect(writeModel(model, join(place, 'm.onnx'))).rejects.toMatchObject({ code: 'TF_INTERNAL' });
    expect(leftIn(place)).toEqual([]);
  });

  it('reports how far it is and can be cancelled, leaving nothing', async () => {
    const place = join(folder, 'cancelled');
    const chunk = new Uint8Array(4 << 20);
    const model = oneWeight({
      dtype: 'float32',
      shape: [200, 1 << 18],
      chunks: () => new Array(50).fill(chunk),
    });
    const abort = new AbortController();
    const seen: number[] = [];
    const work = writeModel(model, join(place, 'm.onnx'), { signal: abort.signal }, (event) => {
      if (event.type === 'progress') seen.push(event.done);
      abort.abort();
    });
    await expect(work).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    expect(seen).toHaveLength(1);
    expect(leftIn(place)).toEqual([]);
  });

  it('keeps fields that this version of ONNX does not know', async () => {
    const from = join(folder, 'future.onnx');
    const to = join(folder, 'future-copy.onnx');
    const built = everywhereModel();
    built.proto.$unknown = [{ no: 99, wireType: 0, data: Uint8Array.of(7) }];
    built.proto.graph!.initializer[0]!.$unknown!.push({ no: 33, wireType: 2, data: Uint8Array.of(2, 1, 2) });
    await writeModel(built, from);
    const model = openModel(from);
    await writeModel(model, to);
    expect(model.proto.$unknown).toEqual([{ no: 99, wireType: 0, data: Uint8Array.of(7) }]);
    expect(model.proto.graph!.initializer[0]!.$unknown).toContainEqual({
      no: 33,
      wireType: 2,
      data: Uint8Array.of(2, 1, 2),
    });
    model.close();
    expect(readFileSync(to).equals(readFileSync(from))).toBe(true);
  });
});
