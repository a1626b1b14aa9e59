import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type Message, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { readModelContent } from '../../../src/engines/identity/model-content.js';
import { ignoreEvents, type WorkEvent } from '../../../src/events.js';
import {
  AttributeProto_AttributeType,
  type GraphProtoSchema,
  ModelProtoSchema,
  type NodeProtoSchema,
  TensorProto_DataLocation,
  type TensorProtoSchema,
  type ValueInfoProtoSchema,
} from '../../../src/formats/onnx/onnx_pb.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-digest-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folder = root;
let caches = 0;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
});

type Tensor = MessageInitShape<typeof TensorProtoSchema>;
/** What a message is made of, without the message itself, so that parts can be replaced. */
type Parts<T> = Exclude<T, Message>;
type Graph = Parts<MessageInitShape<typeof GraphProtoSchema>>;
type Model = Omit<Parts<MessageInitShape<typeof ModelProtoSchema>>, 'graph'> & { readonly graph?: Graph };

const weights = Float32Array.from({ length: 1000 }, (_, index) => Math.fround(index / 7 - 70));
const facts = { name: 'w', dataType: 1, dims: [10n, 100n] };
const raw: Tensor = { ...facts, rawData: new Uint8Array(weights.buffer) };

type Node = Parts<MessageInitShape<typeof NodeProtoSchema>>;
type Value = Parts<MessageInitShape<typeof ValueInfoProtoSchema>>;

const node = (opType: string, input: string[], output: string[], more: Node = {}): Node => ({
  opType,
  input,
  output,
  ...more,
});

/** A float32 value; a dimension is a number or a symbol. */
function value(name: string, dims: readonly (number | string)[]): Value {
  const dim = dims.map((size) =>
    typeof size === 'string'
      ? { value: { case: 'dimParam' as const, value: size } }
      : { value: { case: 'dimValue' as const, value: BigInt(size) } },
  );
  return { name, type: { value: { case: 'tensorType', value: { elemType: 1, shape: { dim } } } } };
}

const graphWith = (weight: Tensor): Graph => ({
  name: 'g',
  input: [value('x', ['batch', 10])],
  output: [value('y', ['batch', 100])],
  initializer: [weight],
  node: [node('MatMul', ['x', 'w'], ['y'])],
});
const graph = graphWith(raw);

const model = (weight: Tensor, change: Model = {}): Model => ({
  irVersion: 8n,
  opsetImport: [{ domain: '', version: 17n }],
  graph: graphWith(weight),
  ...change,
});

function write(content: Model, name = 'model.onnx'): string {
  const path = join(folder, name);
  writeFileSync(path, toBinary(ModelProtoSchema, create(ModelProtoSchema, content)));
  return path;
}

/** Each call with a cache of its own unless one is given, so that nothing is remembered. */
const read = (
  path: string,
  cache = join(root, `cache-${caches++}`),
  emit = ignoreEvents as (event: WorkEvent) => void,
) => readModelContent(path, { environment: { XDG_CACHE_HOME: cache }, emit });
const digest = async (content: Model) => (await read(write(content))).digest;

describe("a model's digest", () => {
  test('stays what it was: stores outlive versions of trtforge', async () => {
    expect(await digest(model(raw))).toBe('ec1f8f7b0c45ef86f869036a6f924a0f27f58bb5ad52c4ed1f0b81d302306b2f');
  });

  test('is the same wherever the weights are and however they are encoded', async () => {
    const inline = await digest(model(raw));
    expect(await digest(model({ ...facts, floatData: [...weights] }))).toBe(inline);
    const bytes = Buffer.from(weights.buffer);
    writeFileSync(join(folder, 'one.bin'), Buffer.concat([Buffer.alloc(64), bytes]));
    writeFileSync(join(folder, 'two.bin'), bytes);
    const external = (location: string, offset: number): Tensor => ({
      ...facts,
      dataLocation: TensorProto_DataLocation.EXTERNAL,
      externalData: [
        { key: 'location', value: location },
        { key: 'offset', value: String(offset) },
        { key: 'length', value: String(bytes.length) },
      ],
    });
    expect(await digest(model(external('one.bin', 64)))).toBe(inline);
    expect(await digest(model(external('two.bin', 0)))).toBe(inline);
  });

  test.each<[string, Model]>([
    ['producer', { producerName: 'pytorch', producerVersion: '2.9' }],
    ['date and other metadata', { metadataProps: [{ key: 'date', value: '2026-11-20' }] }],
    ['documentation', { docString: 'trained on Tuesday', modelVersion: 7n, domain: 'org.acme' }],
  ])('leaves out the %s', async (_what, change) => {
    expect(await digest(model(raw, change))).toBe(await digest(model(raw)));
  });

  test('leaves out remarks of exporters inside the graph', async () => {
    const remarked: Graph = {
      ...graph,
      docString: 'graph',
      node: [
        node('MatMul', ['x', 'w'], ['y'], {
          docString: '/home/me/model.py:12',
          metadataProps: [{ key: 'stack', value: '/home/me/model.py:12' }],
        }),
      ],
      initializer: [{ ...raw, docString: 'a weight', metadataProps: [{ key: 'a', value: 'b' }] }],
      input: [{ ...value('x', ['batch', 10]), docString: 'an image' }],
    };
    expect(await digest(model(raw, { graph: remarked }))).toBe(await digest(model(raw)));
  });

  const changed = new Uint8Array(weights.buffer.slice(0));
  changed[3996] = changed[3996]! ^ 1;
  test.each<[string, Model]>([
    ['a weight in its last bit', model({ ...facts, rawData: changed })],
    ["a weight's shape", model({ ...raw, dims: [100n, 10n] })],
    ["a weight's type", model({ ...facts, dataType: 6, rawData: new Uint8Array(weights.buffer) })],
    ['an op', model(raw, { graph: { ...graph, node: [node('Gemm', ['x', 'w'], ['y'])] } })],
    ['a name of an input', model(raw, { graph: { ...graph, input: [value('image', ['batch', 10])] } })],
    ['a dimension', model(raw, { graph: { ...graph, input: [value('x', [4, 10])] } })],
    ['a symbol', model(raw, { graph: { ...graph, input: [value('x', ['n', 10])] } })],
    [
      'an attribute',
      model(raw, {
        graph: {
          ...graph,
          node: [
            node('MatMul', ['x', 'w'], ['y'], {
              attribute: [{ name: 'alpha', type: AttributeProto_AttributeType.FLOAT, f: 0 }],
            }),
          ],
        },
      }),
    ],
    ['the opset', model(raw, { opsetImport: [{ domain: '', version: 18n }] })],
  ])('changes with %s', async (_what, other) => {
    expect(await digest(other)).not.toBe(await digest(model(raw)));
  });

  test('a constant in a body counts like any other weight', async () => {
    const body = (constant: Tensor): Model =>
      model(raw, {
        graph: {
          ...graph,
          node: [
            node('If', ['c'], ['y'], {
              attribute: [
                {
                  name: 'then_branch',
                  type: AttributeProto_AttributeType.GRAPH,
                  g: {
                    name: 'then',
                    node: [
                      node('Constant', [], ['k'], {
                        attribute: [
                          { name: 'value', type: AttributeProto_AttributeType.TENSOR, t: constant },
                        ],
                      }),
                    ],
                  },
                },
              ],
            }),
          ],
        },
      });
    const one = await digest(body(raw));
    expect(await digest(body({ ...facts, floatData: [...weights] }))).toBe(one);
    expect(await digest(body({ ...facts, rawData: changed }))).not.toBe(one);
  });
});

