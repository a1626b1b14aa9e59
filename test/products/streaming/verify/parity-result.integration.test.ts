import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openOrtSession } from '../../../../src/engines/runtime/onnxruntime/ort-session.js';
import type { Session } from '../../../../src/engines/runtime/session.js';
import type { Contract } from '../../../../src/formats/contract/contract.js';
import type { ReferenceChunk } from '../../../../src/formats/reference/reference.js';
import { readNpz } from '../../../../src/formats/tensor/npz.js';
import { float32Values, floatTensor, type Tensor } from '../../../../src/formats/tensor/tensor.js';
import { checkData } from '../../../../src/products/streaming/check/recorded-data.js';
import { recordedLengths } from '../../../../src/products/streaming/check/recorded-lengths.js';
import { type ChunkRunner, sessionRunner } from '../../../../src/products/streaming/verify/candidate.js';
import type { ParityRequest } from '../../../../src/products/streaming/verify/options.js';
import { type ParityResult, parityResultSchema } from '../../../../src/products/streaming/verify/result.js';
import { runParity } from '../../../../src/products/streaming/verify/run-parity.js';
import { dumpChunk } from '../../../../src/products/streaming/verify/run-stream.js';
import { floats, ids } from '../../../engines/runtime/onnxruntime/models.js';
import { gate, policyOf } from '../../../quality/gate/gate-case.js';
import {
  CAPACITY,
  contractOfSession,
  recordTiny,
  referenceOf,
  type TinyFaults,
  tinyModel,
} from '../tiny-stream.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-parity-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A model of each kind and its session, which keeps nothing between runs. */
const opened = new Map<string, Promise<{ readonly candidate: string; readonly session: Session }>>();
const tiny = (faults: TinyFaults) => {
  const key = JSON.stringify(faults, (_name, value) => (Number.isNaN(value) ? 'NaN' : value));
  const open = async () => {
    const candidate = await tinyModel(faults);
    return { candidate, session: await openOrtSession(candidate, { threads: 1 }) };
  };
  return opened.get(key) ?? opened.set(key, open()).get(key)!;
};
afterAll(async () => {
  for (const { session } of await Promise.all(opened.values())) await session.close();
});

let recorded: readonly ReferenceChunk[];
let contract: Contract;
beforeAll(async () => {
  recorded = await recordTiny(40);
  contract = contractOfSession((await tiny({})).session);
});

