import { driftOf } from '../../../../src/products/streaming/compare/drift.js';
import { type ParityResult, parityResultSchema } from '../../../../src/products/streaming/verify/result.js';
import { measure } from '../../../../src/quality/verify/result.js';

/** A stream whose chunks have these errors. */
export function streamOf(errors: readonly number[]): Pick<ParityResult, 'drift' | 'series'> {
  const { slope, ...drift } = driftOf('output', errors);
  const chunk = { pass: true, copyMs: 0, runMs: 1, stateMs: 0, totalMs: 1 };
  const tensor = { tensor: 'output', compared: 8, region: null, meanAbs: 0, maxRel: 0, cosine: 1 };
  const verdict = { tensorRule: true, allclose: true, pass: true };
  return JSON.parse(
    JSON.stringify(
      {
        drift: { ...drift, slope, passRate: 1, checks: [] },
        series: errors.map((maxAbs, at) => ({
          ...chunk,
          chunk: at,
          tensors: [{ ...tensor, ...verdict, maxAbs }],
        })),
      },
      (_key, value: unknown) => (typeof value === 'number' ? measure(value) : value),
    ),
  );
}

/** A stream that fails its numbers: every part of the page is filled. `name` is every text from outside. */
export function sampleParity(name = 'output'): ParityResult {
  const spread = { min: 0, mean: 1e-4, p50: 1e-4, p95: 6e-4, p99: 6e-4, max: 6e-4 };
  const slope = { perChunk: 0, low: -1e-6, high: 1e-6 };
  const column = { mean: 1.25, p50: 1, p95: 2, p99: 2, max: 2 };
  const { drift, series } = streamOf([1e-4, 6e-4, 2e-3, 0]);
  return parityResultSchema.parse({
    schema: 'trtforge.stream-verify/1',
    candidate: name,
    reference: name,
    candidateBackend: name,
    referenceBackend: null,
    built: null,
    mode: 'closed-loop',
    rule: 'tensor',
    contract: { name, path: null, form: 'trtforge' },
    state: { place: 'host', why: name, pairs: [] },
    chunks: 4,
    passed: 1,
    failed: 3,
    passRate: 0.25,
    outputs: [
      {
        tensor: name,
        kind: 'float',
        role: 'result',
        tolerance: { absolute: 5e-4, relative: 1e-3, why: name },
        chunks: 4,
        passed: 1,
        tensorRulePassed: 1,
        allclosePassed: 2,
        maxAbs: spread,
        meanAbs: 1e-5,
        maxRel: 0.5,
        minCosine: 0.99,
        nonFinite: { candidate: 0, reference: 0 },
        zerosPass: 0,
        slope,
        shape: 'steady',
      },
    ],
    verdicts: { contract: 'pass', numeric: 'fail', task: null },
    task: { kind: 'not-judged', why: name },
    violations: [],
    failures: [],
    drift: {
      ...drift,
      checks: [{ name: 'max', measured: 2e-3, limit: 1e-3, outcome: 'fail', sentence: name }],
    },
    times: {
      first: { copyMs: 0, runMs: 8, stateMs: 0, totalMs: 8 },
      rest: { chunks: 3, copy: column, run: column, state: column, total: column },
      recorded: column,
      overRecorded: 1,
    },
    gpuTimes: [
      { shapes: name, profile: 0, inputMs: 0.1, computeMs: 0.75, outputMs: 0.2, inARowMs: 1, overGpu: null },
    ],
    memory: { planBytes: null, peakHostBytes: 1 << 20, gpuBytes: null },
    profiles: null,
    explanations: [{ id: 'other-model', severity: 'warning', sentence: name, remedy: name, evidence: {} }],
    dumps: [],
    series,
    warnings: [],
    outcome: 'fail',
    reasons: [name],
    repeat: `trtforge stream verify ${name}`,
  });
}
