import { describe, expect, it } from 'vitest';
import { type Served, serves } from '../../../src/behaviour/facts.js';
import { abilitiesOf, supportTable } from '../../../src/quality/doctor/support.js';
import type { FoundToolchain } from '../../../src/tensorrt/toolchain/find.js';
import { found } from './fake-facts.js';

describe('which TensorRT serves which GPU', () => {
  const cases: readonly [string, string, number, Served][] = [
    ['tensorrt', '8.6.1.6', 61, 'yes'],
    ['tensorrt', '8.6.1.6', 52, 'unknown'],
    ['tensorrt', '8.6.1.6', 90, 'yes'],
    ['tensorrt', '8.6.1.6', 120, 'no'],
    ['tensorrt', '10.0.1.6', 61, 'no'],
    ['tensorrt', '10.4.0.26', 70, 'yes'],
    ['tensorrt', '10.5.0.18', 70, 'no'],
    ['tensorrt', '10.6.0.26', 90, 'yes'],
    ['tensorrt', '10.7.0.23', 120, 'no'],
    ['tensorrt', '10.8.0.43', 120, 'yes'],
    ['tensorrt', '11.1.0.106', 75, 'yes'],
    ['tensorrt', '11.1.0.106', 121, 'unknown'],
    ['tensorrt-rtx', '1.7.1.116', 89, 'yes'],
    ['tensorrt-rtx', '1.7.1.116', 90, 'no'],
    ['tensorrt-rtx', '1.7.1.116', 130, 'unknown'],
    ['tensorrt', '11.1.0.106', 130, 'unknown'],
    ['tensorrt', '10.13.3.9', 88, 'unknown'],
    ['tensorrt', '10.7.0.23', 130, 'no'],
  ];
  it.each(cases)('%s %s on sm_%i: %s', (product, version, sm, served) => {
    expect(serves({ product: product as FoundToolchain['product'], version }, sm)).toBe(served);
  });

  it('as a table from Pascal to Blackwell, with the GPU of this machine marked', () => {
    const rows = supportTable([90]);
    expect(rows.map(({ computeCapability }) => computeCapability)).toEqual(
      expect.arrayContaining([61, 70, 75, 80, 86, 89, 90, 100, 120, 121]),
    );
    expect(rows.filter(({ here }) => here)).toEqual([
      expect.objectContaining({
        computeCapability: 90,
        tensorrt8: 'yes',
        tensorrt10: 'yes',
        tensorrt11: 'yes',
        tensorrtRtx: 'no',
      }),
    ]);
    const row = (sm: number) => rows.find(({ computeCapability }) => computeCapability === sm);
    expect(row(61)).toMatchObject({ tensorrt8: 'yes', tensorrt10: 'no', tensorrt11: 'no' });
    expect(row(70)).toMatchObject({ tensorrt10: 'to 10.4' });
    expect(row(120)).toMatchObject({ tensorrt8: 'no', tensorrt10: 'from 10.8', tensorrtRtx: 'yes' });
  });
});

describe('what a toolchain can do here', () => {
  const h200 = { name: 'NVIDIA H200', computeCapability: 90 };
  const l4 = { name: 'NVIDIA L4', computeCapability: 89 };
  const rtx = { product: 'tensorrt-rtx', version: '1.7.1.116' } as const;

  const cases: readonly [
    string,
    Partial<FoundToolchain>,
    readonly (typeof h200)[],
    RegExp | null,
    RegExp | null,
  ][] = [
    ['tensorrt-rtx without a GPU', rtx, [], null, /no NVIDIA GPU/],
    ['tensorrt-rtx on an L4', rtx, [l4], null, null],
    ['tensorrt-rtx on an H200', rtx, [h200], null, /does not serve NVIDIA H200 \(sm_90\)/],
    ['TensorRT without a GPU', {}, [], /no NVIDIA GPU/, /no NVIDIA GPU/],
    ['TensorRT on an H200', {}, [h200], null, null],
    ['one of several GPUs is enough', rtx, [h200, l4], null, null],
    [
      'without a parser',
      { libraries: { inference: 'x', parser: null, plugins: null } },
      [h200],
      /ONNX parser library is missing/,
      null,
    ],
    ['the lean runtime', { flavour: 'lean' }, [h200], /no builder/, null],
    ['the builder resource of this GPU', { builderResources: ['ptx', 'sm90'] }, [h200], null, null],
    ['the resource of an older minor', { builderResources: ['sm86'] }, [l4], null, null],
    [
      'another GPU’s resource only',
      { builderResources: ['ptx', 'sm80'] },
      [h200],
      /resources are for ptx, sm80; the one for sm_90 is missing/,
      null,
    ],
    ['one resource for all', { builderResources: ['all'] }, [h200], null, null],
    ['TensorRT 9', { version: '9.3.0.1' }, [h200], /drives TensorRT 8\.6, TensorRT 10\.x/, /drives TensorRT/],
    [
      'tensorrt-rtx 1.4',
      { ...rtx, version: '1.4.0.76' },
      [l4],
      /TensorRT-RTX 1\.7 to 1\.x, not 1\.4\.0\.76/,
      /1\.4/,
    ],
  ];
  it.each(cases)('%s', (_what, changes, gpus, build, run) => {
    const abilities = abilitiesOf(found(changes), gpus);
    for (const [ability, why] of [
      [abilities.build, build],
      [abilities.run, run],
    ] as const) {
      expect(ability).toEqual({ can: why === null, why: why === null ? null : expect.stringMatching(why) });
    }
  });
});
