import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  attribute,
  buildModel,
  GraphBuilder,
  type ModelLike,
  type ModelSpec,
  writeModel,
} from '../../../src/formats/onnx/index.js';
import { type ModelComparison, modelComparisonSchema } from '../../../src/quality/models/result.js';
import { everywhereModel, float32, int64, scratchFolder } from '../../formats/onnx/support/models.js';
import { trtforge } from '../../support/trtforge.js';

const folder = scratchFolder();
let files = 0;

async function written(model: ModelLike, externalData: 'auto' | 'always' = 'auto'): Promise<string> {
  const path = join(folder, `model${files++}.onnx`);
  await writeModel(model, path, { externalData });
  return path;
}

interface Net {
  /** In front of every name, as a new export would choose others. */
  readonly prefix?: string;
  readonly weight?: readonly number[];
  readonly perm?: readonly number[];
  readonly activation?: string;
  readonly clipped?: boolean;
  readonly outputName?: string;
  readonly batch?: number | string;
  readonly spec?: ModelSpec;
}

/** x → Transpose → MatMul(w) → Relu → y. */
function net(options: Net = {}): ModelLike {
  const { prefix = '', weight = [1, 2, 3, 4], perm = [0, 1], activation = 'Relu', batch = 'batch' } = options;
  const { clipped = false, outputName = 'y', spec = {} } = options;
  const named = (name: string) => `${prefix}${name}`;
  const graph = new GraphBuilder('net');
  graph.input('x', 'float32', [batch, 2]);
  graph.initializer(named('w'), float32([2, 2], weight));
  const attributes = { perm: attribute.ints([...perm]) };
  graph.node('Transpose', { name: named('turn'), inputs: ['x'], outputs: [named('t')], attributes });
  const source = clipped ? named('clipped') : named('t');
  if (clipped) graph.node('Clip', { name: named('clip'), inputs: [named('t')], outputs: [source] });
  graph.node('MatMul', { name: named('product'), inputs: [source, named('w')], outputs: [named('p')] });
  graph.node(activation, { name: named('activate'), inputs: [named('p')], outputs: [outputName] });
  graph.output(outputName, 'float32', [batch, 2]);
  return buildModel(graph, spec);
}

/** A model of one weight. */
function ofWeight(tensor: Parameters<GraphBuilder['initializer']>[1]): ModelLike {
  const graph = new GraphBuilder('weight');
  graph.initializer('w', tensor);
  graph.node('Identity', { inputs: ['w'], outputs: ['y'] });
  graph.output('y', tensor.dtype, [...tensor.shape]);
  return buildModel(graph);
}

async function compared(
  a: ModelLike,
  b: ModelLike,
): Promise<ModelComparison & { readonly exitCode: number }> {
  const paths = [await written(a), await written(b)];
  const { exitCode, json } = await trtforge(['compare', 'models', ...paths, '--json']);
  const { ok: _ok, command: _command, exitCode: _exit, ...result } = json();
  return { ...modelComparisonSchema.parse(result), exitCode };
}

const nothing = { added: [], removed: [], changed: [] };

describe('models that are equal', () => {
  it('are the same wherever their weights are stored and whatever exporters remark', async () => {
    const model = everywhereModel();
    const other = everywhereModel();
    other.proto.producerName = 'another exporter';
    other.proto.metadataProps = [
      { $typeName: 'onnx.StringStringEntryProto', key: 'names', value: '["cat"]' },
    ];
    const paths = [await written(model), await written(other, 'always')];
    const { exitCode, json } = await trtforge(['compare', 'models', ...paths, '--json']);
    expect(exitCode).toBe(0);
    expect(json()).toMatchObject({
      schema: 'trtforge.compare-models/1',
      outcome: 'pass',
      facts: [{ field: 'producer', a: 'trtforge', b: 'another exporter' }],
      metadata: [{ field: 'names', a: null, b: '["cat"]' }],
      initializers: { same: 5, ...nothing },
      nodes: { same: 7, ...nothing },
      others: [],
    });
  });
});

