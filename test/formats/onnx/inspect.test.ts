import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  attribute,
  buildModel,
  type GeneratedValues,
  GraphBuilder,
  type ModelLike,
  ModelProtoSchema,
  OperatorSetIdProtoSchema,
  SparseTensorProtoSchema,
  TensorProto_DataLocation,
  TensorProtoSchema,
  ValueInfoProtoSchema,
  writeModel,
} from '../../../src/formats/onnx/index.js';
import { factsOfModel } from '../../../src/formats/onnx/inspect.js';
import { modelFactsSchema } from '../../../src/formats/onnx/model-facts.js';
import { counting, everywhereModel, float32, int64, scratchFolder } from './support/models.js';

const folder = scratchFolder();
let files = 0;

async function inspected(model: ModelLike, externalData: 'auto' | 'always' = 'auto') {
  const path = join(folder, `model${files++}.onnx`);
  await writeModel(model, path, { externalData });
  return { path, facts: modelFactsSchema.parse(factsOfModel(path)) };
}

const codes = (facts: { findings: readonly { code: string }[] }) => facts.findings.map(({ code }) => code);

/** x → Relu → y, with whatever a test adds. */
function turnedProduct(g: GraphBuilder, dtype: 'float16' | 'float32', perm: readonly number[]): void {
  g.input('t', dtype, [4, 4, 4]);
  g.initializer('w2', { dtype, shape: [4, 4], bytes: new Uint8Array(16 * (dtype === 'float16' ? 2 : 4)) });
  g.node('Transpose', { inputs: ['t'], outputs: ['turned'], attributes: { perm: attribute.ints(perm) } });
  g.node('MatMul', { inputs: ['turned', 'w2'], outputs: ['d'] });
  g.output('d', dtype, null);
}

function simple(change: (graph: GraphBuilder) => void = () => {}, spec = {}): ModelLike {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', ['batch', 4]);
  graph.node('Relu', { inputs: ['x'], outputs: ['y'], name: 'relu' });
  graph.output('y', 'float32', ['batch', 4]);
  change(graph);
  return buildModel(graph, spec);
}

/** x → what a test adds → y, in a model that imports version 1 of these domains and no other. */
function importing(domains: readonly string[], change: (graph: GraphBuilder) => void): ModelLike {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', ['batch', 4]);
  change(graph);
  graph.output('y', 'float32', ['batch', 4]);
  const model = buildModel(graph);
  model.proto.opsetImport = domains.map((domain) =>
    create(OperatorSetIdProtoSchema, { domain, version: 1n }),
  );
  return model;
}

