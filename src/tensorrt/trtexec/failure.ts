import { remedyForDeath } from '../../base/process/supervise.js';
import { type ErrorCode, TrtforgeError } from '../../errors.js';
import type { TrtexecLog } from './log/result.js';
import type { TrtexecRun } from './run.js';

/** The exit code of a shell whose program was killed. */
const SHELL_SIGKILL = 137;

/** The line before trtexec 8.6 calls abort(), after a failed CUDA call or assertion of its own; later versions end with exit code 1 there. */
const ABORTED_ITSELF = /^(?:Cuda|Assertion) failure: /;

/** Lines of errors that a message carries. */
const ERRORS_SHOWN = 8;

/**
 * Throws unless a run ended well by its own account: exit code 0, no signal, and `&&&& PASSED`. `doing` completes "trtexec failed while …".
 * Errors: TF_CHILD_DIED for a signal or an abort that its own lines do not explain, TF_MODEL_REJECTED where its parser rejected the model, TF_LIBRARY_LOAD_FAILED, TF_GPU_MEMORY,
 * TF_GPU_UNAVAILABLE where the GPU it was asked to use is not there, TF_BUILDER_UNAVAILABLE without GPU or builder, TF_PLAN_LOAD_FAILED for an engine that
 * the library rejects, else `otherwise`.
 */
export function requireSuccess(
  run: TrtexecRun,
  doing: string,
  otherwise: 'TF_BUILD_FAILED' | 'TF_TRTEXEC_FAILED',
  /** Free GPU memory now that it ended, bytes; null where it is not known. Read only for what a lack of it may be the cause of. */
  freeBytes: () => number | null = () => null,
): void {
  const { exitCode, signal, log } = run;
  if (exitCode === 0 && signal === null && log.outcome === 'passed') return;
  const details = {
    exitCode,
    signal,
    outcome: log.outcome,
    errors: log.errors.slice(0, ERRORS_SHOWN).map(({ line, message }) => ({ line, message })),
    lastLines: run.lastLines,
    log: run.logPath,
    arguments: run.arguments,
  };
  const where = run.logPath === null ? '' : ` (log: ${run.logPath})`;
  // A shell's 128 + n is a death by signal n too: trtexec may have been started by a wrapper script.
  if (signal !== null || (exitCode !== null && exitCode > 128)) {
    const how = signal === null ? `ended with exit code ${exitCode}` : `was killed by ${signal}`;
    const code = hasError(log, ABORTED_ITSELF) ? codeOf(log, 'TF_CHILD_DIED') : 'TF_CHILD_DIED';
    throw new TrtforgeError(code, `trtexec ${how} while ${doing}${where}.${lastWords(run)}`, {
      ...(code === 'TF_CHILD_DIED' && {
        remedy: remedyForDeath(exitCode === SHELL_SIGKILL ? 'SIGKILL' : signal, run.lastLines),
      }),
      details,
    });
  }
  const how =
    exitCode === 0
      ? 'ended with exit code 0 but without its line "PASSED"'
      : `failed with exit code ${exitCode}`;
  const code = codeOf(log, otherwise);
  const isFull =
    code === otherwise && hasError(log, WITHOUT_ROOM) && (freeBytes() ?? ROOM_BYTES) < ROOM_BYTES;
  throw new TrtforgeError(
    isFull ? 'TF_GPU_MEMORY' : code,
    `trtexec ${how} while ${doing}${where}.${errorLines(log) || lastWords(run)}`,
    { details },
  );
}

const hasError = ({ errors }: TrtexecLog, pattern: RegExp): boolean =>
  errors.some(({ message }) => pattern.test(message));

/** The meanings of error lines, the first that applies; `Cuda failure: 2` is how calls of its CHECK macro fail before 10.7: with the number alone. */
const MEANINGS: readonly (readonly [ErrorCode, RegExp])[] = [
  ['TF_MODEL_REJECTED', /^(?:Failed to parse onnx file|Parsing model failed)/],
  [
    'TF_LIBRARY_LOAD_FAILED',
    /error while loading shared libraries|Could not (?:open|load) library|^Uncaught exception detected: (?:Unable to open library|.*: error loading symbol: )/i,
  ],
  // A tactic that is left out for want of memory is reported as well, also where something else is the end of the build.
  [
    'TF_GPU_MEMORY',
    /^(?!.*tactic).*(?:out of memory|OutOfMemory|cudaErrorMemoryAllocation)|^Cuda failure: 2$/i,
  ],
  ['TF_GPU_UNAVAILABLE', /^Cannot find device ID \d|invalid device ordinal|^Cuda failure: 101$/],
  [
    'TF_BUILDER_UNAVAILABLE',
    /Builder creation failed|no CUDA-capable device|CUDA driver version is insufficient|^Cannot find any available devices|^Cuda failure: (?:35|100)$/,
  ],
  ['TF_PLAN_LOAD_FAILED', /^Engine deserialization failed/],
];

/** A report of a builder without room on the GPU in place of that (seen on an H100 with under 1 GiB free), and of other faults too. */
const WITHOUT_ROOM = /Cask \(no further information\)|invalid resource handle/;

const ROOM_BYTES = 1 << 30;

const codeOf = (log: TrtexecLog, otherwise: ErrorCode): ErrorCode =>
  MEANINGS.find(([, pattern]) => hasError(log, pattern))?.[0] ?? otherwise;

function errorLines({ errors, errorCount }: TrtexecLog): string {
  if (errors.length === 0) return '';
  const shown = errors.slice(0, ERRORS_SHOWN).map(({ message }) => `\n  ${message.trim()}`);
  const more = errorCount > shown.length ? `\n  and ${errorCount - shown.length} more` : '';
  return ` Its errors:${shown.join('')}${more}`;
}

const lastWords = ({ lastLines }: TrtexecRun): string =>
  lastLines.length === 0 ? ' It printed nothing.' : ` Its last lines:\n${lastLines.join('\n')}`;