describe('models that differ', () => {
  const turned = { graph: 'graph', a: 'Transpose "turn"', b: 'Transpose "turn"' };
  const cases: readonly (readonly [what: string, change: Net, found: object])[] = [
    [
      'an attribute',
      { perm: [1, 0] },
      {
        nodes: {
          same: 2,
          changed: [{ ...turned, changes: [{ field: 'attributes.perm', a: '[0,1]', b: '[1,0]' }] }],
        },
      },
    ],
    [
      'an operator',
      { activation: 'Sigmoid' },
      { nodes: { same: 2, changed: [{ changes: [{ field: 'op', a: 'Relu', b: 'Sigmoid' }] }] } },
    ],
    [
      'a node in between',
      { clipped: true },
      {
        nodes: {
          same: 2,
          added: [{ graph: 'graph', name: 'clip', op: 'Clip', outputs: ['clipped'] }],
          changed: [{ b: 'MatMul "product"', changes: [{ field: 'inputs[0]', a: 't', b: 'clipped' }] }],
        },
      },
    ],
    [
      'values of a weight',
      { weight: [1, 2, 3, 4.5] },
      {
        initializers: {
          same: 0,
          changed: [
            {
              name: 'w',
              a: { dtype: 'float32', shape: [2, 2] },
              distance: { elements: 4, different: 1, maxAbs: 0.5, maxRelative: 0.125, worst: [1, 1] },
            },
          ],
        },
      },
    ],
    [
      'the shape of an input and an output',
      { batch: 4 },
      {
        inputs: {
          changed: [
            {
              name: 'x',
              a: { dtype: 'float32', shape: ['batch', 2] },
              b: { dtype: 'float32', shape: [4, 2] },
            },
          ],
        },
        outputs: { changed: [{ name: 'y' }] },
      },
    ],
    [
      'the name of an output',
      { outputName: 'scores' },
      {
        outputs: { added: [{ name: 'scores' }], removed: [{ name: 'y' }] },
        nodes: { same: 2, renamed: [{ a: 'Relu "activate"' }], changed: [] },
      },
    ],
    ['the opset', { spec: { opset: 20 } }, { opsets: [{ field: 'ai.onnx', a: '17', b: '20' }] }],
    [
      'every name, as in a new export',
      { prefix: 'model/' },
      {
        initializers: { same: 0, renamed: [{ a: 'w', b: 'model/w' }], ...nothing },
        nodes: { same: 0, renamed: [{}, {}, {}], ...nothing },
      },
    ],
    [
      'every name, with a node in between',
      { prefix: 'model/', clipped: true },
      { nodes: { added: [{ op: 'Clip' }], removed: [], changed: [{ a: 'MatMul "product"' }] } },
    ],
  ];
  it.each(cases)('in %s', async (_what, change, found) => {
    expect(
      await compared(net({ spec: { opset: 17 } }), net({ spec: { opset: 17 }, ...change })),
    ).toMatchObject({
      exitCode: 1,
      outcome: 'fail',
      ...found,
    });
  });

  it('in a body and in a function, each under its place', async () => {
    const other = everywhereModel();
    const branch = other.proto.graph?.node.find(({ opType }) => opType === 'If')?.attribute[0]?.g;
    branch!.node[0]!.opType = 'Div';
    other.proto.functions[0]!.node[1]!.opType = 'ReduceMax';
    const { nodes, outcome } = await compared(everywhereModel(), other);
    expect(outcome).toBe('fail');
    expect(nodes).toMatchObject({ added: [], removed: [] });
    expect(nodes.changed.map(({ graph, changes }) => [graph, changes[0]?.field, changes[0]?.b])).toEqual([
      ['graph/If "choose".then_branch', 'op', 'Div'],
      ['function test::Scaled', 'op', 'ReduceMax'],
    ]);
  });

  it('in the tensor of an attribute, with its distance', async () => {
    const other = everywhereModel();
    const constant = other.proto.graph!.node.find(({ opType }) => opType === 'Constant')!;
    constant.attribute[0]!.t = {
      ...constant.attribute[0]!.t!,
      $unknown: [],
      rawData: new Uint8Array(Float32Array.from({ length: 512 }, (_, i) => (i === 7 ? 1 : i / 512)).buffer),
    };
    const { nodes } = await compared(everywhereModel(), other);
    expect(nodes.changed).toMatchObject([
      {
        a: 'Constant "constant"',
        changes: [{ field: 'attributes.value', distance: { different: 1, worst: [7] } }],
      },
    ]);
  });

  it('in nothing but an order', async () => {
    const other = net();
    other.proto.graph!.node.reverse();
    expect(await compared(net(), other)).toMatchObject({
      outcome: 'fail',
      nodes: { same: 3, ...nothing },
      others: [{ graph: 'model', field: 'order' }],
    });
  });
});