describe('what is remembered of a model', () => {
  const settle = () => new Promise((resolve) => setTimeout(resolve, 80));
  const phases = () => {
    const seen: string[] = [];
    return {
      seen,
      emit: (event: WorkEvent) => void (event.type === 'phase-start' && seen.push(event.phase)),
    };
  };

  test('the second time no weight is read', async () => {
    const path = write(model(raw));
    const cache = join(root, `cache-${caches++}`);
    await settle();
    const first = await read(path, cache);
    expect(first.inputs).toEqual([{ name: 'x', dtype: 'float32', shape: ['batch', 10] }]);
    const { seen, emit } = phases();
    expect(await read(path, cache, emit)).toEqual(first);
    expect(seen).toEqual([]);
  });

  test('a change is seen even when size and modification time are put back', async () => {
    const path = write(model(raw));
    const cache = join(root, `cache-${caches++}`);
    await settle();
    const before = await read(path, cache);
    const { atime, mtime, size } = statSync(path);
    write(
      model({ ...facts, rawData: new Uint8Array(Float32Array.from(weights, (weight) => -weight).buffer) }),
    );
    utimesSync(path, atime, mtime);
    expect(statSync(path)).toMatchObject({ mtime, size });
    expect((await read(path, cache)).digest).not.toBe(before.digest);
  });

  test('a change of an external file alone is seen', async () => {
    const bytes = Buffer.from(weights.buffer);
    writeFileSync(join(folder, 'w.bin'), bytes);
    const path = write(
      model({
        ...facts,
        dataLocation: TensorProto_DataLocation.EXTERNAL,
        externalData: [{ key: 'location', value: 'w.bin' }],
      }),
    );
    const cache = join(root, `cache-${caches++}`);
    await settle();
    const before = await read(path, cache);
    bytes.writeFloatLE(42, 0);
    writeFileSync(join(folder, 'w.new'), bytes);
    renameSync(join(folder, 'w.new'), join(folder, 'w.bin'));
    expect((await read(path, cache)).digest).not.toBe(before.digest);
  });

  test('a file written a moment ago is not remembered: the next write might share its time stamp', async () => {
    const path = write(model(raw));
    const cache = join(root, `cache-${caches++}`);
    // However late this machine comes to it.
    vi.useFakeTimers({ toFake: ['Date'], now: Math.ceil(statSync(path).ctimeMs) });
    await read(path, cache);
    vi.useRealTimers();
    expect(() => readdirSync(join(cache, 'trtforge', 'models-4'))).toThrow();
  });

  test('damaged entries and a folder that is a file cost time, not correctness', async () => {
    const path = write(model(raw));
    const cache = join(root, `cache-${caches++}`);
    await settle();
    const before = await read(path, cache);
    for (const shard of readdirSync(join(cache, 'trtforge', 'models-4'))) {
      for (const name of readdirSync(join(cache, 'trtforge', 'models-4', shard))) {
        const entry = join(cache, 'trtforge', 'models-4', shard, name);
        const text = readFileSync(entry, 'utf8');
        for (const damaged of [
          '',
          '{',
          'null',
          '{"files":[],"value":{}}',
          '{"files":[{"path":1}],"value":1}',
          text.slice(0, -9),
        ]) {
          writeFileSync(entry, damaged);
          expect(await read(path, cache)).toEqual(before);
        }
      }
    }
    const blocked = join(root, 'a-file');
    appendFileSync(blocked, 'not a folder');
    expect(await read(path, blocked)).toEqual(before);
  });

  test('a copy elsewhere is worked out for itself and has the same digest', async () => {
    const path = write(model(raw));
    cpSync(path, join(folder, 'copy.onnx'));
    const cache = join(root, `cache-${caches++}`);
    expect((await read(join(folder, 'copy.onnx'), cache)).digest).toBe((await read(path, cache)).digest);
  });
});
