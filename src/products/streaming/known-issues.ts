import type { KnownIssue } from '../../quality/explain/known-issues/issue.js';

/** The checklist that these come from: its assertions, its limits, its troubleshooting. */
const source = 'https://github.com/gracee3/trt-asr-engine';

/** What goes wrong with streaming encoders: assertions of wrappers around them, summaries of parity runs, results of `stream verify`. */
export const streamingIssues: readonly KnownIssue[] = [
  {
    id: 'cache-length-not-zero',
    severity: 'error',
    pattern:
      /\b(?:cache_last_channel_len(?:_out)?|cache_len)\b.{0,80}(?:!= ?0|must be 0|expected 0|should be 0|not zero)/i,
    cause:
      'A streaming encoder gave a cache length other than 0 where its contract says 0. Often the promise is wrong: it holds for one size of chunk only, and state that grows is what such an encoder does.',
    remedy:
      '`trtforge stream check MODEL --contract C --reference R` says which is wrong, the contract, the model or the recording. Then hold the ONNX model against the reference, and only then the engine.',
    versions: 'all',
    source,
  },
  {
    id: 'streaming-contract-violated',
    severity: 'error',
    pattern: /STREAMING CONTRACT VIOLATION: (?<what>.{1,300})/,
    cause: 'The wrapper around a streaming encoder found a promise broken: {what}.',
    remedy:
      '`trtforge stream check MODEL --contract C --reference R` says whether the promise, the model or the recording is wrong; an engine that was given a shape outside its profile breaks such promises too.',
    versions: 'all',
    source,
  },
  {
    id: 'encoder-error-high',
    severity: 'error',
    pattern: /\bencoder_output: max_abs=(?<error>\d\.\d{1,6}e(?:-0[0-3]|\+\d\d))\b/,
    cause: 'The output of a streaming encoder is {error} off; 1e-3 is what such engines are held to.',
    remedy:
      'Hold the ONNX model against the same reference (`trtforge stream verify MODEL.onnx --reference R`): as far off, and it is the export or the reference (other weights, made in TF32). If only the engine is: FP16 and INT8 cost as much, and FP32 does with TF32: build with `--builder-flag no-tf32` and run again with `--beside` the other result.',
    versions: 'all',
    source,
  },
  {
    id: 'encoder-output-not-finite',
    severity: 'error',
    pattern: /\bencoder_output: max_abs=(?:nan|inf)\b/,
    cause: 'The output of a streaming encoder holds NaN or infinite values.',
    remedy:
      '`trtforge stream verify` with the same reference shows whether they come with the recorded inputs, are in the reference, or are made by the candidate. FP16 makes them of values beyond 65504: keep those layers in FP32 (`trtforge convert --calibration`), or take BF16.',
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
      '`trtforge stream verify ENGINE --reference R` shows copies, compute and state apart: state that crosses the host costs most. `trtforge bench ENGINE --layers` names the slow layers; check that the profile is optimized for the size of the later chunks; FP16 is usually faster.',
    versions: 'all',
    source,
  },
];
