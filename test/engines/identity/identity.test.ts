import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../../src/base/files/digest.js';
import {
  engineNameOf,
  formatEngineName,
  parseEngineName,
} from '../../../src/engines/identity/engine-name.js';
import { type IdentityDocument, identityDigest } from '../../../src/engines/identity/identity.js';
import { defaultRecipe, identityDocumentSchema, type Recipe } from '../../../src/engines/identity/recipe.js';
import type { Target } from '../../../src/engines/identity/target.js';
import { plainMiss, withNearest } from '../../../src/engines/store/why.js';
import { samplePassport, samplePlan } from '../../support/sample-engine.js';

const target: Target = {
  product: 'tensorrt-rtx',
  version: '1.7.1.116',
  cudaMajor: null,
  computeCapabilities: [89],
  os: 'linux',
  arch: 'x86_64',
};

const identity = (change: {
  readonly model?: string;
  readonly recipe?: Partial<Recipe>;
  readonly target?: Partial<Target>;
}): IdentityDocument => ({
  schema: 'trtforge.identity/1',
  model: change.model ?? 'a'.repeat(64),
  recipe: { ...defaultRecipe, ...change.recipe },
  target: { ...target, ...change.target },
});

describe('canonical JSON', () => {
  test('is the same for records made in another order', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (record) => {
        const turned = Object.fromEntries(Object.entries(record).reverse());
        expect(canonicalJson(turned)).toBe(canonicalJson(record));
      }),
    );
  });

  test('states what JSON states', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe('an identity', () => {
  test('stays what it was: stores outlive versions of trtforge', () => {
    expect(identityDigest(identity({ recipe: { avgTimingIterations: null } }))).toBe(
      'ecae12dd2b3998f75d4119675143f26113544b9847bfbad7f532d949112e2c6e',
    );
  });

  test.each([
    ['the model', { model: 'b'.repeat(64) }],
    ['the precision', { recipe: { precision: 'fp16' } }],
    ['a profile', { recipe: { profiles: [{ x: { min: [1], opt: [8], max: [32], values: false } }] } }],
    ['the workspace', { recipe: { memoryPools: { ...defaultRecipe.memoryPools, workspace: 1 << 30 } } }],
    ['a flag', { recipe: { flags: ['refit'] } }],
    ['the number of averaged timing runs', { recipe: { avgTimingIterations: 1 } }],
    ['a plug-in', { recipe: { pluginDigests: ['c'.repeat(64)] } }],
    ['the version of TensorRT', { target: { version: '1.7.2.1' } }],
    ['the compute capability', { target: { computeCapabilities: [89, 120] } }],
    ['the product', { target: { product: 'tensorrt' } }],
    ['CUDA', { target: { cudaMajor: 12 } }],
  ] as const)('another %s is another identity', (_what, change) => {
    const other = identity(change as Parameters<typeof identity>[0]);
    expect(identityDocumentSchema.parse(other)).toEqual(other);
    expect(identityDigest(other)).not.toBe(identityDigest(identity({})));
  });
});

describe('a readable name', () => {
  test('is that of the convention, with the start of the digest where no version is stated', () => {
    const document = identity({ model: `a1b2c3d4${'0'.repeat(56)}`, recipe: { precision: 'fp16' } });
    expect(formatEngineName(engineNameOf(document, 'arcface_r100', null))).toBe(
      'arcface_r100_a1b2c3d4_fp16_sm_89_1.7.1.116.engine',
    );
    expect(formatEngineName(engineNameOf(document, 'arcface_r100', 'v1.0'), 'trt')).toBe(
      'arcface_r100_v1.0_fp16_sm_89_1.7.1.116.trt',
    );
  });

  test.each([
    ['arcface_r100_v1.0_fp16_sm_86_8.6.1.trt', ['arcface_r100', 'v1.0', 'fp16', [86], '8.6.1']],
    ['arcface_r100_a1b2c3d4_fp32_sm_75_8.5.3.trt', ['arcface_r100', 'a1b2c3d4', 'fp32', [75], '8.5.3']],
    ['m_v_as-is_sm_80-86-120_1.7.1.116.plan', ['m', 'v', 'as-is', [80, 86, 120], '1.7.1.116']],
    ['a_sm_86_b_1_int8_sm_90_10.6.0.26.engine', ['a_sm_86_b', '1', 'int8', [90], '10.6.0.26']],
  ])('%s is read from the right', (text, [model, version, precision, computeCapabilities, trtVersion]) => {
    expect(parseEngineName(text)).toEqual({ model, version, precision, computeCapabilities, trtVersion });
  });

  test.each([
    'model.engine',
    'arcface-fp16-sm86.plan',
    '_fp16_sm_86_8.6.1.trt',
    'noversion_fp16_sm_86_8.6.1.trt',
    'a_b_fp16_sm_86_8.6.1.onnx',
    'a_b_fp99_sm_86_8.6.1.trt',
    '',
  ])('"%s" is of another scheme', (text) => {
    expect(parseEngineName(text)).toBeUndefined();
  });

  test('every name it writes it reads, and none leaves its folder', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.string(),
        fc.subarray([75, 80, 89, 120], { minLength: 1 }),
        (model, version, sms) => {
          const name = {
            model,
            version,
            precision: 'bf16',
            computeCapabilities: sms,
            trtVersion: '10.6.0.26',
          };
          const text = formatEngineName(name);
          expect(text).toMatch(/^[A-Za-z0-9_+][A-Za-z0-9._+-]*$/);
          expect(parseEngineName(text)).toMatchObject({ precision: 'bf16', computeCapabilities: sms });
        },
      ),
    );
  });
});

