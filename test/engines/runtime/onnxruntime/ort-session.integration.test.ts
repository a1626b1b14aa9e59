import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { openNodeModel } from '../../../../src/engines/runtime/onnxruntime/node-model.js';
import { openOrtSession } from '../../../../src/engines/runtime/onnxruntime/ort-session.js';
import { type AttributeValue, attribute, GraphBuilder } from '../../../../src/formats/onnx/index.js';
import { dtypes } from '../../../../src/formats/tensor/dtype.js';
import { float32Values, type Tensor } from '../../../../src/formats/tensor/tensor.js';
import { changeModel, moveOut } from '../../../support/bundle.js';
import { castTo, floats, ids, modelFile } from './models.js';

async function runOnce(path: string, inputs: Record<string, Tensor>) {
  const session = await openOrtSession(path, { threads: 1 });
  try {
    return { session, outputs: await session.run(new Map(Object.entries(inputs))) };
  } finally {
    await session.close();
  }
}

/** x * weight * 0.01 in one 16-bit type, end to end. */
const product = (dtype: 'float16' | 'bfloat16', weight: number) => (graph: GraphBuilder) => {
  graph.input('x', dtype, ['n', 2]);
  graph.initializer('w', floats(dtype, [2, 2], [weight, 0, 0, weight]));
  graph.initializer('small', floats(dtype, [], [0.01]));
  graph.node('MatMul', { inputs: ['x', 'w'], outputs: ['m'] });
  graph.node('Mul', { inputs: ['m', 'small'], outputs: ['y'] });
  graph.output('y', dtype, ['n', 2]);
};

