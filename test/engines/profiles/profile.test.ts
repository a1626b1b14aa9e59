import { describe, expect, test } from 'vitest';
import { profileText } from '../../../src/engines/identity/build-line.js';
import { parseProfile, resolveProfiles } from '../../../src/engines/profiles/profile.js';
import { suggestProfile } from '../../../src/engines/profiles/suggest.js';
import type { ValueFacts } from '../../../src/formats/onnx/model-facts.js';
import { refusal } from '../../support/refusal.js';

const input = (name: string, shape: ValueFacts['shape']): ValueFacts => ({ name, dtype: 'float32', shape });
const image = input('image', ['batch', 3, 224, 224]);
const ids = input('input_ids', ['batch', 'sequence']);
const mask = input('attention_mask', ['batch', 'sequence']);
const fixed = input('scale', [1]);

const resolve = (inputs: readonly ValueFacts[], ...texts: readonly string[]) =>
  resolveProfiles(inputs, texts.map(parseProfile), () => ({ profile: suggestProfile(inputs), dims: null }));

describe('the text of a profile', () => {
  test.each([
    ['x:1x3/8x3/32x3', { x: { min: [1, 3], opt: [8, 3], max: [32, 3], values: false } }],
    ['x:[1,3]/[8,3]/[32,3]', { x: { min: [1, 3], opt: [8, 3], max: [32, 3], values: false } }],
    ['x:4x8', { x: { min: [4, 8], opt: [4, 8], max: [4, 8], values: false } }],
    ['sizes=1x1/4x4/8x8', { sizes: { min: [1, 1], opt: [4, 4], max: [8, 8], values: true } }],
    ['n:scalar', { n: { min: [], opt: [], max: [], values: false } }],
    ['model:x:0:1/2/3', { 'model:x:0': { min: [1], opt: [2], max: [3], values: false } }],
    ["'a,b':1/2/3", { 'a,b': { min: [1], opt: [2], max: [3], values: false } }],
    [
      'a:1/2/3, b:4/5/6',
      {
        a: { min: [1], opt: [2], max: [3], values: false },
        b: { min: [4], opt: [5], max: [6], values: false },
      },
    ],
  ])('"%s" is read', (text, expected) => {
    expect(Object.fromEntries(parseProfile(text))).toEqual(expected);
  });

  test.each(['x', 'x:', ':1/2/3', 'x:1/2', 'x:1/2/3/4', 'x:1x/2x/3x', 'x:-1/2/3', 'x:1.5/2/3', 'x:axb'])(
    '"%s" is rejected',
    (text) => {
      expect(refusal(() => parseProfile(text)).code).toBe('TF_SHAPE_INVALID');
    },
  );

  test('an input may be passed once', () => {
    expect(refusal(() => parseProfile('x:1/2/3,x:1/2/3')).code).toBe('TF_PROFILE_INVALID');
  });

  test.each(["x:1x3/4x3/8x3,'a:b'=1x1/4x4/8x8", 'x:scalar'])('is written as it is read: %s', (text) => {
    expect(profileText(Object.fromEntries(parseProfile(text)))).toBe(text);
  });
});

