import { describe, expect, it } from 'vitest';
import { loadsIn } from '../../../src/engines/plan/loads.js';

const plan = { product: 'tensorrt' as const, version: '10.6.0.26' };
const runtime = (version: string, flavour?: 'full' | 'lean' | 'dispatch') => ({
  product: 'tensorrt',
  version,
  ...(flavour === undefined ? {} : { flavour }),
});
const carrying = ['version-compatible'];
const excluded = ['version-compatible', 'exclude-lean-runtime'];

describe('whether a runtime loads a plan, by versions alone', () => {
  it.each([
    ['10.6.0.26', 'tensorrt', '10.6.0.26', 'yes'],
    ['10.6.0.26', 'tensorrt', '10.6.0', 'yes'],
    ['10.4.0.5', 'tensorrt', '10.4.0.261', 'yes'],
    ['10.6.0.26', 'tensorrt', '10.6.0.27', 'if-version-compatible'],
    ['10.6.0.26', 'tensorrt', '10.9.0.34', 'if-version-compatible'],
    ['10.9.0.34', 'tensorrt', '10.6.0.26', 'no'],
    ['10.9.0.34', 'tensorrt', '11.1.0.1', 'if-version-compatible'],
    ['8.6.1.6', 'tensorrt', '10.0.1.6', 'if-version-compatible'],
    ['8.6.1.6', 'tensorrt', '11.1.0.1', 'no'],
    ['10.6.0.26', 'tensorrt-rtx', '10.6.0.26', 'no'],
  ])('a plan of TensorRT %s in %s %s: %s', (version, product, runtimeVersion, loads) => {
    expect(loadsIn({ product: 'tensorrt', version }, { product, version: runtimeVersion }).loads).toBe(loads);
  });
});

describe('whether a runtime loads a plan whose builder flags are known', () => {
  it.each([
    ['the full runtime of its version', '10.6.0.26', 'full', 'yes', 'if-allowed', 'yes'],
    ['the lean runtime of its version', '10.6.0.26', 'lean', 'no', 'if-allowed', 'yes'],
    ['the dispatch runtime of its version', '10.6.0.26', 'dispatch', 'no', 'if-allowed', 'no'],
    ['a newer full runtime', '10.9.0.34', 'full', 'no', 'if-allowed', 'no'],
    ['a newer lean runtime', '10.16.0.72', 'lean', 'no', 'if-allowed', 'no'],
    ['the dispatch runtime of the next major version', '11.3.0.99', 'dispatch', 'no', 'if-allowed', 'no'],
    ['an older full runtime', '10.5.0.18', 'full', 'no', 'no', 'no'],
  ] as const)('%s', (_, version, flavour, usual, carries, without) => {
    const loads = (flags: readonly string[]) => loadsIn(plan, runtime(version, flavour), flags).loads;
    expect([loads([]), loads(carrying), loads(excluded)]).toEqual([usual, carries, without]);
  });

  it('states why not: not version-compatible, without the runtime inside, too old', () => {
    const why = (version: string, flags: readonly string[]) => loadsIn(plan, runtime(version), flags).why;
    expect(why('10.9.0.34', [])).toContain('not version-compatible');
    expect(why('10.9.0.34', excluded)).toContain('without the lean runtime inside');
    expect(why('10.5.0.18', carrying)).toContain('Build it again with tensorrt 10.5.0.18');
  });
});