describe('a session on ONNX Runtime', () => {
  it('runs named tensors, several times, and reports its bindings', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 3]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 3]);
    });
    const session = await openOrtSession(path, { threads: 1 });
    expect(session.backend).toMatch(/^ONNX Runtime \d+\.\d+/);
    expect(session.inputs).toEqual([{ name: 'x', dtype: 'float32', shape: ['n', 3] }]);
    for (const rows of [1, 4]) {
      const x = floats(
        'float32',
        [rows, 3],
        Array.from({ length: 3 * rows }, (_, i) => i - 2),
      );
      const y = (await session.run(new Map([['x', x]]))).get('y');
      expect(y?.shape).toEqual([rows, 3]);
      expect([...float32Values(y!)]).toEqual([...float32Values(x)].map((value) => Math.max(0, value)));
    }
    await session.close();
    await expect(session.run(new Map([['x', floats('float32', [1, 3], [1, 2, 3])]]))).rejects.toThrow();
  });

  it('computes the same bits wherever a message has the values', async () => {
    const x = floats(
      'float32',
      [9, 4],
      Array.from({ length: 36 }, (_, at) => 3 * Math.sin(1.7 * at)),
    );
    const sums = new Set<string>();
    for (const name of ['x', 'xx', 'xxx', 'xxxx', 'xxxxx', 'xxxxxxxxx']) {
      const path = await modelFile((graph) => {
        graph.input(name, 'float32', [9, 4]);
        graph.node('ReduceSum', {
          inputs: [name],
          outputs: ['y'],
          attributes: { keepdims: attribute.int(0) },
        });
        graph.output('y', 'float32', []);
      });
      const { outputs } = await runOnce(path, { [name]: x });
      sums.add(Buffer.from(outputs.get('y')!.bytes).toString('hex'));
    }
    expect(sums.size).toBe(1);
  });

  it.each(['zero point', 'output_dtype'])(
    'computes what is quantized to float8, its type by %s',
    async (by) => {
      const path = await modelFile(
        (graph) => {
          graph.input('x', 'float32', [1, 1, 1, 4]);
          graph.initializer('scale', floats('float32', [], [1]));
          const typed = by === 'zero point' ? ['zero'] : [];
          if (by === 'zero point')
            graph.initializer('zero', { dtype: 'float8_e4m3fn', shape: [], bytes: Uint8Array.of(0) });
          const attributes: Record<string, AttributeValue> = {};
          if (by === 'output_dtype') attributes.output_dtype = attribute.int(dtypes.float8_e4m3fn.onnx);
          const pair = (from: string, to: string) => {
            graph.node('QuantizeLinear', {
              inputs: [from, 'scale', ...typed],
              outputs: [`${to}_codes`],
              attributes,
            });
            graph.node('DequantizeLinear', { inputs: [`${to}_codes`, 'scale', ...typed], outputs: [to] });
          };
          graph.node('Relu', { inputs: ['x'], outputs: ['r'] });
          pair('r', 'a');
          graph.node('MaxPool', {
            inputs: ['a'],
            outputs: ['p'],
            attributes: { kernel_shape: attribute.ints([1, 1]) },
          });
          pair('p', 'y');
          graph.output('y', 'float32', [1, 1, 1, 4]);
        },
        { opset: by === 'zero point' ? 19 : 21 },
      );
      const { outputs } = await runOnce(path, { x: floats('float32', [1, 1, 1, 4], [-3, -1, 2, 17]) });
      expect([...float32Values(outputs.get('y')!)]).toEqual([0, 0, 2, 16]);
      const onNode = await openNodeModel({
        kind: 'open',
        modelPath: path,
        threads: 1,
        isFloat8: true,
        native: null,
      });
      const call = onNode.bind([['x', floats('float32', [1, 1, 1, 4], [-3, -1, 2, 17])]], {
        state: [],
        resident: false,
      });
      await call.run();
      expect([...float32Values(call.outputs()[0]![1])]).toEqual([0, 0, 2, 16]);
    },
  );

  // Of a few values inside the file's messages, and of as many as are streamed.
  it.each([
    ['float32', [3, 5]],
    ['float16', [3, 5]],
    ['float32', [64, 65]],
  ] as const)('computes with stored FP4 weights of %s scales, %j', async (dtype, shape) => {
    const count = shape[0] * shape[1];
    const codes = Uint8Array.from({ length: count }, (_, index) => index % 16);
    const bytes = Uint8Array.from(
      { length: Math.ceil(count / 2) },
      (_, pair) => codes[2 * pair]! | ((codes[2 * pair + 1] ?? 0) << 4),
    );
    const path = await modelFile(
      (graph) => {
        graph.input('x', dtype, shape);
        graph.initializer('codes', { dtype: 'float4_e2m1fn', shape, bytes });
        graph.initializer('scale', floats(dtype, [], [0.25]));
        graph.node('DequantizeLinear', { inputs: ['codes', 'scale'], outputs: ['w'] });
        graph.node('Add', { inputs: ['x', 'w'], outputs: ['y'] });
        graph.output('y', dtype, shape);
      },
      { opset: 23 },
    );
    const zeros = floats(
      dtype,
      shape,
      Array.from({ length: count }, () => 0),
    );
    const { outputs } = await runOnce(path, { x: zeros });
    const magnitudes = [0, 0.5, 1, 1.5, 2, 3, 4, 6];
    const expected = [...codes].map((code) => 0.25 * magnitudes[code & 7]! * (code & 8 ? -1 : 1) + 0);
    expect([...float32Values(outputs.get('y')!)]).toEqual(expected);
  });

  it('leaves stored FP4 weights that the body of a node reads, for which there is no kernel', async () => {
    const path = await modelFile(
      (graph) => {
        graph.input('x', 'float32', [2]);
        graph.initializer('codes', { dtype: 'float4_e2m1fn', shape: [2], bytes: Uint8Array.of(0x21) });
        graph.initializer('scale', floats('float32', [], [1]));
        graph.initializer('yes', { dtype: 'bool', shape: [], bytes: Uint8Array.of(1) });
        const branch = (name: string) => {
          const body = new GraphBuilder(name);
          body.node('DequantizeLinear', { inputs: ['codes', 'scale'], outputs: [`${name}_w`] });
          body.node('Add', { inputs: ['x', `${name}_w`], outputs: [`${name}_y`] });
          body.output(`${name}_y`, 'float32', [2]);
          return attribute.body(body);
        };
        const attributes = { then_branch: branch('then'), else_branch: branch('else') };
        graph.node('If', { inputs: ['yes'], outputs: ['y'], attributes });
        graph.output('y', 'float32', [2]);
      },
      { opset: 23 },
    );
    await expect(openOrtSession(path, { threads: 1 })).rejects.toMatchObject({
      code: 'TF_ONNXRUNTIME_FAILED',
    });
  });

  it.each(['float16', 'float32'] as const)(
    'rejects an ill-typed model, also one that %s everywhere would repair',
    async (w) => {
      const path = await modelFile((graph) => {
        graph.input('x', 'float16', ['n', 2]);
        graph.initializer('w', floats(w, [2, 2], [1, 0, 0, 1]));
        graph.node('MatMul', { name: 'mixed', inputs: ['x', 'w'], outputs: ['y'] });
        graph.output('y', w === 'float16' ? 'float32' : 'float16', ['n', 2]);
      });
      await expect(openOrtSession(path, { threads: 1 })).rejects.toMatchObject({
        code: 'TF_ONNX_GRAPH_INVALID',
        exitCode: 2,
      });
    },
  );

  it('takes shapes that are in another file, which ONNX Runtime itself does not', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', [2, 3]);
      graph.initializer('shape', ids([2], [3, 2]));
      graph.node('Reshape', { inputs: ['x', 'shape'], outputs: ['y'] });
      graph.output('y', 'float32', [3, 2]);
    });
    changeModel(path, ({ graph }) => moveOut(graph!.initializer[0]!, dirname(path), 'aside', 'shape'));
    const x = floats('float32', [2, 3], [1, 2, 3, 4, 5, 6]);
    const { outputs } = await runOnce(path, { x });
    expect([outputs.get('y')?.shape, [...float32Values(outputs.get('y')!)]]).toEqual([
      [3, 2],
      [1, 2, 3, 4, 5, 6],
    ]);
  });

  it.each([
    ['another name', { z: floats('float32', [1, 2], [1, 2]) }, /no input "z"; the inputs are x, i/],
    ['a missing tensor', { x: floats('float32', [1, 2], [1, 2]) }, /no tensor for the input "i"/],
    ['another type', { x: ids([1, 2], [1, 2]), i: ids([1], [0]) }, /x is float32, .* is int64/],
    ['another rank', { x: floats('float32', [2], [1, 2]), i: ids([1], [0]) }, /is \[n, 2\]; .* is \[2\]/],
    [
      'a symbol with two sizes',
      { x: floats('float32', [1, 2], [1, 2]), i: ids([3], [0, 0, 0]) },
      /\(n is 1\)/,
    ],
    [
      'fewer bytes than its shape needs',
      { x: { ...floats('float32', [1, 2], [1, 2]), bytes: new Uint8Array(4) }, i: ids([1], [0]) },
      /x of shape \[1, 2\] and type float32 needs 8 bytes, .* has 4/,
    ],
  ])('rejects %s by name', async (_case, inputs, message) => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 2]);
      graph.input('i', 'int64', ['n']);
      graph.node('Gather', { inputs: ['x', 'i'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    });
    await expect(runOnce(path, inputs as unknown as Record<string, Tensor>)).rejects.toThrow(
      expect.objectContaining({ code: 'TF_SESSION_INPUT', message: expect.stringMatching(message) }),
    );
  });

  it('rejects an INT4 output before it can kill a process', async () => {
    const path = await modelFile(
      (graph) => {
        graph.input('x', 'float32', [4]);
        graph.node('Cast', { inputs: ['x'], outputs: ['y'], attributes: castTo('int4') });
        graph.output('y', 'int4', [4]);
      },
      { opset: 21 },
    );
    await expect(openOrtSession(path)).rejects.toThrow(/output y of .* is int4/);
  });

  it('passes on what ONNX Runtime states of a model it cannot run', async () => {
    const path = await modelFile(
      (graph) => {
        graph.input('x', 'float32', [1]);
        graph.node('Mystery', { inputs: ['x'], outputs: ['y'], domain: 'ai.nobody' });
        graph.output('y', 'float32', [1]);
      },
      { opsets: { 'ai.nobody': 1 } },
    );
    await expect(openOrtSession(path)).rejects.toThrow(
      expect.objectContaining({
        code: 'TF_ONNXRUNTIME_FAILED',
        message: expect.stringMatching(/Mystery|ai\.nobody/),
      }),
    );
  });

  it('does not blame the file for a kernel that ONNX Runtime lacks', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float64', [1, 3, 8]);
      graph.node('LRN', { inputs: ['x'], outputs: ['y'], attributes: { size: attribute.int(3) } });
      graph.output('y', 'float64', [1, 3, 8]);
    });
    await expect(openOrtSession(path)).rejects.toMatchObject({
      code: 'TF_ONNXRUNTIME_FAILED',
      remedy: expect.stringContaining('kernel'),
    });
  });

  it('names the file of the user where a copy is what it loads', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float16', [1, 2]);
      graph.initializer('axes', ids([1], [7]));
      graph.node('Unsqueeze', { inputs: ['x', 'axes'], outputs: ['y'] });
      graph.output('y', 'float16', null);
    });
    const rejection = expect.objectContaining({
      code: 'TF_ONNXRUNTIME_FAILED',
      message: expect.not.stringMatching(/trtforge-model-|given\.onnx.*model-\d/),
    });
    await expect(openOrtSession(path)).rejects.toThrow(rejection);
    await expect(openOrtSession(path)).rejects.toThrow(path);
    await expect(openOrtSession(path, { givenModel: 'given.onnx' })).rejects.toThrow('given.onnx');
  });

  it('stops a run that is cancelled', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 'n']);
      let value = 'x';
      for (let i = 0; i < 200; i++)
        value = graph.node('MatMul', { inputs: [value, 'x'], outputs: [`m${i}`] });
      graph.node('Identity', { inputs: [value], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 'n']);
    });
    const session = await openOrtSession(path, { threads: 1 });
    const x = floats(
      'float32',
      [1000, 1000],
      Array.from({ length: 1e6 }, () => 1e-3),
    );
    await expect(session.run(new Map([['x', x]]), { signal: AbortSignal.timeout(300) })).rejects.toThrow(
      expect.objectContaining({ code: 'TF_CANCELLED' }),
    );
    await session.close();
  });
});

