import { readText } from '../../../base/files/files.js';
import { parseJson } from '../../../base/files/json.js';
import { formatStatistic as short } from '../../../base/text/quantity.js';
import { faultText } from '../../../base/text/schema-error.js';
import { providerInBackend } from '../../../engines/runtime/onnxruntime/provider-options.js';
import { TrtforgeError } from '../../../errors.js';
import { type Explanation, type ParityResult, parityResultSchema } from './result.js';

/** The figures by which two runs over one reference are compared. */
export interface RunNumbers {
  /** The candidate that ran: a provider, an engine. */
  readonly label: string;
  /** Largest error of the main output in each chunk. */
  readonly errors: readonly number[];
  /** Sentences about each failure, numbers included. */
  readonly failures: readonly string[];
  /** The origin of an engine; null for models, and where it is not known. */
  readonly built: ParityResult['built'];
}

const LARGEST_BYTES = 256 << 20;

/** Reads what `stream verify --json` printed. Throws TF_FILE_…, TF_PARITY_SUMMARY_INVALID. */
export function readRun(path: string): RunNumbers {
  const invalid = (why: string, cause?: unknown) =>
    new TrtforgeError('TF_PARITY_SUMMARY_INVALID', `${path} is not a result of stream verify: ${why}.`, {
      cause,
    });
  const content = parseJson(
    readText(path, LARGEST_BYTES, 'TF_PARITY_SUMMARY_INVALID'),
    LARGEST_BYTES,
    invalid,
  );
  const parsed = parityResultSchema.safeParse(content);
  if (!parsed.success) throw invalid(faultText(parsed.error), parsed.error);
  return runNumbers(parsed.data);
}

export const runNumbers = ({
  candidateBackend,
  drift,
  series,
  failures,
  built = null,
}: ParityResult): RunNumbers => ({
  label: candidateBackend,
  errors: series.flatMap(({ tensors }) =>
    tensors.flatMap(({ tensor, maxAbs }) => (tensor === drift?.tensor ? [Number(maxAbs)] : [])),
  ),
  failures: failures.map(({ reason }) => reason),
  built,
});

/** Conclusions from runs over one reference, in pairs: one run under two names, an error that TF32 causes, an engine compared with ONNX Runtime. */
export function besideRuns(run: RunNumbers, others: readonly RunNumbers[]): readonly Explanation[] {
  const all = [run, ...others];
  return all.flatMap((one, at) =>
    all
      .slice(at + 1)
      .flatMap(
        (other) => sameProvider(one, other) ?? tf32Between(one, other) ?? besideOnnxRuntime(one, other) ?? [],
      ),
  );
}

/** Fewer numbers may agree by chance or because they are all zero. */
const FEWEST_NUMBERS = 3;

/**
 * Two providers that have the same errors to the last digit are one provider: ONNX Runtime falls back to the CPU without an error where it cannot load
 * CUDA, and a summary then names the provider that was requested.
 */
function sameProvider(one: RunNumbers, other: RunNumbers): Explanation | null {
  if (providerOf(one.label) === providerOf(other.label) || !isSame(one.errors, other.errors)) return null;
  // Errors of every chunk are proof enough; the sentences about failures differ by program.
  const errors = new Set(one.errors);
  const distinct = errors.size >= FEWEST_NUMBERS ? errors : new Set([...errors, ...one.failures]);
  if (distinct !== errors && !isSame(one.failures, other.failures)) return null;
  if (distinct.size < FEWEST_NUMBERS || one.errors.every((error) => error === 0)) return null;
  return {
    id: 'same-provider-twice',
    severity: 'error',
    sentence: `${one.label} and ${other.label} have the same errors to the last digit, so both ran on the same provider.`,
    remedy:
      'Print the active providers of the session (session.get_providers() in Python) and install what the missing one needs; the agreement of the two proves nothing.',
    evidence: { labels: [one.label, other.label], numbers: distinct.size },
  };
}

