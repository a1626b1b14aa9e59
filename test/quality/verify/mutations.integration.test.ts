import { describe, expect, test } from 'vitest';
import { kinds } from '../../models/kinds.js';
import { brokenPromises, judgeKind } from './mutation-suite.js';

/** All of them, by ten seeds, are in mutations.full.test.ts. */
const FAULTS = 1;
const TWINS = ['fp16'];

describe('a part of the broken models fails, and of the healthy ones none', () => {
  test.each(kinds)('$name', async (kind) => {
    const chosen = new Set([...kind.faults.slice(0, FAULTS).map(({ name }) => name), ...TWINS]);
    const trials = await judgeKind(kind, { chooses: (name) => chosen.has(name) });
    expect(brokenPromises(trials)).toEqual([]);
  });
});
