import { openFile } from '../../../base/files/byte-source.js';
import { pythonJson } from '../../../base/text/lenient-json.js';
import { TrtforgeError } from '../../../errors.js';
import type { ParityResult } from '../verify/result.js';
import type { RunNumbers } from '../verify/runs.js';

/** One run over a stream, read from our result or from a summary that the encoder's own harness wrote in any of its versions. */
export interface ParitySummary {
  readonly path: string;
  /** `legacy-ort` and `legacy-trt`: by the harness that wrote it. */
  readonly form: 'trtforge' | 'legacy-ort' | 'legacy-trt';
  readonly mode: 'functional' | 'closed-loop' | null;
  readonly candidate: string | null;
  /** As requested; older files do not state which were active. */
  readonly providers: readonly string[];
  /** Chunks that were run. Older files leave out those that ended with an error: they are counted here all the same. */
  readonly chunks: number;
  readonly passed: number;
  readonly failed: number;
  readonly atol: number | null;
  readonly rtol: number | null;
  /** Largest error of the main output, chunk by chunk. */
  readonly errors: readonly { readonly chunk: number; readonly maxAbs: number; readonly passed: boolean }[];
  /** `failures-only`: the file has errors of failing chunks alone, so nothing follows about the stream. */
  readonly errorsOf: 'all-chunks' | 'failures-only' | 'none';
  readonly timingMs: {
    readonly mean: number;
    readonly p50: number;
    readonly p95: number;
    readonly p99: number;
  } | null;
  /** The sentences about each failure. */
  readonly failures: readonly { readonly chunk: number; readonly errors: readonly string[] }[];
  /** What an engine was built from; null for models and in files that do not state it. */
  readonly built: ParityResult['built'];
  /** What is odd about the file itself. */
  readonly findings: readonly string[];
}

const LARGEST_BYTES = 256 << 20;

/** Reads a summary from a file. Throws TF_FILE_…, TF_PARITY_SUMMARY_INVALID. */
export function readSummary(path: string): ParitySummary {
  const source = openFile(path);
  try {
    if (source.size > LARGEST_BYTES) throw invalid(path, `it is too large (${source.size} bytes)`);
    const bytes = Buffer.alloc(source.size);
    return parseSummary(path, bytes.toString('utf8', 0, source.read(bytes, 0, source.size)));
  } finally {
    source.close();
  }
}

/** The same of text, which may hold `NaN` and `Infinity` as Python writes them. Throws TF_PARITY_SUMMARY_INVALID. */
export function parseSummary(path: string, text: string): ParitySummary {
  let content: unknown;
  try {
    content = pythonJson(text);
  } catch (cause) {
    throw new TrtforgeError('TF_PARITY_SUMMARY_INVALID', `${path} is not JSON.`, { cause });
  }
  const fields = recordOf(content);
  if (fields === null) throw invalid(path, 'it is not a JSON object');
  if (fields.schema === 'trtforge.stream-verify/1')
    return summaryOfResult(path, fields as unknown as ParityResult);
  if (typeof fields.schema === 'string' && fields.schema.startsWith('trtforge.'))
    throw invalid(path, `its schema is ${fields.schema}, not trtforge.stream-verify/1`);
  return ofLegacy(path, fields);
}

/** The numbers by which runs are compared (see `besideRuns`). */
export const runNumbers = ({
  candidate,
  providers,
  path,
  errors,
  failures,
  built,
}: ParitySummary): RunNumbers => ({
  label: providers.length > 0 ? providers.join(', ') : (candidate ?? path),
  errors: errors.map(({ maxAbs }) => maxAbs),
  failures: failures.flatMap(({ errors: sentences }) => sentences),
  built,
});

/** A result of ours as a summary. Throws TF_PARITY_SUMMARY_INVALID for one that is not whole. */
export function summaryOfResult(path: string, result: ParityResult): ParitySummary {
  try {
    const main = result.drift?.tensor;
    return {
      path,
      form: 'trtforge',
      mode: result.mode,
      candidate: result.candidate,
      providers: [result.candidateBackend],
      chunks: result.chunks,
      passed: result.passed,
      failed: result.failed,
      atol: result.outputs.find(({ tensor }) => tensor === main)?.tolerance?.absolute ?? null,
      rtol: result.outputs.find(({ tensor }) => tensor === main)?.tolerance?.relative ?? null,
      errors: result.series.flatMap(({ chunk, pass, tensors }) =>
        tensors
          .filter(({ tensor }) => tensor === main)
          .map(({ maxAbs }) => ({ chunk, maxAbs: Number(maxAbs), passed: pass })),
      ),
      errorsOf: main === undefined ? 'none' : 'all-chunks',
      timingMs: result.times.rest?.total ?? null,
      failures: result.failures.map(({ chunk, reason }) => ({ chunk, errors: [reason] })),
      built: result.built ?? null,
      findings: [],
    };
  } catch (cause) {
    throw new TrtforgeError(
      'TF_PARITY_SUMMARY_INVALID',
      `${path} is not a whole trtforge.stream-verify/1 result.`,
      {
        cause,
      },
    );
  }
}

