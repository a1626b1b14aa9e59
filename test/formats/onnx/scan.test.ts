import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { type ByteSource, bytesSource } from '../../../src/base/files/byte-source.js';
import { TrtforgeError } from '../../../src/errors.js';
import {
  buildModel,
  GraphBuilder,
  ModelProtoSchema,
  openModel,
  visitTensors,
  writeModel,
} from '../../../src/formats/onnx/index.js';
import { factsOfModel } from '../../../src/formats/onnx/inspect.js';
import { modelOf } from '../../../src/formats/onnx/model.js';
import { scanModel } from '../../../src/formats/onnx/scan.js';
import { encodeVarints } from '../../../src/formats/onnx/wire.js';
import { everywhereModel, float32, scratchFolder } from './support/models.js';

const folder = scratchFolder();
let files = 0;
const file = (content: string | Uint8Array) => {
  const path = join(folder, `file${files++}.onnx`);
  writeFileSync(path, content);
  return path;
};

const errorOf = (action: () => unknown): { code: string; message: string; remedy: string } => {
  try {
    action();
  } catch (error) {
    if (error instanceof TrtforgeError) return error;
    throw error;
  }
  return { code: 'no error', message: '', remedy: '' };
};

describe('files that are no model', () => {
  it.each([
    ['empty', '', /is empty/],
    ['text', 'just some text\n', /is a text file/],
    ['a web page', '<!DOCTYPE html><html><body>404</body></html>', /is a web page/],
    [
      'a Git-LFS pointer',
      'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 102442450\n',
      /is a Git-LFS pointer, not the model \(the model has 102442450 bytes\)/,
    ],
    ['a TensorRT plan', Buffer.from('ftrt\0\0\0\0\0\0', 'latin1'), /is a TensorRT plan/],
    ['a TensorRT-RTX plan', Buffer.from('vtrt\0\0\0\0\0\0', 'latin1'), /is a TensorRT-RTX plan/],
    ['a ZIP archive', Buffer.from('PK\x03\x04\0\0', 'latin1'), /is a ZIP archive/],
    ['gzip', Buffer.from([0x1f, 0x8b, 8, 0]), /is gzip-compressed/],
    ['HDF5', Buffer.from([0x89, 0x48, 0x44, 0x46, 13, 10]), /is an HDF5 file/],
    ['a message without a graph', Buffer.from([0x08, 0x08]), /has no graph/],
  ])('%s', (_name, content, message) => {
    const path = file(content);
    const error = errorOf(() => openModel(path));
    expect(error).toMatchObject({ code: 'TF_ONNX_NOT_A_MODEL' });
    expect(error.message).toMatch(message);
    expect(error.message).toContain(path);
  });

  it('a folder, and nothing at all', () => {
    expect(errorOf(() => openModel(folder)).code).toBe('TF_FILE_UNREADABLE');
    expect(errorOf(() => openModel(join(folder, 'nowhere.onnx'))).code).toBe('TF_FILE_NOT_FOUND');
  });
});

describe('broken models', () => {
  it('cut short at any byte are rejected, and the message states where', async () => {
    const whole = join(folder, 'whole.onnx');
    await writeModel(everywhereModel(), whole);
    const bytes = readFileSync(whole);
    const outcomes = new Set<string>();
    for (let length = 1; length < bytes.length; length += 97) {
      outcomes.add(errorOf(() => modelOf(bytesSource('cut.onnx', bytes.subarray(0, length))).close()).code);
    }
    expect([...outcomes]).toEqual(['TF_ONNX_TRUNCATED']);
    const error = errorOf(() => modelOf(bytesSource('cut.onnx', bytes.subarray(0, 5000))));
    expect(error.message).toMatch(
      /cut\.onnx is cut short: the field at byte \d+ announces \d+ bytes and only \d+ follow/,
    );
  });

  const nested = (levels: number): Uint8Array => {
    let graph = new Uint8Array(0);
    for (let level = 0; level < levels; level++) {
      const attribute = Buffer.concat([Uint8Array.of(0x32), encodeVarints(graph.length), graph]);
      const node = Buffer.concat([Uint8Array.of(0x2a), encodeVarints(attribute.length), attribute]);
      graph = Buffer.concat([Uint8Array.of(0x0a), encodeVarints(node.length), node]);
    }
    return Buffer.concat([Uint8Array.of(8, 8, 0x3a), encodeVarints(graph.length), graph]);
  };

  it.each([
    ['a number of 11 bytes', [0x08, ...new Array(10).fill(0x80), 1], /longer than the 10 bytes/],
    ['a length of 2^63', [0x08, 8, 0x3a, ...new Array(8).fill(0x80), 0x80, 1], /announces/],
    [
      'a length beyond its message',
      [0x08, 8, 0x3a, 4, 0x2a, 9, 0x4a, 1],
      /announces 9 bytes where 2 are left/,
    ],
    ['a group', [0x08, 8, 0x3b, 0x3c], /wire type 3 does not occur/],
    ['a graph that is a number', [0x08, 8, 0x38, 4], /a graph is not a message/],
    ['field number 0', [0x08, 8, 0x02, 0], /field number 0/],
    ['float_data as varint', [0x08, 8, 0x3a, 4, 0x2a, 2, 0x20, 1], /cannot have wire type 0/],
    ['graphs in graphs in graphs', nested(60), /nest deeper than 100/],
    ['a bad message that holds no tensor', [0x08, 8, 0x3a, 4, 0x5a, 2, 0x0a, 9], /onnx\.ValueInfoProto/],
  ])('with %s are rejected', (_name, bytes, message) => {
    const error = errorOf(() => modelOf(bytesSource('bad.onnx', Uint8Array.from(bytes))));
    expect(['TF_ONNX_CORRUPT', 'TF_ONNX_TRUNCATED']).toContain(error.code);
    expect(error.message).toMatch(message);
  });

  it('nested as deep as protobuf allows are read', () => {
    expect([...visitTensors(modelOf(bytesSource('deep.onnx', nested(32))).proto)]).toEqual([]);
  });

  it('with more than the limit of other bytes are rejected instead of loaded', () => {
    const proto = create(ModelProtoSchema, { irVersion: 8n, docString: 'x'.repeat(5000), graph: {} });
    const source = bytesSource('big.onnx', toBinary(ModelProtoSchema, proto));
    expect(errorOf(() => scanModel(source, { skeletonLimit: 1000 })).code).toBe('TF_ONNX_TOO_LARGE');
  });
});

