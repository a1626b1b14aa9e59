import { describe, expect, it } from 'vitest';
import { attribute as a, buildModel, GraphBuilder, type ModelSpec } from '../../src/onnx/builder.js';
import { inferDtypes } from '../../src/onnx/dtype-inference.js';
import { firstOpset, operatorSignature } from '../../src/onnx/operators.js';
import type { Dtype } from '../../src/tensor/dtype.js';

const tensor = (dtype: Dtype, bytes = 4) => ({ dtype, shape: [], bytes: new Uint8Array(bytes) });

function typesOf(build: (g: GraphBuilder) => void, spec: ModelSpec = {}) {
  const g = new GraphBuilder('g');
  g.input('x', 'float32', [2, 3]);
  g.input('h', 'float16', [2, 3]);
  g.input('i', 'int64', [2]);
  build(g);
  return inferDtypes(buildModel(g, spec).proto);
}

describe('the type of an output', () => {
  const cases: readonly [what: string, expected: string, build: (g: GraphBuilder) => void, opset?: number][] =
    [
      ['follows the inputs', 'float16', (g) => g.node('Add', { inputs: ['h', 'h'], outputs: ['y'] })],
      [
        'is what Cast says',
        'bfloat16',
        (g) => g.node('Cast', { inputs: ['x'], outputs: ['y'], attributes: { to: a.int(16) } }),
      ],
      [
        'is what CastLike is shown',
        'float16',
        (g) => g.node('CastLike', { inputs: ['x', 'h'], outputs: ['y'] }),
      ],
      ['is bool for a comparison', 'bool', (g) => g.node('Less', { inputs: ['x', 'x'], outputs: ['y'] })],
      ['is int64 for Shape', 'int64', (g) => g.node('Shape', { inputs: ['h'], outputs: ['y'] })],
      [
        'is float32 for ConstantOfShape without a value',
        'float32',
        (g) => g.node('ConstantOfShape', { inputs: ['i'], outputs: ['y'] }),
      ],
      [
        'is that of the value of ConstantOfShape',
        'int8',
        (g) =>
          g.node('ConstantOfShape', {
            inputs: ['i'],
            outputs: ['y'],
            attributes: { value: a.tensor(tensor('int8', 1)) },
          }),
      ],
      [
        'is that of a Constant',
        'float64',
        (g) => g.node('Constant', { outputs: ['y'], attributes: { value: a.tensor(tensor('float64', 8)) } }),
      ],
      [
        'is float32 for value_float',
        'float32',
        (g) => g.node('Constant', { outputs: ['y'], attributes: { value_float: a.float(1) } }),
      ],
      [
        'is chosen by dtype for random numbers',
        'float16',
        (g) =>
          g.node('RandomNormalLike', { inputs: ['x'], outputs: ['y'], attributes: { dtype: a.int(10) } }),
      ],
      [
        'is like the input for random numbers without dtype',
        'float32',
        (g) => g.node('RandomNormalLike', { inputs: ['x'], outputs: ['y'] }),
      ],
      [
        'is uint8 for QuantizeLinear without a zero point',
        'uint8',
        (g) => {
          g.initializer('s', tensor('float32'));
          return g.node('QuantizeLinear', { inputs: ['x', 's'], outputs: ['y'] });
        },
      ],
      [
        'is that of the scale for DequantizeLinear',
        'float16',
        (g) => {
          g.initializer('s', tensor('float16', 2));
          g.initializer('q', tensor('int8', 1));
          return g.node('DequantizeLinear', { inputs: ['q', 's'], outputs: ['y'] });
        },
        19,
      ],
      [
        'is that of the exponent’s base for Pow',
        'float16',
        (g) => g.node('Pow', { inputs: ['h', 'x'], outputs: ['y'] }),
      ],
      [
        'is a sequence',
        'seq(float16)',
        (g) => g.node('SequenceConstruct', { inputs: ['h', 'h'], outputs: ['y'] }),
      ],
      [
        'is what a sequence holds',
        'float16',
        (g) => {
          g.node('SequenceConstruct', { inputs: ['h', 'h'], outputs: ['s'] });
          g.initializer('zero', tensor('int64', 8));
          return g.node('SequenceAt', { inputs: ['s', 'zero'], outputs: ['y'] });
        },
      ],
    ];

  it.each(cases)('%s: %s', (_, expected, build, opset = 17) => {
    const { graph, violations } = typesOf(build, { opset });
    expect(graph.types.get('y')).toBe(expected);
    expect(violations).toEqual([]);
  });

  it('of LayerNormalization differs between result and statistics', () => {
    const { graph } = typesOf((g) =>
      g.node('LayerNormalization', { inputs: ['h', 'h'], outputs: ['y', 'mean', 'inverse'] }),
    );
    expect([graph.types.get('y'), graph.types.get('mean')]).toEqual(['float16', 'float32']);
  });

  it('of a plug-in is what the model declares, or unknown', () => {
    const { graph, violations } = typesOf((g) => {
      g.node('MyPlugin', { domain: 'acme', inputs: ['x'], outputs: ['p', 'q'] });
      g.value('p', 'float16', null);
      g.node('Relu', { inputs: ['q'], outputs: ['r'] });
    });
    expect([graph.types.get('p'), graph.types.get('q'), graph.types.get('r')]).toEqual([
      'float16',
      undefined,
      undefined,
    ]);
    expect(violations).toEqual([]);
  });

  it('of a call is found through the function, with its parameters bound by position', () => {
    const body = new GraphBuilder('body');
    body.node('Cast', { inputs: ['value'], outputs: ['wide'], attributes: { to: a.int(11) } });
    body.node('Shape', { inputs: ['wide'], outputs: ['size'] });
    const { graph } = typesOf(
      (g) => g.node('Widen', { domain: 'ai.test', inputs: ['h'], outputs: ['y', 'n'] }),
      {
        opsets: { 'ai.test': 1 },
        functions: [
          {
            domain: 'ai.test',
            name: 'Widen',
            inputs: ['value'],
            outputs: ['wide', 'size'],
            nodes: body,
            opsets: { '': 17 },
          },
        ],
      },
    );
    expect([graph.types.get('y'), graph.types.get('n')]).toEqual(['float64', 'int64']);
  });

  it('in a body sees the values outside', () => {
    const yes = new GraphBuilder('yes');
    yes.node('Add', { inputs: ['h', 'h'], outputs: ['sum'] });
    yes.output('sum', 'float16', null);
    const { graph, violations } = typesOf((g) => {
      g.initializer('flag', tensor('bool', 1));
      g.node('If', {
        inputs: ['flag'],
        outputs: ['y'],
        attributes: { then_branch: a.body(yes), else_branch: a.body(yes) },
      });
    });
    expect(graph.types.get('y')).toBe('float16');
    expect([...graph.bodies.values()][0]?.types.get('sum')).toBe('float16');
    expect(violations).toEqual([]);
  });
});

