import { metrics } from '@opentelemetry/api';
import { afterEach, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { parseContract } from '../../../../src/formats/contract/file.js';
import { integerTensor, type NamedTensors } from '../../../../src/formats/tensor/tensor.js';
import type { GuardOptions } from '../../../../src/products/streaming/guard/guard.js';
import { guard, guardCall } from '../../../../src/products/streaming/guard/guarded-session.js';
import { openGuardTelemetry } from '../../../../src/products/streaming/guard/telemetry.js';
import { CAPACITY, callOf, contract, float, inputs, integers, outputs, sessionOf } from '../guard-case.js';

const run = (given: NamedTensors, answer: NamedTensors, options: GuardOptions = {}) =>
  guard(sessionOf(answer), contract, options).run(given);

const refusalOf = async (promise: Promise<unknown>): Promise<TrtforgeError> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof TrtforgeError) return error;
  throw new Error(`it was not refused: ${String(error)}`);
};

describe('a contract in sentences', () => {
  const parse = (sentences: readonly string[]) =>
    parseContract(
      'encoder.json',
      JSON.stringify({
        inputs: [{ name: 'signal', dtype: 'float32', shape: ['B', 4, 'T'] }],
        outputs: [
          { name: 'y', dtype: 'float32', shape: ['B', 'N'] },
          { name: 'y_len', dtype: 'int64', shape: ['B'] },
        ],
        runtime_contract: { assertions: sentences },
      }),
    );
  const answer = new Map(Object.entries({ y: float([1, 3]), y_len: integers(3) }));
  const step = (sentence: string) =>
    guard(sessionOf(answer), parse([sentence])).run(new Map([['signal', float([1, 4, 5])]]));

  it.each(['y_len == 3', 'y_len must always be 3', 'y.shape[-1] == 3', 'y_len >= 0 and at most 3'])(
    'that holds: %s',
    async (sentence) => {
      expect(await step(sentence)).toBe(answer);
    },
  );

  it.each(['y_len == 1', 'y_len must always be 1', 'y.shape[-1] == 1', 'y_len >= 0 and at most 2'])(
    'that does not: %s',
    async (sentence) => {
      expect(await refusalOf(step(sentence))).toMatchObject({ code: 'TF_CONTRACT_BROKEN' });
    },
  );

  it('warns once of a sentence that it does not check', async () => {
    const warnings: Error[] = [];
    const listen = (warning: Error) => warnings.push(warning);
    process.on('warning', listen);
    const contract = parse(['y_len == 3', 'it is fast enough']);
    for (let i = 0; i < 2; i++) guard(sessionOf(answer), contract);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', listen);
    expect(warnings).toMatchObject([
      { name: 'ContractWarning', message: expect.stringContaining('it is fast enough') },
    ]);
  });
});

