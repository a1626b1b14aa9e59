import { describe, expect, test } from 'vitest';
import type { Binding } from '../../../src/engines/runtime/session.js';
import { float32Values, numbersOf, type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { type ChainedComponent, ChainJudge } from '../../../src/products/bundle/judge-chain.js';
import {
  encode,
  encoderStates,
  type Runner,
  type TransducerFacts,
  window,
} from '../../../src/products/bundle/transducer.js';
import { decisionOf, decode, GreedyDecoder } from '../../../src/products/bundle/transducer-decoder.js';
import type { Decision } from '../../../src/quality/tasks/agreement.js';

/** Three tokens, a blank (3), durations 0, 1, 2. */
const facts: TransducerFacts = {
  tokenLogits: 4,
  blankId: 3,
  durations: [0, 1, 2],
  smallest: { predictor: new Map(), joint: new Map([['encoder_output', [1, 1, 4]]]) },
  timeAxis: 2,
  tokenAxis: 2,
};
const floats = (shape: number[], values: number[]): Tensor =>
  tensorFrom('float32', shape, Float32Array.from(values));
const binding = (name: string, dtype: Binding['dtype'], shape: Binding['shape']): Binding => ({
  name,
  dtype,
  shape,
});

/** Gives the last token as its output; its state counts the tokens it was fed. */
function predictor(seen: number[] = []): Runner {
  return {
    inputs: [binding('y', 'int64', ['B', 'U']), binding('h', 'float32', [1, 'B', 1])],
    outputs: [binding('g', 'float32', ['B', 1, 'U']), binding('h_out', 'float32', [1, 'B', 1])],
    run: async (inputs) => {
      const token = numbersOf(inputs.get('y')!)[0]!;
      const [count = 0] = float32Values(inputs.get('h')!);
      seen.push(token, count);
      return new Map([
        ['g', floats([1, 1, 1], [token])],
        ['h_out', floats([1, 1, 1], [count + 1])],
      ]);
    },
  };
}

type Script = (step: number, lastToken: number) => readonly [token: number, duration: number];

/** Answers by a script, and notes how wide the encoder's window was. */
function joint(script: Script, widths: number[] = []): Runner {
  return {
    inputs: [
      binding('encoder_output', 'float32', ['B', 1, 'T']),
      binding('predictor_output', 'float32', ['B', 1, 'U']),
    ],
    outputs: [binding('logits', 'float32', ['B', 'T', 'U', 7])],
    run: async (inputs) => {
      const encoder = inputs.get('encoder_output')!;
      widths.push(encoder.shape[2]!);
      const step = Math.round(float32Values(encoder)[0]!) - 100;
      const [token, duration] = script(step, float32Values(inputs.get('predictor_output')!)[0]!);
      const row = [0, 0, 0, 0, 0, 0, 0];
      row[token] = 5;
      row[4 + duration] = 2;
      return new Map([['logits', floats([1, 1, 1, 7], row)]]);
    },
  };
}

const encoded = (steps: number) => ({
  output: floats(
    [1, 1, steps],
    Array.from({ length: steps }, (_, step) => 100 + step),
  ),
  steps,
});
const path = (decisions: readonly Decision[]) =>
  decisions.map(({ step, token, duration }) => [step, token, duration]);

describe('greedy decoding of tokens and durations', () => {
  test('moves on by the duration, and feeds the predictor what it emits', async () => {
    const seen: number[] = [];
    const script: Script = (step, last) => (step === 0 ? (last === 1 ? [2, 2] : [1, 0]) : [3, 1]);
    const decisions = await decode({ predictor: predictor(seen), joint: joint(script) }, encoded(4), facts);
    expect(path(decisions)).toEqual([
      [0, 1, 0],
      [0, 2, 2],
      [2, 3, 1],
      [3, 3, 1],
    ]);
    expect(seen).toEqual([3, 0, 1, 1, 2, 2]);
  });

  test('never stands still on a blank of duration 0, nor for ever on tokens of duration 0', async () => {
    const blanks = await decode({ predictor: predictor(), joint: joint(() => [3, 0]) }, encoded(3), facts);
    expect(path(blanks)).toEqual([
      [0, 3, 0],
      [1, 3, 0],
      [2, 3, 0],
    ]);
    const tokens = await decode({ predictor: predictor(), joint: joint(() => [1, 0]) }, encoded(2), facts);
    expect(tokens).toHaveLength(20);
  });

  test('moves on by one more step after the last token at a step that has a duration, as NeMo does', async () => {
    let calls = 0;
    const script: Script = (step) => (step === 0 ? (++calls < 10 ? [1, 0] : [1, 2]) : [3, 1]);
    const decisions = await decode({ predictor: predictor(), joint: joint(script) }, encoded(5), facts);
    expect(decisions.map(({ step }) => step)).toEqual([...new Array<number>(10).fill(0), 3, 4]);
  });

  test('of a plain transducer stays on a step until the blank', async () => {
    const plain = { ...facts, durations: [], tokenLogits: 7 };
    const script: Script = (_, last) => (last === 3 ? [1, 0] : [3, 0]);
    const decisions = await decode({ predictor: predictor(), joint: joint(script) }, encoded(2), plain);
    expect(decisions.map(({ step, token }) => [step, token])).toEqual([
      [0, 1],
      [0, 3],
      [1, 3],
    ]);
    expect(decisions[0]!.durationMargin).toBe(Number.POSITIVE_INFINITY);
  });

  test('piece by piece decides as in one piece, also where a duration leads beyond the end of one', async () => {
    const script: Script = (step, last) => (step === 3 ? [2, 2] : step === 5 && last === 2 ? [1, 0] : [3, 1]);
    const models = () => ({ predictor: predictor(), joint: joint(script) });
    const whole = await decode(models(), encoded(11), facts);
    const { output } = encoded(11);
    const decoder = await GreedyDecoder.begin(models(), facts);
    const pieces: number[][] = [];
    for (let start = 0; start < 11; start += 4) {
      const piece = { output: window(output, 2, start, 4), steps: Math.min(4, 11 - start) };
      while (decoder.step < piece.steps) {
        const { step, token, duration } = await decoder.decide(piece);
        pieces.push([start + step, token, duration]);
        await decoder.take({ token, duration });
      }
      decoder.leave(piece.steps);
    }
    expect(pieces).toEqual(path(whole));
    expect(pieces.some(([step, token]) => step === 3 && token === 2)).toBe(true);
  });

  test('a fork goes on from the same place and leaves the other alone', async () => {
    const script: Script = (step, last) => (last === 3 && step === 1 ? [2, 0] : [3, 1]);
    const decoder = await GreedyDecoder.begin({ predictor: predictor(), joint: joint(script) }, facts);
    await decoder.take({ token: 3, duration: 1 });
    const fork = decoder.fork();
    await fork.take(await fork.decide(encoded(3)));
    expect(path([await fork.decide(encoded(3))])).toEqual([[1, 3, 1]]);
    expect(path([await decoder.decide(encoded(3))])).toEqual([[1, 2, 0]]);
  });

  test('pads windows to the smallest shape of the joint network', async () => {
    const widths: number[] = [];
    await decode({ predictor: predictor(), joint: joint(() => [3, 1], widths) }, encoded(2), facts);
    expect(widths).toEqual([4, 4]);
    const rows = floats([1, 2, 3], [1, 2, 3, 4, 5, 6]);
    expect([...float32Values(window(rows, 2, 2, 2))]).toEqual([3, 0, 6, 0]);
    expect([...float32Values(window(rows, 2, -1, 3))]).toEqual([0, 1, 2, 0, 4, 5]);
    expect([...float32Values(window(rows, 2, -3, 2))]).toEqual([0, 0, 0, 0]);
  });

  test('led along a path looks at the same steps with the same tokens, whatever it decides', async () => {
    const reference = await decode(
      { predictor: predictor(), joint: joint((step) => (step === 0 ? [1, 1] : [3, 1])) },
      encoded(3),
      facts,
    );
    const seen: number[] = [];
    const led = await decode(
      { predictor: predictor(seen), joint: joint(() => [2, 2]) },
      encoded(3),
      facts,
      reference,
    );
    expect(path(led)).toEqual([
      [0, 2, 2],
      [1, 2, 2],
      [2, 2, 2],
    ]);
    expect(seen.filter((_, index) => index % 2 === 0)).toEqual([3, 1]);
  });

  test('reads margins off a row of logits, and never chooses NaN', () => {
    const decision = decisionOf(0, Float32Array.of(1, Number.NaN, 4, 3.5, 0, 2, 1), facts);
    expect(decision).toMatchObject({ token: 2, tokenMargin: 0.5, duration: 1, durationMargin: 1 });
  });
});

describe('the encoder', () => {
  const outputs = [binding('out', 'float32', ['B', 4, 'T']), binding('lengths', 'int64', ['B'])];
  test.each([
    [['B'], [1]],
    [
      ['B', 1],
      [1, 1],
    ],
  ])('gets lengths of shape %j', async (declared, expected) => {
    let given: readonly number[] | undefined;
    const encoder: Runner = {
      inputs: [binding('audio_signal', 'float32', ['B', 8, 'T']), binding('length', 'int64', declared)],
      outputs,
      run: async (inputs) => {
        given = inputs.get('length')!.shape;
        return new Map([
          ['out', floats([1, 4, 3], new Array(12).fill(0))],
          ['lengths', { dtype: 'int64', shape: [1], bytes: new Uint8Array(new BigInt64Array([2n]).buffer) }],
        ]);
      },
    };
    const { steps } = await encode(encoder, floats([1, 8, 16], new Array(128).fill(0)), 16, 2);
    expect([given, steps]).toEqual([expected, 2]);
  });
});

describe('the verdict over two decoders', () => {
  const decision = (token: number, duration: number, logits: number[], tokenMargin = 3): Decision => ({
    step: 0,
    token,
    duration,
    tokenMargin,
    durationMargin: 2,
    logits: Float32Array.from(logits),
  });
  /** One decision of the reference, and the candidate's; each exchange alone decides as `exchanged` has it. */
  const judge = (
    reference: Decision,
    led: Decision,
    exchanged: Partial<Record<ChainedComponent, Decision>> = {},
  ) => {
    const chain = new ChainJudge('fp16', { blankId: 3, tokenLogits: 4 }, 0.99);
    const { encoder = reference, predictor = reference, joint = reference } = exchanged;
    chain.take({
      reference: [reference],
      led: [led],
      free: [led],
      exchanged: { encoder: [encoder], predictor: [predictor], joint: [joint] },
    });
    return chain.result();
  };
  const same = decision(1, 0, [0, 10, 0, 0]);

  test('passes where all decisions are the same', () => {
    expect(judge(same, same)).toMatchObject({
      outcome: 'pass',
      decisions: 1,
      token_agreement: 1,
      duration_agreement: 1,
      equal_sequences: 1,
      unequal_sequences: [],
      reasons: [],
    });
  });

  test('counts a low-margin decision; where it is the only one it decides nothing', () => {
    const near = decision(1, 0, [0, 10, 9.95, 0], 0.05);
    expect(judge(near, decision(2, 0, [0.03, 9.94, 9.96, 0]))).toMatchObject({
      outcome: 'inconclusive',
      token_agreement: 0,
      duration_agreement: 1,
      equal_sequences: 0,
      unequal_sequences: [{ sample: 0, index: 0 }],
      differences: [
        {
          what: 'token',
          reference: 1,
          candidate: 2,
          reference_margin: expect.closeTo(0.05),
          low_margin: true,
        },
      ],
    });
  });

  test('fails what rounding does not explain, and logits that are not finite', () => {
    expect(judge(same, decision(0, 1, [10, 0, 0, 0]))).toMatchObject({
      outcome: 'fail',
      differences: [
        { what: 'token', low_margin: false },
        { what: 'duration', low_margin: false },
      ],
      reasons: [
        expect.stringContaining('have moved by 141 %'),
        expect.stringContaining('2 of 2 decisions'),
        expect.stringContaining('--min-agreement'),
      ],
    });
    expect(judge(same, { ...same, logits: Float32Array.of(Number.NaN) }).reasons).toEqual([
      expect.stringContaining('not finite'),
    ]);
    expect(new ChainJudge('fp16', { blankId: 3, tokenLogits: 4 }, 0.99).result().outcome).toBe('fail');
  });

  test('names the component that moves the logits most', () => {
    const moved = (by: number) => ({ ...same, logits: Float32Array.of(0, 10 + by, 0, 0) });
    const { components, drifts } = judge(same, same, { encoder: moved(0.1), joint: moved(0.5) });
    expect(
      components.map(({ component, max_abs, relative_rms }) => [
        component,
        max_abs?.toFixed(3),
        relative_rms?.toFixed(3),
      ]),
    ).toEqual([
      ['encoder', '0.100', '0.010'],
      ['predictor', '0.000', '0.000'],
      ['joint', '0.500', '0.050'],
    ]);
    expect(drifts).toBe('joint');
    expect(judge(same, same).drifts).toBeNull();
    const notFinite = judge(same, same, { joint: moved(0.5), predictor: moved(Number.NaN) });
    expect(notFinite).toMatchObject({ drifts: 'predictor', components: [{}, { max_abs: null }, {}] });
  });
});

test.each([
  ['cache_last_channel', 'cache_last_channel_next'],
  ['cached_key_0', 'new_cached_key_0'],
  ['past_key_values.0.key', 'present.0.key'],
  ['state', 'stateN'],
])('the encoder gets its state %s back as %s', (input, output) => {
  const inputs = [binding('audio', 'float32', ['B', 80, 'T']), binding(input, 'float32', ['B', 4])];
  const outputs = [binding('encoded', 'float32', ['B', 8, 'T']), binding(output, 'float32', ['B', 4])];
  expect(encoderStates({ inputs, outputs }).map(({ name }) => name)).toEqual([input]);
});
