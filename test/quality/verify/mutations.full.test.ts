import { mkdirSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { kinds } from '../../models/kinds.js';
import {
  brokenPromises,
  isOnData,
  judgeKind,
  suiteTable,
  type Trial,
  undecidedTwins,
} from './mutation-suite.js';

// VERDICT_KINDS, VERDICT_ONLY (faults and twins), VERDICT_SEEDS and VERDICT_NETWORK (the seed of weights) choose a part; build/verdicts.md has the table.
const listed = (name: string) => process.env[name]?.split(',');
const chosen = listed('VERDICT_KINDS');
const only = listed('VERDICT_ONLY');
const ofKinds = kinds.filter(({ name }) => chosen?.includes(name) ?? true);
const seeds = (listed('VERDICT_SEEDS') ?? ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']).map(Number);

describe('no broken model passes, no healthy one fails, whatever the seed', () => {
  const all: Trial[] = [];
  test.each(ofKinds)(
    '$name',
    async (kind) => {
      const trials = await judgeKind(kind, {
        seeds,
        networkSeed: Number(process.env.VERDICT_NETWORK ?? 0),
        ...(only && { chooses: (name: string) => only.some((part) => name.includes(part)) }),
      });
      all.push(...trials);
      mkdirSync('build', { recursive: true });
      writeFileSync('build/verdicts.md', `${suiteTable(all)}\n`);
      writeFileSync('build/verdicts.jsonl', all.map((trial) => `${JSON.stringify(trial)}\n`).join(''));
      expect(brokenPromises(trials)).toEqual([]);
    },
    600_000,
  );
  test('hardly any twin is inconclusive on data, or none of a healthy model', () => {
    expect(undecidedTwins(all.filter(isOnData))).toBeLessThanOrEqual(0.05);
  });
});

/** Weights that the limits were not made with. All faults and twins of any others: VERDICT_NETWORK. */
const OTHER_WEIGHTS = 1;

describe('nor with other weights', () => {
  test.each(ofKinds)('$name', async (kind) => {
    const names = new Set([kind.faults.at(-2)!.name, 'bf16', 'int8']);
    const trials = await judgeKind(kind, { networkSeed: OTHER_WEIGHTS, chooses: (name) => names.has(name) });
    expect(brokenPromises(trials)).toEqual([]);
  });
});