describe('a guarded session', () => {
  it('gives what the session gives, while the contract holds', async () => {
    const answer = outputs();
    const session = guard(sessionOf(answer), contract);
    expect(await session.run(inputs())).toBe(answer);
    expect(session.backend).toBe('a case');
    expect(session.counters).toMatchObject({ steps: 1, failedSteps: 0 });
    expect(session.counters.violations()).toBe(0);
  });

  it.each([
    [
      'a length that is not the promised',
      outputs({ y_len: integers(2) }),
      'three',
      /y_len.*step 0.*\[2\] where 3/,
    ],
    ['a cache that overflows', outputs({ cache_len_out: integers(9) }), 'bounded', /\[9\] where 0 to 8/],
    [
      'a cache that shrinks',
      outputs({ cache_len_out: integers(1) }),
      'grows',
      /1 after 2, which must not shrink/,
    ],
    ['a negative length', outputs({ cache_len_out: integers(-67) }), 'bounded', /-67/],
    ['an output of another shape', outputs({ y: float([1, 4]) }), 'shape:y', /\[1, 4\] where \[B = 1, 3\]/],
    ['an output of another type', outputs({ y_len: float([1], 3) }), 'dtype:y_len', /float32 where int64/],
    [
      'an output that is missing',
      new Map([...outputs()].filter(([name]) => name !== 'y')),
      'missing:y',
      /missing/,
    ],
    ['another batch out than in', outputs({ y: float([2, 3]) }), 'shape:y', /\[2, 3\]/],
  ])('rejects %s', async (_, answer, rule, message) => {
    const session = guard(sessionOf(answer), contract);
    const error = await refusalOf(session.run(inputs()));
    expect(error).toMatchObject({ code: 'TF_CONTRACT_BROKEN', exitCode: 1 });
    expect(error.message).toMatch(message);
    expect(session.counters.violations(rule)).toBe(1);
  });

  it('takes int32 lengths where int64 was promised, as TensorRT before 10 has them, and holds them to their promises', async () => {
    const narrow = (length: number) => integerTensor('int32', [1], [length]);
    const session = guard(sessionOf(outputs({ cache_len_out: narrow(3) })), contract);
    await session.run(inputs({ cache_len: narrow(2) }));
    expect(session.counters.violations()).toBe(0);
    const error = await refusalOf(session.run(inputs({ cache_len: narrow(9) })));
    expect(error.message).toMatch(/\[9\] where 0 to 8/);
  });

  it.each([
    ['state of another layout', inputs({ cache: float([1, 100, CAPACITY]) }), /cache .*\[1, 100, 8\]/],
    ['a signal without its batch', inputs({ signal: float([4, 5]) }), /signal/],
    ['lengths as another type', inputs({ cache_len: float([1]) }), /cache_len/],
    ['a length beyond the cache', inputs({ cache_len: integers(9) }), /\[9\] where 0 to 8/],
    [
      'batches that do not agree',
      inputs({ cache_len: integers(1, 1) }),
      /\[2\] where \[B = 1\] was promised/,
    ],
  ])('keeps %s from the session', async (_, given, message) => {
    const session = sessionOf(outputs());
    const error = await refusalOf(guard(session, contract).run(given));
    expect(error.message).toMatch(message);
    expect(session.ran()).toBe(0);
  });

  it('holds each length against the step before, also in tensors that are written over', async () => {
    const reused = integers(4);
    const session = guard(sessionOf(outputs({ cache_len_out: reused })), contract, { on: 'count' });
    await session.run(inputs());
    new DataView(reused.bytes.buffer).setBigInt64(0, 3n, true);
    await session.run(inputs());
    expect(session.counters.violations('grows-by-itself')).toBe(1);
    session.reset();
    new DataView(reused.bytes.buffer).setBigInt64(0, 2n, true);
    await session.run(inputs());
    expect(session.counters.violations('grows-by-itself')).toBe(1);
  });

  it('counts, and gives the outputs all the same', async () => {
    const answer = outputs({ y_len: integers(2), cache_len_out: integers(9) });
    const session = guard(sessionOf(answer), contract, { on: 'count' });
    for (let step = 0; step < 5; step++) expect(await session.run(inputs())).toBe(answer);
    expect(session.counters.violations('three')).toBe(5);
    expect(session.counters.violations()).toBe(10);
  });

  it('warns once for each rule of a stream', async () => {
    const said: string[] = [];
    const answer = outputs({ y_len: integers(2) });
    const session = guard(sessionOf(answer), contract, { on: 'warn', warn: (message) => said.push(message) });
    for (let step = 0; step < 5; step++) await session.run(inputs());
    expect(said).toEqual([expect.stringMatching(/^y_len .*\[2\].*contract case/)]);
    session.reset();
    await session.run(inputs());
    expect(said).toHaveLength(2);
    expect(session.counters.violations('three')).toBe(6);
  });

  it('warns through the process where nothing else listens', async () => {
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
    await run(inputs(), outputs({ y_len: integers(2) }), { on: 'warn' });
    expect(await warned).toMatchObject({
      name: 'ContractWarning',
      message: expect.stringContaining('y_len'),
    });
  });

  it('looks at every element only when asked to', async () => {
    const spoiled = outputs({ cache_out: float([1, CAPACITY, 100], Number.NaN), y: float([1, 3], 5) });
    await run(inputs(), spoiled);
    const session = guard(sessionOf(spoiled), contract, { scan: true, on: 'count' });
    await session.run(inputs());
    expect(session.counters.violations('not-finite:cache_out')).toBe(1);
    expect(session.counters.violations('small-cache')).toBe(1);
    expect(session.counters.violations('not-finite:y')).toBe(0);
  });

  it('finds NaN in small tensors without a scan where a promise is about them', async () => {
    const session = guard(sessionOf(outputs()), contract, { on: 'count', valuesUpTo: 1000 });
    await session.run(inputs());
    expect(session.counters.violations('small-cache')).toBe(0);
    const spoiled = guard(
      sessionOf(outputs({ cache_out: float([1, CAPACITY, 100], Number.NaN) })),
      contract,
      {
        on: 'count',
        valuesUpTo: 1000,
      },
    );
    await spoiled.run(inputs());
    expect(spoiled.counters.violations('small-cache')).toBe(1);
  });

  it('lets the errors of the session through, and counts them', async () => {
    const session = guard(sessionOf(new Error('the GPU is gone')), contract);
    await expect(session.run(inputs())).rejects.toThrow('the GPU is gone');
    expect(session.counters).toMatchObject({ steps: 1, failedSteps: 1 });
  });
});

