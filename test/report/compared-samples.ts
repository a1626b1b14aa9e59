import { figuresOf } from '../../src/quality/bench/bench-run.js';
import type { BenchResult, BenchRun, ColdStarts } from '../../src/quality/bench/result.js';
import type { ForgeResult } from '../../src/report/forge-result.js';
import { benchResult } from '../fakes/deepstream.js';
import { sampleResult } from './sample.js';

type Build = NonNullable<ForgeResult['build']>;
type Document = Build['passport']['identity']['document'];

/** A run whose engine was measured at batch 8. */
export const measuredSample = (itemsPerSecond: number): ForgeResult =>
  sampleResult({ bench: benchResult(8, itemsPerSecond).result });

/** Starts of an engine; no CUDA graph could be made. */
export function coldStartsSample(): ColdStarts {
  const side = (factor: number): ColdStarts['warm'] => {
    const spread = (ms: number) => ({ median: factor * ms, min: factor * ms - 1, max: factor * ms + 2 });
    const first = { start: spread(142), check: spread(75), library: spread(207), read: spread(8) };
    const then = { deserialize: spread(31), contexts: spread(8), firstCall: spread(11), total: spread(482) };
    const hostMemory = { peakBytes: 2 ** 28, anonymousBytes: 2 ** 20, mappedBytes: 2 ** 27 };
    return { ms: { ...first, ...then, capture: null }, hostMemory };
  };
  const file = { path: 'resnet50.engine', bytes: 2 ** 27, stayedBytes: null };
  return { starts: 5, warm: side(1), dropped: side(2), files: [file] };
}

/** A measurement with percentiles of `--percentile`. */
export function percentileBench(itemsPerSecond: number): BenchResult {
  const { result } = benchResult(8, itemsPerSecond);
  const withPercentiles = (spread: BenchRun['gpuMs']) =>
    spread && { ...spread, percentiles: { p50: spread.median, 'p99.9': spread.max * 0.99 } };
  const runs = result.runs.map((run) => ({ ...run, gpuMs: withPercentiles(run.gpuMs) }));
  return { ...result, gpuMs: withPercentiles(result.gpuMs), runs };
}

/** The engine of a run under an identity of its own. */
function withIdentity(result: ForgeResult, digit: string, change: (document: Document) => Document) {
  const build = result.build!;
  const { passport } = build;
  const identity = { digest: digit.repeat(64), document: change(passport.identity.document) };
  return { ...result, build: { ...build, identity: identity.digest, passport: { ...passport, identity } } };
}

const asPrecision = (precision: 'int8' | 'fp16') => (document: Document) => ({
  ...document,
  recipe: { ...document.recipe, precision },
});

/** One model in INT8, twice as fast and half as large, and in FP16. */
export function comparedSamples(): readonly [int8: ForgeResult, fp16: ForgeResult] {
  const [quick, slow] = [measuredSample(2000), measuredSample(1000)];
  const int8 = withIdentity(quick, 'a', asPrecision('int8'));
  const { passport } = int8.build;
  const plan = { ...passport.plan, bytes: 26_150_940 };
  return [
    {
      ...int8,
      request: { ...int8.request, precision: 'int8' },
      build: { ...int8.build, passport: { ...passport, plan } },
    },
    withIdentity(slow, 'b', asPrecision('fp16')),
  ];
}

/** The same network with other weights. */
export const retrainedSample = (): ForgeResult =>
  withIdentity(measuredSample(1000), 'c', (document) => ({ ...document, model: 'c'.repeat(64) }));

/** Runs of one model: two that lie in one place, one with a hostile name, one that fails far beyond the limit, and the model as it is; plans with and without known contents. */
export function severalSamples(): readonly ForgeResult[] {
  const contents = { weightsBytes: 20_000_000, kernelsBytes: 25_000_000, programBytes: 1_000_000 };
  const run = (
    precision: string,
    rate: number,
    share: number,
    verdict: ForgeResult['verdict'] = sampleResult().verdict,
  ) => {
    const sample = withIdentity(measuredSample(rate), 'd', (document) => document);
    const { passport } = sample.build;
    const verification = sample.verification!;
    const outputs = verification.outputs.map((output) => ({
      ...output,
      checks: [{ statistic: 'RMS', measured: share * 0.01, limit: 0.01, pass: share <= 1 }],
    }));
    return {
      ...sample,
      request: { ...sample.request, precision },
      build: { ...sample.build, passport: { ...passport, plan: { ...passport.plan, contents } } },
      verification: { ...verification, outputs },
      verdict,
    };
  };
  const failed = { outcome: 'fail' as const, headline: 'It fails.', reasons: [] };
  const asItIs = run('as-is', 600, 0);
  const { passport } = asItIs.build;
  const { contents: _, ...plan } = passport.plan;
  return [
    run('int8', 2000, 0.5),
    run('fp16', 1980, 0.5),
    run(`"><img src=x onerror=alert(1)>${'W'.repeat(300)}`, 1990, 0.52),
    run('fp8', 2400, 40, failed),
    {
      ...{ ...asItIs, verification: null, conversion: null },
      build: { ...asItIs.build, passport: { ...passport, plan } },
    },
  ];
}

/** A sweep with two valleys. */
export function sweptBench(): BenchResult {
  const rates = { 1: 300, 2: 550, 4: 900, 8: 1140, 12: 1000, 16: 1400, 17: 500, 24: 1500, 32: 1600 };
  const runs = Object.entries(rates).map(([batch, rate]) => benchResult(Number(batch), rate).run);
  return { ...benchResult(1, 300).result, ...figuresOf(runs) };
}