async function parity(
  faults: TinyFaults,
  more: Partial<ParityRequest> = {},
  chunks: readonly ReferenceChunk[] = recorded,
  runnerOf: (session: Session) => ChunkRunner = sessionRunner,
): Promise<ParityResult> {
  const { candidate, session } = await tiny(faults);
  const request: ParityRequest = { candidate, reference: 'memory', mode: 'closed-loop', contract, ...more };
  const result = await runParity(
    request,
    {
      backend: session.backend,
      inputs: session.inputs,
      outputs: session.outputs,
      isFullFloat32: true,
      modelDigest: null,
      built: null,
      runner: () => runnerOf(session),
    },
    referenceOf(chunks),
  );
  expect(parityResultSchema.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
  expect(result.passed + result.failed).toBe(result.chunks);
  return result;
}

/** The reference in which one chunk begins with another cache. */
const startingWith = (chunk: number, cache: Tensor) =>
  recorded.map(
    (each): ReferenceChunk =>
      each.index === chunk ? { ...each, inputs: new Map([...each.inputs, ['cache', cache]]) } : each,
  );

/** Behind the four positions that are valid when chunk 4 begins. */
function withJunkBehind(state: Tensor): Tensor {
  const values = float32Values(state).slice();
  values[4 * 3] = 9;
  return floats('float32', state.shape, [...values]);
}

/** The reference with the main output (or another) of one chunk changed. */
const changed = (chunk: number, change: (values: Float32Array) => void, tensor = 'output') =>
  recorded.map((each): ReferenceChunk => {
    if (each.index !== chunk) return each;
    const original = each.outputs.get(tensor)!;
    const values = float32Values(original).slice();
    change(values);
    return {
      ...each,
      outputs: new Map([...each.outputs, [tensor, floats('float32', original.shape, [...values])]]),
    };
  });

const ids_ = (result: ParityResult) => result.explanations.map(({ id }) => id);

/** The reference with the milliseconds that its recorder needed; null: not written down. */
const timed = (stepMs: (chunk: number) => number | null) =>
  recorded.map((each): ReferenceChunk => ({ ...each, meta: { ...each.meta, stepMs: stepMs(each.index) } }));

describe('the times of a reference', () => {
  it('are beside those of the same steps', async () => {
    const { times } = await parity(
      {},
      {},
      timed((chunk) => (chunk < 2 ? 1000 : 20)),
    );
    // Chunks 0 and 1 are the first of their size.
    expect(times.recorded).toMatchObject({ mean: 20, p50: 20, max: 20 });
    expect(times.overRecorded).toBeCloseTo(times.rest!.total.p50 / 20);
  });

  it('are left out where a step has none', async () => {
    const { times } = await parity(
      {},
      {},
      timed((chunk) => (chunk === 30 ? null : 20)),
    );
    expect(times).toMatchObject({ recorded: null, overRecorded: null });
  });
});

describe('a model compared with a recording of itself', () => {
  it.each(['functional', 'closed-loop'] as const)('agrees in every chunk: %s', async (mode) => {
    const result = await parity({}, { mode });
    expect(result).toMatchObject({
      outcome: 'pass',
      verdicts: { contract: 'pass', numeric: 'pass', task: null },
      chunks: 40,
      passed: 40,
      passRate: 1,
      failures: [],
      violations: [],
      state: { place: mode === 'functional' ? 'reference' : 'host' },
      drift: { tensor: 'output', passRate: 1, max: 0, shape: 'steady' },
    });
    expect(result.drift?.checks.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['max', 'pass'],
      ['pass-rate', 'pass'],
      ['mean', 'pass'],
      ['slope', 'pass'],
    ]);
    expect(result.outputs.map(({ tensor, kind, role }) => [tensor, kind, role])).toEqual([
      ['output', 'float', 'result'],
      ['lengths', 'exact', 'result'],
      ['cache_out', 'float', 'state'],
      ['cache_len_out', 'exact', 'state'],
      ['sum_out', 'float', 'state'],
    ]);
  });

  it('compares only the filled part of the cache, and all of it once it is full', async () => {
    const { series } = await parity({});
    const regions = series.map(({ tensors }) => tensors.find(({ tensor }) => tensor === 'cache_out')?.region);
    expect(regions.slice(0, 3)).toEqual([1, 2, 3].map((to) => ({ axis: 2, from: 0, to })));
    expect(regions.slice(CAPACITY - 1)).toEqual(Array(40 - CAPACITY + 1).fill(null));
  });

  it('reports times: the first chunk apart, then those for which nothing had to be made', async () => {
    const { times } = await parity({});
    expect(times.first?.totalMs).toBeGreaterThan(0);
    // The first chunk of each of the two sizes is left out.
    expect(times.rest?.chunks).toBe(38);
    expect(times.rest!.total.p50).toBeGreaterThan(0);
    expect(times.rest!.total.p99).toBeGreaterThanOrEqual(times.rest!.total.p95);
  });

  it('runs as many chunks as asked for', async () => {
    expect(await parity({}, { limit: 5 })).toMatchObject({ chunks: 5, drift: { shape: 'too-short' } });
  });

  it('reports that a drafted contract was drafted', async () => {
    expect((await parity({}, { contract: null })).warnings[0]).toMatch(/There is no contract/);
  });
});

