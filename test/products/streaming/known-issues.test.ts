import { expect, it } from 'vitest';
import { streamingIssues } from '../../../src/products/streaming/known-issues.js';
import { explainLines } from '../../../src/quality/explain/explain.js';

/** One line for each issue, as wrappers of streaming encoders and parity runs print it. */
const lines: Readonly<Record<string, string>> = {
  'cache-length-not-zero': 'AssertionError: STREAMING CONTRACT VIOLATION: cache_len != 0, got [1]',
  'streaming-contract-violated':
    'AssertionError: STREAMING CONTRACT VIOLATION: encoder_output time != 1, shape=(1, 1024, 3)',
  'encoder-error-high': 'encoder_output: max_abs=3.400e-03 mean_abs=8.048e-04 max_rel=2.334e-02',
  'encoder-output-not-finite': 'encoder_output: max_abs=nan mean_abs=nan max_rel=nan',
  'chunk-latency-missed': 'Drift: 95 % of the chunks take at most 25.5 ms; 21 ms is allowed.',
};

it('has a line for every known issue of streams', () => {
  expect(Object.keys(lines).toSorted()).toEqual(streamingIssues.map(({ id }) => id).toSorted());
});

it.each(Object.entries(lines))('finds %s by its line, and as nothing of the core', (id, text) => {
  const { issues } = explainLines('log', [text], { knownIssues: streamingIssues });
  expect(issues.map((issue) => issue.id)).toEqual([id]);
  expect(`${issues[0]?.cause} ${issues[0]?.remedy}`).not.toMatch(/[{}]|undefined|\(\)| {2}/);
});