function ofLegacy(path: string, fields: Fields): ParitySummary {
  const total = whole(fields.total_chunks);
  const failures = listOf(fields.failures).map(failureOf);
  const stats = listOf(fields.chunk_stats);
  if (total === null) throw invalid(path, 'it has no total_chunks');
  const failed = whole(fields.failed) ?? failures.length;
  const passed = whole(fields.passed) ?? total - failed;
  const findings: string[] = [];
  // Chunks that ended with an error were counted as failed, but not as run.
  const chunks = Math.max(total, passed < 0 ? failed : passed + failed);
  if (chunks !== total)
    findings.push(
      `total_chunks is ${total}, but ${passed} passed and ${failed} failed: chunks that ended with an error were left out.`,
    );
  const mainErrors = failures.flatMap(({ chunk, maxAbs }) =>
    maxAbs === null ? [] : [{ chunk, maxAbs, passed: false }],
  );
  const errors =
    stats.length > 0
      ? stats.map((stat) => ({
          chunk: whole(stat.chunk) ?? -1,
          maxAbs: real(stat.encoder_output_max_abs) ?? Number.NaN,
          passed: stat.passed === true,
        }))
      : mainErrors;
  const isTrt = typeof fields.engine === 'string';
  const providers = Array.isArray(fields.providers) ? fields.providers.filter(isText) : [];
  if (providers.length > 0)
    findings.push('The providers are those that were requested; the file does not state which were active.');
  if (stats.length === 0 && errors.length > 0)
    findings.push(
      'Only failing chunks have their errors in this file; nothing follows from them about the others.',
    );
  return {
    path,
    form: isTrt ? 'legacy-trt' : 'legacy-ort',
    mode:
      fields.mode === 'functional'
        ? 'functional'
        : /^closed[-_]loop$/.test(String(fields.mode))
          ? 'closed-loop'
          : null,
    candidate: isTrt ? String(fields.engine) : isText(fields.onnx) ? fields.onnx : null,
    providers,
    chunks,
    passed: Math.max(0, passed),
    failed,
    atol: real(fields.atol),
    rtol: real(fields.rtol),
    errors,
    errorsOf: stats.length > 0 ? 'all-chunks' : errors.length > 0 ? 'failures-only' : 'none',
    timingMs: timingOf(fields.timing_ms),
    failures: failures.map(({ chunk, errors: sentences }) => ({ chunk, errors: sentences })),
    built: null,
    findings,
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** `encoder_output: max_abs=6.000e-04 mean_abs=… max_rel=…` */
const MAIN_ERROR = /^encoder_output: max_abs=(\S+)/;

function failureOf(failure: Fields) {
  const errors = Array.isArray(failure.errors) ? failure.errors.filter(isText) : [];
  if (isText(failure.error)) errors.push(failure.error);
  const printed = errors.map((error) => MAIN_ERROR.exec(error)?.[1]).find((each) => each !== undefined);
  const maxAbs =
    real(failure.encoder_output_max_abs) ?? (printed === undefined ? null : fromPrinted(printed));
  return { chunk: whole(failure.chunk) ?? -1, errors, maxAbs };
}

/** As Python's `%.3e` prints: `6.000e-04`, `nan`, `inf`. */
function fromPrinted(text: string): number | null {
  if (/^[+-]?inf/i.test(text)) return Number.POSITIVE_INFINITY;
  if (/^nan/i.test(text)) return Number.NaN;
  const value = Number(text);
  return Number.isNaN(value) ? null : value;
}

function timingOf(value: unknown): ParitySummary['timingMs'] {
  const fields = recordOf(value);
  const [mean, p50, p95, p99] = ['mean', 'p50', 'p95', 'p99'].map((name) => real(fields?.[name]));
  if (mean == null || p50 == null || p95 == null || p99 == null) return null;
  return { mean, p50, p95, p99 };
}

const recordOf = (value: unknown): Fields | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
const listOf = (value: unknown): readonly Fields[] =>
  Array.isArray(value) ? value.map(recordOf).filter((each) => each !== null) : [];
const isText = (value: unknown): value is string => typeof value === 'string';
const real = (value: unknown): number | null => (typeof value === 'number' ? value : null);
const whole = (value: unknown): number | null => (Number.isInteger(value) ? (value as number) : null);

const invalid = (path: string, why: string): TrtforgeError =>
  new TrtforgeError('TF_PARITY_SUMMARY_INVALID', `${path} is not a valid parity summary: ${why}.`);
