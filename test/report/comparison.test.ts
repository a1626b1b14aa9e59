import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { compareVariants } from '../../src/products/evaluation/compare/compare-variants.js';
import { compareResults } from '../../src/report/comparison/compare.js';
import { type ComparedPair, runComparisonSchema } from '../../src/report/comparison/result.js';
import { comparableRuns } from '../../src/report/comparison/runs.js';
import type { ForgeResult } from '../../src/report/forge-result.js';
import { comparisonPage } from '../../src/report/pages/comparison.js';
import { failedBundle, sampleBundle } from '../products/bundle/report/sample.js';
import { sampleVariants } from '../products/evaluation/compare/sample.js';
import { sampleParity } from '../products/streaming/report/sample.js';
import { trtforge } from '../support/trtforge.js';
import { comparedSamples, measuredSample, percentileBench, retrainedSample } from './compared-samples.js';
import { sampleResult, stoppedSample } from './sample.js';

const at = (name: string, result: ForgeResult) => ({ root: `runs/${name}`, path: `runs/${name}`, result });
const sideBySide = (...results: readonly ForgeResult[]) =>
  runComparisonSchema.parse(
    compareResults(
      'forge',
      comparableRuns,
      results.map((result, index) => at(`${index}`, result)),
    ),
  );
const compared = (a: ForgeResult, b: ForgeResult) => sideBySide(a, b).pairs[0]!;
/** What a command printed. */
const pairIn = (out: string): ComparedPair => runComparisonSchema.parse(JSON.parse(out)).pairs[0]!;

const partOf = ({ parts }: ComparedPair, name: string) => parts.find(({ part }) => part === name);
const ratiosOf = (comparison: ComparedPair, name: string) =>
  partOf(comparison, name)?.rows.map(({ ratio }) => ratio);