describe('faults of a candidate are found and named', () => {
  it('a drift: only in closed loop, growing, with its slope', async () => {
    const faults = { drift: 1e-5 };
    const closed = await parity(faults, { atol: [{ name: null, value: 1 }], policy: { slope: 1e-6 } });
    expect(closed.drift?.shape).toBe('growing');
    expect(ids_(closed)[0]).toBe('error-accumulates');
    const slope = closed.drift!.checks.find(({ name }) => name === 'slope');
    expect(slope).toMatchObject({ outcome: 'fail', limit: 1e-6 });
    expect(slope!.measured).toBeGreaterThan(5e-6);
    expect(closed.verdicts.numeric).toBe('fail');
    const functional = await parity(faults, { mode: 'functional' });
    expect(functional.drift?.shape).toBe('steady');
    expect(functional.outcome).toBe('pass');
  });

  it('one spike: an outlier, not a drift, although a line through it rises', async () => {
    const result = await parity(
      {},
      { rtol: [{ name: null, value: 0 }] },
      changed(36, (values) => {
        values[0]! += 0.01;
      }),
    );
    expect(result.failures).toMatchObject([{ chunk: 36, tensor: 'output', kind: 'outside-tolerance' }]);
    expect(result.drift).toMatchObject({ outliers: [36], worstChunk: 36, shape: 'outliers' });
    expect(result.drift!.slope.leastSquares.perChunk).toBeGreaterThan(1e-6);
    expect(result.drift!.slope.robust.perChunk).toBe(0);
    expect(ids_(result)).toContain('outlier-not-drift');
    expect(ids_(result)).not.toContain('error-accumulates');
    expect(result.explanations.find(({ id }) => id === 'outlier-not-drift')?.sentence).toMatch(/chunk 36/);
  });

  it('a state that is not read: every chunk after the first is off', async () => {
    const result = await parity({ ignoresCache: true });
    expect(result.passed).toBe(1);
    expect(result.failures[0]).toMatchObject({ chunk: 1, tensor: 'output', kind: 'outside-tolerance' });
    expect(result.outputs.find(({ tensor }) => tensor === 'cache_out')).toMatchObject({ passed: 40 });
  });

  it('a cached length that grows by two: integers differ, and the cache after it', async () => {
    const result = await parity({ step: 2 });
    expect(result.failures[0]).toMatchObject({ chunk: 0, tensor: 'cache_len_out', kind: 'differs' });
    expect(result.failures[0]?.reason).toMatch(/1 of 1 elements differ: 2 where the reference has 1/);
    expect(result.verdicts.numeric).toBe('fail');
  });

  it('a cached length beyond the capacity breaks the contract', async () => {
    const result = await parity({ step: -1 });
    expect(result.verdicts.contract).toBe('fail');
    expect(result.violations[0]).toMatchObject({ tensor: 'cache_len_out', chunk: 0 });
    expect(result.reasons[0]).toContain(result.violations[0]?.found);
  });

  it('the same is found where the runner writes every step into the same Buffers', async () => {
    const buffers = new Map<string, Buffer>();
    const reusing = (session: Session): ChunkRunner => {
      const runner = sessionRunner(session);
      return {
        ...runner,
        reusesBuffers: true,
        step: async (...step) => {
          const { outputs, times } = await runner.step(...step);
          const written = [...outputs].map(([name, tensor]): [string, Tensor] => {
            const buffer = buffers.get(`${name}${tensor.bytes.length}`) ?? Buffer.alloc(tensor.bytes.length);
            buffers.set(`${name}${buffer.length}`, buffer);
            buffer.set(tensor.bytes);
            return [name, { ...tensor, bytes: buffer }];
          });
          return { outputs: new Map(written), times };
        },
      };
    };
    const { violations } = await parity({ step: -1 });
    expect(violations.map(({ kind }) => kind)).toContain('monotonic');
    expect((await parity({ step: -1 }, {}, recorded, reusing)).violations).toEqual(violations);
  });

  it('junk behind the valid positions does no harm where the length is known', async () => {
    const result = await parity({ junk: 0.5 }, { mode: 'functional' });
    expect(result.outputs.find(({ tensor }) => tensor === 'cache_out')).toMatchObject({ passed: 40 });
  });

  it('and is named as padding where it is not', async () => {
    const state = contract.state.map((pair) => ({ ...pair, validLength: null, axis: null }));
    const fitted = contract.state.find(({ output }) => output === 'cache_out')!;
    const blind: Contract = {
      ...contract,
      state: state.map((pair) => (pair.output === 'cache_out' ? { ...pair, axis: fitted.axis } : pair)),
    };
    // The reference itself has junk at the end, so that by its values every position is in use.
    const junk = recorded.map((each): ReferenceChunk => {
      const cache = each.outputs.get('cache_out')!;
      const values = float32Values(cache).map((value) => (value === 0 ? 1e-4 : value));
      return {
        ...each,
        outputs: new Map([...each.outputs, ['cache_out', floats('float32', cache.shape, [...values])]]),
      };
    });
    const result = await parity({ junk: 0.5 }, { mode: 'functional', contract: blind, limit: 3 }, junk);
    expect(result.failures[0]).toMatchObject({ chunk: 0, tensor: 'cache_out' });
    expect(ids_(result)).toContain('padding-junk');
  });

  it('NaN', async () => {
    const result = await parity({ isNaN: true }, { limit: 4 });
    expect(result.failures[0]).toMatchObject({ tensor: 'output', kind: 'non-finite', maxAbs: 'NaN' });
    expect(result.failures[0]?.reason).toMatch(/10 NaN/);
    expect(result.outputs[0]?.nonFinite.candidate).toBe(10 + 3 * 6);
    expect(result.explanations[0]).toMatchObject({
      id: 'non-finite-output',
      evidence: { chunk: 0, outputs: ['output'] },
    });
  });

  it('a state of another layout: named, and the loop ends instead of the process', async () => {
    const result = await parity({ layerFirst: true });
    expect(result.failures[0]?.reason).toMatch(/layer-first on one side and batch-first on the other/);
    expect(result).toMatchObject({ verdicts: { contract: 'fail' }, chunks: 2, failed: 2 });
    expect(result.reasons.join(' ')).toMatch(/Chunk 1 could not be run/);
  });

  it('an output that is missing', async () => {
    const extra = recorded.map((each) => ({
      ...each,
      outputs: new Map<string, Tensor>([...each.outputs, ['gone', ids([1], [1])]]),
    }));
    const result = await parity({}, { limit: 2 }, extra);
    expect(result.failures).toMatchObject([
      { chunk: 0, tensor: 'gone', kind: 'missing' },
      { chunk: 1, tensor: 'gone', kind: 'missing' },
    ]);
    expect(result.verdicts).toMatchObject({ contract: 'fail', numeric: 'pass' });
  });
});

