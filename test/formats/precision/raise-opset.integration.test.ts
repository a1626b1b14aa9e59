import { describe, expect, it } from 'vitest';
import { attribute as a, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { inferDtypes } from '../../../src/formats/onnx/dtype-inference.js';
import { visitNodes } from '../../../src/formats/onnx/graph.js';
import { raiseOpset } from '../../../src/formats/onnx/opset-changes.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { difference, type Feeds, floats, freshPath, integers, noise, run } from './judge.js';

interface Case {
  readonly name: string;
  readonly opset: number;
  readonly build: (g: GraphBuilder) => void;
  readonly feeds?: Feeds;
  /** Where ONNX Runtime has no kernel of opset 22. */
  readonly to?: number;
}

const x: Feeds = { x: noise([2, 3, 4, 6], 1, 5) };
const one =
  (op: string, attributes: Parameters<GraphBuilder['node']>[1]['attributes'] = {}, outputs = ['y']) =>
  (g: GraphBuilder) =>
    void g.node(op, { name: 'node', inputs: ['x'], outputs, attributes });

const cases: readonly Case[] = [
  { name: 'Dropout with a ratio', opset: 11, build: one('Dropout', { ratio: a.float(0.3) }) },
  { name: 'Softmax over the last axis', opset: 11, build: one('Softmax', { axis: a.int(3) }) },
  { name: 'LogSoftmax over axis -1', opset: 12, build: one('LogSoftmax', { axis: a.int(-1) }) },
  ...['Softmax', 'LogSoftmax', 'Hardmax'].flatMap((op): Case[] => [
    { name: `${op} over several axes`, opset: 12, build: one(op) },
    {
      name: `${op} over all axes but the first from the end`,
      opset: 11,
      build: one(op, { axis: a.int(-3) }),
    },
    { name: `${op} over everything`, opset: 8, build: one(op, { axis: a.int(0) }) },
  ]),
  { name: 'Unsqueeze', opset: 12, build: one('Unsqueeze', { axes: a.ints([0, 3]) }) },
  { name: 'Squeeze of all there is', opset: 11, build: one('Squeeze') },
  {
    name: 'ReduceSum over axes',
    opset: 11,
    build: one('ReduceSum', { axes: a.ints([1, -1]), keepdims: a.int(0) }),
  },
  { name: 'ReduceSum over everything', opset: 12, build: one('ReduceSum') },
  { name: 'ReduceMean over axes', opset: 17, build: one('ReduceMean', { axes: a.ints([2, 3]) }) },
  { name: 'ReduceL2', opset: 13, build: one('ReduceL2', { axes: a.ints([1]) }) },
  {
    name: 'Split by sizes',
    opset: 11,
    build: one('Split', { axis: a.int(3), split: a.ints([1, 5]) }, ['y', 'z']),
  },
  { name: 'Split evenly', opset: 13, build: one('Split', { axis: a.int(3) }, ['y', 'z']) },
  {
    name: 'GridSample',
    opset: 16,
    feeds: { ...x, grid: noise([2, 5, 5, 2], 1, 3) },
    build: (g) => {
      g.input('grid', 'float32', [2, 5, 5, 2]);
      g.node('GridSample', {
        inputs: ['x', 'grid'],
        outputs: ['y'],
        attributes: { mode: a.string('bicubic') },
      });
    },
  },
  {
    name: 'RoiAlign',
    opset: 11,
    to: 19,
    build: (g) => {
      g.initializer('rois', floats([1, 4], [0.5, 0.5, 4, 3]));
      g.initializer('which', integers([1], [1]));
      g.node('RoiAlign', {
        inputs: ['x', 'rois', 'which'],
        outputs: ['y'],
        attributes: { output_height: a.int(2), output_width: a.int(2) },
      });
    },
  },
  {
    name: 'BatchNormalization',
    opset: 11,
    build: batchNormalization(),
  },
];

/** Until opset 10; the graph has the input x [2, 3, 4, 6] and the output y. */
const older: readonly Case[] = [
  {
    name: 'Slice',
    opset: 9,
    build: one('Slice', { starts: a.ints([0, -3]), ends: a.ints([1, 99]), axes: a.ints([0, 3]) }),
  },
  {
    name: 'TopK',
    opset: 9,
    build: (g) => {
      g.node('TopK', { inputs: ['x'], outputs: ['y', 'i'], attributes: { k: a.int(2), axis: a.int(-1) } });
    },
  },
  { name: 'Clip', opset: 10, build: one('Clip', { min: a.float(-0.5), max: a.float(0.25) }) },
  { name: 'Clip from above', opset: 7, build: one('Clip', { max: a.float(0.25) }) },
  {
    name: 'Pad with a value',
    opset: 10,
    build: one('Pad', { pads: a.ints([0, 0, 1, 0, 0, 0, 0, 2]), value: a.float(3) }),
  },
  {
    name: 'Pad by reflection',
    opset: 8,
    build: one('Pad', { pads: a.ints([0, 0, 1, 0, 0, 0, 0, 2]), mode: a.string('reflect') }),
  },
  { name: 'Dropout', opset: 7, build: one('Dropout', { ratio: a.float(0.3) }) },
  { name: 'BatchNormalization with spatial', opset: 7, build: batchNormalization({ spatial: a.int(1) }) },
  ...(['nearest', 'linear'] as const).flatMap((mode): Case[] => [
    {
      name: `Upsample ${mode} with an attribute`,
      opset: 8,
      build: one('Upsample', { mode: a.string(mode), scales: a.floats([1, 1, 2, 1.5]) }),
    },
    { name: `Upsample ${mode}`, opset: 9, build: scaled('Upsample', mode, [1, 1, 1.5, 2]) },
    { name: `Resize ${mode} up`, opset: 10, build: scaled('Resize', mode, [1, 1, 2, 1.7]) },
  ]),
  { name: 'Resize linear down', opset: 10, build: scaled('Resize', 'linear', [1, 1, 0.5, 0.7]) },
  {
    name: 'Scatter',
    opset: 9,
    build: (g) => {
      g.initializer('where', integers([1, 1, 1, 2], [3, 0]));
      g.initializer('what', floats([1, 1, 1, 2], [7, 8]));
      g.node('Scatter', { inputs: ['x', 'where', 'what'], outputs: ['y'], attributes: { axis: a.int(2) } });
    },
  },
  { name: 'MaxPool', opset: 8, build: one('MaxPool', { kernel_shape: a.ints([2, 2]) }) },
  { name: 'ReduceMean', opset: 7, build: one('ReduceMean', { axes: a.ints([2, 3]) }) },
];

function batchNormalization(
  attributes: Parameters<GraphBuilder['node']>[1]['attributes'] = {},
): Case['build'] {
  return (g) => {
    for (const name of ['scale', 'bias', 'mean']) g.initializer(name, noise([3], 1, name.length));
    g.initializer('variance', floats([3], [1, 2, 3]));
    const inputs = ['x', 'scale', 'bias', 'mean', 'variance'];
    g.node('BatchNormalization', { inputs, outputs: ['y'], attributes });
  };
}

function scaled(opType: string, mode: string, scales: readonly number[]): Case['build'] {
  return (g) => {
    g.initializer('scales', floats([4], [...scales]));
    g.node(opType, { inputs: ['x', 'scales'], outputs: ['y'], attributes: { mode: a.string(mode) } });
  };
}

const graphOf = ({ build, name }: Pick<Case, 'build' | 'name'>) => {
  const g = new GraphBuilder(name);
  g.input('x', 'float32', [2, 3, 4, 6]);
  build(g);
  g.output('y', 'float32', null);
  return g;
};

describe('raised to a newer opset', () => {
  it.each([...cases, ...older])('$name of opset $opset means the same', async (one) => {
    const model = buildModel(graphOf(one), { opset: one.opset });
    const before = freshPath();
    await writeModel(model, before);
    expect(raiseOpset(model, one.to ?? 22)).toBeUndefined();
    expect(inferDtypes(model.proto).violations).toEqual([]);
    const after = freshPath();
    await writeModel(model, after);
    const feeds = one.feeds ?? x;
    expect(difference(await run(before, feeds), await run(after, feeds))).toBeLessThan(1e-6);
  });
});

describe('a model is left alone', () => {
  it.each([
    ['when it is too old', 6, one('Relu'), 'before opset 7'],
    ['when it scales down by repeating', 10, scaled('Resize', 'nearest', [1, 1, 0.5, 0.5]), 'scales down'],
  ] as const)('%s', (_, opset, build, why) => {
    const model = buildModel(graphOf({ name: 'g', build }), { opset });
    const { proto } = model;
    const raised = raiseOpset(model, 22);
    expect(raised).toContain(why);
    expect(proto.opsetImport[0]?.version).toBe(BigInt(opset));
    expect(proto.graph?.node[0]?.attribute.length).toBe(proto.graph?.node[0]?.opType === 'Relu' ? 0 : 1);
  });
});

describe('a softmax over all axes from one on', () => {
  const reshaped = (g: GraphBuilder, axis: number) => {
    g.initializer('sizes', integers([4], [0, 4, -1, 6]));
    g.node('Reshape', { inputs: ['x', 'sizes'], outputs: ['r'] });
    g.node('Softmax', { inputs: ['r'], outputs: ['y'], attributes: { axis: a.int(axis) } });
  };
  const inBranch = (g: GraphBuilder, axis: number) => {
    const branch = (name: string) => {
      const body = new GraphBuilder(name);
      body.node('Softmax', { inputs: ['x'], outputs: [name], attributes: { axis: a.int(axis) } });
      body.output(name, 'float32', null);
      return a.body(body);
    };
    g.input('which', 'bool', []);
    g.node('If', {
      inputs: ['which'],
      outputs: ['y'],
      attributes: { then_branch: branch('a'), else_branch: branch('b') },
    });
  };
  const softmax = (g: GraphBuilder, axis: number) =>
    void g.node('Softmax', { inputs: ['x'], outputs: ['y'], attributes: { axis: a.int(axis) } });

  it.each([
    ['the last of an inferred rank', ['b', 4, 't', 6], reshaped, 3, -1],
    ['the last in a body, of a captured value', ['b', 4, 6], inBranch, 2, -1],
    ['the only one that is not 1', ['b', 6, 1, 1], softmax, 1, -3],
    ['all of them 1', ['b', 1, 1], softmax, 1, -1],
    ['several', ['b', 4, 6], softmax, 1, undefined],
    ['several, of which one may be 1', ['b', 't', 6], softmax, 1, undefined],
    ['of an unknown rank', null, softmax, 1, undefined],
    ['the last, of an unknown rank', null, softmax, -1, -1],
  ] as const)('%s', (_, shape, build, axis, expected) => {
    const g = new GraphBuilder('softmax');
    g.input('x', 'float32', shape);
    build(g, axis);
    g.output('y', 'float32', null);
    const model = buildModel(g, { opset: 11 });
    expect(raiseOpset(model, 22)).toBeUndefined();
    expect(inferDtypes(model.proto).violations).toEqual([]);
    const nodes = [...visitNodes(model.proto)].map(({ node }) => node);
    const [found] = nodes.filter(({ opType }) => opType === 'Softmax');
    expect(found?.attribute.map(({ name, i }) => [name, Number(i)])).toEqual([['axis', expected ?? -1]]);
    expect(nodes.some(({ opType }) => opType === 'Flatten')).toBe(expected === undefined);
  });
});
