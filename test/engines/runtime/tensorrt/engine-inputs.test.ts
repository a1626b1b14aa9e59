import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkInputs, checkTensor, mapOf } from '../../../../src/engines/runtime/check-inputs.js';
import { type CacheEntry, CallCache } from '../../../../src/engines/runtime/tensorrt/call-cache.js';
import {
  callShapeFrom,
  callShapeOf,
  chooseProfile,
  fits,
} from '../../../../src/engines/runtime/tensorrt/choose-profile.js';
import type { EngineBinding } from '../../../../src/engines/runtime/tensorrt/engine-interface.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { type Dtype, dtypes, elementCount, packedBytes } from '../../../../src/formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../../../src/formats/tensor/tensor.js';

const dims = fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 4 });
const dtype = fc.constantFrom(
  ...(Object.keys(dtypes) as Dtype[]).filter((name) => dtypes[name].tensorrt !== null),
);

/** An input with some dimensions open, profiles that take at least the shape it was drawn with, and that shape. */
const drawn = fc
  .tuple(dtype, dims, fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }), fc.integer({ min: 1, max: 3 }))
  .map(([type, shape, open, profiles]) => {
    const wide = shape.map((size, axis) => (open[axis] === true ? size + 2 : size));
    const input: Omit<EngineBinding, 'name'> = {
      dtype: type,
      shape: shape.map((size, axis) => (open[axis] === true ? null : size)),
      hostValues: false,
      profiles: Array.from({ length: profiles }, () => ({
        min: shape.map((size, axis) => (open[axis] === true ? 0 : size)),
        opt: shape,
        max: wide,
      })),
    };
    return { input, shape };
  });
const engine = fc.array(drawn, { minLength: 1, maxLength: 4 }).map((all) => ({
  inputs: all.map(
    ({ input }, at): EngineBinding => ({
      ...input,
      name: `t${at}`,
      profiles: input.profiles.slice(0, Math.min(...all.map((each) => each.input.profiles.length))),
    }),
  ),
  shapes: all.map(({ shape }) => shape),
}));

const tensor = (type: Dtype, shape: readonly number[]): Tensor => ({
  dtype: type,
  shape,
  bytes: new Uint8Array(packedBytes(type, elementCount(shape))),
});
const tensorsOf = (inputs: readonly EngineBinding[], shapes: readonly (readonly number[])[]) =>
  new Map(inputs.map(({ name, dtype: type }, at) => [name, tensor(type, shapes[at]!)]));

function codeOf(action: () => unknown): string | null {
  try {
    action();
    return null;
  } catch (error) {
    if (error instanceof TrtforgeError) return error.code;
    throw error;
  }
}

describe('input checks', () => {
  it('take what the bindings describe, and recognise it again', () =>
    fc.assert(
      fc.property(engine, ({ inputs, shapes }) => {
        const tensors = tensorsOf(inputs, shapes);
        const call = callShapeOf(inputs, tensors);
        expect(call.dims).toEqual(shapes);
        expect(fits(inputs, call, tensors)).toBe(true);
        expect(chooseProfile(inputs, call)).toBeLessThan(inputs[0]!.profiles.length);
        expect(callShapeFrom(inputs, new Map(inputs.map(({ name }, at) => [name, shapes[at]!])))).toEqual(
          call,
        );
      }),
    ));

  const spoil = fc.constantFrom('dtype', 'rank', 'size', 'bytes', 'missing', 'extra');

  it('reject anything else with our error, and never recognise it', () =>
    fc.assert(
      fc.property(engine, spoil, fc.nat(), ({ inputs, shapes }, how, seed) => {
        const tensors = tensorsOf(inputs, shapes);
        const call = callShapeOf(inputs, tensors);
        const at = seed % inputs.length;
        const { name, dtype: type } = inputs[at]!;
        const given = tensors.get(name)!;
        if (how === 'dtype') tensors.set(name, tensor(type === 'int8' ? 'float32' : 'int8', given.shape));
        if (how === 'rank') tensors.set(name, tensor(type, [...given.shape, 1]));
        if (how === 'size')
          tensors.set(
            name,
            tensor(
              type,
              given.shape.map((size) => size + 7),
            ),
          );
        if (how === 'bytes') tensors.set(name, { ...given, bytes: new Uint8Array(given.bytes.length + 1) });
        if (how === 'missing') tensors.delete(name);
        if (how === 'extra') tensors.set('another', given);
        if (how === 'size' && given.shape.length === 0) return;
        expect(fits(inputs, call, tensors)).toBe(false);
        const code = codeOf(() => chooseProfile(inputs, callShapeOf(inputs, tensors)));
        expect(['TF_SESSION_INPUT', 'TF_PROFILE_MISFIT']).toContain(code);
      }),
    ));
});

