import { beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { attribute as a, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { factsOfModel } from '../../../src/formats/onnx/inspect.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { describeWith } from '../../support/needs.js';
import { verbs } from '../../support/runs.js';
import { converted, difference, floats, integers, noise, run, written } from './judge.js';
import { builtBytes } from './real-build.js';

const [ROWS, COLUMNS] = [16, 8];
const codesOf = (dtype: 'int8' | 'uint8', shape: readonly number[], first = 0) => {
  const count = shape.reduce((product, size) => product * size, 1);
  const values = Array.from({ length: count }, (_, at) => ((37 * at) % 255) + first);
  return dtype === 'int8'
    ? tensorFrom(
        'int8',
        shape,
        Int8Array.from(values, (value) => value - 127),
      )
    : tensorFrom('uint8', shape, Uint8Array.from(values));
};
const scales = (shape: readonly number[]) => {
  const { bytes } = noise(shape, 0.004, 7);
  return floats(
    shape,
    Array.from(new Float32Array(bytes.slice().buffer), (value) => 0.01 + value),
  );
};

interface Weight {
  readonly name: string;
  readonly add: (g: GraphBuilder) => void;
  /** The dimensions of the scale in the result; undefined where nothing is rewritten. */
  readonly scale: readonly number[] | undefined;
  readonly isUint8?: true;
}

interface Steps {
  readonly dtype?: 'int8' | 'uint8';
  readonly shape?: readonly number[];
  readonly zero?: number;
  readonly scale?: ReturnType<typeof floats>;
  /** In front of the Cast, and behind the product. */
  readonly front?: (g: GraphBuilder, from: string, to: string) => void;
  readonly behind?: (g: GraphBuilder, from: string, to: string) => void;
}

/** Codes → Cast → Sub → Mul → `w`, with what moves them on the way. */
const weight =
  ({ dtype = 'int8', shape = [ROWS, COLUMNS], zero, scale, front, behind }: Steps) =>
  (g: GraphBuilder) => {
    g.initializer('codes', codesOf(dtype, shape));
    let value = 'codes';
    const step = (make: (from: string, to: string) => void, to: string) => {
      make(value, to);
      value = to;
    };
    if (front !== undefined) step((from, to) => front(g, from, to), 'moved');
    step(
      (from, to) => g.node('Cast', { inputs: [from], outputs: [to], attributes: { to: a.int(1) } }),
      'float',
    );
    if (zero !== undefined) {
      g.initializer('zero', floats([], [zero]));
      step((from, to) => g.node('Sub', { inputs: [from, 'zero'], outputs: [to] }), 'centred');
    }
    if (scale !== undefined) {
      g.initializer('scale', scale);
      step((from, to) => g.node('Mul', { inputs: ['scale', from], outputs: [to] }), 'scaled');
    }
    if (behind !== undefined) step((from, to) => behind(g, from, to), 'behind');
    g.node('Identity', { inputs: [value], outputs: ['w'] });
  };

const turn = (g: GraphBuilder, from: string, to: string) =>
  g.node('Transpose', { inputs: [from], outputs: [to], attributes: { perm: a.ints([1, 0]) } });
const reshape = (g: GraphBuilder, from: string, to: string) => {
  g.initializer('sizes', integers([2], [ROWS, COLUMNS]));
  g.node('Reshape', { inputs: [from, 'sizes'], outputs: [to] });
};

const one = floats([], [0.01]);
const weights: readonly Weight[] = [
  { name: 'one scale', add: weight({ scale: one }), scale: [] },
  { name: 'one scale of one dimension', add: weight({ scale: floats([1], [0.01]) }), scale: [] },
  { name: 'a zero point of 0', add: weight({ zero: 0, scale: one }), scale: [] },
  { name: 'a scale a column', add: weight({ scale: scales([COLUMNS]) }), scale: [COLUMNS] },
  { name: 'a scale a row', add: weight({ scale: scales([ROWS, 1]) }), scale: [ROWS] },
  {
    name: 'scales in front of a Transpose',
    add: weight({ shape: [COLUMNS, ROWS], scale: scales([COLUMNS, 1]), behind: turn }),
    scale: [COLUMNS],
  },
  {
    name: 'scales behind a Transpose of codes',
    add: weight({ shape: [COLUMNS, ROWS], front: turn, scale: scales([COLUMNS]) }),
    scale: [COLUMNS],
  },
  {
    name: 'one scale behind a Reshape of codes',
    add: weight({ shape: [ROWS * COLUMNS], front: reshape, scale: one }),
    scale: [],
  },
  {
    name: 'scales behind a Reshape of codes, which stay a product',
    add: weight({ shape: [ROWS * COLUMNS], front: reshape, scale: scales([COLUMNS]) }),
    scale: [],
  },
  {
    name: 'a scale a value, which stays a product',
    add: weight({ scale: scales([ROWS, COLUMNS]) }),
    scale: [],
  },
  {
    name: 'a scale of both signs, which stays a product',
    add: weight({ scale: floats([], [-0.01]) }),
    scale: [],
  },
  { name: 'another zero point, which stays', add: weight({ zero: 3, scale: one }), scale: [] },
  { name: 'no scale', add: weight({}), scale: [] },
  { name: 'UINT8 around 128', add: weight({ dtype: 'uint8', zero: 128, scale: one }), scale: [] },
  {
    name: 'UINT8 around 100',
    add: weight({ dtype: 'uint8', zero: 100, scale: one }),
    scale: undefined,
    isUint8: true,
  },
];

const product = ({ add }: Weight) => {
  const g = new GraphBuilder('product');
  g.input('x', 'float32', [4, ROWS]);
  add(g);
  g.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['y'] });
  g.output('y', 'float32', [4, COLUMNS]);
  return g;
};
const feeds = { x: noise([4, ROWS], 1, 3) };