describe('two runs side by side', () => {
  it('have the fields of the identity that differ, and ratios of A over B', () => {
    const found = compared(...comparedSamples());
    expect(found.identity).toEqual({
      equal: false,
      differences: [{ field: 'recipe.precision', a: 'int8', b: 'fp16' }],
    });
    expect(found.parts.map(({ part, notComparable }) => [part, notComparable])).toEqual(
      ['engine', 'build', 'precision', 'accuracy', 'speed'].map((part) => [part, []]),
    );
    expect(partOf(found, 'engine')?.rows[0]).toEqual({
      what: 'size of the plan',
      unit: 'bytes',
      a: 26_150_940,
      b: 52_301_880,
      ratio: 0.5,
    });
    expect(partOf(found, 'speed')?.rows[0]).toMatchObject({ unit: 'ms', a: 4, b: 8, ratio: 0.5 });
    expect(partOf(found, 'accuracy')?.rows[0]).toMatchObject({ unit: 'error', a: 0.00212, ratio: 1 });
  });

  it('have the decisions of their outputs', () => {
    const deciding = (turned: number) => {
      const { verification } = sampleResult();
      const [first, ...rest] = verification!.outputs;
      const check = {
        statistic: 'share of decisions turned (above 0.5)',
        measured: turned,
        limit: 0.1,
        pass: true,
      };
      const output = { ...first!, checks: [...first!.checks, check] };
      return sampleResult({ verification: { ...verification!, outputs: [output, ...rest] } });
    };
    expect(partOf(compared(deciding(0.04), deciding(0.08)), 'accuracy')?.rows).toContainEqual({
      what: 'logits: share of decisions turned (above 0.5)',
      unit: 'share',
      a: 0.04,
      b: 0.08,
      ratio: 0.5,
    });
  });

  it('of one identity differ in nothing', () => {
    expect(compared(sampleResult(), sampleResult())).toMatchObject({
      identity: { equal: true, differences: [] },
      environment: [],
    });
  });

  type Bench = NonNullable<ForgeResult['bench']>;
  const changedBench = (change: (bench: Bench) => Bench): ForgeResult => {
    const sample = measuredSample(1000);
    return { ...sample, bench: change(sample.bench!) };
  };
  const withRun = (more: Partial<Bench['runs'][number]>) =>
    changedBench((bench) => ({ ...bench, runs: [{ ...bench.runs[0]!, ...more }] }));
  const measured = measuredSample(1000);
  const mode = measured.bench!.runs[0]!.mode;
  it.each<readonly [string, string, ForgeResult]>([
    ['another GPU', 'speed', changedBench((bench) => ({ ...bench, gpu: { ...bench.gpu!, name: 'Other' } }))],
    ['another mode', 'speed', withRun({ mode: { ...mode, graph: mode.graph !== true } })],
    ['other shapes', 'speed', withRun({ shapes: [{ name: 'images', shape: [1, 3, 64, 64] }] })],
    ['no measurement', 'speed', { ...measured, bench: null }],
    ['another model', 'accuracy', retrainedSample()],
    ['another model', 'precision', retrainedSample()],
    ['other samples', 'accuracy', { ...measured, verification: { ...measured.verification!, seed: 7 } }],
    ['no engine', 'engine', { ...measured, build: null }],
  ])('with %s have no ratio of %s, and the reason', (_what, part, other) => {
    const found = compared(measured, other);
    expect(partOf(found, part)?.notComparable).toHaveLength(1);
    expect(new Set(ratiosOf(found, part))).toEqual(new Set([null]));
    const [whole] = [compared(measured, measured)];
    expect(partOf(whole, part)?.notComparable).toEqual([]);
  });

  it('are unreliable where a measurement is', () => {
    const doubts = [{ rule: 'clocks', why: 'the clocks changed' }];
    const both = sideBySide(measured, withRun({ doubts }));
    const found = partOf(both.pairs[0]!, 'speed');
    expect(found?.notComparable).toEqual([]);
    expect(found?.doubts).toHaveLength(1);
    expect(comparisonPage(both).verdict).toMatchObject({ outcome: 'inconclusive', word: 'Unreliable' });
    expect(comparisonPage(sideBySide(measured, measured)).verdict).toMatchObject({ outcome: 'pass' });
  });

  it('warn where nothing states that the weights are equal', () => {
    const warnings = (...results: readonly [ForgeResult, ForgeResult]) =>
      partOf(compared(...results), 'accuracy')?.warnings.length ?? 0;
    const unbuilt = { ...measured, build: null };
    expect(warnings(unbuilt, unbuilt)).toBe(warnings(measured, measured) + 1);
  });

  it('of which one stopped have what there is', () => {
    const { runs, pairs } = sideBySide(sampleResult(), stoppedSample());
    const found = pairs[0]!;
    expect(found.identity).toBeNull();
    expect(runs[1]).toMatchObject({ outcome: 'inconclusive', engine: null });
    expect(partOf(found, 'accuracy')?.notComparable).toHaveLength(1);
  });
});

/** The accuracy of a run: the largest error of all checks is `share` of their limits, or that share of 100 decisions is lost. */
function judgedSample(
  precision: string,
  bytes: number,
  judged: { readonly limit?: number; readonly share?: number; readonly lost?: number },
  more: Partial<ForgeResult> = {},
): ForgeResult {
  const { limit = 0.01, share = 0.5, lost } = judged;
  const sample = sampleResult();
  const { build, verification } = sample;
  const check = { statistic: 'RMS', measured: share * limit, limit, pass: share <= 1 };
  const counted = { reference: 100, kept: 100 - Number(lost), lost: Number(lost), new: 0, ties: 0 };
  const decisions = [{ rule: 'argmax' as const, ...counted, limit: 0.01, pass: true }];
  const outputs = verification!.outputs.map((output) => ({
    ...{ ...output, checks: [check] },
    ...(lost === undefined ? {} : { decisions }),
  }));
  const plan = { ...build!.passport.plan, bytes };
  return {
    ...sample,
    request: { ...sample.request, precision },
    build: { ...build!, passport: { ...build!.passport, plan } },
    verification: { ...verification!, outputs },
    ...more,
  };
}
const asItIs = (bytes: number, more: Partial<ForgeResult> = {}) =>
  judgedSample('as-is', bytes, {}, { verification: null, conversion: null, ...more });
const failing = { verdict: { outcome: 'fail' as const, headline: 'It fails.', reasons: [] } };