describe('the profile of a call', () => {
  const ranges = fc.array(fc.tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 20 })), {
    minLength: 1,
    maxLength: 5,
  });

  it('takes the shape, and no profile that takes it is smaller', () =>
    fc.assert(
      fc.property(ranges, fc.integer({ min: 1, max: 45 }), (spans, size) => {
        const profiles = spans.map(([min, more]) => ({ min: [min, 3], opt: [min, 3], max: [min + more, 3] }));
        const input: EngineBinding = {
          name: 'x',
          dtype: 'float32',
          shape: [null, 3],
          hostValues: false,
          profiles,
        };
        const call = { dims: [[size, 3]], values: [null] };
        const taking = spans.filter(([min, more]) => size >= min && size <= min + more);
        if (taking.length === 0) {
          expect(codeOf(() => chooseProfile([input], call))).toBe('TF_PROFILE_MISFIT');
          return;
        }
        const [min, more] = spans[chooseProfile([input], call)]!;
        expect(size >= min && size <= min + more).toBe(true);
        expect(min + more).toBe(Math.min(...taking.map(([low, rest]) => low + rest)));
      }),
    ));

  it('is rejected when each takes some inputs and none takes all, with every range that does not fit', () => {
    const of = (name: string, first: number, second: number): EngineBinding => ({
      name,
      dtype: 'float32',
      shape: [null],
      hostValues: false,
      profiles: [first, second].map((size) => ({ min: [size], opt: [size], max: [size] })),
    });
    const inputs = [of('a', 1, 2), of('b', 1, 2)];
    expect(() => chooseProfile(inputs, { dims: [[1], [2]], values: [null, null] })).toThrow(
      'No profile takes all inputs together: b has the shape [2], but profile 0 takes [1], profile 1 takes [2]; a has the shape [1], but profile 0 takes [1], profile 1 takes [2].',
    );
  });
});

describe('the calls that are kept', () => {
  it('stay within their bounds whatever is asked for; busy ones and the last one stay', () =>
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(12), fc.integer({ min: 1, max: 9 }), fc.boolean()), { maxLength: 60 }),
        (asked) => {
          const cache = new CallCache<CacheEntry & { readonly key: number }>({ count: 4, bytes: 20 });
          const live = new Set<object>();
          for (const [key, bytes, busy] of asked) {
            if (cache.find((entry) => entry.key === key) !== undefined) continue;
            const entry = { key, bytes, busy, discard: () => void live.delete(entry) };
            live.add(entry);
            cache.add(entry);
            expect(live.has(entry)).toBe(true);
            expect(cache.size).toBe(live.size);
          }
          const kept = [...live] as { bytes: number; busy: boolean }[];
          const idle = kept.filter((entry) => !entry.busy);
          const excess = kept.length > 4 || kept.reduce((sum, { bytes }) => sum + bytes, 0) > 20;
          expect(excess && idle.length > 1).toBe(false);
        },
      ),
    ));
});

describe('what is not a tensor', () => {
  const x = tensor('float32', [2, 2]);
  const input: EngineBinding = {
    name: 'x',
    dtype: 'float32',
    shape: [2, 2],
    hostValues: false,
    profiles: [],
  };
  const inputs = [input];
  const shape = callShapeOf(inputs, new Map([['x', x]]));
  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a number', 7],
    ['a shape alone', { shape: [2, 2] }],
    ['no shape', { dtype: 'float32', bytes: x.bytes }],
    ['a shape that is no array', { ...x, shape: 2 }],
    ['a shape of other things', { ...x, shape: [2n, 2n] }],
    ['no bytes', { ...x, bytes: undefined }],
    ['bytes that are no view', { ...x, bytes: { length: 16 } }],
    ['bytes of another view', { ...x, bytes: new Float32Array(4) }],
  ])('%s is TF_SESSION_INPUT wherever a tensor is taken, and never fits a call', (_case, value) => {
    const given = new Map([['x', value as Tensor]]);
    expect(fits(inputs, shape, given)).toBe(false);
    expect(codeOf(() => callShapeOf(inputs, given))).toBe('TF_SESSION_INPUT');
    expect(codeOf(() => checkTensor(input, value as Tensor))).toBe('TF_SESSION_INPUT');
    const declared = { name: 'x', dtype: 'float32' as const, shape: null };
    expect(codeOf(() => checkInputs([declared], given))).toBe('TF_SESSION_INPUT');
    // A call that is prepared needs no tensor of an input whose shape is fixed.
    if (value !== undefined) expect(codeOf(() => callShapeFrom(inputs, given))).toBe('TF_SESSION_INPUT');
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a tensor', x],
    ['a list', [x]],
    ['text', 'x'],
  ])('%s in place of tensors by name is TF_SESSION_INPUT', (_case, value) => {
    expect(codeOf(() => mapOf('inputs', value as NamedTensors))).toBe('TF_SESSION_INPUT');
  });
});