describe('faults of a reference are found and named', () => {
  it('an input that it does not record', async () => {
    const without = recorded.map((each) => ({
      ...each,
      inputs: new Map([...each.inputs].filter(([name]) => name !== 'length')),
    }));
    await expect(parity({}, {}, without)).rejects.toMatchObject({
      code: 'TF_PARITY_MISFIT',
      message: expect.stringMatching(/Chunk 0 of memory .*"length"/),
    });
  });

  it('lengths that were invented', async () => {
    const invented = recorded.map((each) => ({
      ...each,
      meta: { ...each.meta, stateLength: each.index + 1, stateLengthRaw: -67 },
    }));
    const result = await parity({}, { limit: 3 }, invented);
    expect(result.explanations[0]).toMatchObject({ id: 'invented-lengths', severity: 'error' });
    expect(result.explanations[0]?.sentence).toMatch(/3 of 3 chunks have .* -67 in chunk 0, and 1 /);
  });

  it('NaN in an input, in one chunk: named as the cause, and no bound of the error is stated', async () => {
    const spoilt = recorded.map((each) => {
      if (each.index !== 2) return each;
      const signal = each.inputs.get('signal')!;
      const values = float32Values(signal).slice();
      values[0] = Number.NaN;
      const inputs = new Map([...each.inputs, ['signal', floats('float32', signal.shape, [...values])]]);
      return { ...each, inputs };
    });
    const result = await parity({}, { limit: 10 }, spoilt);
    expect(result.explanations[0]).toMatchObject({
      id: 'non-finite-input',
      evidence: { chunk: 2, inputs: ['signal'] },
    });
    // Chunk 2 has two rows; only one of them is NaN, and that is enough.
    expect(result.series[2]?.tensors[0]).toMatchObject({ tensor: 'output', maxAbs: 'NaN', cosine: 'NaN' });
    expect(result.drift).toMatchObject({ max: 'NaN', worstChunk: 2 });
    const [p95] = result.drift!.checks;
    expect(p95).toMatchObject({ outcome: 'fail', measured: 'NaN' });
    expect(p95?.sentence).toMatch(/in \d of 10 chunks/);
  });

  it('NaN that only the reference has', async () => {
    const result = await parity(
      {},
      { limit: 5 },
      changed(3, (values) => values.fill(Number.NaN, 0, 1)),
    );
    expect(result.explanations[0]).toMatchObject({
      id: 'non-finite-reference',
      evidence: { chunk: 3, reference: ['output'] },
    });
  });

  it.each([
    ['the main output in one chunk', 'output', 3, 'inconclusive', /does not record output in chunk 3:/],
    ['the main output in all chunks', 'output', null, 'inconclusive', /records output in no chunk/],
    ['a state in one chunk', 'cache_out', 3, 'inconclusive', /does not record cache_out in chunk 3/],
    ['a state in all chunks', 'cache_out', null, 'pass', null],
  ] as const)('what it does not record: %s', async (_, name, chunk, verdict, sentence) => {
    const lacking = recorded.map((each) => ({
      ...each,
      outputs: new Map(
        [...each.outputs].filter(([output]) => output !== name || (chunk !== null && each.index !== chunk)),
      ),
    }));
    const result = await parity({}, { limit: 6 }, lacking);
    expect(result.verdicts.numeric).toBe(verdict);
    const said = result.explanations.find(({ id }) => id === 'output-not-recorded');
    if (sentence === null) expect(said).toBeUndefined();
    else expect(said?.sentence).toMatch(sentence);
  });

  it('a chunk that is missing: the break is named, and the candidate not blamed for its lengths', async () => {
    const gap = recorded.filter(({ index }) => index !== 3);
    const result = await parity({}, { limit: 6 }, gap);
    expect(result.verdicts.numeric).toBe('fail');
    expect(result.explanations[0]).toMatchObject({ id: 'stream-broken', severity: 'error' });
    expect(result.explanations[0]?.sentence).toMatch(
      /^Chunk 4 begins with a state of 4, but chunk 2 ended with 3\./,
    );
    expect(ids_(result)).not.toContain('shape-not-taken');
    // With the recorded state every chunk stands for itself.
    const functional = await parity({}, { mode: 'functional', limit: 6 }, gap);
    expect(functional).toMatchObject({ outcome: 'pass', failed: 0 });
    expect(functional.explanations).toMatchObject([{ id: 'stream-broken', severity: 'warning' }]);
  });

  it('a state tensor that begins as something else than it was left: named in both modes and without a run', async () => {
    const cleared = startingWith(4, floats('float32', [1, 2, CAPACITY, 3], Array(2 * CAPACITY * 3).fill(0)));
    const result = await parity({}, { limit: 6 }, cleared);
    // The outputs still agree: the state that was recorded is not what made them.
    expect([result.verdicts.numeric, result.outcome]).toEqual(['inconclusive', 'inconclusive']);
    expect(result.reasons.join()).toContain('Chunk 4');
    expect(result.explanations[0]).toMatchObject({
      id: 'stream-broken',
      severity: 'error',
      evidence: { about: 'cache' },
    });
    expect(result.explanations[0]?.sentence).toMatch(/Chunk 4 .* chunk 3 .*cache_out/);
    const functional = await parity({}, { mode: 'functional', limit: 6 }, cleared);
    expect(functional.explanations).toContainEqual(
      expect.objectContaining({ id: 'stream-broken', severity: 'warning' }),
    );
    const findings = checkData(contract, await recordedLengths(contract, referenceOf(cleared)), null);
    expect(findings.map(({ id, about }) => [id, about])).toEqual([['stream-broken', 'cache']]);
  });

  it.each([
    ['zeros as whole numbers', (state: Tensor) => ids(state.shape, Array(2 * CAPACITY * 3).fill(0)), true],
    [
      'one bit',
      (state: Tensor) => ({ ...state, bytes: state.bytes.with(0, (state.bytes[0] ?? 0) ^ 1) }),
      true,
    ],
    [
      'the rounding of another type',
      (state: Tensor) => floatTensor('float16', state.shape, float32Values(state)),
      false,
    ],
    ['positions that do not count, cleared or not', withJunkBehind, false],
  ])('a state that differs by %s', async (_, change, isBroken) => {
    const state = recorded[4]!.inputs.get('cache')!;
    const found = await recordedLengths(contract, referenceOf(startingWith(4, change(state))));
    expect(checkData(contract, found, null).map(({ id }) => id)).toEqual(isBroken ? ['stream-broken'] : []);
  });

  it.each([
    ['negative', -67],
    ['shrinking', 1],
  ])('a length that is %s: what the reference breaks is named', async (_, length) => {
    const wrong = recorded.map((each) =>
      each.index === 3
        ? {
            ...each,
            outputs: new Map<string, Tensor>([...each.outputs, ['cache_len_out', ids([1], [length])]]),
          }
        : each,
    );
    const result = await parity({}, { limit: 6 }, wrong);
    expect(result.explanations.find(({ id }) => id === 'assertion-against-data')?.sentence).toMatch(
      /\bchunk 3\b/,
    );
    expect(ids_(result)).not.toContain('shape-not-taken');
  });

  it('a contract that fills a state up on the other side: named, and padding alone proves nothing', async () => {
    const state = contract.state.map((pair) => ({ ...pair, padSide: 'left' as const }));
    const result = await parity({}, { mode: 'functional', limit: 3, contract: { ...contract, state } });
    expect(result.verdicts.numeric).not.toBe('pass');
    expect(result.explanations.find(({ id }) => id === 'pad-side-against-data')?.sentence).toMatch(
      /^In chunk 0 the 1 of 8 positions of cache_out that count are recorded with the padding on the right of axis 2/,
    );
  });

  it('products rounded to TF32: off alike in every chunk, by what TF32 rounds', async () => {
    const rounded = recorded.map((each) => {
      const output = each.outputs.get('output')!;
      const values = float32Values(output).map((value, at) => value * (1 + (at % 2 === 0 ? 4e-4 : -4e-4)));
      return {
        ...each,
        outputs: new Map([...each.outputs, ['output', floats('float32', output.shape, [...values])]]),
      };
    });
    const result = await parity({}, { mode: 'functional', rtol: [{ name: null, value: 1e-2 }] }, rounded);
    expect(ids_(result)).toContain('reference-in-tf32');
  });

  it('a closed loop over an input that reads like a state and is not fed back decides nothing', async () => {
    const unfed = { ...contract, state: contract.state.filter(({ input }) => input !== 'cache') };
    const [loop, each] = [
      await parity({}, { contract: unfed }),
      await parity({}, { contract: unfed, mode: 'functional' }),
    ];
    expect(ids_(loop)).toContain('state-not-in-contract');
    expect(loop.verdicts.numeric).toBe('inconclusive');
    expect(ids_(each)).not.toContain('state-not-in-contract');
  });

  it('types of another width are taken over', async () => {
    const narrow = recorded.map((each) => {
      const { shape } = each.inputs.get('length')!;
      const length: Tensor = {
        dtype: 'int32',
        shape,
        bytes: new Uint8Array(Int32Array.from([each.index === 0 ? 5 : 3]).buffer),
      };
      return { ...each, inputs: new Map([...each.inputs, ['length', length]]) };
    });
    expect(await parity({}, { limit: 3 }, narrow)).toMatchObject({ failed: 0 });
  });

  it.each(['functional', 'closed-loop'] as const)(
    'a candidate with int32 lengths where int64 was recorded goes on with its own: %s',
    async (mode) => {
      expect(await parity({ lengthType: 'int32' }, { mode })).toMatchObject({
        passed: 40,
        failed: 0,
        verdicts: { contract: 'pass', numeric: 'pass' },
      });
    },
  );

  it('a list of whole numbers serves as the floats that the candidate takes', async () => {
    const listed = recorded.map((each) => {
      const cache = each.inputs.get('cache')!;
      if (each.index > 0) return each;
      const zeros = ids(cache.shape, Array(2 * CAPACITY * 3).fill(0));
      return { ...each, inputs: new Map([...each.inputs, ['cache', zeros]]) };
    });
    expect(await parity({}, { limit: 3 }, listed)).toMatchObject({ failed: 0 });
  });

  it('inputs that the candidate does not take are reported', async () => {
    const more = recorded.map((each) => ({
      ...each,
      inputs: new Map<string, Tensor>([...each.inputs, ['extra', ids([1], [1])]]),
    }));
    expect((await parity({}, { limit: 2 }, more)).warnings).toEqual([expect.stringContaining('"extra"')]);
  });
});

