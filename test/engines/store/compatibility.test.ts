import { describe, expect, test } from 'vitest';
import type { IdentityDocument } from '../../../src/engines/identity/identity.js';
import { defaultRecipe, type Recipe } from '../../../src/engines/identity/recipe.js';
import type { Target } from '../../../src/engines/identity/target.js';
import {
  type CompatibilityRule,
  mayServe,
  othersMayServe,
} from '../../../src/engines/store/compatibility.js';

const tensorrt: Target = {
  product: 'tensorrt',
  version: '10.6.0.26',
  cudaMajor: 12,
  computeCapabilities: [86],
  os: 'linux',
  arch: 'x86_64',
};
const rtx: Target = { ...tensorrt, product: 'tensorrt-rtx', version: '1.7.1.116', cudaMajor: null };
const vc: Partial<Recipe> = { flags: ['version-compatible'] };
const lean: Partial<Recipe> = { flags: ['version-compatible', 'exclude-lean-runtime'] };
const hc: Partial<Recipe> = { hardwareCompatibility: 'ampere-plus' };

const document = (recipe: Partial<Recipe>, target: Target, model = 'a'.repeat(64)): IdentityDocument => ({
  schema: 'trtforge.identity/1',
  model,
  recipe: { ...defaultRecipe, ...recipe },
  target,
});

const sm = (...computeCapabilities: number[]) => ({ computeCapabilities });
const version = (text: string) => ({ version: text });

describe('whether an engine of another identity may serve', () => {
  test.each<[string, Partial<Recipe>, Target, Partial<Target>, Partial<Target>, CompatibilityRule, boolean]>([
    ['the same', {}, tensorrt, {}, {}, 'exact', true],
    ['another version, not asked for', {}, tensorrt, version('10.7.0.23'), {}, 'other-version', false],
    ['an older one, version-compatible', vc, tensorrt, version('10.7.0.23'), {}, 'version-compatible', true],
    [
      'an older one that does not carry its runtime',
      lean,
      tensorrt,
      version('10.7.0.23'),
      {},
      'other-version',
      false,
    ],
    ['one major older', vc, tensorrt, version('11.1.0.106'), {}, 'version-compatible', true],
    ['two majors older', vc, tensorrt, version('11.1.0.106'), version('8.6.1.6'), 'other-version', false],
    ['8 on 10', vc, tensorrt, {}, version('8.6.1.6'), 'version-compatible', true],
    ['a newer one', vc, tensorrt, version('10.5.0.18'), {}, 'other-version', false],
    ['version-compatible tensorrt-rtx', vc, rtx, version('1.8.0.1'), {}, 'other-version', false],
    ['another GPU, not asked for', {}, tensorrt, sm(89), {}, 'other-gpu', false],
    ['Ampere and newer', hc, tensorrt, sm(89), {}, 'hardware-compatible', true],
    ['Ampere and newer, on Turing', hc, tensorrt, sm(75), {}, 'other-gpu', false],
    ['Ampere and newer, on a Jetson', hc, tensorrt, sm(87), {}, 'other-gpu', false],
    ['Ampere and newer, on Hopper and Blackwell', hc, tensorrt, sm(120), sm(90), 'hardware-compatible', true],
    [
      'the same capability only',
      { hardwareCompatibility: 'same-compute-capability' },
      tensorrt,
      sm(89),
      {},
      'other-gpu',
      false,
    ],
    [
      'both',
      { ...vc, ...hc },
      tensorrt,
      { ...version('10.7.0.23'), ...sm(90) },
      {},
      'version-and-hardware-compatible',
      true,
    ],
    ['one of several GPUs', {}, rtx, sm(89), sm(89, 120), 'several-gpus', true],
    ['more GPUs than it was built for', {}, rtx, sm(89, 120), sm(89), 'other-gpu', false],
    ['several, for TensorRT', {}, tensorrt, sm(89), sm(89, 120), 'other-gpu', false],
    ['another CUDA', vc, tensorrt, { cudaMajor: 13 }, {}, 'other-cuda', false],
    ['another system', {}, tensorrt, { os: 'windows' }, {}, 'other-platform', false],
    ['another processor', {}, tensorrt, { arch: 'aarch64' }, {}, 'other-platform', false],
    ['another processor, unproven', {}, rtx, { arch: 'aarch64' }, {}, 'other-platform', false],
    ['another product', {}, tensorrt, { product: 'tensorrt-rtx' }, {}, 'other-product', false],
  ])('%s', (_what, recipe, base, wanted, stored, rule, serves) => {
    const answer = mayServe(
      document(recipe, { ...base, ...wanted }),
      document(recipe, { ...base, ...stored }),
    );
    expect([answer.rule, answer.serves]).toEqual([rule, serves]);
    expect(answer.reason).toMatch(/\.$/);
  });

  test.each<[string, IdentityDocument, CompatibilityRule]>([
    ['another model', document(vc, tensorrt, 'b'.repeat(64)), 'other-model'],
    ['another recipe', document({ ...vc, maxAuxStreams: 0 }, tensorrt), 'other-recipe'],
    ['the level asked for now but not then', document({}, tensorrt), 'other-recipe'],
  ])('never: %s', (_what, stored, rule) => {
    expect(mayServe(document(vc, tensorrt), stored)).toMatchObject({ serves: false, rule });
  });

  test('of another recipe the field that differs is named, precision before sizes', () => {
    const sized = (max: number) => ({
      ...vc,
      profiles: [{ x: { min: [1], opt: [1], max: [max], values: false } }],
    });
    const wanted = document(sized(8), tensorrt);
    expect(mayServe(wanted, document(sized(4), tensorrt)).reason).toContain('profiles.0.x.max');
    const typed = mayServe(wanted, document({ ...sized(4), precision: 'fp16' }, tensorrt));
    expect(typed.reason).toContain('precision');
  });

  test('the order of a recipe’s fields does not matter', () => {
    const one = document(vc, tensorrt);
    const turned = { ...one, recipe: Object.fromEntries(Object.entries(one.recipe).reverse()) as Recipe };
    expect(mayServe(one, turned).rule).toBe('exact');
  });

  test.each<[Partial<Recipe>, Target, boolean]>([
    [{}, tensorrt, false],
    [{}, rtx, true],
    [vc, tensorrt, true],
    [hc, tensorrt, true],
  ])('a search is worth it only where something was asked for (%#)', (recipe, target, expected) => {
    expect(othersMayServe(document(recipe, target))).toBe(expected);
  });
});
