import { describe, expect, it } from 'vitest';
import type { StatePair } from '../../../../src/formats/contract/contract.js';
import { randomStream } from '../../../../src/formats/tensor/random.js';
import { integerTensor } from '../../../../src/formats/tensor/tensor.js';
import {
  inspectFailure,
  type TensorDiagnosis,
} from '../../../../src/products/streaming/compare/diagnosis.js';
import { driftOf } from '../../../../src/products/streaming/compare/drift.js';
import { positionAxis } from '../../../../src/products/streaming/compare/region.js';
import { explain } from '../../../../src/products/streaming/verify/causes.js';
import { besideRuns, type RunNumbers } from '../../../../src/products/streaming/verify/compare-runs.js';
import { referenceInTf32 } from '../../../../src/products/streaming/verify/signs.js';
import { floats } from '../../../engines/runtime/onnxruntime/models.js';
import { evidenceOf, outcomeOf, parityOf } from '../evidence.js';

const SHAPE = [1, 8, 20, 6];
const COUNT = 8 * 20 * 6;
const stream = randomStream(3);
const reference = Array.from({ length: COUNT }, () => stream.normal());

/** A candidate off by what `error` gives for each place. */
const diagnose = (
  error: (place: { channel: number; position: number; k: number }, value: number) => number,
  values = reference,
  axis: number | null = 3,
) =>
  inspectFailure({
    tensor: 't',
    chunk: 5,
    reference: floats('float32', SHAPE, values),
    candidate: floats(
      'float32',
      SHAPE,
      values.map((value, at) => {
        const place = { channel: Math.floor(at / 120), position: Math.floor(at / 6) % 20, k: at % 6 };
        return value + error(place, value);
      }),
    ),
    axis,
    region: null,
  });
const why = (diagnosis: TensorDiagnosis) => explain(evidenceOf({ diagnoses: [diagnosis] }));
const causesOf = (...[error, values]: Parameters<typeof diagnose>) =>
  why(diagnose(error, values)).map(({ id }) => id);

