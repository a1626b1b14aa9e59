import type { PolicyFile } from './policy-schema.js';

/** The results that `stream verify` writes. */
const stream = { schema: 'trtforge.stream-verify/*' };

/** Fails for "fail", and is inconclusive for everything else that is not "pass". */
const mustPass = { fail: { is: 'fail' }, inconclusive: { 'is-not': 'pass' } };

/** Rules for the continuous integration of a streaming encoder: fail on a broken contract and above 1e-3, warn above 5e-4. */
const streamingParity: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  results: { stream },
  checks: [
    {
      id: 'cache-contract',
      why: 'A broken contract (lengths, shapes, the cache fed back) makes every later number meaningless.',
      result: 'stream',
      field: 'verdicts.contract',
      ...mustPass,
    },
    {
      id: 'contract-sentences',
      why: 'A sentence of the contract that is no rule was checked by nothing.',
      result: 'stream',
      field: 'contract.notExecutable.length',
      warn: { above: 0 },
      missing: 'skip',
    },
    {
      id: 'encoder-error',
      why: 'The largest absolute error of the main output over all chunks.',
      result: 'stream',
      field: 'drift.max',
      fail: { above: 1e-3 },
      warn: { above: 5e-4 },
    },
    {
      id: 'finite-outputs',
      why: 'NaN and infinities have no error that could be above a limit.',
      result: 'stream',
      field: 'outputs[*].nonFinite.candidate',
      fail: { above: 0 },
    },
    {
      id: 'task',
      why: 'Whether both streams lead to the same decisions; judged where stream verify has a decoder or class scores.',
      result: 'stream',
      field: 'verdicts.task',
      fail: { is: 'fail' },
      missing: 'skip',
    },
  ],
};

/** The sign-off of the same checklist: 80 % of chunks within the tolerance, 95 % below 5e-4, the mean below 2e-4, no growth, 21 ms a chunk, 2 GB of engine. */
const streamingAcceptance: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  extends: 'streaming-parity',
  checks: [
    {
      id: 'encoder-pass-rate',
      why: 'Chunks in which the main output is within its tolerance, by default 5e-4.',
      result: 'stream',
      field: 'drift.passRate',
      fail: { below: 0.8 },
    },
    {
      id: 'encoder-error-p95',
      why: '95 % of the chunks are this close or closer.',
      result: 'stream',
      field: 'drift.p95',
      fail: { 'at-least': 5e-4 },
    },
    {
      id: 'encoder-error-mean',
      why: 'The mean over all chunks.',
      result: 'stream',
      field: 'drift.mean',
      fail: { 'at-least': 2e-4 },
    },
    {
      id: 'error-growth',
      why: 'Whether errors add up from chunk to chunk; one bad chunk is not growth.',
      result: 'stream',
      field: 'drift.shape',
      fail: { is: 'growing' },
      inconclusive: { is: 'too-short' },
    },
    {
      id: 'chunk-latency',
      why: '95 % of the chunks, the first call of each size apart, take less.',
      result: 'stream',
      field: 'times.rest.total.p95',
      unit: 'ms',
      fail: { 'at-least': 21 },
    },
    {
      id: 'engine-size',
      why: 'The plan of an engine; skipped for a model.',
      result: 'stream',
      field: 'memory.planBytes',
      unit: 'bytes',
      fail: { 'at-least': 2e9 },
      missing: 'skip',
    },
  ],
};

/** An engine gives its known answer where it runs. */
const engineCheck: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  results: { check: { schema: 'trtforge.engine-check/*' } },
  checks: [
    {
      id: 'known-answer',
      why: 'An engine that is wrong on this GPU, with this driver or library, loads without a word.',
      result: 'check',
      field: 'outcome',
      ...mustPass,
    },
  ],
};

/** A repository has nothing that Triton would not load or would serve wrongly. */
const tritonCheck: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  results: { check: { schema: 'trtforge.triton-check/*' } },
  checks: [
    {
      id: 'triton-repository',
      why: "Some of what is wrong in a model repository is found when its GPU loads it, or never by Triton's core.",
      result: 'check',
      field: 'outcome',
      ...mustPass,
    },
  ],
};

/** An upgrade of TensorRT: engines give what their models give, as the old ones did, and are not slower. */
const rehearsal: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  results: {
    verify: { schema: 'trtforge.verify/*' },
    answer: { schema: 'trtforge.engine-check/*' },
    bench: { schema: 'trtforge.bench-compare/*' },
  },
  checks: [
    {
      id: 'against-the-model',
      why: 'The new engine has to give what its FP32 model gives.',
      result: 'verify',
      field: 'outcome',
      ...mustPass,
    },
    {
      id: 'as-before',
      why: 'The new engine has to give what the old one recorded.',
      result: 'answer',
      field: 'outcome',
      ...mustPass,
      missing: 'inconclusive',
    },
    {
      id: 'gpu-time',
      why: 'GPU time, new over old; its interval holds the true ratio in 95 of 100 cases.',
      result: 'bench',
      field: 'ratios.gpuMs.low',
      fail: { above: 1.1 },
      warn: { above: 1.02 },
      missing: 'inconclusive',
    },
  ],
};

