import { describe, expect, it } from 'vitest';
import type { EngineBinding } from '../../../src/engines/runtime/tensorrt/engine-interface.js';
import { shapeCases } from '../../../src/quality/bench/shape-cases.js';
import { refusal } from '../../support/refusal.js';

type Range = readonly [readonly number[], readonly number[], readonly number[]];
const input = (
  name: string,
  shape: EngineBinding['shape'],
  profiles: readonly Range[],
  hostValues = false,
): EngineBinding => ({
  name,
  dtype: 'float32',
  shape,
  hostValues,
  profiles: profiles.map(([min, opt, max]) => ({ min, opt, max })),
});
const image = input(
  'image',
  [null, 3, 8, 8],
  [
    [
      [1, 3, 8, 8],
      [4, 3, 8, 8],
      [8, 3, 8, 8],
    ],
    [
      [16, 3, 8, 8],
      [32, 3, 8, 8],
      [64, 3, 8, 8],
    ],
  ],
);
const state = input(
  'state',
  [2, null, 16],
  [
    [
      [2, 1, 16],
      [2, 4, 16],
      [2, 8, 16],
    ],
    [
      [2, 16, 16],
      [2, 32, 16],
      [2, 64, 16],
    ],
  ],
);
const length = input(
  'length',
  [null, null],
  [
    [
      [1, 5],
      [4, 50],
      [8, 500],
    ],
    [
      [16, 5],
      [32, 50],
      [64, 500],
    ],
  ],
);
const fixed = input(
  'x',
  [2, 4],
  [
    [
      [2, 4],
      [2, 4],
      [2, 4],
    ],
  ],
);
const dims = (inputs: readonly EngineBinding[], wish: Parameters<typeof shapeCases>[1]) =>
  shapeCases(inputs, wish).map(({ profile, batch, shapes }) => [
    profile,
    batch,
    ...shapes.map(({ shape }) => shape),
  ]);

describe('shapes to measure', () => {
  it('are the optimum of the first profile unless something is asked for', () => {
    expect(dims([image, state], { kind: 'optimum' })).toEqual([[0, 4, [4, 3, 8, 8], [2, 4, 16]]]);
  });

  it('put a batch into every axis that is one, in the first profile that takes it', () => {
    expect(dims([image, state, length], { kind: 'batches', batches: [1, 8, 64] })).toEqual([
      [0, 1, [1, 3, 8, 8], [2, 1, 16], [1, 50]],
      [0, 8, [8, 3, 8, 8], [2, 8, 16], [8, 50]],
      [1, 64, [64, 3, 8, 8], [2, 64, 16], [64, 50]],
    ]);
  });

  it('take what is asked for by name, the rest at its optimum', () => {
    expect(dims([image, length], { kind: 'shapes', shapes: new Map([['length', [4, 7]]]) })).toEqual([
      [0, 4, [4, 3, 8, 8], [4, 7]],
    ]);
  });

  it('pass a shape tensor values in place of a shape', () => {
    const sizes = input(
      'sizes',
      [2],
      [
        [
          [1, 1],
          [4, 4],
          [8, 8],
        ],
      ],
      true,
    );
    const [found] = shapeCases([fixed, sizes], { kind: 'shapes', shapes: new Map([['sizes', [5, 6]]]) });
    expect(found?.shapes).toEqual([
      { name: 'x', shape: [2, 4], values: null },
      { name: 'sizes', shape: [2], values: [5, 6] },
    ]);
  });

  it.each([
    [
      'a batch between profiles',
      [image],
      { kind: 'batches', batches: [12] },
      /image is \[12, 3, 8, 8\], profile 0 takes \[1, 3, 8, 8\] to \[8, 3, 8, 8\]/,
    ],
    [
      'another batch than the fixed one',
      [fixed],
      { kind: 'batches', batches: [4] },
      /the batch is fixed at 2/,
    ],
    [
      'an unknown input',
      [fixed],
      { kind: 'shapes', shapes: new Map([['z', [1]]]) },
      /no input "z"; the inputs are x/,
    ],
    ['no batch', [image], { kind: 'batches', batches: [] }, /no batch to measure/],
    ['another rank', [fixed], { kind: 'shapes', shapes: new Map([['x', [2]]]) }, /x is \[2\]/],
  ] as const)('reject %s', (_, inputs, wish, message) => {
    expect(refusal(() => shapeCases(inputs, wish)).message).toMatch(message);
  });

  it('take the fixed batch when it is the one asked for', () => {
    expect(dims([fixed], { kind: 'batches', batches: [2] })).toEqual([[0, 2, [2, 4]]]);
  });
});