describe('16-bit models are computed in float32 and rounded to their type after every step', () => {
  it('bfloat16, which ONNX Runtime has no arithmetic for', async () => {
    const path = await modelFile(product('bfloat16', 3), { opset: 22 });
    const { session, outputs } = await runOnce(path, { x: floats('bfloat16', [1, 2], [1, 333]) });
    expect(session.outputs[0]?.dtype).toBe('bfloat16');
    // 0.01 is 0.010009765625 in bfloat16; 999 rounds to 1000, and 10.009765625 to 10.
    expect([...float32Values(outputs.get('y')!)]).toEqual([0.030029296875, 10]);
  });

  it('float16: an overflow inside becomes infinity, as it does on a GPU', async () => {
    const path = await modelFile(product('float16', 3000));
    const { outputs } = await runOnce(path, { x: floats('float16', [1, 2], [1, 30]) });
    expect(outputs.get('y')).toMatchObject({ dtype: 'float16', shape: [1, 2] });
    const [fits, overflows] = float32Values(outputs.get('y')!);
    expect(fits).toBeCloseTo(30, 1);
    expect(overflows).toBe(Number.POSITIVE_INFINITY);
  });

  it('inside If bodies, captured values and constants too', async () => {
    const branch = (factor: number) => {
      const body = new GraphBuilder(`times${factor}`);
      body.node('Constant', {
        outputs: ['c'],
        attributes: { value: attribute.tensor(floats('float16', [], [factor])) },
      });
      body.node('Mul', { inputs: ['half', 'c'], outputs: ['scaled'] });
      body.output('scaled', 'float16', null);
      return body;
    };
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', ['n']);
      graph.input('large', 'bool', []);
      graph.node('Cast', { inputs: ['x'], outputs: ['half'], attributes: castTo('float16') });
      graph.node('If', {
        inputs: ['large'],
        outputs: ['chosen'],
        attributes: { then_branch: attribute.body(branch(60000)), else_branch: attribute.body(branch(2)) },
      });
      graph.node('Cast', { inputs: ['chosen'], outputs: ['y'], attributes: castTo('float32') });
      graph.output('y', 'float32', ['n']);
    });
    const flag = (value: number): Tensor => ({ dtype: 'bool', shape: [], bytes: Uint8Array.of(value) });
    const x = floats('float32', [2], [1, 2]);
    const small = await runOnce(path, { x, large: flag(0) });
    expect([...float32Values(small.outputs.get('y')!)]).toEqual([2, 4]);
    const large = await runOnce(path, { x, large: flag(1) });
    expect([...float32Values(large.outputs.get('y')!)]).toEqual([60000, Number.POSITIVE_INFINITY]);
  });

  it('leaves no rounded copy behind', () => {
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('trtforge-rounded-'))).toEqual([]);
  });
});