describe('what inspect reports', () => {
  it('counts nodes, ops, weights and functions of the graph and its bodies, wherever the weights are', async () => {
    for (const externalData of ['auto', 'always'] as const) {
      const { path, facts } = await inspected(everywhereModel(), externalData);
      expect(facts).toMatchObject({
        schema: 'trtforge.inspect/1',
        file: path,
        irVersion: 8,
        opsets: { 'ai.onnx': 17, test: 1 },
        producer: 'trtforge',
        inputs: [
          { name: 'x', dtype: 'float32', shape: ['batch', 64] },
          { name: 'flag', dtype: 'bool', shape: [] },
        ],
        outputs: [{ name: 'y', dtype: 'float32', shape: ['batch', 64] }],
        nodes: 5,
        nodesTotal: 7,
        functions: [{ domain: 'test', name: 'Scaled', nodes: 4 }],
        ops: { Mul: 2, Constant: 1, If: 1, MatMul: 1, Slice: 1, 'test::Scaled': 1 },
        initializers: { count: 6, bytes: 64 * 64 * 4 + 2 * 8 + 2 * 64 * 4 + 512 * 4 },
        parameters: 64 * 64 + 2 + 2 * 64 + 512,
        sparseInitializers: 0,
        findings: [],
      });
      expect(facts.externalFiles.map(({ path: name }) => name)).toEqual(
        externalData === 'auto' ? [] : [`model${files - 1}.onnx.data`],
      );
    }
  });

  it.each([
    ['int4', [3, 5], 8],
    ['uint4', [2], 1],
    ['float8_e4m3fn', [7], 7],
    ['bfloat16', [7], 14],
    ['float16', [2, 2], 8],
    ['float4_e2m1fn', [3], 2],
    ['bool', [5], 5],
    ['int64', [0, 4], 0],
  ] as const)('counts packed bytes: %s of shape %j has %i', async (dtype, shape, bytes) => {
    const { facts } = await inspected(
      simple((graph) => graph.initializer('w', counting(dtype, shape, bytes))),
    );
    const parameters = shape.reduce((product: number, dim) => product * dim, 1);
    expect(facts.initializers).toEqual({ count: 1, bytes });
    expect(facts.parameters).toBe(parameters);
    expect(facts.initializersByDtype).toEqual({ [dtype]: { count: 1, bytes, parameters } });
  });

  it('spells dtypes and shapes of inputs, known, symbolic, unknown and absent', async () => {
    const { facts } = await inspected(
      simple((graph) => {
        graph.input('half', 'float16', [1, null, 'seq']);
        graph.input('brain', 'bfloat16', []);
        graph.input('rankless', 'int64', null);
      }),
    );
    expect(facts.inputs.slice(1)).toEqual([
      { name: 'half', dtype: 'float16', shape: [1, null, 'seq'] },
      { name: 'brain', dtype: 'bfloat16', shape: [] },
      { name: 'rankless', dtype: 'int64', shape: null },
    ]);
  });

  it('names types that are no tensors', async () => {
    const model = simple();
    const tensorType = { case: 'tensorType', value: { elemType: 1 } } as const;
    model.proto.graph!.input.push(
      create(ValueInfoProtoSchema, {
        name: 'list',
        type: { value: { case: 'sequenceType', value: { elemType: { value: tensorType } } } },
      }),
      create(ValueInfoProtoSchema, { name: 'untyped' }),
    );
    const { facts } = await inspected(model);
    expect(facts.inputs.slice(1)).toEqual([
      { name: 'list', dtype: 'sequence(float32)', shape: null },
      { name: 'untyped', dtype: null, shape: null },
    ]);
  });

  it('does not take initializers for inputs, and reports that they are listed as such', async () => {
    const { facts } = await inspected(
      simple((graph) => {
        graph.input('w', 'float32', [4]);
        graph.initializer('w', float32([4], [1, 2, 3, 4]));
        graph.node('Add', { inputs: ['y', 'w'], outputs: ['z'] });
      }),
    );
    expect(facts.inputs.map(({ name }) => name)).toEqual(['x']);
    expect(codes(facts)).toEqual(['initializer-is-input']);
  });

  it('counts sparse initializers apart', async () => {
    const model = simple();
    model.proto.graph!.sparseInitializer.push(
      create(SparseTensorProtoSchema, {
        values: { name: 's', dims: [2n], dataType: 1, floatData: [1, 2] },
        indices: { dims: [2n], dataType: 7, int64Data: [0n, 5n] },
        dims: [8n],
      }),
    );
    const { facts } = await inspected(model);
    expect(facts.sparseInitializers).toBe(1);
    expect(facts.initializers.count).toBe(0);
    expect(codes(facts)).toEqual(['sparse-initializer']);
  });

  it('counts the characters of string tensors', async () => {
    const model = simple();
    const texts = Array.from({ length: 400 }, (_, index) => Buffer.from(`word${index}`));
    model.proto.graph!.initializer.push(
      create(TensorProtoSchema, { name: 'words', dims: [400n], dataType: 8, stringData: texts }),
    );
    const { facts } = await inspected(model);
    expect(facts.initializers.bytes).toBe(Buffer.concat(texts).length);
  });
});

