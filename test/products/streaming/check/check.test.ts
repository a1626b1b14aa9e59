import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Contract } from '../../../../src/formats/contract/contract.js';
import { readContract } from '../../../../src/formats/contract/file.js';
import type { RecordedBinding } from '../../../../src/formats/reference/decode.js';
import { checkDimensions } from '../../../../src/products/streaming/check/against-model.js';
import { contractFindings } from '../../../../src/products/streaming/check/check.js';
import { compareBindings } from '../../../../src/products/streaming/check/compare-bindings.js';
import { checkData } from '../../../../src/products/streaming/check/recorded-data.js';
import type { RecordedLengths } from '../../../../src/products/streaming/check/recorded-lengths.js';
import type { ModelBindings } from '../../../../src/products/streaming/contract/bindings.js';
import { scheduled, simulateLengths } from '../../../../src/products/streaming/contract/cache-length.js';

const contract = readContract(
  join(import.meta.dirname, '../../../fixtures/contracts/batch-first.contract.json'),
);

/** The model that the contract is of. */
const model: ModelBindings = { inputs: contract.inputs, outputs: contract.outputs };
type Binding = ModelBindings['inputs'][number];
const changed = (name: string, change: Partial<Binding>): ModelBindings => ({
  inputs: model.inputs.map((each) => (each.name === name ? { ...each, ...change } : each)),
  outputs: model.outputs.map((each) => (each.name === name ? { ...each, ...change } : each)),
});
const without = (name: string): ModelBindings => ({
  inputs: model.inputs.filter((each) => each.name !== name),
  outputs: model.outputs.filter((each) => each.name !== name),
});
/** A recording of a model: every symbol is a number. */
function recorded({ inputs, outputs }: ModelBindings): {
  inputs: RecordedBinding[];
  outputs: RecordedBinding[];
} {
  const sizes: Record<string, number> = { B: 1, T: 41, T_out: 3, C_out: 16, K_out: 4 };
  const numbers = ({ name, dtype, shape }: Binding): RecordedBinding => ({
    name,
    dtype: dtype ?? 'float32',
    shape: (shape ?? []).map((size) => (typeof size === 'number' ? size : (sizes[size ?? ''] ?? 1))),
  });
  return { inputs: inputs.map(numbers), outputs: outputs.map(numbers) };
}
const layerFirst: readonly (number | string)[] = [2, 'B', 16, 8];

describe('a model against a contract', () => {
  test('that fits has no findings', () => {
    expect(contractFindings(contract, model)).toEqual([]);
    expect(
      contractFindings(contract, {
        inputs: model.inputs.map((each) => ({
          ...each,
          shape: each.shape?.map((size) => (typeof size === 'string' ? null : size)) ?? null,
        })),
        outputs: model.outputs,
      }),
    ).toEqual([]);
  });

  test.each([
    ['an input that is missing', without('length'), 'missing-binding', 'input length'],
    ['an output under another name', without('encoded_lengths'), 'missing-binding', 'output encoded_lengths'],
    ['another dtype', changed('audio_signal', { dtype: 'float16' }), 'dtype', 'float16 in the model'],
    ['another rank', changed('length', { shape: ['B', 1] }), 'rank', '2 in the model'],
    ['another size', changed('audio_signal', { shape: ['B', 80, 'T'] }), 'dimension', '80 in the model'],
    [
      'the state layer-first',
      changed('cache_last_channel', { shape: layerFirst }),
      'layout',
      'layer-first in the model',
    ],
  ])('%s', (_, wrong, id, text) => {
    const [finding, ...more] = contractFindings(contract, wrong);
    expect(finding).toMatchObject({ id, wrong: 'undecided', severity: 'error' });
    expect(finding?.message).toContain(text);
    expect(more).toEqual([]);
  });

  test('int32 for int64 is a warning: TensorRT 8.6 makes it so', () => {
    expect(contractFindings(contract, changed('length', { dtype: 'int32' }))).toMatchObject([
      { id: 'dtype', severity: 'warning' },
    ]);
  });

  test('an engine whose profiles lack a size of the schedule', () => {
    const engine = changed('audio_signal', { profiles: [{ min: [1, 8, 41], max: [1, 8, 48] }] });
    const [finding, ...more] = contractFindings(contract, engine);
    expect(finding).toMatchObject({ id: 'schedule-outside-engine', wrong: 'model', about: 'audio_signal' });
    expect(finding?.message).toContain('takes 41 to 48 frames');
    expect(finding?.message).toContain('chunks of 57');
    expect(more).toEqual([]);
    const fixed = changed('audio_signal', { profiles: [{ min: [1, 8, 41], max: [1, 8, 41] }] });
    expect(contractFindings(contract, fixed)[0]?.message).toContain('takes 41 frames of');
  });
});