describe('several runs', () => {
  it('are points of size and error by one limit, with the front of those that did not fail', () => {
    const { decision, pairs } = sideBySide(
      judgedSample('int8', 5000, { limit: 0.1, share: 0.5 }),
      judgedSample('fp16', 3000, { limit: 0.01, share: 0.8 }),
      judgedSample('fp8', 2000, { limit: 0.1, share: 3 }, failing),
      judgedSample('bf16', 3000, { limit: 0.01, share: 2 }),
      asItIs(6000),
    );
    expect(pairs).toHaveLength(4);
    expect(decision?.cost).toEqual({ what: 'size of the plan', unit: 'bytes' });
    const rows = decision?.points.map(({ name, cost, error, isFront }) => [name, cost, error, isFront]);
    expect(rows).toEqual([
      ['A INT8', 5000, expect.closeTo(0.5), false],
      ['B FP16', 3000, expect.closeTo(0.08), true],
      ['C FP8', 2000, expect.closeTo(3), false],
      ['D BF16', 3000, expect.closeTo(0.2), false],
      ['E as-is', 6000, 0, true],
    ]);
  });

  it('are judged by decisions where all have some', () => {
    const { decision } = sideBySide(
      judgedSample('int8', 2000, { lost: 3 }),
      judgedSample('fp16', 3000, { lost: 0 }),
    );
    expect(decision?.error).toMatchObject({ unit: 'share', limit: null });
    expect(decision?.points.map(({ error, isFront }) => [error, isFront])).toEqual([
      [0.03, true],
      [0, true],
    ]);
    const mixed = sideBySide(judgedSample('int8', 2000, { lost: 3 }), judgedSample('fp16', 3000, {}));
    expect(mixed.decision?.error.limit).toBe(1);
  });

  it('are points of time where a GPU measured two or more, and the others are named', () => {
    const timed = (rate: number) => ({ bench: measuredSample(rate).bench });
    const { decision } = sideBySide(
      judgedSample('int8', 9000, {}, timed(4000)),
      judgedSample('fp16', 3000, {}, timed(2000)),
      judgedSample('bf16', 1000, {}),
    );
    expect(decision?.cost.unit).toBe('ms');
    expect(decision?.points.map(({ cost, missing }) => [cost, missing.length])).toEqual([
      [2, 0],
      [4, 0],
      [null, 1],
    ]);
    const [first, second] = [judgedSample('int8', 9000, {}, timed(4000)), judgedSample('fp16', 3000, {})];
    expect(sideBySide(first, second).decision?.cost.unit).toBe('bytes');
  });

  it('of other models and other samples have no place, and the reason', () => {
    const fp16 = judgedSample('fp16', 3000, {});
    const elsewhere = { verification: { ...fp16.verification!, seed: 99 } };
    const { build } = retrainedSample();
    const { decision } = sideBySide(
      fp16,
      judgedSample('bf16', 3100, {}),
      judgedSample('int8', 2000, {}, elsewhere),
      judgedSample('int8', 1000, {}, { build }),
    );
    expect(decision?.points.map(({ error, missing }) => [error === null, missing.length])).toEqual([
      [false, 0],
      [false, 0],
      [true, 1],
      [true, 1],
    ]);
    expect(sideBySide(fp16, judgedSample('int8', 2000, {}, elsewhere)).decision).toBeNull();
  });

  it('that stopped are named with what stopped them', () => {
    const { decision } = sideBySide(
      stoppedSample(),
      judgedSample('fp16', 3000, {}),
      judgedSample('bf16', 3100, {}),
    );
    expect(decision?.points[0]).toMatchObject({
      isFront: false,
      missing: [stoppedSample().verdict.headline],
    });
  });

  it('have every field that differs, with no value of a run without an engine', () => {
    const [a, b] = comparedSamples();
    const { sections } = comparisonPage(sideBySide(a, b, { ...a, build: null }, b));
    const identity = sections.find((section) => section?.id === 'identity')!;
    const [table] = identity.blocks.flatMap((block) => (block?.kind === 'table' ? [block] : []));
    expect(table?.rows.map((row) => row.slice(1))).toEqual([['int8', 'fp16', '–', 'fp16']]);
  });

  it('have every figure in one row, and a reason once', () => {
    const [a, b] = comparedSamples();
    const all = sideBySide(a, b, { ...b, bench: null });
    const page = comparisonPage(all);
    const speed = page.sections.find((section) => section?.id === 'speed');
    const tables = speed!.blocks.flatMap((block) => (block?.kind === 'table' ? [block] : []));
    expect(tables[0]?.columns).toHaveLength(6);
    expect(tables[0]?.rows[0]?.slice(1)).toEqual(['4.0 ms', '8.0 ms', '–', '–', '–']);
    const speeds = page.verdict.reasons.filter((reason) => reason.startsWith('Speed'));
    expect(speeds).toHaveLength(1);
    expect(speeds[0]).toContain('C has no measurement');
    expect(all.pairs.map((pair) => partOf(pair, 'engine')?.rows[0]?.ratio)).toEqual([0.5, 1]);
  });
});

