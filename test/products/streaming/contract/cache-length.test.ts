import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  checkLaw,
  scheduled,
  simulateLengths,
  stepsOf,
  validResultLength,
} from '../../../../src/products/streaming/contract/cache-length.js';
import type { Contract } from '../../../../src/products/streaming/contract/contract.js';
import { readContract } from '../../../../src/products/streaming/contract/file.js';

const FIXTURES = join(import.meta.dirname, '../../../fixtures/contracts');
const law = (drop: number, capacity = 256) => ({ capacity, dropExtra: 2, drop });
const lengths = (drop: number, frames: readonly number[]) =>
  simulateLengths(law(drop), frames).map(({ stateOut }) => stateOut);

describe('the cache-length law', () => {
  test.each([
    [592, 74],
    [593, 75],
    [584, 73],
    [577, 73],
    [57, 8],
    [48, 6],
    [41, 6],
    [50, 7],
    [1, 1],
  ])('%i frames are %i steps', (frames, steps) => {
    expect(stepsOf(frames)).toBe(steps);
  });

  test.each([
    { what: 'chunks of 592, drop 72: empty for ever', drop: 72, frames: [592, 592, 592], out: [0, 0, 0] },
    { what: 'one more frame, drop 72: it grows', drop: 72, frames: [592, 592, 593, 593], out: [0, 0, 1, 2] },
    { what: '577 then 593, drop 71', drop: 71, frames: [577, 593, 593, 593], out: [0, 2, 4, 6] },
    { what: 'chunks of 48, drop 3', drop: 3, frames: [48, 48, 48, 48], out: [1, 2, 3, 4] },
    { what: '41 then 57, drop 3', drop: 3, frames: [41, 57, 57, 57], out: [1, 4, 7, 10] },
    { what: 'an engine stuck at 41', drop: 3, frames: [41, 41, 41], out: [1, 2, 3] },
    { what: 'chunks of 50, drop 72: below zero', drop: 72, frames: [50], out: [-67] },
  ])('gives the published lengths for $what', ({ drop, frames, out }) => {
    expect(lengths(drop, frames)).toEqual(out);
  });

  test('reaches 198 after the 200 chunks of the published log and 148 after 50 of the 41/57 schedule', () => {
    expect(lengths(72, [592, ...scheduled({ first: 592, rest: 593 }, 199)]).at(-1)).toBe(198);
    expect(lengths(3, scheduled({ first: 41, rest: 57 }, 50)).at(-1)).toBe(148);
    expect(lengths(3, scheduled({ first: 41, rest: 41 }, 50)).at(-1)).toBe(50);
  });

  test('stops at the capacity', () => {
    expect(lengths(3, scheduled({ first: 41, rest: 57 }, 300)).at(-1)).toBe(256);
  });

  test.each([
    [72, 584, 1],
    [71, 584, 2],
    [3, 48, 3],
  ])('with a drop of %i and %i frames of its own a chunk gives %i valid steps', (drop, frames, valid) => {
    expect(validResultLength(law(drop), frames)).toBe(valid);
  });
});

describe('a contract against its own numbers', () => {
  const sound = readContract(join(FIXTURES, 'batch-first.contract.json'));
  const found = (changes: Partial<Contract>) =>
    checkLaw({ ...sound, ...changes }).map(({ id, wrong, message }) => ({ id, wrong, message }));

  test('a sound one has no findings', () => {
    expect(found({})).toEqual([]);
  });

  test('a promise of empty state is the contract’s own mistake where the law makes it grow', () => {
    const promise = {
      id: 'isolated',
      tensor: 'cache_last_channel_len_out',
      sentence: 'Chunks are isolated.',
      kind: 'equal',
      value: 0,
    } as const;
    const [finding] = checkLaw({ ...sound, assertions: [promise] });
    expect(finding).toMatchObject({ id: 'promise-against-law', wrong: 'contract', severity: 'error' });
    expect(finding?.message).toContain('[1] where 0 was promised');
    expect(finding?.why).toContain('1,4,7,10,13,16');
    expect(finding?.remedy).toContain('never shrinks');
  });

  test('a wrong number of valid steps is named with the right one', () => {
    const findings = checkLaw({ ...sound, law: { capacity: 16, dropExtra: 2, drop: 4 } });
    expect(findings.map(({ id, about }) => [id, about])).toEqual([
      ['promise-against-law', 'encoded_lengths'],
    ]);
    expect(findings[0]?.remedy).toContain('Correct the promise to 2');
  });

  test('more is dropped than comes in', () => {
    const [finding] = checkLaw({ ...sound, law: { capacity: 256, dropExtra: 2, drop: 72 } });
    expect(finding).toMatchObject({ id: 'negative-length', wrong: 'contract' });
    expect(finding?.message).toContain('-68');
  });

  test('the legacy contract: empty with the sizes it names, growing with the ones its numbers make', () => {
    const legacy = readContract(join(FIXTURES, 'layer-first.contract.json'));
    expect(legacy.schedule).toMatchObject({ first: 577, rest: 593, stated: [592, 584] });
    expect(checkLaw(legacy).map(({ id }) => id)).toEqual(
      expect.arrayContaining(['sizes-disagree', 'schedule-outside-profiles', 'negative-length']),
    );
    const asStated = { ...legacy, schedule: { ...legacy.schedule!, first: 592, rest: 592, stated: [] } };
    const isolated = checkLaw({ ...asStated, profiles: [], assertions: [] });
    expect(isolated).toMatchObject([{ id: 'state-never-grows', severity: 'warning' }]);
    expect(isolated[0]?.why).toContain('with 593 frames it would grow');
  });

  test('a size of the schedule that no profile holds is named', () => {
    const whole = readContract(join(FIXTURES, 'whole-model.contract.json'));
    expect(checkLaw(whole)).toMatchObject([
      { id: 'schedule-outside-profiles', wrong: 'contract', about: 'audio_signal' },
    ]);
    expect(checkLaw(whole)[0]?.message).toContain('Chunks of 57 frames');
  });
});
