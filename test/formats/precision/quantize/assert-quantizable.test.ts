import { expect, test } from 'vitest';
import { keptBy } from '../../../../src/formats/precision/quantize/assert-quantizable.js';

test('each reason that keeps nodes out has its own number of nodes', () => {
  const kept = (rule: string, ...reasons: readonly string[]) => reasons.map((reason) => ({ rule, reason }));
  const channels = kept('few-channels', '3 channels', '4 channels', '3 channels');
  const widths = kept('narrow', '1 wide', '2 wide', '3 wide', '4 wide', '5 wide');
  expect(keptBy([...channels, ...widths, ...kept('named', 'it is named')])).toEqual({
    rules: { 'few-channels': 3, narrow: 5, named: 1 },
    reasons: [
      'few-channels (2: 3 channels, 1: 4 channels)',
      'narrow (1: 1 wide, 1: 2 wide, 1: 3 wide, and 2 more)',
      'named (1: it is named)',
    ],
  });
});