describe('trtforge report A B', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-report-two-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const written = (name: string, result: object, file = 'report.json'): string => {
    const root = join(folder, name);
    mkdirSync(root, { recursive: true });
    writeFileSync(join(root, file), JSON.stringify(result));
    return root;
  };
  const [resultA, resultB] = comparedSamples();
  const [a, b] = [written('a', resultA), written('b', resultB)];
  const report = (...args: readonly string[]) => trtforge(['report', ...args], {});

  it('writes the page into the folder of A, and leaves both reports alone', async () => {
    const { exitCode, out, err } = await report(a, b);
    expect([exitCode, out, err]).toEqual([0, join(a, 'comparison.html'), '']);
    expect(readFileSync(out, 'utf8')).toContain('0.5×');
  });

  it('writes its data and a text', async () => {
    const { out } = await report(a, b, '--format', 'json', '-o', '-');
    expect(runComparisonSchema.parse(JSON.parse(out)).runs[0]?.run).toBe(a);
    expect((await report(a, b, '--format', 'markdown')).out).toBe(join(a, 'comparison.md'));
  });

  it('shows the percentiles of two measurements, and what the engines take', async () => {
    const [fast, slow] = [2000, 1000].map((rate) => {
      const file = join(written(`bench-${rate}`, percentileBench(rate), 'bench.json'), 'bench.json');
      return file;
    });
    const { out } = await report(fast!, slow!, '--format', 'json', '-o', '-');
    expect(runComparisonSchema.parse(JSON.parse(out))).toMatchObject({
      ...{ kind: 'bench', runs: [{ run: fast }, { run: slow }], decision: null },
    });
    const found = pairIn(out);
    expect(found.parts.map(({ part, notComparable }) => [part, notComparable])).toEqual([
      ['engine', []],
      ['speed', []],
    ]);
    const times = partOf(found, 'speed')?.rows.filter(({ unit }) => unit === 'ms');
    expect(times?.map(({ what }) => /, (\w[\w.]*) \(/.exec(what)?.[1])).toEqual([
      'median',
      'p50',
      'p99',
      'p99.9',
    ]);
    expect(new Set(times?.map(({ ratio }) => ratio))).toEqual(new Set([0.5]));
    const page = (await report(fast!)).out;
    expect(readFileSync(page, 'utf8')).toContain('p99.9');
  });

  it('shows verifications, and no ratio of errors against other references or on other samples', async () => {
    const { verification } = sampleResult();
    const file = (name: string, change: object = {}) =>
      join(written(name, { ...verification, ...change }, 'verify.json'), 'verify.json');
    const { out } = await report(
      ...[file('one'), file('far', { reference: 'other.onnx' }), file('drawn', { seed: 8 }), file('last')],
      ...['--format', 'json', '-o', '-'],
    );
    const { pairs, runs, decision } = runComparisonSchema.parse(JSON.parse(out));
    const parts = pairs.map((pair) => partOf(pair, 'accuracy'));
    expect(parts.map((part) => [part?.notComparable.length, part?.rows[0]?.ratio])).toEqual([
      [0, 1],
      [1, null],
      [1, null],
    ]);
    expect([runs[0]?.outcome, decision]).toEqual([verification!.outcome, null]);
  });

  it('shows two bundles, component by component and with their chained checks', async () => {
    const [one, other] = [sampleBundle(), failedBundle()].map((result, index) =>
      written(`bundle-${index}`, result, 'build_report.json'),
    );
    const { out } = await report(one!, other!, '--format', 'json', '-o', '-');
    const found = pairIn(out);
    const names = new Set(found.parts.map(({ of }) => of));
    expect([...names]).toEqual(
      expect.arrayContaining(sampleBundle().components.map(({ component }) => component)),
    );
    expect(found.identity).toEqual({ equal: true, differences: [] });
    const chained = found.parts.filter(
      ({ part, of }) => part === 'accuracy' && of?.startsWith('chained check'),
    );
    expect(chained[0]?.rows[0]).toMatchObject({ unit: 'share', ratio: expect.any(Number) });
    expect((await report(one!, other!)).exitCode).toBe(0);
  });

  it('names the component whose recipe differs between two bundles', async () => {
    const whole = sampleBundle();
    const changed = JSON.parse(JSON.stringify(whole)) as typeof whole;
    const { component, forge } = changed.components[0]!;
    forge!.build!.passport.identity.document.recipe.precision = 'bf16';
    const [one, other] = [whole, changed].map((result, index) =>
      written(`recipe-${index}`, result, 'build_report.json'),
    );
    const { out } = await report(one!, other!, '--format', 'json', '-o', '-');
    const { identity } = pairIn(out);
    expect(identity?.differences.map(({ field }) => field)).toEqual([`${component}: recipe.precision`]);
  });

  it('of bundles of which one lacks a component has no ratio for it', async () => {
    const whole = sampleBundle();
    const less = { ...whole, components: whole.components.slice(1), checks: [] };
    const [one, other] = [whole, less].map((result, index) =>
      written(`lacking-${index}`, result, 'build_report.json'),
    );
    const { out } = await report(one!, other!, '--format', 'json', '-o', '-');
    const { parts } = pairIn(out);
    const missing = parts.filter(({ notComparable }) => notComparable.length > 0);
    expect(missing.map(({ of }) => of)).toContain(whole.components[0]?.component);
    expect(
      missing.flatMap(({ rows }) => rows.map(({ ratio }) => ratio)).every((ratio) => ratio === null),
    ).toBe(true);
  });

  it('shows two verifications of a stream, and no ratio of errors against two references', async () => {
    const file = (name: string, change: object = {}) =>
      join(written(name, { ...sampleParity(), ...change }, 'parity.json'), 'parity.json');
    const compared = async (other: string) => {
      const { out } = await report(file('stream'), other, '--format', 'json', '-o', '-');
      return partOf(pairIn(out), 'accuracy');
    };
    const same = await compared(file('stream-2'));
    expect([same?.notComparable, same?.rows[1]?.ratio]).toEqual([[], 1]);
    const apart = await compared(file('stream-3', { reference: 'other.jsonl' }));
    expect([apart?.notComparable.length, apart?.rows[1]?.ratio]).toEqual([1, null]);
  });

  it('warns of what cannot be compared', async () => {
    const { exitCode, err } = await report(a, written('retrained', retrainedSample()));
    expect(exitCode).toBe(0);
    expect(err).toContain('not comparable');
  });

  const variants = () => {
    const context = { root: 'root', ran: new Set<string>(), damaged: [], warnings: [], repeat: null };
    return join(
      written('variants', compareVariants(sampleVariants, context), 'variants.json'),
      'variants.json',
    );
  };
  it.each([
    ['results of two kinds', () => [a, written('bundle', sampleBundle(), 'build_report.json')]],
    ['a chart', () => [a, b, '--format', 'svg']],
    ['a kind that has no such page', () => [variants(), variants()]],
    ['more than have a letter', () => Array.from({ length: 27 }, () => a)],
    ['a third of another kind', () => [a, b, written('bundle', sampleBundle(), 'build_report.json')]],
  ])('rejects %s', async (_what, args) => {
    const { exitCode, json } = await report(...args(), '--json');
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_USAGE']);
  });
});
