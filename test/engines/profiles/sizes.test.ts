import { describe, expect, test } from 'vitest';
import { profileText } from '../../../src/engines/identity/build-line.js';
import { resolveProfiles } from '../../../src/engines/profiles/profile.js';
import { type ProfileSizes, requestedSizes, sizedProfile } from '../../../src/engines/profiles/sizes.js';
import { suggestProfile } from '../../../src/engines/profiles/suggest.js';
import type { ValueFacts } from '../../../src/formats/onnx/model-facts.js';
import { codeOf, refusal } from '../../support/refusal.js';

const input = (name: string, shape: ValueFacts['shape']): ValueFacts => ({
  name,
  dtype: 'float32',
  shape,
});
const images = input('images', ['batch', 3, 'height', 'width']);
const state = input('state', [2, 'batch', 64]);
const unnamed = input('x', [null, 3, null]);

const sizes = (batch?: string, dims: Record<string, number | string> = {}): ProfileSizes =>
  requestedSizes({ batch, dims })!;
const profile = (inputs: readonly (typeof images)[], requested: ProfileSizes) =>
  profileText(Object.fromEntries(sizedProfile(inputs, requested)));

describe('sizes by name', () => {
  test('batch and dimensions make one profile of every input that they complete', () => {
    const dims = { height: 640, width: '320/640/640' };
    const expected = 'images:1x3x640x320/8x3x640x640/32x3x640x640,state:2x1x64/2x8x64/2x32x64';
    expect(profile([images, state], sizes('1/8/32', dims))).toBe(expected);
    expect(profile([images, state], sizes(undefined, { ...dims, batch: '1/8/32' }))).toBe(expected);
    expect(profile([images], sizes('4'))).toBe('');
  });

  test.each([
    [8, { min: 8, opt: 8, max: 8 }],
    ['8', { min: 8, opt: 8, max: 8 }],
    ['1/8/64', { min: 1, opt: 8, max: 64 }],
    [
      { min: 1, opt: 8, max: 64 },
      { min: 1, opt: 8, max: 64 },
    ],
  ])('a batch may be written %j', (batch, range) => {
    expect(requestedSizes({ batch })?.batch).toEqual(range);
  });

  test.each([0, 1.5, '1/2', '8/4/2', '', 'x', null, {}, true])('%j is not a batch', (batch) => {
    expect(codeOf(() => requestedSizes({ batch: batch as never }))).toBe('TF_USAGE');
  });

  test.each([
    ['a name that no dimension has', [images], sizes(undefined, { heigth: 1 })],
    ['a batch without an open first axis', [input('x', [1, 3])], sizes('8')],
    ['a batch beside the name of that axis', [images], sizes('8', { batch: 8 })],
  ])('%s is rejected', (_what, inputs, requested) => {
    expect(refusal(() => sizedProfile(inputs, requested)).code).toBe('TF_PROFILE_INVALID');
  });

  test('a suggestion keeps the sizes that are set', () => {
    const suggested = suggestProfile([unnamed], undefined, sizes('4')) ?? '';
    expect(suggested).toMatch(/^x:4x3x\d+\/4x3x\d+\/4x3x\d+$/);
    expect(codeOf(() => resolveProfiles([unnamed], [], () => ({ profile: suggested, dims: null })))).toBe(
      'TF_PROFILE_MISSING',
    );
  });
});