describe('the distance of weights', () => {
  const distance = async (a: ModelLike, b: ModelLike) =>
    (await compared(a, b)).initializers.changed[0]?.distance;

  it('is found in tensors of several pieces', async () => {
    const length = 700_001;
    const [a, b] = [new Float32Array(length).fill(1), new Float32Array(length).fill(1)];
    b[length - 1] = 3;
    b[3] = 1.5;
    const tensor = (values: Float32Array) => ofWeight(float32([length], [...values]));
    expect(await distance(tensor(a), tensor(b))).toMatchObject({
      elements: length,
      different: 2,
      maxAbs: 2,
      maxRelative: 2,
      worst: [length - 1],
    });
  });

  it('is exact for 64-bit integers', async () => {
    const large = (last: bigint) =>
      ofWeight({ dtype: 'int64', shape: [1], bytes: new Uint8Array(BigInt64Array.of(last).buffer) });
    expect(await distance(large(2n ** 62n), large(2n ** 62n + 1n))).toMatchObject({
      different: 1,
      maxAbs: 1,
    });
  });

  it('leaves out infinities that both have', async () => {
    const mask = (other: number) => ofWeight(float32([3], [Number.NEGATIVE_INFINITY, 0, other]));
    expect(await distance(mask(1), mask(2))).toMatchObject({ different: 1, maxAbs: 1 });
  });

  it('is measured across types, and not across shapes', async () => {
    expect(await distance(ofWeight(float32([2], [1, 2])), ofWeight(int64([2], [1, 4])))).toMatchObject({
      different: 1,
      maxAbs: 2,
    });
    expect(await distance(ofWeight(float32([2], [1, 2])), ofWeight(float32([1], [1])))).toBeNull();
  });
});

describe('the text', () => {
  it('has the counts first and few lines of each kind', async () => {
    const long = (operators: number) => {
      const graph = new GraphBuilder('long');
      graph.input('v0', 'float32', [1]);
      for (let i = 0; i < operators; i++)
        graph.node('Relu', { name: `relu${i}`, inputs: [`v${i}`], outputs: [`v${i + 1}`] });
      graph.output(`v${operators}`, 'float32', [1]);
      return buildModel(graph);
    };
    const { out } = await trtforge(['compare', 'models', await written(long(2)), await written(long(30))]);
    const lines = out.split('\n');
    expect(lines.find((line) => line.startsWith('Nodes '))).toContain('28 only in B');
    expect(lines.filter((line) => line.startsWith('  Relu'))).toHaveLength(10);
    expect(out.indexOf('Nodes ')).toBeLessThan(out.indexOf('  Relu'));
  });

  it('of a file that is not a model is an error', async () => {
    const path = join(folder, 'text.onnx');
    writeFileSync(path, 'no model');
    const { exitCode, json } = await trtforge(['compare', 'models', await written(net()), path, '--json']);
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_ONNX_NOT_A_MODEL']);
  });
});
