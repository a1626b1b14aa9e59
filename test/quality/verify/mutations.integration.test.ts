import { describe, expect, test } from 'vitest';
import { kinds } from '../../models/kinds.js';
import { brokenPromises, judgeKind } from './mutation-suite.js';

/** All kinds, faults and twins, by ten seeds, are in mutations.full.test.ts: files of pictures, a text and a sound are enough to see that the suite runs. */
const some = kinds.filter(({ name }) =>
  ['detector of scenes', 'embedding and encoder', 'waveform'].includes(name),
);
const FAULTS = 2;
const TWINS = ['fp16'];

describe('a part of the broken models fails, and of the healthy ones none', () => {
  test.each(some)('$name', async (kind) => {
    const chosen = new Set([...kind.faults.slice(0, FAULTS).map(({ name }) => name), ...TWINS]);
    const trials = await judgeKind(kind, { chooses: (name) => chosen.has(name) });
    expect(brokenPromises(trials)).toEqual([]);
  });
});