describe('a contradiction is reported at its node', () => {
  it('where inputs of one type variable differ', () => {
    const { violations } = typesOf((g) => g.node('Add', { name: 'mix', inputs: ['x', 'h'], outputs: ['y'] }));
    expect(violations).toEqual([
      { where: 'mix', message: 'Add wants one type for its T inputs but gets float32 and float16 («h»)' },
    ]);
  });

  it('where an operator does not take the type', () => {
    const { violations } = typesOf((g) => g.node('And', { name: 'and', inputs: ['x', 'x'], outputs: ['y'] }));
    expect(violations[0]).toEqual({
      where: 'and',
      message: 'And cannot take float32 for input 0, «x» (it takes bool)',
    });
  });

  it('where a declaration says otherwise', () => {
    const { violations } = typesOf((g) => {
      g.node('Relu', { inputs: ['h'], outputs: ['y'] });
      g.output('y', 'float32', null);
    });
    expect(violations).toEqual([{ where: 'y', message: 'is declared float32 but is float16' }]);
  });

  it('where branches disagree', () => {
    const branch = (name: string, input: string) => {
      const g = new GraphBuilder(name);
      g.node('Identity', { inputs: [input], outputs: [`${name}.y`] });
      g.output(`${name}.y`, input === 'x' ? 'float32' : 'float16', null);
      return a.body(g);
    };
    const { violations } = typesOf((g) => {
      g.initializer('flag', tensor('bool', 1));
      g.node('If', {
        name: 'if',
        inputs: ['flag'],
        outputs: ['y'],
        attributes: { then_branch: branch('yes', 'x'), else_branch: branch('no', 'h') },
      });
    });
    expect(violations).toEqual([
      { where: 'if', message: 'output 0 is float32 in one branch and float16 in the other' },
    ]);
  });

  it('where a loop changes the type of what it carries', () => {
    const body = new GraphBuilder('body');
    body.input('n', 'int64', []);
    body.input('go', 'bool', []);
    body.input('state', 'float32', null);
    body.node('Identity', { inputs: ['go'], outputs: ['on'] });
    body.node('Cast', { inputs: ['state'], outputs: ['next'], attributes: { to: a.int(10) } });
    body.output('on', 'bool', []);
    body.output('next', 'float16', null);
    const { violations } = typesOf((g) => {
      g.initializer('trips', tensor('int64', 8));
      g.node('Loop', {
        name: 'loop',
        inputs: ['trips', '', 'x'],
        outputs: ['y'],
        attributes: { body: a.body(body) },
      });
    });
    expect(violations).toEqual([
      { where: 'loop', message: 'loop-carried value 0 enters as float32 and leaves as float16' },
    ]);
  });
});

describe('operator signatures', () => {
  it('follow the opset', () => {
    const takes = (opset: number) => operatorSignature('', 'Conv', opset)?.inputs[0]?.allowed.has('bfloat16');
    expect([takes(11), takes(21), takes(22)]).toEqual([false, false, true]);
    expect(operatorSignature('ai.onnx', 'Conv', 17)).toBe(operatorSignature('', 'Conv', 17));
  });

  it('know operators that were withdrawn and operators that do not exist', () => {
    expect(operatorSignature('', 'Upsample', 9)).toBeDefined();
    expect(operatorSignature('', 'Upsample', 10)).toBeUndefined();
    expect(operatorSignature('', 'NoSuchOperator', 17)).toBeUndefined();
  });

  it('say from when on a type is taken', () => {
    const bf16 = (type: string, from: number) =>
      firstOpset('', type, from, ({ inputs }) => inputs[0]?.allowed.has('bfloat16') === true);
    expect([bf16('Conv', 13), bf16('MatMul', 17), bf16('NonMaxSuppression', 11)]).toEqual([
      22,
      17,
      undefined,
    ]);
  });
});