describe('the first failure of a tensor, looked at closely', () => {
  it.each([
    ['the same everywhere', () => 0.01, ['uniform-error']],
    ['one end only', ({ k }: { k: number }) => (k === 5 ? 0.5 : 0.001), ['padding-side']],
  ] as const)('an error that is %s', (_case, error, expected) => {
    expect(causesOf(error)).toEqual(expect.arrayContaining([...expected]));
  });

  it('one value that stands out is no side, one end is', () => {
    const at = (position: number) => causesOf(({ k }) => (k === position ? 0.5 : 0));
    expect(at(2)).not.toContain('padding-side');
    expect(at(0)).toContain('padding-side');
    expect(at(5)).toContain('padding-side');
    expect(causesOf(({ k }) => (k >= 3 && k < 5 ? 0.5 : 0.001))).toContain('padding-side');
  });

  it('an error as large as the tensor everywhere is not put down to precision', () => {
    expect(causesOf((_place, value) => -2 * value)).not.toContain('uniform-error');
  });

  it('junk where the reference has no value', () => {
    const padded = reference.map((value, at) => (at % 6 === 5 ? 0 : value));
    expect(causesOf(({ k }) => (k === 5 ? 0.3 : 0.001), padded)).toContain('padding-junk');
  });

  it('frames that point another way are counted and named', () => {
    const found = diagnose(({ k }, value) => (k >= 4 ? -2 * value : 0.0001));
    expect(found.frames).toEqual({ axis: 3, isPosition: true, total: 6, diverged: [4, 5] });
    expect(why(found).find(({ id }) => id === 'frames-diverge')?.sentence).toMatch(
      /2 of 6 positions of axis 3.*4, 5/,
    );
  });

  it('where it is not known which axis positions lie along, nothing is reported of sides, padding or positions', () => {
    const oneEnd = diagnose(({ k }) => (k === 5 ? 0.5 : 0.001), reference, null);
    expect(why(oneEnd).map(({ id }) => id)).not.toContain('padding-side');
    expect(why(diagnose(() => 0.01, reference, null))).toEqual([]);
    const turned = why(diagnose(({ k }, value) => (k >= 4 ? -2 * value : 0.0001), reference, null));
    expect(turned.find(({ id }) => id === 'frames-diverge')?.sentence).toMatch(
      /2 of 6 indices of axis 3.*4, 5/,
    );
  });

  it('an error in one channel is found on its axis', () => {
    const found = diagnose(({ channel }) => (channel === 6 ? 0.05 : 0.0005));
    expect(found.place).toMatchObject({ axis: 1, size: 8, count: 1, indices: [6] });
    expect(why(found).find(({ id }) => id === 'error-is-local')?.sentence).toMatch(
      /1 of 8 indices of axis 1: 6/,
    );
  });

  it('positions that neither side has written yet do not count: rounding in the newest one is not on one side', () => {
    const newest = reference.map((value, at) => (at % 6 === 5 ? value : 0));
    const rounding = (_: unknown, value: number) => value * 1e-3;
    expect(causesOf(rounding, newest)).toEqual([]);
    expect(diagnose(rounding, newest)).toMatchObject({ slices: null, place: null });
    const half = reference.map((value, at) => (at % 6 >= 3 ? value : 0));
    expect(diagnose(rounding, half).slices).toMatchObject({ axis: 3, kind: 'uniform' });
  });

  it('looks only at valid positions for the sides of a state', () => {
    const values = reference.map((value, at) => (Math.floor(at / 6) % 20 < 5 ? value : 0));
    const found = inspectFailure({
      tensor: 't',
      chunk: 0,
      reference: floats('float32', SHAPE, values),
      candidate: floats(
        'float32',
        SHAPE,
        values.map((value) => (value === 0 ? 0 : value + 0.01)),
      ),
      axis: 2,
      region: { axis: 2, from: 0, to: 5 },
    });
    expect(found.slices).toMatchObject({ axis: 2, kind: 'uniform' });
  });

  it('junk beyond the valid positions is no position that points another way', () => {
    const found = inspectFailure({
      tensor: 't',
      chunk: 0,
      reference: floats('float32', SHAPE, reference),
      candidate: floats(
        'float32',
        SHAPE,
        reference.map((value, at) => (Math.floor(at / 6) % 20 < 5 ? value + 0.001 : -value)),
      ),
      axis: 2,
      region: { axis: 2, from: 0, to: 5 },
    });
    expect(found.frames).toEqual({ axis: 2, isPosition: true, total: 5, diverged: [] });
  });
});

describe('the axis that positions lie along', () => {
  const pair = {
    input: 'cache',
    output: 'cache_out',
    initial: 0,
    axis: null,
    capacity: null,
    padSide: 'right',
    fillValue: 0,
    validLength: 'cache_len',
  } as const;
  const lengths = { signal: null, result: 'y_len', stateIn: null, stateOut: 'cache_len' };
  const y = { name: 'y', dtype: 'float32', shape: ['B', 4, 3], role: 'result' } as const;
  const outputs = new Map([
    ['cache_len', integerTensor('int64', [2], [3, 5])],
    ['y_len', integerTensor('int64', [2], [3, 3])],
  ]);
  const filled = floats(
    'float32',
    [2, 4, 8, 6],
    Array.from({ length: 384 }, (_, at) => (Math.floor(at / 6) % 8 < 5 ? 1 : 0)),
  );
  const axisOf = (name: string, tensor = filled, state = [{ ...pair }] as readonly StatePair[]) =>
    positionAxis({ state, lengths, outputs: [y] }, name, tensor, outputs);

  it('is the one that the contract names for a state', () => {
    expect(axisOf('cache_out', filled, [{ ...pair, axis: 1 }])).toBe(1);
  });
  it('of a state without one is that which is filled as far as its length states', () => {
    expect(axisOf('cache_out')).toBe(2);
    expect(axisOf('cache_out', filled, [{ ...pair, validLength: null }])).toBeNull();
    expect(
      axisOf(
        'cache_out',
        floats(
          'float32',
          [2, 8, 8],
          Array.from({ length: 128 }, () => 1),
        ),
      ),
    ).toBeNull();
  });
  it('of a result is that which is as long as the result, else the open one', () => {
    const result = (shape: number[]) =>
      floats(
        'float32',
        shape,
        Array.from({ length: shape.reduce((a, b) => a * b) }, () => 1),
      );
    expect(axisOf('y', result([2, 4, 3]))).toBe(2);
    expect(axisOf('y', result([2, 4, 9]))).toBeNull();
    const open = { ...y, shape: ['B', 'T', 4] } as const;
    expect(positionAxis({ state: [], lengths, outputs: [open] }, 'y', result([2, 9, 4]), outputs)).toBe(1);
  });
});

