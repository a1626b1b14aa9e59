import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { parseContract, readContract, writeContract } from '../../../src/formats/contract/file.js';
import { undecidedStates } from '../../../src/formats/contract/resolve.js';
import { statePair } from '../../../src/formats/contract/state.js';
import { contractFromModel } from '../../../src/products/streaming/contract/draft.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';

const FIXTURES = join(import.meta.dirname, '../../fixtures/contracts');
const fixture = (name: string) => join(FIXTURES, `${name}.contract.json`);
const folder = mkdtempSync(join(tmpdir(), 'trtforge-contract-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the binding contract of a streaming encoder', () => {
  const contract = readContract(fixture('batch-first'));

  test('gives bindings with roles', () => {
    expect(contract).toMatchObject({ name: 'tiny_streaming', origin: { form: 'encoder' } });
    expect(contract.inputs.map(({ name, dtype, role }) => [name, dtype, role])).toEqual([
      ['audio_signal', 'float32', 'signal'],
      ['length', 'int64', 'length'],
      ['cache_last_channel', 'float32', 'state'],
      ['cache_last_time', 'float32', 'state'],
      ['cache_last_channel_len', 'int64', 'state-length'],
    ]);
    expect(contract.outputs.map(({ role }) => role)).toEqual([
      'result',
      'length',
      'state',
      'state',
      'state-length',
    ]);
    expect(contract.lengths).toEqual({
      signal: 'length',
      result: 'encoded_lengths',
      stateIn: 'cache_last_channel_len',
      stateOut: 'cache_last_channel_len_out',
    });
  });

  test('gives what is fed back, where it is filled up, and how much of it is valid', () => {
    expect(contract.state).toEqual([
      {
        input: 'cache_last_channel',
        output: 'cache_last_channel_out',
        initial: 0,
        axis: 2,
        capacity: 16,
        padSide: 'right',
        fillValue: 0,
        validLength: 'cache_last_channel_len_out',
      },
      {
        input: 'cache_last_time',
        output: 'cache_last_time_out',
        initial: 0,
        axis: 3,
        capacity: 4,
        padSide: 'left',
        fillValue: 0.5,
        validLength: null,
      },
      {
        input: 'cache_last_channel_len',
        output: 'cache_last_channel_len_out',
        initial: 0,
        axis: null,
        capacity: null,
        padSide: 'right',
        fillValue: 0,
        validLength: null,
      },
    ]);
  });

  test('adds the pre-encode frames to the chunk size', () => {
    expect(contract.schedule).toEqual({
      tensor: 'audio_signal',
      axis: 2,
      first: 41,
      rest: 57,
      shift: { first: 17, rest: 24 },
      preEncode: { first: 0, rest: 9 },
      stated: [41, 57],
    });
  });

  test('resolves dimension keys of profiles, bare symbols for every tensor', () => {
    expect(contract.profiles[1]?.ranges.audio_signal).toEqual([
      { min: 1, opt: 1, max: 8 },
      { min: 8, opt: 8, max: 8 },
      { min: 41, opt: 57, max: 57 },
    ]);
    expect(contract.profiles[1]?.ranges.length).toEqual([{ min: 1, opt: 1, max: 8 }]);
  });

  test('makes rules of its numbers and lists its sentences', () => {
    expect(contract.assertions.map(({ sentence: _, id: __, ...rule }) => rule)).toEqual([
      { tensor: 'encoded_lengths', kind: 'equal', value: 3 },
      { tensor: 'encoder_output', kind: 'dimension-equals', axis: -1, value: 3 },
      { tensor: 'cache_last_channel_len_out', kind: 'bounded-by-capacity', capacity: 16 },
      { tensor: 'cache_last_channel_len_out', kind: 'range', min: 0, max: null },
      { tensor: 'cache_last_channel_len_out', kind: 'monotonic', than: null, until: 16 },
    ]);
    expect(contract.notExecutable.map(({ sentence }) => sentence)).toEqual([
      'encoder_output_time_dim: Should equal 3 when valid_out_len=3',
    ]);
    expect(contract.tolerances).toEqual([{ tensor: null, absolute: 1e-4, relative: 1e-3 }]);
  });

  test('names every field that decided nothing', () => {
    expect(contract.ignored).toEqual([
      'description',
      'streaming.layers',
      'streaming.time_ctx',
      'inputs[].description',
      'inputs[].constraints.T.description',
      'inputs[].constraints.layer',
      'inputs[].constraints.hidden_dim',
      'outputs[].constraints.C_out.max',
      'outputs[].constraints.K_out.max',
      'trt_optimization_profiles[].description',
      'runtime_contract.cache_padding.description',
      'runtime_contract.initialization.cache_last_channel',
      'validation.parity_test',
      'validation.reference_jsonl',
      'validation.test_modes',
    ]);
  });

  test('of the old layout is read too, and lists its sentences', () => {
    const old = readContract(fixture('layer-first'));
    expect(old.inputs[2]?.shape).toEqual([2, 'B', 256, 8]);
    expect(old.state[0]).toMatchObject({ axis: 2, capacity: 256 });
    expect(old.assertions).toMatchObject([
      { kind: 'equal', tensor: 'encoded_lengths', value: 1 },
      { kind: 'dimension-equals', tensor: 'encoder_output', axis: -1, value: 1 },
      { kind: 'bounded-by-capacity', capacity: 256 },
      { kind: 'range', tensor: 'cache_last_channel_len_out', min: 0, max: null },
    ]);
    expect(old.notExecutable.map(({ sentence }) => sentence)).toEqual([
      'cache_last_channel_len_out typically 0',
      'inference is fast enough for a live stream',
    ]);
  });
});

describe('sentences of a contract', () => {
  /** What becomes of one: rules without their names, and whether all of it became rules. */
  const read = (sentence: string) => {
    const file = JSON.parse(readFileSync(fixture('layer-first'), 'utf8'));
    delete file.streaming.valid_out_len_expected;
    delete file.streaming.cache_size;
    file.runtime_contract.assertions = [sentence];
    const { assertions, notExecutable } = parseContract('x.json', JSON.stringify(file));
    return {
      rules: assertions.map(({ id: _, sentence: __, ...rule }) => rule),
      left: notExecutable.map((each) => each.sentence),
    };
  };
  const lengths = { tensor: 'encoded_lengths' };
  const cached = { tensor: 'cache_last_channel_len_out' };

  test.each([
    ['encoded_lengths == 1', { ...lengths, kind: 'equal', value: 1 }],
    ['encoded_lengths = 1.', { ...lengths, kind: 'equal', value: 1 }],
    ['encoded_lengths must always be 1', { ...lengths, kind: 'equal', value: 1 }],
    ['encoded_lengths is always 1 for every chunk', { ...lengths, kind: 'equal', value: 1 }],
    ['encoded_lengths: Should equal 3 for streaming chunks', { ...lengths, kind: 'equal', value: 3 }],
    ["assert np.all(outputs['encoded_lengths'] == 1), 'is not 1'", { ...lengths, kind: 'equal', value: 1 }],
    ['(cache_last_channel_len_out == 0).all()', { ...cached, kind: 'equal', value: 0 }],
    ['cache_last_channel_len_out >= 0', { ...cached, kind: 'range', min: 0, max: null }],
    ['cache_last_channel_len_out > 0', { ...cached, kind: 'range', min: 1, max: null }],
    ['cache_last_channel_len_out must never be negative', { ...cached, kind: 'range', min: 0, max: null }],
    ['cache_last_channel_len_out must be at most 256', { ...cached, kind: 'range', min: null, max: 256 }],
    ['0 <= cache_last_channel_len_out <= 256', { ...cached, kind: 'range', min: 0, max: 256 }],
    ['cache_last_channel_len_out in [0, 256]', { ...cached, kind: 'range', min: 0, max: 256 }],
    ['cache_last_channel_len_out is between 0 and 256', { ...cached, kind: 'range', min: 0, max: 256 }],
    ['cache_last_channel_len_out never shrinks', { ...cached, kind: 'monotonic', than: null, until: null }],
    [
      'encoder_output.shape[-1] == 1',
      { tensor: 'encoder_output', kind: 'dimension-equals', axis: -1, value: 1 },
    ],
    [
      'encoder_output.shape[1] must always be 8',
      { tensor: 'encoder_output', kind: 'dimension-equals', axis: 1, value: 8 },
    ],
  ])('%s', (sentence, rule) => {
    const { rules, left } = read(sentence);
    expect(rules).toContainEqual(rule);
    expect(left).toEqual([]);
  });

  test.each([
    'encoded_lengths must not be 5',
    'encoded_lengths is 1 or 2',
    'encoded_lengths equals length',
    'encoded_lengths_of_all == 1',
    'encoder_output > 0',
    'encoder_output.shape[-1] == 1.5',
    'encoder_output.shape[-1] >= 1',
    'encoded_lengths == 1 when T > 3',
    'inference is fast enough',
    '',
  ])('is prose, and no rule: "%s"', (sentence) => {
    const { rules, left } = read(sentence);
    expect(rules).toEqual(read('nothing').rules);
    expect(left).toEqual([sentence]);
  });
});

describe('our own form', () => {
  test.each(['batch-first', 'layer-first'])('holds all of the %s contract', (name) => {
    const contract = readContract(fixture(name));
    const path = join(folder, `${name}.json`);
    writeContract(path, contract);
    expect(readContract(path)).toEqual({ ...contract, origin: { path, form: 'trtforge' }, ignored: [] });
  });

  test('needs no more than bindings', () => {
    const text =
      '{"schema":"trtforge.contract/1","name":"m","inputs":[{"name":"x"}],"outputs":[{"name":"y"}]}';
    expect(parseContract('m.json', text)).toMatchObject({ state: [], cacheLengthRule: null, ignored: [] });
  });
});

describe('a file that is no contract', () => {
  const own = { schema: 'trtforge.contract/1', name: 'm', inputs: [{ name: 'x' }], outputs: [{ name: 'y' }] };
  const encoder = { inputs: [{ name: 'x', dtype: 'float32' }], outputs: [{ name: 'y' }] };
  test.each([
    ['no JSON', '{"a":', 'it is not JSON'],
    ['a list', '[]', 'not a JSON object'],
    ['something else', '{"a":1}', 'no inputs and outputs'],
    [
      'an unknown dtype',
      JSON.stringify({ ...encoder, inputs: [{ name: 'x', dtype: 'float33' }] }),
      'float33',
    ],
    [
      'a negative size',
      JSON.stringify({ ...encoder, inputs: [{ name: 'x', shape: [-1] }] }),
      'inputs.0.shape.0',
    ],
    ['no inputs', JSON.stringify({ ...encoder, inputs: [] }), 'inputs'],
    ['a name twice', JSON.stringify({ ...own, inputs: [{ name: 'x' }, { name: 'x' }] }), 'the input x twice'],
    [
      'state of a tensor that is not there',
      JSON.stringify({ ...own, state: [{ input: 'x', output: 'z' }] }),
      'state.0.output names "z", and there is no such output (y)',
    ],
    [
      'a promise about a tensor that is not there',
      JSON.stringify({ ...own, assertions: [{ id: 'a', tensor: 'q', kind: 'equal', value: 1 }] }),
      'the assertion a names "q", and there is no such input or output (x, y)',
    ],
    [
      'growth over a tensor that is not there',
      JSON.stringify({ ...own, assertions: [{ id: 'a', tensor: 'y', kind: 'monotonic', than: 'q' }] }),
      'the assertion a names "q"',
    ],
    [
      'a tolerance of a tensor that is not there',
      JSON.stringify({ ...own, tolerances: [{ tensor: 'q', absolute: 1 }] }),
      'tolerances.0.tensor names "q"',
    ],
    [
      'a profile of an input that is not there',
      JSON.stringify({ ...own, profiles: [{ name: 'p', ranges: { q: [] } }] }),
      'the profile p names "q"',
    ],
    ['a misspelt field of ours', JSON.stringify({ ...own, asertions: [] }), '"asertions" is not a known key'],
    [
      'a misspelt field within',
      JSON.stringify({ ...own, state: [{ input: 'x', output: 'y', padside: 'left' }] }),
      '"state.0": "padside" is not a known key',
    ],
    [
      'our form of another version',
      JSON.stringify({ ...own, schema: 'trtforge.contract/2' }),
      'trtforge.contract/2',
    ],
  ])('%s', (_, text, why) => {
    const error = refusal(() => parseContract('c.json', text));
    expect(error).toMatchObject({ code: 'TF_CONTRACT_INVALID' });
    expect(error.message).toContain(why);
  });

  test('a missing one', () => {
    expect(refusal(() => readContract(join(folder, 'none.json'))).code).toBe('TF_FILE_NOT_FOUND');
  });

  test.each(['batch-first', 'layer-first'])('1,500 damaged copies of the %s contract', (name) => {
    let refused = 0;
    for (const bytes of mutations(readFileSync(fixture(name)), 1500, 7)) {
      try {
        parseContract('c.json', Buffer.from(bytes).toString('utf8'));
      } catch (error) {
        if (!(error instanceof TrtforgeError)) throw error;
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(500);
  });
});

describe('a draft from a model', () => {
  const binding = (name: string, dtype: 'float32' | 'int64', shape: (number | string | null)[]) => ({
    name,
    dtype,
    shape,
  });

  test.each([
    ['cache_last_channel', 'cache_last_channel_out'],
    ['cache_last_time', 'cache_last_time_next'],
    ['h_in', 'h_out'],
    ['state', 'next_state'],
    ['past_key_values.0.key', 'present.0.key'],
    ['hidden.in', 'hidden_out'],
    ['state', 'stateN'],
    ['h', 'hn'],
    ['c', 'cn'],
    ['h0', 'h_n'],
    ['h', 'new_h'],
    ['hidden', 'updated_hidden'],
    ['state', 'out_state'],
    ['prev_conv', 'conv'],
    ['bias', 'bias_out'],
  ])('pairs %s with %s', (input, output) => {
    const { state } = contractFromModel('m', {
      inputs: [binding('x', 'float32', ['B', 't']), binding(input, 'float32', ['B', 8])],
      outputs: [binding('y', 'float32', ['B', 't']), binding(output, 'float32', ['B', 8])],
    });
    expect(state.map((pair) => [pair.input, pair.output])).toEqual([[input, output]]);
  });

  test('does not pair what differs in dtype or rank, nor unrelated names', () => {
    const { state } = contractFromModel('m', {
      inputs: [binding('h', 'float32', [1]), binding('c', 'float32', [1]), binding('x', 'float32', [1])],
      outputs: [
        binding('h_out', 'int64', [1]),
        binding('c_out', 'float32', [1, 1]),
        binding('y', 'float32', [1]),
      ],
    });
    expect(state).toEqual([]);
  });

  test.each([
    ['audio_in', 'audio_out'],
    ['frames', 'next_frames'],
    ['x', 'x_out'],
    ['lengths', 'lengths_out'],
    ['input', 'output'],
  ])('does not take the streamed %s for a state of %s', (input, output) => {
    const model = {
      inputs: [binding(input, 'float32', ['B', 8]), binding('h', 'float32', ['B', 4])],
      outputs: [binding(output, 'float32', ['B', 8]), binding('hn', 'float32', ['B', 4])],
    };
    expect(contractFromModel('m', model).state).toMatchObject([{ input: 'h', output: 'hn' }]);
  });

  test('counts no lengths among what is left to stream', () => {
    const model = {
      inputs: [
        binding('signal', 'float32', ['B', 't']),
        binding('cache_len', 'int64', ['B']),
        binding('sum', 'float32', ['B', 2]),
      ],
      outputs: [
        binding('y', 'float32', ['B']),
        binding('cache_len_out', 'int64', ['B']),
        binding('sum_out', 'float32', ['B', 2]),
      ],
    };
    expect(contractFromModel('m', model).state.map(({ input }) => input)).toEqual(['cache_len', 'sum']);
  });

  test('leaves an input to stream, whatever its name', () => {
    const model = {
      inputs: [binding('foo', 'float32', ['B', 8])],
      outputs: [binding('foo_out', 'float32', ['B', 8])],
    };
    expect(contractFromModel('m', model).state).toEqual([]);
  });

  test('lists what it cannot decide, with what it could be', () => {
    const inputs = [
      binding('audio', 'float32', ['B', 't']),
      binding('lstm_state', 'float32', [2, 8]),
      binding('foo', 'float32', [2, 6]),
      binding('state_of_speaker', 'float32', [2, 3]),
    ];
    const outputs = [
      binding('audio_out', 'float32', ['B', 't']),
      binding('out_1', 'float32', [2, 8]),
      binding('bar', 'float32', [2, 6]),
    ];
    expect(undecidedStates(inputs, outputs, [])).toMatchObject([
      { input: 'audio', candidates: ['audio_out'], reason: 'reads-like-signal' },
      { input: 'lstm_state', reason: 'no-name' },
      { input: 'foo', candidates: ['bar'], reason: 'shape-only' },
      { input: 'state_of_speaker', reason: 'no-name' },
    ]);
    const [, state] = undecidedStates(inputs, outputs, []);
    expect(state?.candidates).toContain('out_1');
    expect(undecidedStates(inputs, outputs, [statePair('lstm_state', 'out_1')])).not.toContainEqual(
      expect.objectContaining({ input: 'lstm_state' }),
    );
  });

  test('bounds the length of a state by its capacity', () => {
    const { assertions, state, schedule } = contractFromModel(
      'm',
      {
        inputs: [
          binding('audio', 'float32', ['B', 8, 'T']),
          binding('cache', 'float32', ['B', 16, 4]),
          binding('cache_len', 'int64', ['B']),
        ],
        outputs: [
          binding('y', 'float32', ['B', 8, null]),
          binding('cache_out', 'float32', ['B', 'C', 4]),
          binding('cache_len_out', 'int64', ['B']),
        ],
      },
      [41, 57],
    );
    expect(state[0]).toMatchObject({ axis: 1, capacity: 16, validLength: 'cache_len_out' });
    expect(assertions.map(({ kind }) => kind)).toEqual(['bounded-by-capacity', 'monotonic']);
    expect(schedule).toMatchObject({ tensor: 'audio', axis: 2, first: 41, rest: 57 });
  });
});
