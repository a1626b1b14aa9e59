import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compareExactly, zerosOutside } from '../../../src/formats/tensor/compare/comparison.js';
import { randomStream, randomTensor } from '../../../src/formats/tensor/random.js';
import { integerTensor, numbersOf, type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { tensorReader } from '../../../src/formats/tensor/tensor-reader.js';
import { parseCheck, shortNumber } from '../../../src/quality/verify/checks.js';
import { judgeOutput } from '../../../src/quality/verify/judge-output.js';
import type { JudgeRules } from '../../../src/quality/verify/judged.js';
import type { VerifiedOutput } from '../../../src/quality/verify/result.js';

interface PolygraphyCase {
  readonly candidate: readonly number[];
  readonly reference: readonly number[];
  readonly metrics: Readonly<Record<string, number>>;
  /** `statistic atol rtol` to whether Polygraphy passes. */
  readonly verdicts: Readonly<Record<string, boolean>>;
  readonly l2: number;
  readonly cosine: number;
  readonly psnr: number | string;
  readonly snr: number | string;
}

const cases = JSON.parse(
  readFileSync(new URL('../../fixtures/polygraphy/expected.json', import.meta.url), 'utf8'),
) as Record<string, PolygraphyCase>;

function judge(candidate: readonly number[], reference: readonly number[], rules: Partial<JudgeRules> = {}) {
  const tensor = (values: readonly number[]) =>
    tensorReader(tensorFrom('float32', [values.length], Float32Array.from(values)));
  return judgeOutput({
    name: 'y',
    precision: 'fp32',
    atol: [],
    rtol: [],
    candidate: [tensor(candidate)],
    reference: [tensor(reference)],
    ...rules,
  }).output;
}

const statistic = (output: VerifiedOutput, wanted: string) =>
  output.statistics.find(({ name }) => name === wanted)?.amount;
const all = (value: number) => [{ name: null, value }];

describe.each(Object.entries(cases))("Polygraphy's own numbers: %s", (_name, expected) => {
  const output = judge(expected.candidate, expected.reference, {
    checks: ['max', 'mean', 'median', 'quantile=0.9', 'l2', 'cosine', 'psnr', 'snr'].map(parseCheck),
  });
  const measured = new Map(
    output.checks.flatMap(({ statistic, measured: amount, or }) => [
      [statistic, amount] as const,
      ...(or === undefined ? [] : [[or.statistic, or.measured] as const]),
    ]),
  );

  it.each([
    ['max', 'max_absdiff'],
    ['max relative', 'max_reldiff'],
    ['mean', 'mean_absdiff'],
    ['mean relative', 'mean_reldiff'],
    ['median', 'median_absdiff'],
    ['median relative', 'median_reldiff'],
    ['quantile 0.9', 'quantile_absdiff'],
    ['quantile 0.9 relative', 'quantile_reldiff'],
    ['L2', 'l2'],
    ['cosine similarity', 'cosine'],
    ['PSNR in dB', 'psnr'],
    ['SNR in dB', 'snr'],
  ])('%s', (statistic, field) => {
    const wanted = Number(
      (expected.metrics as Readonly<Record<string, number | string>>)[field] ??
        (expected as unknown as Readonly<Record<string, number | string>>)[field],
    );
    const found = Number(measured.get(statistic));
    if (Number.isFinite(wanted))
      expect(Math.abs(found - wanted)).toBeLessThanOrEqual(5e-6 * Math.abs(wanted));
    else expect(found).toBe(wanted);
  });

  it.each(Object.entries(expected.verdicts))('%s', (key, passes) => {
    const [statistic = '', atol = '', rtol = ''] = key.split(' ');
    const kind = statistic === 'quantile' ? 'quantile=0.9' : statistic;
    const judged = judge(expected.candidate, expected.reference, {
      checks: [parseCheck(kind)],
      atol: all(Number(atol)),
      rtol: all(Number(rtol)),
    });
    expect(judged.pass).toBe(passes);
  });
});

describe('checks', () => {
  it.each([
    ['elemwise', { name: null, kind: 'elemwise', threshold: null }],
    ['cosine=0.99', { name: null, kind: 'cosine', threshold: 0.99 }],
    ['a:b:psnr=40', { name: 'a:b', kind: 'psnr', threshold: 40 }],
    ['quantile=0.5', { name: null, kind: 'quantile', threshold: 0.5 }],
  ])('%s is understood', (text, check) => {
    expect(parseCheck(text)).toEqual(check);
  });

  it.each(['', 'cos', 'max=3', 'quantile=2', 'cosine=', 'cosine=x', ':max', 'l2=1e999'])(
    '"%s" is rejected, with the checks there are',
    (text) => {
      expect(() => parseCheck(text)).toThrow(/is not a check/);
    },
  );

  it("take an output's own threshold before the one for all", () => {
    const reference = [1, 2, 3, 4];
    const candidate = [1.2, 2, 3, 4];
    const limit = (...checks: string[]) =>
      judge(candidate, reference, { checks: checks.map(parseCheck) }).checks[0]?.limit;
    expect(limit('y:snr=10', 'snr=30')).toBe(10);
    expect(limit('other:snr=10', 'snr=30')).toBe(30);
  });
});

describe('the baseline of zeros', () => {
  const small = [1e-4, -2e-4, 3e-4];

  it.each<[string, Partial<JudgeRules>]>([
    ['elements', { checks: [parseCheck('elemwise')], atol: all(1e-3) }],
    ['the largest error', { checks: [parseCheck('max')], atol: all(1e-3) }],
    ['the mean', { checks: [parseCheck('mean')], atol: all(1e-3) }],
    ['the median, though not the largest', { checks: [parseCheck('median')], atol: all(2.5e-4) }],
    ['a relative tolerance of 1', { checks: [parseCheck('max')], atol: all(0), rtol: all(1) }],
    ['L2', { checks: [parseCheck('l2=1')] }],
    ['SNR', { checks: [parseCheck('snr=-3')] }],
    ['atol and rtol', { atol: all(1e-3) }],
  ])('makes a check that cannot fail inconclusive: %s', (_case, rules) => {
    expect(judge(small, small, rules)).toMatchObject({
      outcome: 'inconclusive',
      pass: true,
      planted: expect.arrayContaining([{ error: 'zeros', slice: null }]),
    });
    expect(judge(small, small, { ...rules, allowLoose: true }).outcome).toBe('pass');
  });

  it.each<[string, Partial<JudgeRules>]>([
    ['the usual limits', {}],
    ['cosine', { checks: [parseCheck('cosine')] }],
    ['one of several', { checks: [parseCheck('max'), parseCheck('snr')], atol: all(1) }],
    ['the mean, within its errors', { checks: [parseCheck('mean')], atol: all(1e-5) }],
  ])('lets a check that can fail pass: %s', (_case, rules) => {
    expect(judge(small, small, rules)).toMatchObject({ outcome: 'pass', planted: [] });
  });
});

describe('outputs of few elements', () => {
  const FP16_BOUND = 5e-3;
  /** Normally distributed errors; how many of 200 draws fail. */
  const failures = (elements: number, deviation: number) => {
    let failed = 0;
    for (let seed = 0; seed < 200; seed++) {
      const range = { kind: 'normal', mean: 0, deviation } as const;
      const errors = Array.from(
        numbersOf(randomTensor('float32', [elements], range, randomStream(seed, 'errors'))),
      );
      const reference = errors.map((_, index) => Math.SQRT2 * Math.sin(index + 1));
      const candidate = reference.map((value, index) => value + (errors[index] ?? 0));
      if (!judge(candidate, reference, { precision: 'fp16' }).pass) failed++;
    }
    return failed;
  };

  it.each([3, 16, 48, 384])('of %i: rounding within the bound never fails by chance', (elements) => {
    expect(failures(elements, 0.5 * FP16_BOUND)).toBe(0);
  });

  it.each([
    [48, 3],
    [384, 2],
  ])('of %i: errors of %i times the bound never pass by chance', (elements, times) => {
    expect(failures(elements, times * FP16_BOUND)).toBe(200);
  });
});

describe('the reasons of a failure', () => {
  const many = Array.from({ length: 2000 }, (_, index) => Math.sin(index));
  const off = (by: (index: number) => number) => many.map((value, index) => value + by(index));

  it.each<[string, readonly number[], readonly number[], Partial<JudgeRules>]>([
    ['p99', off((index) => (index % 50 === 0 ? 1e-3 : 0)), many, {}],
    ['p99 of errors within the tolerance', off((index) => (many[index] ?? 0) * 1.6e-5), many, {}],
    ['max', off((index) => (index === 7 ? 0.1 : 0)), many, {}],
    ['RMS', [1, 2, 3.001], [1, 2, 3], {}],
    ['atol and rtol', [1, 2, 3.1], [1, 2, 3], { atol: all(0.01) }],
    ['Polygraphy', [1, 2, 3.1], [1, 2, 3], { checks: ['mean', 'cosine=1', 'snr=99'].map(parseCheck) }],
    ['NaN', [1, Number.NaN, 3], [1, 2, 3], {}],
  ])(
    'name every check that failed, with what was measured and its limit: %s',
    (_case, ours, theirs, rules) => {
      const { outcome, checks, reasons } = judge(ours, theirs, rules);
      const failed = checks.filter(({ pass, statistic }) => !pass && statistic !== 'non-finite');
      expect(outcome).toBe('fail');
      for (const { statistic, measured, limit, or } of failed) {
        const all = [measured, limit, ...(or === undefined ? [] : [or.measured, or.limit])];
        const numbers = all.map((value) => shortNumber(Number(value)));
        const named = reasons.filter((reason) =>
          [statistic, ...numbers].every((part) => reason.includes(part)),
        );
        expect(named).toHaveLength(1);
      }
      expect(reasons.join()).not.toContain(' 0 of ');
    },
  );
});

describe('NaN and infinity', () => {
  const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

  it.each([3, 3000])('leave the statistics of the other side as they are, of %i elements', (elements) => {
    const values = Array.from({ length: elements }, (_, index) => (index % 3) + 1);
    const wholly = judge(
      values.map(() => inf),
      values,
    );
    expect(wholly.sides?.reference).toMatchObject({ min: 1, max: 3, mean: expect.closeTo(2, 6) });
    expect(wholly.sides?.candidate).toMatchObject({ min: 'NaN', max: 'NaN', mean: 'NaN' });
    const partly = judge([nan, ...values.slice(1)], values);
    expect(partly.sides?.reference).toMatchObject({ min: 1, max: 3, mean: expect.closeTo(2, 6) });
    expect(partly.sides?.candidate).toMatchObject({ max: 3 });
  });

  it('pass where both have the same, unless strict', () => {
    const values = [1, nan, inf, 2];
    expect(judge(values, values)).toMatchObject({
      outcome: 'pass',
      nonFinite: { nanInCandidate: 1, infiniteInReference: 1, matching: 2, mismatching: 0 },
    });
    expect(judge(values, values, { strictNonFinite: true })).toMatchObject({ outcome: 'fail' });
  });

  it.each([
    ['NaN for a number', [1, nan, 3], [1, 2, 3]],
    ['NaN for an infinity', [1, nan, 3], [1, inf, 3]],
    ['the other infinity', [1, inf, 3], [1, -inf, 3]],
  ])('fail, and are the worst element: %s', (_case, candidate, reference) => {
    const output = judge(candidate, reference);
    expect(output.outcome).toBe('fail');
    expect(output.worst?.[0]).toMatchObject({ index: [1], error: 'Infinity' });
  });
});

describe('a NaN of the reference', () => {
  it.each([
    ['a number', 2],
    ['an infinity', Number.POSITIVE_INFINITY],
  ])('shows nothing: %s in its place does not fail, but is counted', (_case, value) => {
    const output = judge([1, value, 3], [1, Number.NaN, 3]);
    expect(output.outcome).toBe('pass');
    expect(output.nonFinite).toMatchObject({ mismatching: 1, onlyInCandidate: 0 });
    expect(judge([1, value, 3], [1, Number.NaN, 3], { strictNonFinite: true }).outcome).toBe('fail');
  });
});

describe('the worst elements', () => {
  it('are reported with sample, indices and both values, the worst first', () => {
    const tensor = (values: readonly number[]) =>
      tensorReader(tensorFrom('float32', [2, 2], Float32Array.from(values)));
    const { output } = judgeOutput({
      name: 'y',
      precision: 'fp32',
      atol: [],
      rtol: [],
      candidate: [tensor([1, 2, 3, 4.5]), tensor([1, 2, 5, 4])],
      reference: [tensor([1, 2, 3, 4]), tensor([1, 2, 3, 4])],
    });
    expect(output.worst).toEqual([
      { sample: 1, index: [1, 0], candidate: 5, reference: 3, error: 2 },
      { sample: 0, index: [1, 1], candidate: 4.5, reference: 4, error: 0.5 },
    ]);
  });
});

describe('integers', () => {
  const judgeWide = (candidate: readonly bigint[], reference: readonly bigint[]) =>
    judgeOutput({
      name: 'y',
      precision: 'fp32',
      atol: [],
      rtol: [],
      candidate: [tensorReader(tensorFrom('int64', [candidate.length], BigInt64Array.from(candidate)))],
      reference: [tensorReader(tensorFrom('int64', [reference.length], BigInt64Array.from(reference)))],
    }).output;

  it('are compared to the last bit', () => {
    const large = 2n ** 62n;
    expect(judgeWide([large, 1n], [large, 1n]).outcome).toBe('pass');
    expect(judgeWide([large + 1n, 1n], [large, 1n])).toMatchObject({
      outcome: 'fail',
      worst: [{ sample: 0, index: [0], error: 1 }],
    });
    expect(statistic(judgeWide([large + 1n, 1n], [large, 1n]), 'max')).toBe(1);
  });

  const judgeBytes = (
    candidate: readonly number[],
    reference: readonly number[],
    rules: Partial<JudgeRules> = {},
  ) =>
    judgeOutput({
      name: 'y',
      precision: 'fp32',
      atol: [],
      rtol: [],
      candidate: [tensorReader(tensorFrom('int8', [candidate.length], Int8Array.from(candidate)))],
      reference: [tensorReader(tensorFrom('int8', [reference.length], Int8Array.from(reference)))],
      ...rules,
    }).output;
  const ours = [11, -20, 29, 40];
  const theirs = [10, -20, 30, 40];
  const named = (value: number) => [{ name: 'y', value }];

  it.each<[string, Partial<JudgeRules>, 'pass' | 'fail' | 'inconclusive']>([
    ['nothing asked for', {}, 'fail'],
    ['a tolerance that names them', { atol: named(1) }, 'pass'],
    ['one that is too small', { atol: named(0.5) }, 'fail'],
    ['a relative one that names them', { rtol: named(0.1) }, 'pass'],
    ['one for all outputs, which is meant for floats', { atol: all(1) }, 'fail'],
    ['one for all outputs and one that names them', { atol: [...all(1e-9), ...named(1)] }, 'pass'],
    ['a tolerance that zeros would keep', { atol: named(40) }, 'inconclusive'],
    ['the same, allowed', { atol: named(40), allowLoose: true }, 'pass'],
    ['a check that names them', { checks: [parseCheck('y:cosine=0.99')] }, 'pass'],
    ['one of those that fails', { checks: [parseCheck('y:cosine=0.9999')] }, 'fail'],
    ['a check for all outputs, which is meant for floats', { checks: [parseCheck('cosine=0.99')] }, 'fail'],
  ])('with %s', (_case, rules, outcome) => {
    expect(judgeBytes(ours, theirs, rules).outcome).toBe(outcome);
  });

  it('state how a tolerance counts for them when one is passed that does not', () => {
    expect(judgeBytes(ours, theirs, { atol: all(1) }).reasons[0]).toMatch(/2 of 4 .* --atol y:1\.$/);
    expect(judgeBytes(ours, theirs).reasons[0]).toMatch(/2 of 4 .* 0\.5, .* limit 0\.$/);
  });

  it('have the statistics that floats have, and state what zeros would have scored', () => {
    const output = judgeBytes(ours, theirs, { atol: named(1) });
    expect(Object.fromEntries(output.statistics.map(({ name, amount }) => [name, amount]))).toMatchObject({
      max: 1,
      mean: 0.5,
      deviation: 0.5,
      'different elements': 2,
      'outside tolerance': 0,
      'max relative': expect.closeTo(0.1, 6),
      L2: expect.closeTo(Math.SQRT2, 6),
    });
    expect(output.sides?.reference).toMatchObject({ min: -20, max: 40, mean: 15 });
    expect(output.planted).toEqual([]);
    const mostlyZeros = [1, ...new Array<number>(199).fill(0)];
    const rare = judgeBytes(mostlyZeros, mostlyZeros, { precision: 'fp16' });
    expect(rare).toMatchObject({ outcome: 'pass', planted: [] });
    expect(judgeBytes([0, 0], [0, 0]).outcome).toBe('inconclusive');
  });

  it('beyond the range of float32 are compared by checks, and those beyond a double do not pass', () => {
    const rules = { precision: 'fp32', checks: [parseCheck('y:max')], rtol: all(1e-17) } as const;
    const judgeWide = (candidate: Tensor, reference: Tensor, atol: number) =>
      judgeOutput({
        ...rules,
        name: 'y',
        atol: all(atol),
        candidate: [tensorReader(candidate)],
        reference: [tensorReader(reference)],
      }).output;
    const int32 = (...values: number[]) => integerTensor('int32', [values.length], values);
    expect(judgeWide(int32(2 ** 24 + 1, 5), int32(2 ** 24, 5), 0.5).outcome).toBe('fail');
    expect(judgeWide(int32(2 ** 24 + 1, 5), int32(2 ** 24, 5), 1).outcome).toBe('pass');
    const int64 = (value: bigint) => tensorFrom('int64', [2], BigInt64Array.of(value, 5n));
    const doubtful = judgeWide(int64(2n ** 53n + 1n), int64(2n ** 53n), 0.5);
    expect(doubtful.outcome).toBe('inconclusive');
    expect(doubtful.reasons[0]).toMatch(/integers as float64.*2\^53.*--atol y:0/);
  });

  it('count complex zeros element by element', () => {
    const complex = (...parts: number[]): Tensor => ({
      dtype: 'complex64',
      shape: [parts.length / 2],
      bytes: new Uint8Array(Float32Array.from(parts).buffer),
    });
    const outside = (tensor: Tensor) => zerosOutside(tensorReader(tensor), { absolute: 0, relative: 0 }, 'y');
    expect(outside(complex(0, 1, 0, 0, 2, 0, 0, 0))).toBe(2);
    expect(outside(complex(0, 0))).toBe(0);
  });

  it.each<[string, Tensor, Tensor]>([
    [
      'int64 against uint64',
      tensorFrom('int64', [2], BigInt64Array.of(-1n, 2n ** 62n)),
      tensorFrom('uint64', [2], BigUint64Array.of(2n ** 64n - 1n, 2n ** 62n)),
    ],
    [
      'int64 against a double that has no room for its last bit',
      tensorFrom('int64', [2], BigInt64Array.of(2n ** 53n + 1n, 4n)),
      tensorFrom('float64', [2], Float64Array.of(2 ** 53, 4)),
    ],
    [
      'uint64 against float32',
      tensorFrom('uint64', [2], BigUint64Array.of(2n ** 63n + 1n, 7n)),
      tensorFrom('float32', [2], Float32Array.of(2 ** 63, 7)),
    ],
    [
      'int64 against a fraction',
      tensorFrom('int64', [2], BigInt64Array.of(4n, 7n)),
      tensorFrom('float64', [2], Float64Array.of(4.5, 7)),
    ],
    [
      'uint64 against int8',
      tensorFrom('uint64', [2], BigUint64Array.of(255n, 7n)),
      tensorFrom('int8', [2], Int8Array.of(-1, 7)),
    ],
  ])('are compared to the last bit also with another type: %s', (_case, candidate, reference) => {
    for (const [ours, theirs] of [
      [candidate, reference],
      [reference, candidate],
    ] as const) {
      const found = compareExactly(tensorReader(ours), tensorReader(theirs), 'y', 2);
      expect([found.different, found.worst[0]?.index]).toEqual([1, 0]);
      expect(found.largest).toBeGreaterThan(0);
    }
  });
});