describe('external data', () => {
  const withExternal = (location: string, more: Record<string, string> = {}) => {
    const model = simple((graph) => graph.node('Add', { inputs: ['y', 'w'], outputs: ['z'] }));
    const externalData = Object.entries({ location, ...more }).map(([key, value]) => ({ key, value }));
    model.proto.graph!.initializer.push(
      create(TensorProtoSchema, {
        name: 'w',
        dims: [4n],
        dataType: 1,
        dataLocation: TensorProto_DataLocation.EXTERNAL,
        externalData,
      }),
    );
    return model;
  };
  /** Written as messages, because `writeModel` would read the weights. */
  const inspectWritten = (location: string, bytes: number | null, more: Record<string, string> = {}) => {
    const place = join(folder, `external${files++}`);
    mkdirSync(place);
    const path = join(place, 'model.onnx');
    writeFileSync(path, toBinary(ModelProtoSchema, withExternal(location, more).proto));
    if (bytes !== null) {
      mkdirSync(dirname(join(place, location)), { recursive: true });
      writeFileSync(join(place, location), new Uint8Array(bytes));
    }
    return factsOfModel(path);
  };

  it('lists files in sub-folders with their sizes, with and without offset and length', () => {
    const facts = inspectWritten('weights/part/w.bin', 48, { offset: '32', length: '16' });
    expect(facts.externalFiles).toEqual([{ path: 'weights/part/w.bin', bytes: 48 }]);
    expect(facts.findings).toEqual([]);
    expect(inspectWritten('w.bin', 16).findings).toEqual([]);
    expect(facts.initializers).toEqual({ count: 1, bytes: 16 });
  });

  it.each([
    ['missing.bin', null, {}, 'external-data-missing'],
    ['short.bin', 15, {}, 'external-data-short'],
    ['late.bin', 64, { offset: '56' }, 'external-data-short'],
    ['other.bin', 64, { length: '12' }, 'tensor-invalid'],
    ['odd.bin', 64, { offset: '-4' }, 'external-data-invalid'],
    ['odd.bin', 64, { offset: '4e3' }, 'external-data-invalid'],
    ['', null, {}, 'external-data-invalid'],
    ['/etc/hostname', null, {}, 'external-data-outside'],
    ['../outside.bin', null, {}, 'external-data-outside'],
    ['a/../../outside.bin', null, {}, 'external-data-outside'],
    ['C:\\windows\\file', null, {}, 'external-data-outside'],
  ] as const)('«%s» with %s bytes and %j is a finding: %4$s', (location, bytes, more, code) => {
    const facts = inspectWritten(location, bytes, more);
    expect(codes(facts)).toEqual([code]);
    expect(facts.findings[0]!.severity).toBe('error');
  });

  it('reports a file that many tensors miss once', async () => {
    const weights: GeneratedValues = {
      dtype: 'float32',
      shape: [1024],
      *chunks() {
        yield new Uint8Array(4096);
      },
    };
    const { path } = await inspected(
      simple((graph) => {
        for (let index = 0; index < 30; index++) graph.initializer(`w${index}`, weights);
        graph.node('Concat', { inputs: Array.from({ length: 30 }, (_, i) => `w${i}`), outputs: ['all'] });
      }),
      'always',
    );
    expect(codes(factsOfModel(path))).toEqual([]);
    truncateSync(`${path}.data`, 30 * 4096 - 1);
    expect(codes(factsOfModel(path))).toEqual(['external-data-short']);
    rmSync(`${path}.data`);
    expect(codes(factsOfModel(path))).toEqual(['external-data-missing']);
    expect(factsOfModel(path).externalFiles).toEqual([
      { path: `${path.split('/').at(-1)}.data`, bytes: null },
    ]);
  });
});