describe('rules and tolerances', () => {
  const biased = { bias: 1e-3 };

  it('the whole tensor or each element: both are reported, one decides', async () => {
    // 1e-3 is within 9.9e-4 + 1e-4 * |reference| where that is 0.1 and more, but beyond either limit alone.
    const atol = [{ name: null, value: 9.9e-4 }];
    const rtol = [{ name: null, value: 1e-4 }];
    const asked = { mode: 'functional', policy: null, limit: 1, atol, rtol } as const;
    const strict = await parity(biased, asked);
    expect(strict.outputs[0]).toMatchObject({ passed: 0, tensorRulePassed: 0, allclosePassed: 1 });
    expect(strict.outcome).toBe('fail');
    const loose = await parity(biased, { ...asked, rule: 'allclose' });
    expect(loose.outputs[0]).toMatchObject({ passed: 1, tensorRulePassed: 0, allclosePassed: 1 });
    expect(loose.outcome).toBe('pass');
  });

  it('a tolerance of an output that is not there is rejected', async () => {
    const misspelt = parity({}, { atol: [{ name: 'outptu', value: 1 }] });
    await expect(misspelt).rejects.toMatchObject({
      code: 'TF_USAGE',
      message: expect.stringContaining('has no output outptu'),
    });
  });

  it("what the user passes goes before the contract's, a tensor's own before all", async () => {
    const told: Contract = {
      ...contract,
      tolerances: [
        { tensor: 'output', absolute: 1e-2, relative: null },
        { tensor: null, absolute: 1e-6, relative: 1e-6 },
      ],
    };
    const byContract = await parity(biased, { mode: 'functional', policy: null, contract: told, limit: 2 });
    expect(byContract.outputs[0]?.tolerance).toMatchObject({ absolute: 1e-2, why: 'from the contract' });
    expect(byContract.outputs.find(({ tensor }) => tensor === 'sum_out')?.tolerance?.absolute).toBe(1e-6);
    const asked = await parity(biased, {
      mode: 'functional',
      contract: told,
      limit: 2,
      atol: [{ name: null, value: 1e-4 }],
    });
    expect(asked.outputs[0]?.tolerance).toMatchObject({ absolute: 1e-4, why: 'as requested' });
  });

  it('a tolerance that zeros would pass makes the verdict inconclusive and is named', async () => {
    const result = await parity({}, { rtol: [{ name: 'output', value: 10 }] });
    expect(result.verdicts.numeric).toBe('inconclusive');
    expect(result.explanations[0]).toMatchObject({
      id: 'tolerance-cannot-fail',
      evidence: { tensor: 'output' },
    });
    expect(result.outputs[0]?.zerosPass).toBe(40);
  });

  it('the policy is the checklist’s by default, wider with the tolerance, another where one is passed, none where it is null', async () => {
    const nine = { mode: 'functional', atol: [{ name: null, value: 1e-2 }] } as const;
    const usual = await parity({ bias: 9e-4 }, { mode: 'functional' });
    expect((await parity({ bias: 9e-4 }, nine)).outcome).toBe('pass');
    expect(usual.drift?.checks.filter(({ outcome }) => outcome === 'fail').map(({ name }) => name)).toEqual([
      'pass-rate',
      'mean',
    ]);
    const own = { p95: 1e-2, max: 1e-2, mean: 1e-2, slope: 1e-3, latencyMs: 1e-6 };
    const slow = await parity({ bias: 9e-4 }, { ...nine, policy: own });
    expect(slow.drift?.checks.filter(({ outcome }) => outcome === 'fail').map(({ name }) => name)).toEqual([
      'latency',
    ]);
    expect((await parity({ bias: 9e-4 }, { ...nine, policy: null })).drift?.checks).toEqual([]);
  });
});