describe('sizes that stand in several places', () => {
  const promise = {
    id: 'one',
    tensor: 'encoder_output',
    kind: 'dimension-equals',
    axis: -1,
    sentence: 'One step.',
  } as const;
  const promising = (value: number): Contract => ({ ...contract, assertions: [{ ...promise, value }] });
  const shaped = (last: number | string) => changed('encoder_output', { shape: ['B', 8, last] });

  test('a promise about a dimension is checked against the model and the data', () => {
    expect(checkDimensions(promising(3), shaped(3), recorded(shaped(3)))).toEqual([]);
    expect(checkDimensions(promising(3), shaped('T_out'), null)).toEqual([]);
    const [found] = contractFindings(promising(1), shaped(3)).filter(
      ({ id }) => id === 'assertion-against-shape',
    );
    expect(found).toMatchObject({ wrong: 'undecided', about: 'encoder_output' });
    expect(found?.message).toMatch(/requires 1; the last dimension of encoder_output is 3 in the model\./);
    expect(checkDimensions(promising(1), shaped(3), recorded(shaped(3)))).toMatchObject([
      { wrong: 'contract' },
    ]);
    expect(checkDimensions(promising(3), shaped(3), recorded(shaped(4)))).toMatchObject([{ wrong: 'data' }]);
  });

  test('a capacity that is no size of the state is the contract’s fault', () => {
    const small = { ...contract, cacheLengthRule: { ...contract.cacheLengthRule!, capacity: 8 } };
    const [found] = contractFindings(small, model).filter(({ id }) => id === 'capacity-disagrees');
    expect(found).toMatchObject({ wrong: 'contract', about: 'cache_last_channel' });
    expect(found?.message).toMatch(/8 \(cache_size\), 16 \(/);
  });

  test('a recording that grows beyond the capacity is reported with the capacity, not with the drop size of the contract', () => {
    const [found] = checkData(
      { ...contract, cacheLengthRule: { ...contract.cacheLengthRule!, capacity: 8 } },
      lengthsOf(),
      model,
    );
    expect(found).toMatchObject({ id: 'lengths-against-rule', wrong: 'undecided' });
    expect(found?.why).toMatch(/grows to 16; the contract's capacity is 8/);
  });
});

describe('two of three agree', () => {
  const old: Contract = {
    ...contract,
    inputs: contract.inputs.map((each) =>
      each.name === 'cache_last_channel' ? { ...each, shape: layerFirst } : each,
    ),
  };
  const newer = changed('cache_last_channel', { shape: layerFirst });
  test.each([
    ['the contract', old, model, recorded(model), 'contract'],
    ['the model', contract, newer, recorded(model), 'model'],
    ['the data', contract, model, recorded(newer), 'data'],
  ])('so %s has the wrong layout', (_, promised, exported, data, wrong) => {
    const [finding, ...more] = compareBindings(promised, exported, data);
    expect(finding).toMatchObject({ id: 'layout', about: 'cache_last_channel', wrong });
    expect(finding?.why).toContain('agree');
    expect(more).toEqual([]);
  });

  test.each([
    ['dtype', { dtype: 'float16' as const }],
    ['dimension', { shape: ['B', 80, 'T'] }],
  ])('so the model has the wrong %s', (id, change) => {
    expect(compareBindings(contract, changed('audio_signal', change), recorded(model))).toMatchObject([
      { id, wrong: 'model' },
    ]);
  });

  test('and a tensor that only the recording lacks is missing there', () => {
    expect(compareBindings(contract, model, recorded(without('encoder_output')))).toMatchObject([
      { id: 'missing-binding', wrong: 'data' },
    ]);
  });
});

/** What a model of the contract's law records; `drop` and `frames` may differ from the contract. */
function lengthsOf({
  drop = 3,
  frames = scheduled({ first: 41, rest: 57 }, 12),
  rule = frames,
}: {
  drop?: number;
  frames?: readonly number[];
  rule?: readonly number[];
} = {}): RecordedLengths[] {
  return simulateLengths({ capacity: 16, dropExtra: 2, drop }, rule).map(({ stateIn, stateOut }, chunk) => ({
    chunk,
    frames: frames[chunk]!,
    stateIn,
    stateOut,
    stateOutRaw: stateOut,
    result: 3,
    violations: [],
    wrongSides: [],
    otherStates: [],
  }));
}
const idsOf = (recording: RecordedLengths[]) =>
  checkData(contract, recording, model).map(({ id, wrong }) => [id, wrong]);

describe('recorded lengths', () => {
  test('that follow the rule have no findings', () => {
    expect(idsOf(lengthsOf())).toEqual([]);
  });

  test('of another drop size are reported with that size', () => {
    const [finding] = checkData(contract, lengthsOf({ drop: 4 }), model);
    expect(finding).toMatchObject({ id: 'lengths-against-rule', wrong: 'undecided' });
    expect(finding?.why).toMatch(/cache_drop_size of 4\b.* 3\./);
  });

  test('of an engine that kept its first shape are the data’s fault', () => {
    const [finding] = checkData(contract, lengthsOf({ rule: Array(12).fill(41) }), model);
    expect(finding).toMatchObject({ id: 'lengths-against-rule', wrong: 'data' });
    expect(finding?.why).toContain('as if it had 41 frames');
  });

  test('that follow no rule are the data’s fault', () => {
    const odd = lengthsOf().map((each, chunk) =>
      chunk === 2 ? { ...each, stateOut: 9, stateOutRaw: 9 } : each,
    );
    expect(idsOf(odd)).toContainEqual(['lengths-against-rule', 'data']);
    expect(idsOf(odd)).toContainEqual(['stream-broken', 'data']);
  });

  test('of chunks that are missing are no stream, also where a full state hides it', () => {
    const full = lengthsOf().filter(({ chunk }) => chunk !== 9);
    expect(idsOf(full)).toEqual([['chunks-not-in-order', 'data']]);
  });

  test.each([
    ['changed', 5],
    ['negative', -67],
  ])('that the recorder invented: %s', (_, raw) => {
    const [first, ...rest] = lengthsOf();
    expect(idsOf([{ ...first!, stateOutRaw: raw }, ...rest])).toContainEqual(['invented-lengths', 'data']);
  });

  test('that break a promise and follow the cache-length rule make the promise wrong; otherwise the data', () => {
    const violation = {
      assertion: 'isolated',
      kind: 'equal',
      tensor: 'cache_last_channel_len_out',
      chunk: 0,
      found: '[1] where 0 was promised',
      sentence: 'Chunks are isolated.',
    } as const;
    const broken = (recording: RecordedLengths[]) =>
      recording.map((each) => ({ ...each, violations: [violation] }));
    expect(idsOf(broken(lengthsOf()))).toEqual([['assertion-against-data', 'contract']]);
    expect(idsOf(broken(lengthsOf({ rule: Array(12).fill(41) })))).toContainEqual([
      'assertion-against-data',
      'data',
    ]);
  });

  test('of sizes that were not planned', () => {
    const frames = scheduled({ first: 41, rest: 65 }, 12);
    expect(idsOf(lengthsOf({ frames }))).toEqual([
      ['size-outside-profile', 'contract'],
      ['size-not-scheduled', 'undecided'],
    ]);
    const engine = changed('audio_signal', { profiles: [{ min: [1, 8, 41], max: [1, 8, 41] }] });
    expect(checkData(contract, lengthsOf(), engine)).toMatchObject([
      { id: 'size-outside-profile', wrong: 'model' },
    ]);
  });
});
