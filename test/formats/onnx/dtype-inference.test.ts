import { describe, expect, it } from 'vitest';
import {
  attribute as a,
  buildModel,
  GraphBuilder,
  type ModelSpec,
} from '../../../src/formats/onnx/builder.js';
import { assertWellTyped, inferDtypes } from '../../../src/formats/onnx/dtype-inference.js';
import { firstOpset, operatorSignature } from '../../../src/formats/onnx/operators.js';
import type { Dtype } from '../../../src/formats/tensor/dtype.js';
import { refusal } from '../../support/refusal.js';

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

describe('what proves nothing is no contradiction', () => {
  const body = (dtype: Dtype) => {
    const g = new GraphBuilder('body');
    g.input('ids', 'int64', null);
    g.node('Cast', { inputs: ['x'], outputs: ['logits'], attributes: { to: a.int(1) } });
    g.output('logits', dtype, null);
    return a.body(g);
  };
  const cases: readonly [what: string, build: (g: GraphBuilder) => void, spec?: ModelSpec][] = [
    [
      'an operator of another domain with a body: its outputs are its own',
      (g) => {
        g.node('BeamSearch', {
          domain: 'com.microsoft',
          inputs: ['h'],
          outputs: ['sequences'],
          attributes: { decoder: body('float32') },
        });
        g.output('sequences', 'int32', null);
      },
      { opsets: { 'com.microsoft': 1 } },
    ],
    [
      'an operator that ONNX does not define at this opset',
      (g) => {
        g.node('LayerNormalization', { inputs: ['h', 'x'], outputs: ['y'] });
        g.output('y', 'float32', null);
      },
      { opset: 12 },
    ],
    ['an opset from the future', (g) => g.node('Add', { inputs: ['x', 'h'], outputs: ['y'] }), { opset: 99 }],
    [
      'an opset that nobody imports',
      (g) => g.node('Add', { inputs: ['x', 'h'], outputs: ['y'] }),
      { opset: 0 },
    ],
    [
      'operators called like methods of every object',
      (g) => {
        for (const name of ['constructor', 'toString', 'hasOwnProperty', '__proto__', 'valueOf'])
          for (const domain of ['', name, 'acme'])
            g.node(name, { domain, inputs: ['x', 'h'], outputs: [`${domain}.${name}`] });
      },
    ],
    [
      'another declaration of a constant: runtimes take its type from its value',
      (g) => {
        g.node('Constant', { outputs: ['zero'], attributes: { value_int: a.int(0) } });
        g.output('zero', 'bool', []);
      },
    ],
    [
      'another declaration of an initializer or input',
      (g) => {
        g.initializer('half', tensor('float16', 2));
        g.value('half', 'float32', []);
        g.value('x', 'float16', [2, 3]);
      },
    ],
    [
      'a value_info of an output, which its declaration as an output overrules',
      (g) => {
        g.node('Relu', { inputs: ['h'], outputs: ['y'] });
        g.value('y', 'float32', null);
        g.output('y', 'float16', null);
      },
    ],
    [
      'what a body declares of a value around it that it does not use',
      (g) => {
        const branch = new GraphBuilder('branch');
        branch.value('h', 'float32', null);
        branch.node('Relu', { inputs: ['x'], outputs: ['b'] });
        branch.output('b', 'float32', null);
        g.initializer('flag', tensor('bool', 1));
        const attributes = { then_branch: a.body(branch), else_branch: a.body(branch) };
        g.node('If', { inputs: ['flag'], outputs: ['y'], attributes });
      },
    ],
    [
      'the lengths of a Scan of opset 8, which no input of its body stands for',
      (g) => {
        const step = new GraphBuilder('step');
        step.input('state', 'float32', null);
        step.input('item', 'float32', null);
        step.node('Add', { inputs: ['state', 'item'], outputs: ['next'] });
        step.output('next', 'float32', null);
        g.node('Scan', {
          inputs: ['i', 'x', 'x'],
          outputs: ['y'],
          attributes: { body: a.body(step), num_scan_inputs: a.int(1) },
        });
      },
      { opset: 8 },
    ],
    [
      'a type that each call of a function chooses',
      (g) => {
        g.node('Filled', { domain: 'ai.test', inputs: ['i'], outputs: ['y'] });
        g.output('y', 'float16', null);
      },
      {
        opsets: { 'ai.test': 1 },
        functions: [
          {
            domain: 'ai.test',
            name: 'Filled',
            inputs: ['size'],
            outputs: ['out'],
            attributes: ['fill'],
            opsets: { '': 17 },
            nodes: (() => {
              const f = new GraphBuilder('Filled');
              f.node('ConstantOfShape', {
                inputs: ['size'],
                outputs: ['out'],
                attributes: { value: () => ({ type: 4, refAttrName: 'fill' }) },
              });
              return f;
            })(),
          },
        ],
      },
    ],
  ];

  it.each(cases)('%s', (_, build, spec) => {
    expect(typesOf(build, spec).violations).toEqual([]);
  });
});