describe('chunks beyond the tolerance are judged as a stream, alike by verify and by the ready rules', () => {
  /** The reference with the first element of the main output so far off in so many chunks, spread over the stream. */
  const moved = (by: number) => (values: Float32Array) => {
    values[0] = values[0]! + by;
  };
  const off = (by: number, count: number) =>
    recorded.map((each): ReferenceChunk => {
      const at = Math.floor((each.index * count) / recorded.length);
      if (at === Math.floor(((each.index - 1) * count) / recorded.length)) return each;
      return changed(each.index, moved(by))[each.index]!;
    });
  const judged = (chunks: readonly ReferenceChunk[], more: Partial<ParityRequest> = {}) =>
    parity({}, { mode: 'functional', rtol: [{ name: 'output', value: 1e-6 }], ...more }, chunks);
  /** Whatever a chunk took on this machine. */
  const fast = ({ times }: ParityResult) => ({
    ...times,
    rest: times.rest && { ...times.rest, total: { ...times.rest.total, p95: 1 } },
  });
  const ruled = (result: ParityResult, rules: string, more = {}) =>
    gate({
      'policy.yaml': policyOf({ extends: rules, ...more }),
      'parity.json': { ...result, times: fast(result) },
    });

  it.each([
    ['one of 40 by 6e-4', 6e-4, 1, 'pass', 'warn', 'warn'],
    ['a tenth by 6e-4', 6e-4, 4, 'pass', 'warn', 'fail'],
    ['a quarter by 6e-4', 6e-4, 10, 'fail', 'fail', 'fail'],
    ['one by 1.1e-3', 1.1e-3, 1, 'fail', 'fail', 'fail'],
  ] as const)('%s', async (_, by, count, numeric, parityRules, acceptance) => {
    const result = await judged(off(by, count));
    expect(result).toMatchObject({ outcome: numeric, failed: count, drift: { passRate: 1 - count / 40 } });
    expect(result.failures).toHaveLength(count);
    expect(result.warnings).toHaveLength(numeric === 'pass' ? 1 : 0);
    expect(result.reasons.some((reason) => reason.includes('max_abs='))).toBe(numeric === 'fail');
    expect(ruled(result, 'streaming-parity').outcome).toBe(parityRules);
    expect(ruled(result, 'streaming-acceptance').outcome).toBe(acceptance);
  });

  it('without limits of the drift, each has to be within its tolerance', async () => {
    expect((await judged(off(6e-4, 1), { policy: null })).verdicts.numeric).toBe('fail');
    expect((await judged(off(6e-4, 1), { policy: { passRate: null } })).verdicts.numeric).toBe('fail');
    expect((await judged(off(6e-4, 4), { policy: { passRate: 0.95 } })).verdicts.numeric).toBe('fail');
  });

  it('another output beyond its tolerance fails, and so does a length, which no waiver of the numbers excuses', async () => {
    const state = changed(7, moved(6e-4), 'sum_out');
    expect((await judged(state, { rtol: [{ name: null, value: 1e-6 }] })).verdicts.numeric).toBe('fail');
    const length = recorded.map((each): ReferenceChunk => {
      const outputs = new Map([...each.outputs, ['lengths', ids([1], [9])]]);
      return each.index === 7 ? { ...each, outputs } : each;
    });
    const result = await judged(length);
    expect(result.verdicts).toMatchObject({ contract: 'fail', numeric: 'fail' });
    const waivers = [
      { check: 'own-outcome', at: 'verdicts.numeric', reason: 'of FP32', expires: '2027-03-01' },
    ];
    expect(ruled(result, 'streaming-parity', { waivers }).outcome).toBe('fail');
  });
});

