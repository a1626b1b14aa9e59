import type { KnownIssue } from '../../quality/explain/known-issues/issue.js';
import { MAIN_OUTPUT, STATE_LENGTH } from './fastconformer.js';

/** The checklist that these come from: its assertions, its limits, its troubleshooting. */
const source = 'https://github.com/gracee3/trt-asr-engine';

/** Known faults of streaming encoders: assertions of wrappers around them, summaries of parity runs, results of `stream verify`. */
export const streamingIssues: readonly KnownIssue[] = [
  {
    id: 'cache-length-not-zero',
    severity: 'error',
    pattern: new RegExp(
      `\\b(?:${STATE_LENGTH}(?:_out)?|cache_len)\\b.{0,80}(?:!= ?0|must be 0|expected 0|should be 0|not zero)`,
      'i',
    ),
    cause:
      'A streaming encoder returned a cache length other than 0 where its contract requires 0. Often the contract is wrong: 0 is right for one size of chunk only, and the state of such an encoder grows.',
    remedy:
      'Find which is wrong, the contract, the model or the recording: `trtforge stream check MODEL --contract C --reference R`. Then verify the ONNX model against the reference, and after it the engine.',
    versions: 'all',
    source,
  },
  {
    id: 'streaming-contract-violated',
    severity: 'error',
    pattern: /STREAMING CONTRACT VIOLATION: (?<what>.{1,300})/,
    cause: 'The wrapper around a streaming encoder found a contract violation: {what}.',
    remedy:
      'Find which is wrong, the contract, the model or the recording: `trtforge stream check MODEL --contract C --reference R`. An engine that ran with a shape outside its profile violates contracts too.',
    versions: 'all',
    source,
  },
  {
    id: 'encoder-error-high',
    severity: 'error',
    pattern: new RegExp(`\\b${MAIN_OUTPUT}: max_abs=(?<error>\\d\\.\\d{1,6}e(?:-0[0-3]|\\+\\d\\d))\\b`),
    cause: 'The output of a streaming encoder is {error} off; the usual limit for such engines is 1e-3.',
    remedy:
      'Verify the ONNX model against the same reference (`trtforge stream verify MODEL.onnx --reference R`). If it is as far off, the export or the reference is wrong (other weights, computed in TF32). If only the engine is: FP16 and INT8 cost as much, and FP32 does with TF32; build with `--builder-config flags=no-tf32` and run again with `--beside` the other result.',
    versions: 'all',
    source,
  },
  {
    id: 'encoder-output-not-finite',
    severity: 'error',
    pattern: new RegExp(`\\b${MAIN_OUTPUT}: max_abs=(?:nan|inf)\\b`),
    cause: 'The output of a streaming encoder contains NaN or infinite values.',
    remedy:
      'Find out with `trtforge stream verify` and the same reference whether they are in the recorded inputs, in the reference, or made by the candidate. FP16 makes them of values beyond 65504: keep those layers in FP32 (`trtforge convert --calibration`), or take BF16.',
    versions: 'all',
    source,
  },
  {
    id: 'chunk-latency-missed',
    severity: 'warning',
    pattern:
      /Drift: 95 % of the chunks take at most (?<took>[\d.]+) ms; (?<limit>[\d.]+) ms is allowed|times\.rest\.total\.\w{1,20} of .{1,300} is (?<measured>[\d.]+) ms, (?:at or )?above/,
    cause: 'A chunk of a stream takes longer than it may.',
    remedy:
      'Look at copies, compute and state apart with `trtforge stream verify ENGINE --reference R`: state that crosses the host costs most. Find the slow layers with `trtforge bench ENGINE --layers`, check that the profile is optimized for the size of the later chunks, and try FP16.',
    versions: 'all',
    source,
  },
];