describe('why a stored engine does not serve', () => {
  const stored = (document: IdentityDocument, name: string) => ({
    ...samplePassport(samplePlan(), document),
    name,
  });
  const miss = plainMiss('local', null, 'none');
  const differences = (wanted: IdentityDocument, there: IdentityDocument) =>
    withNearest(miss, wanted, [stored(there, 'one')]).differences;

  test('names the nearest one of the model and the fields that differ', () => {
    const wanted = identity({ recipe: { flags: ['refit'] }, target: { version: '1.7.2.1' } });
    const near = identity({ recipe: { flags: ['refit'] } });
    const engines = [
      stored(
        identity({ model: 'b'.repeat(64), recipe: { flags: ['refit'] }, target: { version: '1.7.2.1' } }),
        'other model',
      ),
      stored(identity({ target: { version: '1.7.2.1', computeCapabilities: [75], os: 'windows' } }), 'far'),
      undefined,
      stored(near, 'near'),
    ];
    expect(withNearest(miss, wanted, engines)).toEqual({
      ...miss,
      nearest: { name: 'near', identity: identityDigest(near) },
      differences: [{ field: 'target.version', wanted: '1.7.2.1', stored: '1.7.1.116' }],
    });
  });

  test('an engine of another model is never near, and neither has an empty store one', () => {
    const other = stored(identity({ model: 'b'.repeat(64) }), 'other model');
    expect(withNearest(miss, identity({}), [other])).toEqual(miss);
    expect(withNearest(miss, identity({}), [])).toEqual(miss);
  });

  test('lists and what only one side has are reported as one value', () => {
    const profiles = (max: number) => [{ x: { min: [1, 3], opt: [1, 3], max: [max, 3], values: false } }];
    const some = identity({ recipe: { profiles: profiles(2) } });
    expect(differences(some, identity({}))).toEqual([
      { field: 'recipe.profiles', wanted: profiles(2), stored: [] },
    ]);
    expect(differences(some, identity({ recipe: { profiles: profiles(8) } }))).toEqual([
      { field: 'recipe.profiles.0.x.max', wanted: [2, 3], stored: [8, 3] },
    ]);
    expect(differences(identity({}), identity({}))).toEqual([]);
  });
});