describe('lengths of the state', () => {
  const found = (recorded: readonly number[], got: readonly number[]) =>
    explain(
      evidenceOf({
        cacheLengthRule: { capacity: 256, dropExtra: 2, drop: 3 },
        chunks: recorded.map((length, chunk) =>
          outcomeOf({ chunk, lengths: { recorded: length, got: got[chunk]! } }),
        ),
      }),
    );

  it('an engine that is stuck at the first chunk length grows as if every chunk were that long', () => {
    // Chunks of 41, then 57 frames give 1, 4, 7, 10; an engine whose profile ends at 41 goes on as if they were 41.
    const [stuck] = found([1, 4, 7, 10], [1, 2, 3, 4]);
    expect(stuck).toMatchObject({
      id: 'shape-not-taken',
      evidence: { advance: 1, wanted: [3], frames: [41, 48] },
    });
    expect(stuck?.sentence).toMatch(/41 to 48 frames long/);
  });

  it.each([
    ['the same lengths', [1, 4, 7, 10], [1, 4, 7, 10]],
    ['a full state', [250, 253, 256, 256], [250, 253, 256, 256]],
    ['lengths that follow no rule', [1, 4, 7, 10], [1, 2, 5, 6]],
  ])('nothing is reported of %s', (_case, recorded, got) => {
    expect(found(recorded, got)).toEqual([]);
  });
});

describe('tolerances that cannot fail', () => {
  const found = (...tensors: readonly { zerosPass: boolean; compared?: number }[]) =>
    explain(
      evidenceOf({
        chunks: tensors.map((more, chunk) =>
          outcomeOf({ chunk, tensors: [parityOf({ tensor: 'cache', ...more })] }),
        ),
      }),
    );
  it('are those that zeros pass in every chunk in which something was compared', () => {
    expect(found({ zerosPass: true }, { zerosPass: true })).toMatchObject([
      { id: 'tolerance-cannot-fail', evidence: { tensor: 'cache', chunks: 2 } },
    ]);
    expect(found({ zerosPass: true }, { zerosPass: false })).toEqual([]);
    expect(found({ zerosPass: false, compared: 0 })).toEqual([]);
  });
});

describe('a reference in TF32', () => {
  it.each([
    [null, [{ isStated: false }]],
    [true, [{ isStated: true }]],
    [false, []],
  ])('where its provenance states %s', (referenceTf32, found) => {
    const chunks = [0, 1, 2].map((chunk) =>
      outcomeOf({ chunk, tensors: [parityOf({ tensor: 'y', compared: 4, relativeRms: 4e-4 })] }),
    );
    const drifts = [driftOf('y', [1e-4, 1e-4, 1e-4])];
    const evidence = evidenceOf({ chunks, drifts, isFullFloat32: true, referenceTf32 });
    expect(referenceInTf32(evidence)).toMatchObject(found);
    expect(explain(evidence).map(({ id }) => id)).toEqual(found.map(() => 'reference-in-tf32'));
  });
});

