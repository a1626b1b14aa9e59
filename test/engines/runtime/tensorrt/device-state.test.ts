import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openEngineSession } from '../../../../src/engines/runtime/tensorrt/engine-session.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { float32Values } from '../../../../src/formats/tensor/tensor.js';
import { FakeAddon, type FakeSpec, streaming, tensor } from '../../../fakes/addon.js';
import { sampleToolchain, writeSample } from '../../../support/sample-engine.js';
import { floats } from '../onnxruntime/models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-state-'));
const planPath = writeSample(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function open(spec: FakeSpec = streaming) {
  const addon = new FakeAddon(spec);
  const session = await openEngineSession(planPath, { addon, toolchain: sampleToolchain });
  return { addon, session };
}

/** What `streaming` computes, in the same precision. */
function reference() {
  let state = new Float32Array(4);
  return (x: readonly number[]): number[] => {
    const y = state.map((value, at) => Math.fround(value + x[at]!));
    state = state.map((value, at) => Math.fround(0.5 * value + x[at]!));
    return [...y];
  };
}

const chunk = (step: number) => [step, -step, step % 3, 0.25];

describe('a state that stays on the device', () => {
  it.each(['runSync', 'run'] as const)(
    'is fed from %s to the next for 300 steps, in the same arrays',
    async (how) => {
      const { session } = await open();
      const state = session.state({ state: 'next' });
      const step = await session.prepare({}, { state });
      expect(Object.keys(step.inputs)).toEqual(['x']);
      expect(Object.keys(step.outputs)).toEqual(['y']);
      const [x, y] = [step.inputs.x, step.outputs.y] as [Float32Array, Float32Array];
      const expected = reference();
      for (let at = 0; at < 300; at++) {
        x.set(chunk(at));
        await step[how]();
        expect([...y]).toEqual(expected(chunk(at)));
      }
      expect(state.steps).toBe(300);
      await session.close();
    },
  );

  it('a call that is closed in mid-run keeps the arrays that the run copies from and to', async () => {
    const { addon, session } = await open();
    const state = session.state({ state: 'next' });
    const step = await session.prepare({}, { state });
    const closed = () => addon.log.filter((each) => each === 'close call').length;
    await step.run();
    let end = () => {};
    addon.runLasts = new Promise<void>((resolve) => {
      end = resolve;
    });
    const running = step.run();
    await new Promise(setImmediate);
    step.close();
    expect(closed()).toBe(0);
    end();
    await running;
    expect(closed()).toBe(2);
    await session.close();
  });

  it('runs that are asked for at once keep their order', async () => {
    const { addon, session } = await open();
    addon.runMs = 2;
    const state = session.state({ state: 'next' });
    const step = await session.prepare({}, { state });
    (step.inputs.x as Float32Array).set([1, 1, 1, 1]);
    const runs = Array.from({ length: 10 }, () => step.run());
    expect(() => step.runSync()).toThrow(/while other work on the same state is under way/);
    await Promise.all(runs);
    expect(float32Values(await state.read('state'))[0]).toBeCloseTo(2 - 2 ** -9);
    await session.close();
  });

  it('is read, written and reset', async () => {
    const { session } = await open();
    const state = session.state({ state: 'next' });
    expect(state.tensors).toMatchObject([
      { input: 'state', output: 'next', dtype: 'float32', shape: [4], bytes: 16 },
    ]);
    const step = await session.prepare({}, { state });
    const y = step.outputs.y as Float32Array;
    for (const turns of [0, 1, 2]) {
      for (let turn = 0; turn < turns; turn++) step.runSync();
      await state.write('state', floats('float32', [4], [1, 2, 3, 4]));
      expect([...float32Values(await state.read('state'))]).toEqual([1, 2, 3, 4]);
      (step.inputs.x as Float32Array).fill(10);
      step.runSync();
      expect([...y]).toEqual([11, 12, 13, 14]);
      expect([...float32Values(await state.read('state'))]).toEqual([10.5, 11, 11.5, 12]);
      await state.reset();
      expect(state.steps).toBe(0);
      expect([...float32Values(await state.read('state'))]).toEqual([0, 0, 0, 0]);
    }
    await session.close();
  });

  it('is shared by calls of other shapes: what one leaves the other goes on with', async () => {
    const { session } = await open();
    const state = session.state({ state: 'next' });
    const one = await session.prepare({}, { state });
    (one.inputs.x as Float32Array).fill(1);
    one.runSync();
    const two = await session.prepare({}, { state });
    (two.inputs.x as Float32Array).fill(0);
    two.runSync();
    expect([...(two.outputs.y as Float32Array)]).toEqual([1, 1, 1, 1]);
    one.runSync();
    expect([...(one.outputs.y as Float32Array)]).toEqual([1.5, 1.5, 1.5, 1.5]);
    await session.close();
  });

  it('a run that fails leaves it where it was', async () => {
    const { addon, session } = await open();
    const state = session.state({ state: 'next' });
    const step = await session.prepare({}, { state });
    (step.inputs.x as Float32Array).fill(1);
    step.runSync();
    addon.failures.set('run', new TrtforgeError('TF_RUN_FAILED', 'an illegal address'));
    expect(() => step.runSync()).toThrow('an illegal address');
    await expect(step.run()).rejects.toThrow('an illegal address');
    addon.failures.clear();
    expect(state.steps).toBe(1);
    step.runSync();
    expect([...(step.outputs.y as Float32Array)]).toEqual([2, 2, 2, 2]);
    await session.close();
  });

  it('gives its memory back with itself, or with the session', async () => {
    const { addon, session } = await open();
    const [first, second] = [session.state({ state: 'next' }), session.state({ state: 'next' })];
    expect(addon.live).toBe(4);
    first.close();
    await expect(first.read('state')).rejects.toThrow(/after it was closed/);
    await session.close();
    expect(addon.live).toBe(0);
    await expect(second.reset()).rejects.toThrow(/after it was closed/);
  });

  it('belongs to one session', async () => {
    const [one, two] = [await open(), await open()];
    const state = one.session.state({ state: 'next' });
    await expect(two.session.prepare({}, { state })).rejects.toThrow(/another session/);
    await Promise.all([one.session.close(), two.session.close()]);
  });

  const odd: FakeSpec = {
    tensors: [
      tensor('a', 'input', [2]),
      tensor('b', 'input', [-1, 2], { profiles: [{ min: [1, 2], opt: [2, 2], max: [8, 2] }] }),
      tensor('h', 'input', [1], { dtype: 'int32', location: 'host' }),
      tensor('same', 'output', [2]),
      tensor('wider', 'output', [3]),
      tensor('half', 'output', [2], { dtype: 'float16' }),
      tensor('grown', 'output', [-1, 2]),
      tensor('count', 'output', [1], { dtype: 'int32' }),
    ],
    outputShape: (name, shapes) =>
      name === 'grown' ? [(shapes.get('b')?.shape[0] ?? 0) + 1, 2] : name === 'wider' ? [3] : [2],
    kernel: () => {},
  };

  it.each<[string, Record<string, string>, Record<string, number[]>, RegExp]>([
    ['an input that is not there', { z: 'same' }, {}, /no input z/],
    ['an output that is not there', { a: 'z' }, {}, /no output z/],
    ['another dtype', { a: 'half' }, {}, /one is float16, the other float32/],
    ['another shape', { a: 'wider' }, {}, /one is \[3\], the other \[2\]/],
    ['an open shape', { b: 'grown' }, {}, /shape must be passed/],
    ['a shape that does not fit', { b: 'grown' }, { b: [2, 3] }, /one is|b is/],
    ['a tensor that is read on the host', { h: 'count' }, {}, /read on the host/],
  ])('%s cannot be fed back', async (_, pairs, shapes, message) => {
    const { addon, session } = await open(odd);
    expect(() => session.state(pairs, shapes)).toThrow(message);
    expect(addon.live).toBe(0);
    await session.close();
  });

  it('an output that would be larger than its memory is rejected before the library writes it', async () => {
    const { addon, session } = await open(odd);
    const state = session.state({ b: 'grown' }, { b: [2, 2] });
    const h = { dtype: 'int32', shape: [1], bytes: new Uint8Array(4) } as const;
    await expect(session.prepare({ h }, { state })).rejects.toThrow(/grown is \[3, 2\]/);
    expect(addon.log.filter((line) => line.startsWith('prepare'))).toEqual([]);
    await session.close();
  });
});