describe('a guarded call', () => {
  const good = (buffers: Readonly<Record<string, ArrayLike<number | bigint>>>, step: number) => {
    (buffers.y_len as BigInt64Array)[0] = 3n;
    (buffers.cache_len_out as BigInt64Array)[0] = BigInt(Math.min(CAPACITY, step + 1));
  };

  it('watches what the host sees, and leaves alone what stays on the GPU', async () => {
    const call = guardCall(callOf(good), contract);
    for (let step = 0; step < 20; step++) {
      await call.run();
      call.runSync();
    }
    expect(call.counters.steps).toBe(40);
    expect(call.counters.violations()).toBe(0);
  });

  it.each(['run', 'runSync'] as const)('%s ends with the violation', async (how) => {
    const call = guardCall(
      callOf((buffers, step) => {
        good(buffers, step);
        if (step === 3) (buffers.cache_len_out as BigInt64Array)[0] = 1n;
      }),
      contract,
    );
    for (let step = 0; step < 3; step++) await call.run();
    const attempt = async () => call[how]();
    expect((await refusalOf(attempt())).message).toMatch(/cache_len_out.*step 3: 1 after 3/);
  });

  it('counts runs that fail', async () => {
    const call = guardCall(
      callOf(() => {
        throw new Error('lost');
      }),
      contract,
    );
    await expect(call.run()).rejects.toThrow('lost');
    expect(() => call.runSync()).toThrow('lost');
    expect(call.counters).toMatchObject({ steps: 2, failedSteps: 2 });
  });
});

describe('Prometheus text', () => {
  it('has counters, a histogram and gauges that scrapers take', async () => {
    const session = guard(sessionOf(outputs({ y_len: integers(2) })), contract, { on: 'count' });
    await session.run(inputs());
    session.recordError('y', 2e-4);
    session.recordError('y', 1e-4);
    const text = session.counters.prometheus({ model: 'a "quoted"\nname' });
    const model = 'model="a \\"quoted\\"\\nname"';
    expect(text).toContain(`trtforge_guard_steps_total{${model}} 1\n`);
    expect(text).toContain(
      `trtforge_guard_violations_total{${model},rule="three",kind="equal",tensor="y_len"} 1\n`,
    );
    expect(text).toContain(`trtforge_guard_max_abs_error{${model},tensor="y"} 0.0001\n`);
    expect(text).toContain(`trtforge_guard_max_abs_error_worst{${model},tensor="y"} 0.0002\n`);
    expect(text).toContain(`trtforge_guard_step_seconds_bucket{${model},le="+Inf"} 1\n`);
    for (const line of text.trimEnd().split('\n'))
      expect(line).toMatch(/^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? \S+)$/);
  });

  it('adds buckets up', () => {
    const { counters } = guard(sessionOf(outputs()), contract);
    for (const seconds of [0.0004, 0.004, 0.02, 5]) counters.step(seconds, false);
    const bucket = (le: string) =>
      Number(new RegExp(`le="${le.replace('+', '\\+')}"} (\\d+)`).exec(counters.prometheus())?.[1]);
    expect(['0.0005', '0.005', '0.02', '1', '+Inf'].map(bucket)).toEqual([1, 2, 3, 3, 4]);
  });
});

describe('OpenTelemetry', () => {
  afterEach(() => metrics.disable());

  it('gets nothing and costs nothing without an SDK', async () => {
    const listener = await openGuardTelemetry();
    const session = guard(sessionOf(outputs({ y_len: integers(2) })), contract, { on: 'count', listener });
    await session.run(inputs());
    expect(session.counters.violations()).toBe(1);
  });

  it('gets steps, violations and errors through the SDK that the process has set up', async () => {
    const heard: [string, number, object | undefined][] = [];
    const instrument = (name: string) => ({
      add: (value: number, attributes?: object) => heard.push([name, value, attributes]),
      record: (value: number, attributes?: object) => heard.push([name, value, attributes]),
    });
    const meter = { createCounter: instrument, createHistogram: instrument, createGauge: instrument };
    metrics.setGlobalMeterProvider({ getMeter: () => meter } as unknown as Parameters<
      typeof metrics.setGlobalMeterProvider
    >[0]);
    const listener = await openGuardTelemetry({ model: 'm' });
    const session = guard(sessionOf(outputs({ y_len: integers(2) })), contract, { on: 'count', listener });
    await session.run(inputs());
    session.recordError('y', 0.5);
    expect(heard).toEqual([
      ['trtforge.guard.steps', 1, { model: 'm' }],
      ['trtforge.guard.step.duration', expect.any(Number), { model: 'm' }],
      ['trtforge.guard.violations', 1, { model: 'm', rule: 'three', kind: 'equal', tensor: 'y_len' }],
      ['trtforge.guard.max_abs_error', 0.5, { model: 'm', tensor: 'y' }],
    ]);
  });
});