describe('stored codes behind a Cast', () => {
  it.each(weights)('$name: are found, and a DequantizeLinear reads them as INT8', async (each) => {
    for (const opset of [11, 17]) {
      const input = await written(product(each), { opset });
      expect(factsOfModel(input).findings.map(({ code }) => code)).toContain('quantized-cast');
      const { output, result, nodes, model } = await converted(input);
      expect(result.codesDequantized).toBe(each.scale === undefined ? 0 : 1);
      const [dequantize] = nodes.filter(({ opType }) => opType === 'DequantizeLinear');
      const stored = new Map(model.proto.graph?.initializer.map((tensor) => [tensor.name, tensor]));
      expect(stored.get(dequantize?.input[1] ?? '')?.dims.map(Number)).toEqual(each.scale);
      const codes = [...stored.values()].filter(({ dataType }) => dataType === (each.isUint8 ? 2 : 3));
      expect(codes).toHaveLength(1);
      expect(difference(await run(input, feeds), await run(output, feeds))).toBeLessThan(4e-3);
      if (each.scale !== undefined)
        expect(factsOfModel(output).findings.map(({ code }) => code)).not.toContain('quantized-cast');
    }
  });

  it('read twice get a DequantizeLinear each, and the other values of the graph stay', async () => {
    const g = product({ ...weights[0]!, add: weight({ scale: one }) });
    g.node('Cast', { inputs: ['codes'], outputs: ['plain'], attributes: { to: a.int(1) } });
    g.output('plain', 'float32', [ROWS, COLUMNS]);
    const input = await written(g);
    const { output, result } = await converted(input);
    expect(result.codesDequantized).toBe(2);
    expect(difference(await run(input, feeds), await run(output, feeds))).toBeLessThan(4e-3);
  });
});

describeWith('toolchain', 'TensorRT-RTX builds what it rejects without', (libraries) => {
  beforeAll(async () => {
    await buildAddon({ say: () => {} });
  });

  it.each(
    verbs(
      weights.filter(({ scale }) => scale !== undefined),
      3,
    ),
  )('$name', async (each) => {
    const model = { graph: () => product(each), feeds };
    expect(await builtBytes(model, 'fp16', libraries)).toBeGreaterThan(0);
  });
});