describe('two runs', () => {
  const errors = [7.3e-4, 6.1e-4, 5.5e-4, 2.2e-4];
  const run = (label: string, more = errors) => ({ label, errors: more, failures: [], built: null });
  const between = (one: RunNumbers, other: RunNumbers) => besideRuns(one, [other])[0] ?? null;

  it('of different providers that agree to the last digit ran on the same one', () => {
    expect(between(run('cpu'), run('cuda'))).toMatchObject({ id: 'same-provider-twice' });
    expect(between(run('cpu'), run('cuda', errors.with(2, 5.5000001e-4)))).toBeNull();
    expect(between(run('cpu'), run('cpu'))).toBeNull();
    const ours = { ...run('ONNX Runtime 1.30.0 (CPU)'), failures: ['worded otherwise'] };
    expect(between(ours, run('CUDAExecutionProvider, CPUExecutionProvider'))?.id).toBe('same-provider-twice');
    expect(between(ours, run('CPUExecutionProvider'))).toBeNull();
    const noErrors = (label: string, failures: readonly string[]) => ({ ...run(label, []), failures });
    expect(between(noErrors('cpu', ['a', 'b', 'c']), noErrors('cuda', ['a', 'b', 'd']))).toBeNull();
    // Two files of others, passed with a run of our own.
    const engine = run('engine', [1e-7, 2e-7, 3e-7, 4e-7]);
    expect(besideRuns(engine, [run('cpu'), run('cuda')])).toMatchObject([
      { evidence: { labels: ['cpu', 'cuda'] } },
    ]);
    expect(between(run('cpu', [0, 0, 0, 0]), run('cuda', [0, 0, 0, 0]))).toBeNull();
  });

  it.each([
    ['with TF32 and without', {}, {}, 'tf32-is-the-cause'],
    ['of two models', {}, { model: 'b' }, undefined],
    ['of two precisions', {}, { precision: 'fp16' }, undefined],
    ['both with TF32', {}, { tf32: true }, undefined],
  ])('of engines %s', (_case, one, other, id) => {
    const built = { model: 'a', precision: 'as-is' };
    const on = { ...run('TensorRT'), built: { ...built, tf32: true, ...one } };
    const off = { ...run('TensorRT', [1e-7, 1e-7, 2e-7, 3e-7]), built: { ...built, tf32: false, ...other } };
    expect(besideRuns(on, [off])[0]?.id).toBe(id);
    expect(besideRuns(off, [on])[0]?.id).toBe(id);
    expect(between(on, { ...off, errors: [1e-7] })).toBeNull();
    expect(between(on, { ...off, built: null })).toBeNull();
  });

  it.each([
    [[9e-4, 1e-4], 'like-onnxruntime', 'note', 1.5],
    [[1e-4, 3e-4], 'like-onnxruntime', 'note', 0.5],
    [[6e-3, 1e-4], 'worse-than-onnxruntime', 'warning', 10],
  ] as const)('of an engine (%j) and ONNX Runtime: %s', (engine, id, severity, ratio) => {
    for (const label of [
      'ONNX Runtime 1.30.0 (CPU)',
      'CPUExecutionProvider',
      'CUDAExecutionProvider, CPUExecutionProvider',
    ]) {
      const [one, other] = [run('TensorRT 10.6.0.26 on H200', [...engine]), run(label, [6e-4, 2e-4])];
      for (const found of [between(one, other), between(other, one)]) {
        expect(found).toMatchObject({ id, severity });
        expect(found?.evidence.ratio).toBeCloseTo(ratio);
      }
    }
  });

  it('of an engine and ONNX Runtime show nothing over other chunks, or without an error of ONNX Runtime', () => {
    const engine = run('TensorRT 10.6.0.26 on H200');
    expect(between(engine, run('ONNX Runtime 1.30.0 (CPU)', [1e-4]))).toBeNull();
    expect(between(engine, run('ONNX Runtime 1.30.0 (CPU)', [0, 0, 0, 0]))).toBeNull();
  });

  it.each([
    [6.4e-4, 1.97e-7, 'tf32-is-the-cause'],
    [6.4e-4, 2e-4, 'tf32-is-part'],
    [6.4e-4, 6.3e-4, 'tf32-is-not-the-cause'],
    [6.4e-4, 0, 'tf32-is-the-cause'],
  ])('with TF32 (%d) and without (%d): %s', (on, off, id) => {
    const built = { model: 'a', precision: 'as-is' };
    const engine = (tf32: boolean, error: number) => ({
      ...run('TensorRT', [error]),
      built: { ...built, tf32 },
    });
    expect(between(engine(true, on), engine(false, off))?.id).toBe(id);
  });
});