describe('the process of a session on the CPU', () => {
  const children = () => {
    const paths = readdirSync('/proc/self/task').map((thread) => `/proc/self/task/${thread}/children`);
    return paths.flatMap((path) => readFileSync(path, 'latin1').split(' ')).filter((pid) => pid !== '');
  };
  /**
   * Sessions that no test before has left a process for, and the processes that they start. Those that wait for another
   * model end first: no more than three may wait.
   */
  async function fresh(name: string) {
    await vi.waitFor(() => expect(children()).toEqual([]), { timeout: 240_000, interval: 100 });
    const environment = { ...process.env, TEST_OF_SESSIONS: name };
    return {
      open: (path: string, more: NodeJS.ProcessEnv = {}) =>
        openOrtSession(path, { threads: 1, environment: { ...environment, ...more } }),
      started: children,
    };
  }
  const relu = () =>
    modelFile((graph) => {
      graph.input('x', 'float32', ['n', 3]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 3]);
    });
  const rows = (count: number) => new Map([['x', floats('float32', [count, 3], Array(3 * count).fill(1))]]);

  it('serves the next one, whose peak memory is its own', async () => {
    const { open, started } = await fresh('next');
    const path = await relu();
    const large = await open(path);
    await large.run(rows(3_000_000));
    const [peak, process] = [large.peakBytes()!, started()];
    await large.close();
    expect(large.peakBytes()).toBeNull();
    await expect(large.run(rows(1))).rejects.toMatchObject({ code: 'TF_SESSION_CLOSED' });
    await using small = await open(path);
    await small.run(rows(1));
    expect(process).toHaveLength(1);
    expect(started()).toEqual(process);
    expect(small.peakBytes()!).toBeLessThan(peak);
  });

  it('serves no other after a failure, nor in another environment', async () => {
    const { open, started } = await fresh('failure');
    const reshaping = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 3]);
      graph.initializer('to', ids([2], [2, 2]));
      graph.node('Reshape', { inputs: ['x', 'to'], outputs: ['y'] });
      graph.output('y', 'float32', [2, 2]);
    });
    const failing = await open(reshaping);
    const first = started();
    await expect(failing.run(rows(1))).rejects.toMatchObject({ code: 'TF_ONNXRUNTIME_FAILED' });
    await failing.close();
    await using next = await open(await relu());
    await next.run(rows(1));
    const second = started();
    expect(second.filter((pid) => !first.includes(pid))).toHaveLength(1);
    await using other = await open(await relu(), { OTHER: '1' });
    await other.run(rows(1));
    expect(started().filter((pid) => !second.includes(pid))).toHaveLength(1);
  });

  it('is another for each model that draws random numbers, which are others then', async () => {
    const { open } = await fresh('random');
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 3]);
      graph.node('RandomUniformLike', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', ['n', 3]);
    });
    const draw = async () => {
      await using session = await open(path);
      return [...float32Values((await session.run(rows(2))).get('y')!)];
    };
    expect(await draw()).not.toEqual(await draw());
  });
});
