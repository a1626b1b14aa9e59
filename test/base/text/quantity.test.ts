import { describe, expect, test } from 'vitest';
import {
  formatBytes,
  formatCount,
  formatMs,
  formatMsTick,
  formatShare,
  formatStatistic,
  plural,
  powerOfTen,
} from '../../../src/base/text/quantity.js';

describe('quantities as people read them', () => {
  test.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.00 KiB'],
    [102_442_450, '97.7 MiB'],
    [1024 ** 3 - 1, '1.00 GiB'],
    [1e15, '909.5 TiB'],
  ])('%d bytes are %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));

  test.each([
    [0.84, '840 µs'],
    [3.21, '3.2 ms'],
    [42.4, '42 ms'],
    [999.7, '1.00 s'],
    [4380, '4.38 s'],
    [59_960, '1 min 00 s'],
    [125_000, '2 min 05 s'],
    [3_725_000, '1 h 02 min'],
  ])('%d ms are %s', (ms, text) => expect(formatMs(ms)).toBe(text));

  test.each([
    [0, '0'],
    [200, '200 ms'],
    [2000, '2 s'],
    [2500, '2.5 s'],
    [20_000, '20 s'],
  ])('a tick at %d ms reads %s', (ms, text) => expect(formatMsTick(ms)).toBe(text));

  test.each([
    [0, '0'],
    [0.012345, '0.0123'],
    [1e-3, '0.001'],
    [4.561e-7, '4.56e-7'],
    [-0.5, '-0.5'],
    [123_456, '1.23e5'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [Number.NaN, 'NaN'],
    [null, '–'],
  ])('the statistic %d reads %s', (amount, text) => expect(formatStatistic(amount)).toBe(text));

  test('a share that is not whole never reads as all or nothing', () => {
    expect(formatShare(0.9712)).toBe('97.1\u00a0%');
    expect(formatShare(0.99999)).toBe('>\u202f99.9\u00a0%');
    expect(formatShare(0.0001)).toBe('<\u202f0.1\u00a0%');
    expect([formatShare(0), formatShare(1)]).toEqual(['0\u00a0%', '100\u00a0%']);
  });

  test('counts are grouped and nouns agree', () => {
    expect(formatCount(25_557_032)).toBe('25\u202f557\u202f032');
    expect([plural(1, 'node'), plural(0, 'node')]).toEqual(['1 node', '0 nodes']);
  });

  test('powers of ten are written with superscripts', () => expect(powerOfTen(-13)).toBe('10⁻¹³'));
});
