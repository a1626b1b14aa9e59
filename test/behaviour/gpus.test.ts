import { describe, expect, test } from 'vitest';
import { existsOn, isArmOnly, servedFrom, serves } from '../../src/behaviour/facts.js';
import { supportTable } from '../../src/quality/doctor/support.js';

describe('which TensorRT serves a GPU', () => {
  test.each([
    // Thor: JetPack 7 has 10.13; JetPack had no TensorRT 11 before 11.4.1.
    ['10.9.0.34', 110, 'unknown'],
    ['10.13.3.9', 110, 'yes'],
    ['10.16.0.1', 110, 'yes'],
    ['11.0.0.114', 110, 'unknown'],
    ['11.4.0.1', 110, 'unknown'],
    ['11.4.1.1', 110, 'yes'],
    ['10.7.0.23', 110, 'no'],
    ['10.8.0.43', 100, 'yes'],
    ['11.1.0.106', 120, 'yes'],
    ['10.13.3.9', 121, 'unknown'],
    ['11.1.0.106', 70, 'no'],
  ] as const)('TensorRT %s serves sm_%i: %s', (version, sm, served) => {
    expect(serves({ product: 'tensorrt', version }, sm)).toBe(served);
  });

  test('doctor states from which release on', () => {
    const row = (sm: number) => supportTable([]).find(({ computeCapability }) => computeCapability === sm);
    expect(row(110)).toMatchObject({ tensorrt8: 'no', tensorrt10: 'from 10.13', tensorrt11: '?' });
    expect(row(100)).toMatchObject({ tensorrt10: 'from 10.8', tensorrt11: 'yes' });
    expect(row(89)).toMatchObject({ tensorrt8: 'yes', tensorrt10: 'yes', tensorrt11: 'yes' });
    expect([servedFrom(110), servedFrom(120)]).toEqual(['10.13 and newer', '10.8 and newer']);
  });
});

test('a GPU without a memory of its own, or beside Grace, exists with Arm processors alone', () => {
  const x64 = { os: 'linux', arch: 'x86_64' } as const;
  const arm = { os: 'linux', arch: 'aarch64' } as const;
  for (const sm of [62, 72, 87, 101, 110, 121]) {
    expect([isArmOnly(sm), existsOn(x64, sm), existsOn(arm, sm)]).toEqual([true, 'no', 'yes']);
  }
  expect(existsOn(x64, 90, 'GH200')).toBe('no');
  for (const sm of [75, 89, 90, 100, 120]) expect(existsOn(x64, sm)).toBe('yes');
});