it('a sentence of the contract that is no rule is a warning, of the gate too', async () => {
  const sentence = { sentence: 'it is fast enough', why: 'it is prose' };
  const result = await parity({}, { contract: { ...contract, notExecutable: [sentence] } });
  expect(result).toMatchObject({ outcome: 'pass', contract: { notExecutable: [sentence] } });
  expect(result.warnings).toContainEqual(expect.stringContaining(sentence.sentence));
  const judged = gate({
    'policy.yaml': policyOf({ extends: 'streaming-parity' }),
    'parity.json': { ...result },
  });
  expect(judged.outcome).toBe('warn');
  expect(judged.findings.filter(({ outcome }) => outcome === 'warn').map(({ check }) => check)).toEqual([
    'contract-sentences',
  ]);
});

it('a state that is recorded in the first chunk alone is enough in a closed loop', async () => {
  const first = recorded.map((each): ReferenceChunk => {
    const inputs = [...each.inputs].filter(([name]) => each.index === 0 || name !== 'sum');
    return { ...each, inputs: new Map(inputs) };
  });
  expect((await parity({}, { limit: 3 }, first)).outcome).toBe('pass');
});

describe('failing chunks are written down', () => {
  it('as npz with inputs, got_ and ref_, no more of them than allowed', async () => {
    const dump = join(folder, 'dump');
    const result = await parity({ ignoresCache: true }, { dump, dumpLimit: 2 });
    expect(readdirSync(dump).sort()).toEqual(['chunk_00001_fail.npz', 'chunk_00002_fail.npz']);
    expect(result.dumps).toEqual([1, 2].map((chunk) => join(dump, `chunk_0000${chunk}_fail.npz`)));
    const arrays = readNpz(result.dumps[0]!);
    expect([...arrays.keys()]).toEqual([
      'in_signal',
      'length',
      'in_cache',
      'in_cache_len',
      'in_sum',
      ...['output', 'lengths', 'cache_out', 'cache_len_out', 'sum_out'].map((name) => `got_${name}`),
      ...['output', 'lengths', 'cache_out', 'cache_len_out', 'sum_out'].map((name) => `ref_${name}`),
    ]);
    expect(arrays.get('ref_output')).toEqual(recorded[1]!.outputs.get('output'));
  });

  it('with inputs called like methods', () => {
    const inputs = new Map([['constructor', floats('float32', [1], [1])]]);
    const nothing = new Map<string, Tensor>();
    const failing = { chunk: 0, inputs, outputs: nothing, reference: nothing, isShapeMismatch: false };
    const path = dumpChunk(mkdtempSync(join(folder, 'methods-')), failing);
    expect([...readNpz(path).keys()]).toEqual(['in_constructor']);
  });

  it('under a name of its own where shapes differ', async () => {
    const dump = join(folder, 'shapes');
    await parity({ layerFirst: true }, { dump });
    expect(readdirSync(dump)).toEqual(['chunk_00000_shape_mismatch.npz']);
  });
});