describe('the order of nodes', () => {
  it('in the file does not matter, in bodies and functions neither', () => {
    const shuffled = (g: GraphBuilder, input: string) => {
      g.node('Relu', { inputs: ['b'], outputs: ['c'] });
      g.node('Relu', { inputs: ['a'], outputs: ['b'] });
      g.node('Cast', { inputs: [input], outputs: ['a'], attributes: { to: a.int(10) } });
      return g;
    };
    const yes = shuffled(new GraphBuilder('yes'), 'late');
    yes.output('c', 'float32', null);
    const { graph, violations } = typesOf(
      (g) => {
        g.node('F', { domain: 'ai.test', inputs: ['late'], outputs: ['f'] });
        g.node('If', {
          name: 'if',
          inputs: ['flag'],
          outputs: ['y'],
          attributes: { then_branch: a.body(yes), else_branch: a.body(yes) },
        });
        g.node('Relu', { inputs: ['x'], outputs: ['late'] });
        g.initializer('flag', tensor('bool', 1));
      },
      {
        opsets: { 'ai.test': 1 },
        functions: [
          {
            domain: 'ai.test',
            name: 'F',
            inputs: ['value'],
            outputs: ['c'],
            opsets: { '': 17 },
            nodes: shuffled(new GraphBuilder('F'), 'value'),
          },
        ],
      },
    );
    expect([graph.types.get('f'), graph.types.get('y')]).toEqual(['float16', 'float16']);
    expect(new Set(violations.map(({ where }) => where))).toEqual(new Set(['c']));
  });

  it('has no beginning in a cycle, which is an error wherever it is', () => {
    const ring = (g: GraphBuilder) => {
      g.node('Add', { name: 'one', inputs: ['x', 'q'], outputs: ['p'] });
      g.node('Relu', { name: 'two', inputs: ['p'], outputs: ['q'] });
      return g;
    };
    const yes = ring(new GraphBuilder('yes'));
    yes.output('q', 'float32', null);
    const inBody = (g: GraphBuilder) => {
      g.initializer('flag', tensor('bool', 1));
      const attributes = { then_branch: a.body(yes), else_branch: a.body(yes) };
      g.node('If', { inputs: ['flag'], outputs: ['y'], attributes });
    };
    for (const build of [ring, inBody]) {
      const g = new GraphBuilder('g');
      g.input('x', 'float32', [2]);
      build(g);
      expect(refusal(() => assertWellTyped('ring.onnx', buildModel(g).proto))).toMatchObject({
        code: 'TF_ONNX_GRAPH_INVALID',
        exitCode: 2,
        message: expect.stringMatching(/one, two|two, one/),
      });
    }
  });
});

describe('a contradiction is reported at its node', () => {
  it('and names the place and the types when it is an error', () => {
    const g = new GraphBuilder('g');
    g.input('x', 'float32', [2]);
    g.input('h', 'float16', [2]);
    g.node('Add', { name: 'mix', inputs: ['x', 'h'], outputs: ['y'] });
    expect(refusal(() => assertWellTyped('m.onnx', buildModel(g).proto))).toMatchObject({
      code: 'TF_ONNX_GRAPH_INVALID',
      exitCode: 2,
      message: expect.stringMatching(/m\.onnx.*mix.*float32.*float16/),
    });
  });

  it('where inputs of one type variable differ', () => {
    const { violations } = typesOf((g) => g.node('Add', { name: 'mix', inputs: ['x', 'h'], outputs: ['y'] }));
    expect(violations).toEqual([
      { where: 'mix', message: 'Add requires one type for its T inputs but gets float32 and float16 ("h")' },
    ]);
  });

  it('where an operator does not take the type', () => {
    const { violations } = typesOf((g) => g.node('And', { name: 'and', inputs: ['x', 'x'], outputs: ['y'] }));
    expect(violations[0]).toEqual({
      where: 'and',
      message: 'And cannot take float32 for input 0, "x" (it takes bool)',
    });
  });

  it('where a declaration states otherwise', () => {
    const { violations } = typesOf((g) => {
      g.node('Relu', { inputs: ['h'], outputs: ['y'] });
      g.output('y', 'float32', null);
    });
    expect(violations).toEqual([{ where: 'y', message: 'is declared float32 but is float16' }]);
  });

  it('where a body declares what it uses otherwise than the graph around it', () => {
    const branch = new GraphBuilder('branch');
    branch.value('h', 'float32', null);
    branch.node('Relu', { inputs: ['h'], outputs: ['b'] });
    branch.output('b', 'float16', null);
    const { violations } = typesOf((g) => {
      g.initializer('flag', tensor('bool', 1));
      const attributes = { then_branch: a.body(branch), else_branch: a.body(branch) };
      g.node('If', { inputs: ['flag'], outputs: ['y'], attributes });
    });
    expect(violations[0]).toEqual({ where: 'h', message: 'is declared float32 but is float16' });
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

  it('state from which version on a type is taken', () => {
    const bf16 = (type: string, from: number) =>
      firstOpset('', type, from, ({ inputs }) => inputs[0]?.allowed.has('bfloat16') === true);
    expect([bf16('Conv', 13), bf16('MatMul', 17), bf16('NonMaxSuppression', 11)]).toEqual([
      22,
      17,
      undefined,
    ]);
  });
});