describe('scanning', () => {
  it('reads little of a file that is mostly weights', async () => {
    const path = join(folder, 'little.onnx');
    const graph = new GraphBuilder('g');
    for (let index = 0; index < 8; index++) {
      graph.initializer(
        `w${index}`,
        float32(
          [1 << 18],
          Array.from({ length: 1 << 18 }, () => 1),
        ),
      );
    }
    await writeModel(buildModel(graph), path);
    const whole = bytesSource(path, readFileSync(path));
    let read = 0;
    const counting: ByteSource = {
      ...whole,
      read: (target, position, length) => {
        const count = whole.read(target, position, length);
        read += count;
        return count;
      },
    };
    const { skeleton } = scanModel(counting);
    expect(skeleton.length).toBeLessThan(1000);
    expect(read).toBeLessThan(100_000);
  });

  it('handles files beyond 4 GiB', () => {
    const path = join(folder, 'huge.onnx');
    const elements = 3 * 2 ** 29;
    const payload = elements * 4;
    const before = Buffer.concat([
      Uint8Array.of(0x08),
      encodeVarints(elements),
      Uint8Array.of(0x10, 1, 0x4a),
      encodeVarints(payload),
    ]);
    const after = Buffer.from([0x42, 1, 0x77]);
    const tensorLength = before.length + payload + after.length;
    const tensor = Buffer.concat([Uint8Array.of(0x2a), encodeVarints(tensorLength), before]);
    const tail = Buffer.concat([after, Buffer.from([0x12, 1, 0x67])]);
    const head = Buffer.concat([
      Uint8Array.of(8, 8, 0x3a),
      encodeVarints(tensor.length + payload + tail.length),
      tensor,
    ]);
    const descriptor = openSync(path, 'w');
    writeSync(descriptor, head, 0, head.length, 0);
    ftruncateSync(descriptor, head.length + payload);
    writeSync(descriptor, tail, 0, tail.length, head.length + payload);
    closeSync(descriptor);

    const facts = factsOfModel(path);
    expect(facts).toMatchObject({
      graphName: 'g',
      parameters: elements,
      initializers: { count: 1, bytes: payload },
    });
    const model = openModel(path);
    const weight = model.weight(model.proto.graph!.initializer[0]!);
    expect(weight.where).toEqual({ kind: 'embedded', path, offset: head.length, length: payload });
    model.close();
  });
});

describe('external files and links', () => {
  it('are followed inside the folder and into the folder a linked model really is in, nowhere else', async () => {
    const blobs = join(folder, 'blobs');
    const snapshot = join(folder, 'snapshot');
    const elsewhere = join(folder, 'elsewhere');
    for (const path of [blobs, snapshot, elsewhere]) mkdirSync(path);
    await writeModel(everywhereModel(), join(blobs, 'model.onnx'), { externalData: 'always' });
    const codes = (path: string) => factsOfModel(path).findings.map(({ code }) => code);

    symlinkSync(join(blobs, 'model.onnx'), join(snapshot, 'model.onnx'));
    symlinkSync(join(blobs, 'model.onnx.data'), join(snapshot, 'model.onnx.data'));
    expect(codes(join(snapshot, 'model.onnx'))).toEqual([]);

    await writeModel(everywhereModel(), join(elsewhere, 'model.onnx'), { externalData: 'always' });
    renameSync(join(elsewhere, 'model.onnx.data'), join(folder, 'private.data'));
    symlinkSync(join(folder, 'private.data'), join(elsewhere, 'model.onnx.data'));
    expect(codes(join(elsewhere, 'model.onnx'))).toEqual(['external-data-outside']);
  });
});
