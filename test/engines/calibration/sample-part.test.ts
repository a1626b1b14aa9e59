import { expect, test } from 'vitest';
import {
  MOST_HELD_OUT,
  partOf,
  type SamplePart,
  type SampleSource,
} from '../../../src/engines/calibration/sample-source.js';

const source = (count: number): SampleSource => ({
  total: undefined,
  digests: () => [`${count}`],
  isFor: () => true,
  samples: () => Array.from({ length: count }, (_, at) => ({ origin: String(at), inputs: new Map() })),
});

async function origins(count: number, part: SamplePart): Promise<readonly number[]> {
  const found: number[] = [];
  for await (const { origin } of partOf([source(count)], part).samples([])) found.push(Number(origin));
  return found;
}

test.each([
  [1, [0]],
  [3, [0, 1, 2]],
  [4, [1, 3]],
  [7, [1, 3]],
  [8, [3, 7]],
  [16, [3, 7, 11, 15]],
])('of %i samples %j judge', async (count, heldOut) => {
  expect(await origins(count, 'held-out')).toEqual(heldOut);
  const all = Array.from({ length: count }, (_, at) => at);
  const rest = count < 4 ? all : all.filter((at) => !heldOut.includes(at));
  expect(await origins(count, 'calibration')).toEqual(rest);
});

test('at most 32 are held out, and every sample is in one part', async () => {
  const [heldOut, rest] = [await origins(500, 'held-out'), await origins(500, 'calibration')];
  expect(heldOut).toHaveLength(MOST_HELD_OUT);
  expect(new Set([...heldOut, ...rest]).size).toBe(500);
});

test('the digest depends on the order of the samples, which decides the parts', () => {
  const digests = (...counts: readonly number[]) => partOf(counts.map(source), 'calibration').digests();
  expect(digests(1, 2)).not.toEqual(digests(2, 1));
  expect(digests(1, 2)).not.toEqual(partOf([source(1), source(2)], 'held-out').digests());
});