/** DeepStream loads the engine that is configured. */
const deepstreamCheck: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  results: { check: { schema: 'trtforge.deepstream-check/*' } },
  checks: [
    {
      id: 'start',
      why: 'nvinfer rebuilds for minutes without a word where the engine does not fit, perhaps at every start.',
      result: 'check',
      field: 'outcome',
      fail: { 'none-of': ['loads', 'builds'] },
      warn: { is: 'builds' },
    },
    {
      id: 'findings',
      why: 'A label file, a parse function or a preparation that is wrong gives wrong detections.',
      result: 'check',
      field: 'findings[*].severity',
      fail: { is: 'error' },
      missing: 'skip',
    },
  ],
};

const accuracy = { better: 'higher' as const, same: ['comparabilityKey'] };

/** The success criteria of auto-quantize-model: of `eval detector`, against a baseline of the FP16 engine on the same data. */
const detectorAcceptance: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  results: { detector: { schema: 'trtforge.eval-detector/*' } },
  checks: [
    {
      id: 'map-drop',
      why: 'At most one point of mAP may be lost.',
      result: 'detector',
      field: 'metrics.mAP_50_95',
      regression: { ...accuracy, fail: 0.01 },
    },
    {
      id: 'map-drop-relative',
      why: 'At most 3 % of the mAP may be lost: one point is much of a low one.',
      result: 'detector',
      field: 'metrics.mAP_50_95',
      regression: { ...accuracy, fail: '3%' },
    },
    {
      id: 'latency',
      why: 'An engine that is quantised must take at most 75 % of the time of FP16.',
      result: 'detector',
      field: 'run.latency.median_ms',
      unit: 'ms',
      regression: { better: 'lower', fail: '-25%', same: ['run.candidate.backEnd'] },
    },
    {
      id: 'gpu-memory',
      why: 'An engine that is quantized may take at most 10 % more memory of the GPU; skipped where none was used.',
      result: 'detector',
      field: 'run.memory.gpuBytes',
      unit: 'bytes',
      regression: { better: 'lower', fail: '10%', same: ['run.candidate.backEnd'] },
      missing: 'skip',
    },
    {
      id: 'host-memory',
      why: 'The same of the memory of the process that runs it.',
      result: 'detector',
      field: 'run.memory.peakHostBytes',
      unit: 'bytes',
      regression: { better: 'lower', fail: '10%', same: ['run.candidate.backEnd'] },
      missing: 'skip',
    },
  ],
};

/** The same of words: of `eval recogniser`, against a baseline of the FP32 or FP16 model on the same data. */
const recogniserAcceptance: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  results: { recogniser: { schema: 'trtforge.eval-recogniser/*' } },
  checks: [
    {
      id: 'wer-rise',
      why: 'At most half a point of word error rate may be added.',
      result: 'recogniser',
      field: 'wer',
      regression: { better: 'lower', fail: 0.005, same: ['comparabilityKey'] },
    },
  ],
};

/** Both of `compare-backends`, which has the baseline in it. A check of what it did not measure is skipped; a variant that did not run is its own outcome. */
const comparisonAcceptance: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  results: { comparison: { schema: 'trtforge.compare-backends/*' } },
  checks: [
    {
      id: 'map-drop',
      why: 'At most one point of mAP may be lost.',
      result: 'comparison',
      field: 'accuracy[metric=mAP_50_95].drop',
      fail: { above: 0.01 },
      missing: 'skip',
    },
    {
      id: 'map-drop-relative',
      why: 'At most 3 % of the mAP may be lost: one point is much of a low one.',
      result: 'comparison',
      field: 'accuracy[metric=mAP_50_95].relativeDrop',
      fail: { above: 0.03 },
      missing: 'skip',
    },
    {
      id: 'wer-rise',
      why: 'At most half a point of word error rate may be added.',
      result: 'comparison',
      field: 'accuracy[metric=wer].drop',
      fail: { above: 0.005 },
      missing: 'skip',
    },
    {
      id: 'latency',
      why: 'A candidate must take at most 75 % of the time of FP16 on the same back end.',
      result: 'comparison',
      field: 'latency[*].share',
      fail: { above: 0.75 },
      missing: 'skip',
    },
  ],
};

/** Ready rules, for `extends`. */
export const presets: Readonly<Record<string, PolicyFile>> = {
  'streaming-parity': streamingParity,
  'streaming-acceptance': streamingAcceptance,
  'detector-acceptance': detectorAcceptance,
  'recogniser-acceptance': recogniserAcceptance,
  'comparison-acceptance': comparisonAcceptance,
  'engine-check': engineCheck,
  'triton-check': tritonCheck,
  'deepstream-check': deepstreamCheck,
  rehearsal,
};
