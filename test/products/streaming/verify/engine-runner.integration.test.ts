import { describe, expect, it } from 'vitest';
import type {
  EngineBinding,
  EngineSession,
  EngineState,
  PreparedCall,
} from '../../../../src/engines/runtime/tensorrt/engine-interface.js';
import { float32Values, type NamedTensors, type Tensor } from '../../../../src/formats/tensor/tensor.js';
import { engineRunner } from '../../../../src/products/streaming/verify/engine-runner.js';
import { floats } from '../../../engines/runtime/onnxruntime/models.js';

const binding = (
  name: string,
  shape: EngineBinding['shape'],
  more: Partial<EngineBinding> = {},
): EngineBinding => ({
  name,
  dtype: 'float32',
  shape,
  hostValues: false,
  profiles: [],
  ...more,
});

/** `y = x + h`, `h_out = h + 1`, in memory: what the runner asks of a session, with a log of it. */
function fakeSession(state: Partial<EngineBinding> = {}, out: EngineBinding['shape'] = [2]) {
  const log: string[] = [];
  const held = { h: floats('float32', [2], [0, 0]) };
  const device: EngineState = {
    tensors: [{ input: 'h', output: 'h_out', dtype: 'float32', shape: [2], bytes: 8 }],
    steps: 0,
    reset: async () => {},
    read: async () => ({ ...held.h, bytes: held.h.bytes.slice() }),
    write: async (name, tensor) => {
      log.push(`write ${name}`);
      held.h.bytes.set(tensor.bytes);
    },
    close: () => log.push('close state'),
  };
  const prepare: EngineSession['prepare'] = async (shapes, options = {}) => {
    const entries = [...(shapes as ReadonlyMap<string, readonly number[] | Tensor>)];
    log.push(
      `prepare ${entries.map(([name, shape]) => `${name}[${shape}]`).join(' ')}${options.state ? ' state' : ''}`,
    );
    const inputs = new Map([
      ['x', floats('float32', [2], [0, 0])],
      ['h', options.state ? held.h : floats('float32', [2], [0, 0])],
    ]);
    const outputs = new Map([
      ['y', floats('float32', [2], [0, 0])],
      ['h_out', floats('float32', [2], [0, 0])],
    ]);
    const run = async () => {
      const [x, h] = [float32Values(inputs.get('x')!), float32Values(inputs.get('h')!)];
      const [y, next] = [float32Values(outputs.get('y')!), float32Values(outputs.get('h_out')!)];
      for (let at = 0; at < 2; at++) {
        y[at] = x[at]! + h[at]!;
        next[at] = h[at]! + 1;
        if (options.state) h[at] = next[at]!;
      }
    };
    return {
      profile: 0,
      cudaGraph: true,
      cudaGraphFallback: null,
      inputs: {},
      outputs: {},
      runSync: () => {},
      run,
      input: (name) => inputs.get(name)!,
      output: (name) => outputs.get(name)!,
      close: () => log.push('close call'),
    } satisfies PreparedCall;
  };
  const session = {
    backend: 'fake',
    inputs: [binding('x', [2]), binding('h', [2], state)],
    outputs: [binding('y', [2]), binding('h_out', out)],
    prepare,
    state: () => device,
  };
  return { session: session as unknown as EngineSession, log };
}

const pairs = [{ input: 'h', output: 'h_out' }];
const x = (value: number): NamedTensors => new Map([['x', floats('float32', [2], [value, value])]]);
const h = (value: number): NamedTensors => new Map([['h', floats('float32', [2], [value, value])]]);
const first = (outputs: NamedTensors, name: string) => float32Values(outputs.get(name)!)[0];

describe('an engine stepped through a stream', () => {
  it('writes the state once and leaves it on the device; outputs fed back are read from there', async () => {
    const { session, log } = fakeSession();
    const runner = engineRunner(session, { state: pairs, keepState: true });
    expect(runner).toMatchObject({ keepsState: true, whyOnHost: null });
    const seen: (number | undefined)[][] = [];
    for (let step = 0; step < 3; step++) {
      const { outputs } = await runner.step(x(10), step === 0 ? h(5) : 'kept');
      seen.push([first(outputs, 'y'), first(outputs, 'h_out')]);
    }
    expect(seen).toEqual([
      [15, 6],
      [16, 7],
      [17, 8],
    ]);
    runner.close();
    expect(log).toEqual(['write h', 'prepare x[2] state', 'close call', 'close state']);
  });

  it('takes the state as an input where every step is given it', async () => {
    const { session, log } = fakeSession();
    const runner = engineRunner(session, { state: pairs, keepState: false });
    expect(runner.keepsState).toBe(false);
    for (const given of [3, 8])
      expect(first((await runner.step(x(1), h(given))).outputs, 'y')).toBe(1 + given);
    expect(log).toEqual(['prepare x[2] h[2]']);
    expect([...runner.calls[0]!.state.keys()]).toEqual(['h']);
  });

  it('keeps what a call was prepared for, though the reader writes the next chunk into the same Buffer', async () => {
    const runner = engineRunner(fakeSession().session, { state: pairs, keepState: false });
    const reader = Buffer.alloc(8);
    const readInto = (value: number): NamedTensors => {
      reader.set(x(value).get('x')!.bytes);
      return new Map([['x', { dtype: 'float32', shape: [2], bytes: reader }]]);
    };
    await runner.step(readInto(1), h(0));
    await runner.step(readInto(2), h(0));
    expect(first(runner.calls[0]!.inputs, 'x')).toBe(1);
  });

  it.each([
    ['comes out in another shape', {}, [3], /h_out is \[3\] and h is \[2\], so it must be filled up or cut/],
    ['is of another type', { dtype: 'float16' }, [2], /h_out is float32 and h is float16/],
    ['is read on the host', { hostValues: true }, [2], /the values of h are read on the host/],
  ] as const)('reports why the state crosses the host: it %s', (_case, state, out, why) => {
    const runner = engineRunner(fakeSession(state, out).session, { state: pairs, keepState: true });
    expect(runner.keepsState).toBe(false);
    expect(runner.whyOnHost).toMatch(why);
  });

  it('rejects bytes of another length by name', async () => {
    const runner = engineRunner(fakeSession().session, { state: [], keepState: true });
    const wrong = new Map([['x', floats('float32', [3], [1, 2, 3])]]);
    await expect(runner.step(wrong, new Map())).rejects.toThrow(/^x is float32 of 12 bytes/);
  });
});
