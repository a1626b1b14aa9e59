import type { PolicyFile } from './policy-schema.js';

/** What `stream verify` writes. */
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

/** The sign-off of the same checklist: 95 % of chunks below 5e-4, the mean below 2e-4, no growth, and 21 ms a chunk. */
const streamingAcceptance: PolicyFile = {
  schema: 'trtforge.gate-policy/1',
  extends: 'streaming-parity',
  checks: [
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
  ],
};

/** Ready rules, for `extends`. */
export const presets: Readonly<Record<string, PolicyFile>> = {
  'streaming-parity': streamingParity,
  'streaming-acceptance': streamingAcceptance,
};