/** `ONNX Runtime 1.30.0 (CPU)` and `CPUExecutionProvider` are one name. */
const providerOf = (label: string): string =>
  providerInBackend(label) ?? /^(\w+?)ExecutionProvider/.exec(label)?.[1] ?? label;

const isSame = <T>(one: readonly T[], other: readonly T[]): boolean =>
  one.length === other.length && one.every((each, at) => Object.is(each, other[at]));

const OTHER_CAUSE =
  'Look for another cause: other weights, a state of the wrong length, a reference of its own precision.';

/** By how many times less the largest error is without TF32: the first that is reached. */
const tf32Causes = [
  {
    from: 20,
    id: 'tf32-is-the-cause',
    severity: 'note',
    sentence: (times: string) => `${times} times less: the error is TF32's rounding and nothing else.`,
    remedy:
      'Build with --builder-config flags=no-tf32 where the accuracy is needed; it costs speed on matrix products.',
  },
  {
    from: 2,
    id: 'tf32-is-part',
    severity: 'warning',
    sentence: (times: string) => `${times} times less: TF32 is only part of it.`,
    remedy: OTHER_CAUSE,
  },
  {
    from: 0,
    id: 'tf32-is-not-the-cause',
    severity: 'error',
    sentence: () => 'about the same: TF32 does not cause it.',
    remedy: OTHER_CAUSE,
  },
] as const;

/** The error of two engines of one model and precision, of which one may round to TF32; null for any other two. */
function tf32Between(one: RunNumbers, other: RunNumbers): Explanation | null {
  const [a, b] = [one.built, other.built];
  if (a === null || b === null || a.tf32 === b.tf32) return null;
  if (a.model !== b.model || a.precision !== b.precision) return null;
  if (one.errors.length === 0 || one.errors.length !== other.errors.length) return null;
  const [on, off] = (a.tf32 ? [one, other] : [other, one]).map(({ errors }) => Math.max(...errors));
  const ratio = off === 0 ? Number.POSITIVE_INFINITY : on! / off!;
  const { id, severity, sentence, remedy } =
    tf32Causes.find(({ from }) => ratio >= from) ?? tf32Causes[tf32Causes.length - 1]!;
  return {
    ...{ id, severity, remedy },
    sentence: `The largest error is ${short(on!)} with TF32 and ${short(off!)} without, ${sentence(short(ratio))}`,
    evidence: { maxWithTf32: on, maxWithout: off, ratio },
  };
}

/** From here on the larger of two errors is not the same kind of error. */
const NOTABLY_WORSE = 2;

/** The error of an engine beside that of ONNX Runtime: what both have in common is the reference's. null for any other two, and where ONNX Runtime has none. */
function besideOnnxRuntime(one: RunNumbers, other: RunNumbers): Explanation | null {
  if (isOnnxRuntime(one) === isOnnxRuntime(other) || one.errors.length !== other.errors.length) return null;
  const [engine, baseline] = isOnnxRuntime(one) ? [other, one] : [one, other];
  const [max, baselineMax] = [Math.max(...engine.errors), Math.max(...baseline.errors)];
  const ratio = max / baselineMax;
  if (!Number.isFinite(ratio)) return null;
  const isWorse = ratio > NOTABLY_WORSE;
  return {
    id: isWorse ? 'worse-than-onnxruntime' : 'like-onnxruntime',
    severity: isWorse ? 'warning' : 'note',
    sentence: `The largest error is ${short(max)} with ${engine.label} and ${short(baselineMax)} with ${baseline.label}: ${short(ratio)} times as much.`,
    remedy: isWorse
      ? 'The engine adds to the error: look at its precision and TF32 first (`trtforge stream verify --beside MODEL`, `trtforge bisect`).'
      : 'There is nothing to do about the engine: what is left comes from the model or the reference.',
    evidence: { max, baselineMax, ratio },
  };
}

const isOnnxRuntime = ({ label }: RunNumbers): boolean =>
  providerInBackend(label) !== undefined || /ExecutionProvider/.test(label);