describe('profiles compared with a model', () => {
  test('a model without open dimensions needs none, and keeps none that state what it is', () => {
    expect(resolve([fixed])).toEqual([]);
    expect(resolve([fixed], 'scale:1')).toEqual([]);
  });

  test('only inputs with open dimensions are kept', () => {
    expect(resolve([image, fixed], 'image:1x3x224x224/8x3x224x224/32x3x224x224,scale:1')).toEqual([
      { image: { min: [1, 3, 224, 224], opt: [8, 3, 224, 224], max: [32, 3, 224, 224], values: false } },
    ]);
  });

  test('several profiles keep their order', () => {
    const both = resolve([ids], 'input_ids:8x1/8x2/8x3', 'input_ids:1x1/1x2/1x3');
    expect(both.map((profile) => profile.input_ids?.max)).toEqual([
      [8, 3],
      [1, 3],
    ]);
  });

  test('values of a shape tensor are not checked against its dimensions', () => {
    expect(resolve([input('size', [2])], 'size=1x1/64x64/128x128')).toEqual([
      { size: { min: [1, 1], opt: [64, 64], max: [128, 128], values: true } },
    ]);
  });

  test.each([
    ['an unknown name', 'imgae:1x3x224x224', /no input "imgae"/, /Did you mean "image"/],
    ['a name far from all', 'pixel_values:1x3x224x224', /no input "pixel_values"/, /Its inputs are "image"/],
    ['a wrong rank', 'image:1x3x224', /rank 4 \(batchx3x224x224\), the profile has 3/, undefined],
    ['ranks that differ', 'image:1x3x224x224/8x3x224/8x3x224x224', /4, 3 and 4 dimensions/, undefined],
    [
      'minimum over optimum',
      'image:9x3x224x224/8x3x224x224/32x3x224x224',
      /minimum 9, optimum 8 .* axis 0/,
      undefined,
    ],
    [
      'optimum over maximum',
      'image:1x3x224x224/64x3x224x224/32x3x224x224',
      /optimum 64 and maximum 32/,
      undefined,
    ],
    ['another fixed size', 'image:1x3x256x224', /fixed size 224 on axis 2/, undefined],
  ])('%s is rejected', (_what, text, message, remedy) => {
    const error = refusal(() => resolve([image], text));
    expect(error.code).toBe('TF_PROFILE_INVALID');
    expect(error.message).toMatch(message);
    if (remedy !== undefined) expect(error.remedy).toMatch(remedy);
  });

  test('one symbol is one range, wherever it stands', () => {
    const error = refusal(() =>
      resolve([ids, mask], 'input_ids:1x16/8x128/32x512,attention_mask:1x16/8x64/32x512'),
    );
    expect(error.message).toMatch(/"sequence" is 16\/128\/512 at "input_ids" axis 1 but 16\/64\/512/);
  });

  test('open dimensions without a range are named, with a profile that would do', () => {
    const error = refusal(() => resolve([ids, mask, fixed]));
    expect(error.code).toBe('TF_PROFILE_MISSING');
    expect(error.message).toContain('"input_ids" (batchxsequence), "attention_mask" (batchxsequence)');
    const suggestion = suggestProfile([ids, mask]);
    expect(error.remedy).toContain(`--profile ${suggestion}`);
    expect(resolve([ids, mask, fixed], suggestion ?? '')).toHaveLength(1);
  });

  test('every profile must state all open inputs', () => {
    const types = input('token_type_ids', ['batch', 'segments']);
    const error = refusal(() => resolve([ids, mask, types], 'input_ids:1x16/8x128/32x512'));
    expect(error.code).toBe('TF_PROFILE_MISSING');
    expect(error.message).toContain('"token_type_ids"');
    expect(error.message).not.toContain('"input_ids"');
  });

  test('but not those whose symbols have their ranges already', () => {
    const range = { min: [1, 16], opt: [8, 128], max: [32, 512], values: false };
    expect(resolve([ids, mask, fixed], 'input_ids:1x16/8x128/32x512')).toEqual([
      { input_ids: range, attention_mask: range },
    ]);
  });

  test.each(['?', 'None', 'unk__3'])('"%s" is not a symbol to take a range from', (name) => {
    const two = [input('a', [name, 3]), input('b', [name, 3])];
    expect(refusal(() => resolve(two, 'a:1x3/2x3/4x3')).code).toBe('TF_PROFILE_MISSING');
    const image = [input('x', [1, 3, name, name])];
    expect(resolve(image, 'x:1x3x48x192')[0]?.x).toMatchObject({ opt: [1, 3, 48, 192] });
    const named = [input('x', [1, 3, 'side', 'side'])];
    expect(refusal(() => resolve(named, 'x:1x3x48x192')).code).toBe('TF_PROFILE_INVALID');
    expect(resolve(image, suggestProfile(image) ?? '')).toHaveLength(1);
  });

  test('an input without a shape needs no range, and takes none but that of a scalar', () => {
    expect(suggestProfile([input('x', null)])).toBeNull();
    expect(resolve([input('x', null)])).toEqual([]);
    expect(resolve([input('x', null)], 'x:scalar')).toEqual([]);
    expect(refusal(() => resolve([input('x', null)], 'x:1/2/4')).code).toBe('TF_PROFILE_INVALID');
  });

  test('names with commas and colons come quoted in the suggestion', () => {
    const odd = input('a,b:0', ['n']);
    expect(resolve([odd], suggestProfile([odd]) ?? '')).toHaveLength(1);
  });
});
