import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pythonJson } from '../../../../src/base/text/lenient-json.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { legacySummaryText } from '../../../../src/products/streaming/legacy/summary.js';
import { parseSummary, runNumbers } from '../../../../src/products/streaming/legacy/summary-read.js';
import { besideRuns } from '../../../../src/products/streaming/verify/runs.js';
import { mutations } from '../../../support/mutations.js';

const trt = `{"mode":"closed_loop","engine":"e.plan","ref":"r.jsonl","zero_feed_cache":false,"total_chunks":2,"passed":1,"failed":1,
 "pass_rate":50.0,"atol":5e-4,"rtol":1e-3,"cache_atol":0.1,"cache_channel_atol":0.01,
 "timing_ms":{"mean":20.1,"p50":19.0,"p95":24.0,"p99":27.0},
 "encoder_output_error_distribution":{"min":7e-5,"max":6e-4,"mean":3e-4,"p95":5.8e-4,"p99":6e-4},
 "chunk_stats":[{"chunk":0,"encoder_output_max_abs":7e-5,"encoder_output_mean_abs":1e-5,"passed":true},
  {"chunk":1,"encoder_output_max_abs":6e-4,"encoder_output_mean_abs":1e-4,"passed":false}],
 "failures":[{"chunk":1,"errors":["encoder_output: max_abs=6.000e-04 mean_abs=1.000e-04 max_rel=2.000e+00"],"encoder_output_max_abs":6e-4}]}`;
const ort = (provider: string) =>
  JSON.stringify({
    mode: 'functional',
    providers: [provider],
    onnx: 'm.onnx',
    ref: 'r.jsonl',
    total_chunks: 50,
    passed: 47,
    failed: 3,
    pass_rate: 94,
    atol: 1e-4,
    rtol: 1e-4,
    failures: [5, 6, 7].map((chunk) => ({
      chunk,
      errors: [`encoder_output: max_abs=7.30${chunk}e-04 mean_abs=1.000e-04 max_rel=3.000e+01`],
    })),
  });

describe('summaries that scripts of the streaming encoder wrote', () => {
  it('of engines, with every chunk', () => {
    expect(parseSummary('s.json', trt)).toEqual({
      path: 's.json',
      form: 'legacy-trt',
      mode: 'closed-loop',
      candidate: 'e.plan',
      providers: [],
      chunks: 2,
      passed: 1,
      failed: 1,
      atol: 5e-4,
      rtol: 1e-3,
      errors: [
        { chunk: 0, maxAbs: 7e-5, passed: true },
        { chunk: 1, maxAbs: 6e-4, passed: false },
      ],
      errorsOf: 'all-chunks',
      timingMs: { mean: 20.1, p50: 19, p95: 24, p99: 27 },
      failures: [
        { chunk: 1, errors: ['encoder_output: max_abs=6.000e-04 mean_abs=1.000e-04 max_rel=2.000e+00'] },
      ],
      built: null,
      findings: [],
    });
  });

  it('of ONNX Runtime, old ones: only failures have errors, which their sentences tell', () => {
    const summary = parseSummary('s.json', ort('CPUExecutionProvider'));
    expect(summary).toMatchObject({
      form: 'legacy-ort',
      mode: 'functional',
      errorsOf: 'failures-only',
      timingMs: null,
    });
    expect(summary.errors.map(({ maxAbs }) => maxAbs)).toEqual([7.305e-4, 7.306e-4, 7.307e-4]);
    expect(summary.findings.join(' ')).toMatch(/requested.*Only failing chunks/);
  });

  it('show that two providers were one', () => {
    const [cpu, cuda] = ['CPUExecutionProvider', 'CUDAExecutionProvider'].map((provider) =>
      runNumbers(parseSummary(`${provider}.json`, ort(provider))),
    );
    expect(besideRuns(cpu!, [cuda!])[0]?.id).toBe('same-provider-twice');
  });

  it('count chunks that ended with an error, which old ones left out', () => {
    const text =
      '{"total_chunks":1,"passed":-1,"failed":2,"failures":[{"chunk":0,"error":"shape"},{"chunk":1,"error":"shape"}]}';
    const summary = parseSummary('s', text);
    expect(summary).toMatchObject({ chunks: 2, passed: 0, failed: 2 });
    expect(summary.findings[0]).toMatch(/left out/);
    expect(summary.failures[0]).toEqual({ chunk: 0, errors: ['shape'] });
  });

  it('are not results of other commands, which are named', () => {
    expect(() => parseSummary('s.json', '{"schema":"trtforge.error/1","error":{}}')).toThrow(
      /s\.json is not a valid parity summary: its schema is trtforge\.error\/1, not trtforge\.stream-verify\/1/,
    );
  });

  it('hold NaN and Infinity as Python writes them', () => {
    expect(pythonJson('{"a": NaN, "b": [Infinity, -Infinity, 1], "c": "NaN, -Infinity"}')).toEqual({
      a: Number.NaN,
      b: [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1],
      c: 'NaN, -Infinity',
    });
    const text = trt.replace('"encoder_output_max_abs":7e-5', '"encoder_output_max_abs":NaN');
    expect(parseSummary('s', text).errors[0]?.maxAbs).toBeNaN();
    const read = pythonJson(trt) as Parameters<typeof legacySummaryText>[0];
    const written = legacySummaryText({ ...read, timing_ms: { ...read.timing_ms, p99: Number.NaN } });
    expect(written).toMatch(/"p99": NaN/);
    expect(pythonJson(written)).toEqual({ ...read, timing_ms: { ...read.timing_ms, p99: Number.NaN } });
  });

  it.each([
    ['', /is not JSON/],
    ['[]', /not a JSON object/],
    ['{}', /no total_chunks/],
    ['{"schema":"trtforge.stream-verify/1"}', /not a whole/],
  ])('refuses %j', (text, message) => {
    expect(() => parseSummary('s.json', text)).toThrow(message);
  });

  it('read or refuse any damaged one', () => {
    for (const bytes of mutations(Buffer.from(trt), 400)) {
      try {
        parseSummary('s', Buffer.from(bytes).toString('utf8'));
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
      }
    }
    fc.assert(
      fc.property(fc.json(), (text) => {
        try {
          parseSummary('s', text);
        } catch (error) {
          expect(error).toBeInstanceOf(TrtforgeError);
        }
      }),
    );
  });
});
