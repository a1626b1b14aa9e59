import type { BenchResult, BenchRun } from '../../src/quality/bench/result.js';
import type { ForgeResult } from '../../src/report/result.js';
import { benchResult } from '../fakes/deepstream.js';
import { sampleResult } from './sample.js';

type Build = NonNullable<ForgeResult['build']>;
type Document = Build['passport']['identity']['document'];

/** A run whose engine was measured at batch 8. */
export const measuredSample = (itemsPerSecond: number): ForgeResult =>
  sampleResult({ bench: benchResult(8, itemsPerSecond).result });

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