describe('findings', () => {
  const cases: readonly (readonly [string, ModelLike, readonly string[]])[] = [
    ['a clean model', simple(), []],
    [
      'a dynamic axis without a name',
      simple((g) => g.input('z', 'float32', [null, 3])),
      ['dim-without-symbol'],
    ],
    ['an input of size 0', simple((g) => g.input('z', 'float32', [0, 3])), ['dim-zero']],
    ['an input of size -1', simple((g) => g.input('z', 'float32', [-1, 3])), ['dim-negative']],
    ['a double input', simple((g) => g.input('z', 'float64', [1])), ['io-type-unsupported']],
    [
      'two values of one name',
      simple((g) => g.node('Relu', { inputs: ['x'], outputs: ['y'] })),
      ['name-duplicate'],
    ],
    [
      'two initializers of one name',
      simple((g) => {
        g.initializer('w', float32([1], [1]));
        g.initializer('w', float32([1], [2]));
        g.node('Add', { inputs: ['x', 'w'], outputs: ['z'] });
      }),
      ['name-duplicate'],
    ],
    ['an initializer without a name', simple((g) => g.initializer('', float32([1], [1]))), ['name-empty']],
    ['an unused initializer', simple((g) => g.initializer('w', float32([1], [1]))), ['initializer-unused']],
    [
      'a value that nothing gives',
      simple((g) => g.node('Neg', { inputs: ['nobody'], outputs: ['n'] })),
      ['value-undefined'],
    ],
    ['an output that nothing gives', simple((g) => g.output('z', 'float32', [1])), ['value-undefined']],
    [
      'nodes in the wrong order',
      simple((g) => {
        g.node('Neg', { inputs: ['b'], outputs: ['c'] });
        g.node('Neg', { inputs: ['x'], outputs: ['b'] });
      }),
      ['nodes-unsorted'],
    ],
    [
      'a cycle',
      simple((g) => {
        g.node('Neg', { inputs: ['b'], outputs: ['c'] });
        g.node('Neg', { inputs: ['c'], outputs: ['b'] });
      }),
      ['graph-cycle'],
    ],
    [
      'an operator TensorRT has not',
      simple((g) => g.node('Det', { inputs: ['x'], outputs: ['d'] })),
      ['op-unknown'],
    ],
    [
      'a plan that is wrapped for ONNX Runtime',
      simple((g) => g.node('EPContext', { inputs: ['x'], outputs: ['d'], domain: 'com.microsoft' }), {
        opsets: { 'com.microsoft': 1 },
      }),
      ['op-engine'],
    ],
    [
      'a product at which ONNX Runtime crashes',
      simple((g) => turnedProduct(g, 'float16', [1, 0, 2])),
      ['onnxruntime-crash'],
    ],
    ['the same in FP32', simple((g) => turnedProduct(g, 'float32', [1, 0, 2])), []],
    ['the same behind another order', simple((g) => turnedProduct(g, 'float16', [0, 2, 1])), []],
    [
      'an operator of another domain',
      simple((g) => g.node('FusedConv', { inputs: ['x'], outputs: ['d'], domain: 'com.microsoft' }), {
        opsets: { 'com.microsoft': 1 },
      }),
      ['op-unknown'],
    ],
    [
      'a domain without an opset',
      simple((g) => g.node('FusedConv', { inputs: ['x'], outputs: ['d'], domain: 'com.microsoft' })),
      ['opset-missing', 'op-unknown'],
    ],
    [
      'an operator of recent TensorRT',
      simple((g) =>
        g.node('HannWindow', { inputs: [g.initializer('size', int64([], [8]))], outputs: ['d'] }),
      ),
      ['op-needs-newer-tensorrt'],
    ],
    ['a recent opset', simple(() => {}, { opset: 25 }), ['opset-too-new']],
    ['an opset nobody knows', simple(() => {}, { opset: 99 }), ['opset-too-new']],
    ['an old opset', simple(() => {}, { opset: 8 }), ['opset-too-old']],
    [
      'an int64 constant beyond int32',
      simple((g) => g.node('Neg', { inputs: [g.initializer('big', int64([1], [3e9]))], outputs: ['z'] })),
      ['int64-clamped'],
    ],
    [
      'an operator that is given two types',
      simple((g) =>
        g.node('Add', { inputs: ['x', g.initializer('i', int64([1], [1]))], outputs: ['mixed'] }),
      ),
      ['type-mismatch'],
    ],
    [
      'no ONNX operator and no ONNX opset',
      importing(['ai.onnx.ml'], (g) =>
        g.node('Normalizer', { inputs: ['x'], outputs: ['y'], domain: 'ai.onnx.ml' }),
      ),
      ['op-unknown'],
    ],
    [
      'an ONNX operator and no ONNX opset',
      importing([], (g) => g.node('Relu', { inputs: ['x'], outputs: ['y'] })),
      ['opset-missing'],
    ],
    [
      'a domain called like a method',
      simple((g) => g.node('toString', { inputs: ['x'], outputs: ['d'], domain: 'constructor' })),
      ['opset-missing', 'op-unknown'],
    ],
    [
      'a Slice to the end',
      simple((g) =>
        g.node('Constant', { outputs: ['end'], attributes: { value_int: attribute.int(2n ** 63n - 1n) } }),
      ),
      ['int64-sentinel'],
    ],
  ];

  it.each(cases)('%s', async (_name, model, expected) => {
    expect(codes((await inspected(model)).facts)).toEqual(expected);
  });

  it('names the node, the operator and the place', async () => {
    const model = simple((g) => g.node('Det', { inputs: ['x'], outputs: ['d'], name: 'det1' }));
    const [finding] = (await inspected(model)).facts.findings;
    expect(finding).toEqual({
      code: 'op-unknown',
      severity: 'warning',
      message:
        "Det (1 node) is not among the operators of TensorRT 11.4's ONNX parser; it needs a plug-in or another export.",
      where: 'graph/Det "det1"',
    });
  });

  it('counts the rest when one finding repeats', async () => {
    const { facts } = await inspected(
      simple((g) => {
        for (let index = 0; index < 50; index++) g.initializer(`unused${index}`, float32([1], [1]));
      }),
    );
    expect(facts.findings).toHaveLength(21);
    expect(facts.findings.at(-1)!.message).toBe('The same in 30 more places.');
  });

  it('is about bodies too: what they capture, and what nothing gives them', async () => {
    const body = (name: string, input: string) => {
      const graph = new GraphBuilder(name);
      graph.node('Neg', { inputs: [input], outputs: [`${name}_out`], name });
      graph.output(`${name}_out`, 'float32', ['batch', 4]);
      return graph;
    };
    const model = simple((graph) => {
      graph.input('flag', 'bool', []);
      graph.node('If', {
        inputs: ['flag'],
        outputs: ['z'],
        name: 'choose',
        attributes: {
          then_branch: attribute.body(body('yes', 'y')),
          else_branch: attribute.body(body('no', 'nobody')),
        },
      });
    });
    const { facts } = await inspected(model);
    expect(facts.findings.map(({ code, where }) => [code, where])).toEqual([
      ['value-undefined', 'graph/If "choose".else_branch/Neg "no"'],
    ]);
  });
});
