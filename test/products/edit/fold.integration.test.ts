import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { visitNodes } from '../../../src/formats/onnx/graph.js';
import {
  type AttributeValue,
  attribute as a,
  GraphBuilder,
  type ModelSpec,
} from '../../../src/formats/onnx/index.js';
import { viewModel } from '../../../src/formats/onnx/model.js';
import { integerTensor, type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { applySteps } from '../../../src/products/edit/edit.js';
import { stepsOf } from '../../../src/products/edit/steps/steps.js';
import { castTo, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { inProcessBackEnd } from '../../support/in-process-back-end.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-fold-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;

const noise = (...shape: number[]) =>
  tensorFrom(
    'float32',
    shape,
    Float32Array.from({ length: shape.reduce((x, y) => x * y, 1) }, (_, at) => Math.sin(3 * at + 1)),
  );
const bool = (value: number) => ({ ...integerTensor('uint8', [], [value]), dtype: 'bool' as const });

type Build = (g: GraphBuilder) => void;
interface Case {
  readonly name: string;
  readonly build: Build;
  /** Operators that are left. */
  readonly left: readonly string[];
  readonly spec?: ModelSpec;
}

/** A chain of nodes from x to y. */
const chain =
  (
    shape: readonly (number | string)[],
    ...steps: readonly (readonly [
      op: string,
      inputs?: readonly string[],
      attributes?: Record<string, AttributeValue>,
    ])[]
  ): Build =>
  (g) => {
    g.input('x', 'float32', shape);
    let at = 'x';
    for (const [index, [op, inputs = [], attributes = {}]] of steps.entries()) {
      const next = index === steps.length - 1 ? 'y' : `v${index}`;
      g.node(op, { inputs: [at, ...inputs], outputs: [next], attributes });
      at = next;
    }
    g.output('y', 'float32', null);
  };
const having =
  (constants: Readonly<Record<string, Tensor>>, build: Build): Build =>
  (g) => {
    for (const [name, value] of Object.entries(constants)) g.initializer(name, value);
    build(g);
  };
const ends = ['Relu'] as const;
const perm = (...axes: number[]) => ({ perm: a.ints(axes) });
const image = ['n', 2, 6, 6];
const conv = {
  w: noise(3, 2, 3, 3),
  b: noise(3),
  c: noise(1, 3, 1, 1),
  one: noise(1),
  wide: noise(1, 3, 1, 4),
  row: noise(4),
};
const plane = { m: noise(4, 5), bias: noise(5), column: noise(1, 5), tall: noise(7, 5) };

const cases: readonly Case[] = [
  {
    name: 'Identity and its like between nodes',
    build: chain([2, 3], ends, ['Identity'], ['Dropout'], ends),
    left: ['Relu', 'Relu'],
  },
  { name: 'Identity from input to output stays', build: chain([2, 3], ['Identity']), left: ['Identity'] },
  { name: 'Identity to an output gives its name', build: chain([2, 3], ends, ['Identity']), left: ['Relu'] },
  {
    name: 'a transposition back',
    build: chain([2, 3, 4], ends, ['Transpose', [], perm(1, 2, 0)], ['Transpose', [], perm(2, 0, 1)], ends),
    left: ['Relu', 'Relu'],
  },
  {
    name: 'two transpositions',
    build: chain([2, 3, 4], ends, ['Transpose', [], perm(1, 2, 0)], ['Transpose', [], perm(1, 2, 0)], ends),
    left: ['Relu', 'Transpose', 'Relu'],
  },
  {
    name: 'a cast to the type it is',
    build: chain([2], ends, ['Cast', [], castTo('float32')], ends),
    left: ['Relu', 'Relu'],
  },
  {
    name: 'a cast that widens, and back',
    build: chain([2], ends, ['Cast', [], castTo('float64')], ['Cast', [], castTo('float32')], ends),
    left: ['Relu', 'Relu'],
  },
  {
    name: 'a cast that widens, and to the type of another value',
    build: (g) => {
      g.input('x', 'int8', [2]);
      g.node('Cast', { inputs: ['x'], outputs: ['wide'], attributes: castTo('float32') });
      g.initializer('like', { dtype: 'float64', shape: [], bytes: new Uint8Array(8) });
      g.node('CastLike', { inputs: ['wide', 'like'], outputs: ['y'] });
      g.output('y', 'float64', [2]);
    },
    left: ['CastLike'],
  },
  {
    name: 'a reduction of all axes, and none that are put back',
    build: (g) => {
      g.input('x', 'float32', [2, 3]);
      g.initializer('none', ids([0], []));
      g.node('ReduceSum', {
        inputs: ['x', 'none'],
        outputs: ['sum'],
        attributes: { keepdims: a.int(0) },
      });
      g.node('Unsqueeze', { inputs: ['sum', 'none'], outputs: ['u'] });
      g.node('Relu', { inputs: ['u'], outputs: ['y'] });
      g.output('y', 'float32', []);
    },
    left: ['ReduceSum', 'Relu'],
  },
  {
    name: 'a cast that narrows, and back, stays',
    build: chain([2], ends, ['Cast', [], castTo('int32')], ['Cast', [], castTo('float32')], ends),
    left: ['Relu', 'Cast', 'Cast', 'Relu'],
  },
  {
    name: 'a reshape of a reshape',
    build: having(
      { s: ids([2], [6, 4]), t: ids([3], [4, 3, 2]) },
      chain([2, 3, 4], ends, ['Reshape', ['s']], ['Reshape', ['t']], ends),
    ),
    left: ['Relu', 'Reshape', 'Relu'],
  },
  {
    name: 'a reshape to the shape it is',
    build: having({ s: ids([2], [2, -1]) }, chain([2, 12], ends, ['Reshape', ['s']], ends)),
    left: ['Relu', 'Relu'],
  },
  {
    name: 'a slice of everything',
    build: having(
      { from: ids([1], [0]), to: ids([1], [99]) },
      chain([4, 4], ends, ['Slice', ['from', 'to']], ends),
    ),
    left: ['Relu', 'Relu'],
  },
  {
    name: 'a slice in reverse stays',
    build: having(
      { from: ids([1], [-1]), to: ids([1], [-99]), axis: ids([1], [0]), step: ids([1], [-1]) },
      chain([4, 4], ends, ['Slice', ['from', 'to', 'axis', 'step']], ends),
    ),
    left: ['Relu', 'Slice', 'Relu'],
  },
  {
    name: 'a padding that moves stays',
    build: having({ p: ids([2], [1, -1]) }, chain([4], ends, ['Pad', ['p']], ends)),
    left: ['Relu', 'Pad', 'Relu'],
  },
  {
    name: 'a padding before a convolution',
    build: having(
      { ...conv, p: ids([8], [0, 0, 1, 2, 0, 0, 1, 0]) },
      chain(image, ['Pad', ['p']], ['Conv', ['w', 'b']]),
    ),
    left: ['Conv'],
  },
  {
    name: 'a padding of channels stays',
    build: having(
      { ...conv, p: ids([8], [0, 1, 1, 1, 0, 0, 1, 1]) },
      chain(['n', 1, 6, 6], ['Pad', ['p']], ['Conv', ['w']]),
    ),
    left: ['Pad', 'Conv'],
  },
  {
    name: 'scales and shifts behind a convolution',
    build: having(
      conv,
      chain(image, ['Conv', ['w', 'b']], ['Mul', ['c']], ['Add', ['c']], ['Sub', ['one']], ['Div', ['c']]),
    ),
    left: ['Conv'],
  },
  {
    name: 'a scale before a convolution, while a shift stays',
    build: having(
      { ...conv, half: tensorFrom('float32', [], Float32Array.of(0.3)) },
      chain(image, ['Add', ['half']], ['Mul', ['half']], ['Conv', ['w', 'b']]),
    ),
    left: ['Add', 'Conv'],
  },
  {
    name: 'a shift of places behind a convolution stays',
    build: having(conv, chain(image, ['Conv', ['w']], ['Add', ['wide']])),
    left: ['Conv', 'Add'],
  },
  {
    name: 'a shift of columns behind a convolution stays',
    build: having(conv, chain(image, ['Conv', ['w']], ['Add', ['row']])),
    left: ['Conv', 'Add'],
  },
  {
    name: 'a product and its bias',
    build: having(plane, chain(['n', 4], ['MatMul', ['m']], ['Add', ['bias']])),
    left: ['Gemm'],
  },
  {
    name: 'a bias of a row for each item stays',
    build: having(plane, chain([1, 4], ['MatMul', ['m']], ['Add', ['tall']])),
    left: ['MatMul', 'Add'],
  },
  {
    name: 'a mean that keeps its axis',
    build: having(
      { at: ids([1], [1]) },
      chain([2, 3, 4], ['ReduceMean', [], { axes: a.ints([1]), keepdims: a.int(0) }], ['Unsqueeze', ['at']]),
    ),
    left: ['ReduceMean'],
  },
  {
    name: 'nothing added, multiplied by one',
    build: having(
      {
        zero: tensorFrom('float32', [], Float32Array.of(0)),
        one: tensorFrom('float32', [1], Float32Array.of(1)),
      },
      chain([2, 3], ends, ['Add', ['zero']], ['Div', ['one']], ends),
    ),
    left: ['Relu', 'Relu'],
  },
  {
    name: 'one that broadcasts stays',
    build: having(
      { ones: tensorFrom('float32', [2, 1], Float32Array.of(1, 1)) },
      chain([3], ends, ['Mul', ['ones']], ends),
    ),
    left: ['Relu', 'Mul', 'Relu'],
  },
  {
    name: 'what constants make, with sizes',
    build: (g) => {
      g.input('x', 'float32', ['n', 3, 4]);
      g.node('Shape', { inputs: ['x'], outputs: ['s'] });
      g.initializer('last', ids([1], [2]));
      g.node('Gather', { inputs: ['s', 'last'], outputs: ['size'] });
      g.node('Cast', { inputs: ['size'], outputs: ['f'], attributes: castTo('float32') });
      g.node('Sqrt', { inputs: ['f'], outputs: ['root'] });
      g.node('Div', { inputs: ['x', 'root'], outputs: ['y'] });
      g.output('y', 'float32', null);
    },
    left: ['Div'],
  },
  {
    name: 'a branch whose condition is constant',
    build: (g) => {
      const [yes, no] = ['Relu', 'Neg'].map((op) => {
        const body = new GraphBuilder(op);
        body.node(op, { inputs: ['x'], outputs: ['inner'] });
        body.output('inner', 'float32', null);
        return body;
      });
      g.input('x', 'float32', [3]);
      g.initializer('condition', bool(0));
      g.node('If', {
        inputs: ['condition'],
        outputs: ['y'],
        attributes: { then_branch: a.body(yes!), else_branch: a.body(no!) },
      });
      g.output('y', 'float32', null);
    },
    left: ['Neg'],
  },
  {
    name: 'the same twice, and random numbers twice',
    build: (g) => {
      g.input('x', 'float32', [3]);
      for (const name of ['p', 'q']) g.node('Exp', { inputs: ['x'], outputs: [name] });
      for (const name of ['r', 's'])
        g.node('RandomNormalLike', { inputs: ['x'], outputs: [name], attributes: { seed: a.float(1) } });
      g.node('Add', { inputs: ['p', 'q'], outputs: ['y'] });
      g.node('Add', { inputs: ['r', 's'], outputs: ['z'] });
      g.output('y', 'float32', null);
      g.output('z', 'float32', null);
    },
    left: ['Exp', 'RandomNormalLike', 'RandomNormalLike', 'Add', 'Add'],
  },
  {
    name: 'a convolution that others read too stays',
    build: having(conv, (g) => {
      g.input('x', 'float32', image);
      g.node('Conv', { inputs: ['x', 'w'], outputs: ['v'] });
      g.node('Mul', { inputs: ['v', 'c'], outputs: ['y'] });
      g.output('y', 'float32', null);
      g.output('v', 'float32', null);
    }),
    left: ['Conv', 'Mul'],
  },
  {
    name: 'codes of weights stay codes',
    build: (g) => {
      g.input('x', 'float32', ['n', 4]);
      g.initializer('q', integerTensor('int8', [4, 2], [1, 2, 3, 4, 5, 6, 7, 8]));
      g.initializer('scale', tensorFrom('float32', [], Float32Array.of(0.5)));
      g.node('DequantizeLinear', { inputs: ['q', 'scale'], outputs: ['w'] });
      g.node('MatMul', { inputs: ['x', 'w'], outputs: ['y'] });
      g.output('y', 'float32', null);
    },
    left: ['DequantizeLinear', 'MatMul'],
  },
  {
    name: 'a batch in a shape is no constant',
    build: (g) => {
      g.input('x', 'float32', ['n', 4]);
      g.node('Shape', { inputs: ['x'], outputs: ['s'] });
      g.node('ConstantOfShape', { inputs: ['s'], outputs: ['zeros'] });
      g.node('Add', { inputs: ['x', 'zeros'], outputs: ['y'] });
      g.output('y', 'float32', null);
    },
    left: ['Shape', 'ConstantOfShape', 'Add'],
  },
  {
    name: 'slices of slices along other axes',
    build: having(
      {
        zero: ids([1], [0]),
        one: ids([1], [1]),
        two: ids([1], [2]),
        all: ids([1], [-1]),
        last: ids([1], [-2]),
      },
      chain(
        ['n', 3, 8],
        ['Slice', ['one', 'two', 'one']],
        ends,
        ['Slice', ['zero', 'two', 'one']],
        ['Slice', ['zero', 'last', 'all', 'two']],
      ),
    ),
    left: ['Slice', 'Relu', 'Slice'],
  },
  {
    name: 'slices of slices along one axis stay',
    build: having(
      { one: ids([1], [1]), three: ids([1], [3]), axis: ids([1], [-1]) },
      chain([2, 6], ['Slice', ['one', 'three', 'axis']], ['Slice', ['one', 'three', 'one']]),
    ),
    left: ['Slice', 'Slice'],
  },
  {
    name: 'first states of zeros, whose batch is open, but for others',
    build: having(
      {
        w: noise(1, 8, 3),
        r: noise(1, 8, 2),
        at: ids([1], [0]),
        ends: ids([1], [1]),
        rest: ids([1], [2]),
        one: tensorFrom('float32', [], Float32Array.of(1)),
      },
      (g) => {
        g.input('x', 'float32', [4, 'n', 3]);
        g.node('Shape', { inputs: ['x'], outputs: ['s'] });
        g.node('Slice', { inputs: ['s', 'ends', 'rest'], outputs: ['batch'] });
        g.node('Concat', {
          inputs: ['ends', 'batch', 'rest'],
          outputs: ['sizes'],
          attributes: { axis: a.int(0) },
        });
        g.node('ConstantOfShape', { inputs: ['sizes'], outputs: ['zeros'] });
        g.node('Expand', { inputs: ['one', 'sizes'], outputs: ['ones'] });
        g.node('LSTM', {
          inputs: ['x', 'w', 'r', '', '', 'ones', 'zeros'],
          outputs: ['', 'y'],
          attributes: { hidden_size: a.int(2) },
        });
        g.output('y', 'float32', null);
      },
    ),
    left: ['Shape', 'Slice', 'Concat', 'Expand', 'LSTM'],
  },
  {
    name: 'nothing that is joined to something, and the mean of one',
    build: (g) => {
      g.input('x', 'float32', ['n', 2, 1]);
      g.initializer('row', ids([1], [0]));
      g.initializer('tail', ids([2], [0, 1]));
      g.node('Shape', { inputs: ['x'], outputs: ['s'] });
      g.node('Gather', { inputs: ['s', 'row'], outputs: ['n'] });
      g.node('Concat', { inputs: ['n', 'tail'], outputs: ['sizes'], attributes: { axis: a.int(0) } });
      g.node('ConstantOfShape', { inputs: ['sizes'], outputs: ['none'] });
      g.node('Relu', { inputs: ['x'], outputs: ['r'] });
      g.node('Concat', { inputs: ['r', 'none'], outputs: ['joined'], attributes: { axis: a.int(1) } });
      g.node('ReduceMean', { inputs: ['joined'], outputs: ['mean'], attributes: { axes: a.ints([2]) } });
      g.node('Neg', { inputs: ['mean'], outputs: ['y'] });
      g.output('y', 'float32', null);
    },
    left: ['Relu', 'Neg'],
  },
  {
    name: 'constants in both branches, under one name, and sizes of what is around them',
    build: (g) => {
      const [yes, no] = [2, 3].map((factor) => {
        const body = new GraphBuilder('branch');
        body.node('Constant', { outputs: ['c'], attributes: { value_float: a.float(factor) } });
        body.node('Mul', { inputs: ['w', 'c'], outputs: ['scaled'] });
        body.node('Shape', { inputs: ['x'], outputs: ['shape'] });
        body.node('Gather', { inputs: ['shape', 'last'], outputs: ['size'] });
        body.node('Cast', { inputs: ['size'], outputs: ['width'], attributes: castTo('float32') });
        body.node('Add', { inputs: ['scaled', 'width'], outputs: ['sum'] });
        body.node('Identity', { inputs: ['x'], outputs: ['same'] });
        body.node('Mul', { inputs: ['same', 'sum'], outputs: ['inner'] });
        body.output('inner', 'float32', null);
        return body;
      });
      g.input('x', 'float32', ['n', 3]);
      g.input('condition', 'bool', []);
      g.initializer('w', noise(3));
      g.initializer('last', ids([1], [1]));
      g.node('If', {
        inputs: ['condition'],
        outputs: ['y'],
        attributes: { then_branch: a.body(yes!), else_branch: a.body(no!) },
      });
      g.output('y', 'float32', null);
    },
    left: ['If', 'Mul', 'Mul'],
  },
  {
    name: 'constants in a Loop, while what its counter and its states decide stays',
    build: (g) => {
      const body = new GraphBuilder('turn');
      body.input('i', 'int64', []);
      body.input('go', 'bool', []);
      body.input('state', 'float32', [null, 3]);
      body.node('Identity', { inputs: ['go'], outputs: ['again'] });
      body.node('Neg', { inputs: ['w'], outputs: ['v'] });
      body.node('Cast', { inputs: ['i'], outputs: ['count'], attributes: castTo('float32') });
      body.node('Mul', { inputs: ['v', 'count'], outputs: ['row'] });
      body.node('Concat', { inputs: ['state', 'row'], outputs: ['longer'], attributes: { axis: a.int(0) } });
      // One row longer in every turn.
      body.node('Shape', { inputs: ['state'], outputs: ['rows'] });
      body.output('again', 'bool', []);
      body.output('longer', 'float32', [null, 3]);
      body.output('rows', 'int64', [2]);
      g.input('x', 'float32', [1, 3]);
      g.initializer('w', noise(1, 3));
      g.initializer('turns', ids([], [3]));
      g.node('Loop', { inputs: ['turns', '', 'x'], outputs: ['y', 'z'], attributes: { body: a.body(body) } });
      g.output('y', 'float32', null);
      g.output('z', 'int64', null);
    },
    left: ['Loop', 'Identity', 'Cast', 'Mul', 'Concat', 'Shape'],
  },
  {
    name: 'sizes in a Scan, while its elements and states stay',
    build: (g) => {
      const body = new GraphBuilder('turn');
      body.input('sum', 'float32', [4]);
      body.input('row', 'float32', [4]);
      body.node('Size', { inputs: ['row'], outputs: ['size'] });
      body.node('Cast', { inputs: ['size'], outputs: ['width'], attributes: castTo('float32') });
      body.node('Sqrt', { inputs: ['width'], outputs: ['root'] });
      body.node('Div', { inputs: ['row', 'root'], outputs: ['scaled'] });
      body.node('Add', { inputs: ['sum', 'scaled'], outputs: ['next'] });
      body.node('Cast', { inputs: ['next'], outputs: ['whole'], attributes: castTo('int32') });
      body.output('next', 'float32', [4]);
      body.output('whole', 'int32', [4]);
      g.input('x', 'float32', ['n', 4]);
      g.initializer('zero', noise(4));
      g.node('Scan', {
        inputs: ['zero', 'x'],
        outputs: ['y', 'z'],
        attributes: { body: a.body(body), num_scan_inputs: a.int(1) },
      });
      g.output('y', 'float32', null);
      g.output('z', 'int32', null);
    },
    left: ['Scan', 'Div', 'Add', 'Cast'],
  },
];

it.each(cases.map((one) => [one.name, one] as const))('%s', async (_, { build, left, spec }) => {
  const model = await modelFile(build, spec);
  const output = join(folder, `${count++}.onnx`);
  const result = await applySteps(
    { model, output, steps: stepsOf({ fold: true }, ['fold']), threads: 1 },
    { backEnds: [inProcessBackEnd(true)] },
  );
  expect(result.proof).toMatchObject({ outcome: 'pass', reasons: [] });
  expect(viewModel(output, ({ proto }) => Array.from(visitNodes(proto), ({ node }) => node.opType))).toEqual(
    left,
  );
});
