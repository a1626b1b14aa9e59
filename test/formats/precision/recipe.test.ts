import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { calibrationOf } from '../../../src/engines/calibration/calibration.js';
import { type IdentityDocument, identityDigest } from '../../../src/engines/identity/identity.js';
import { defaultRecipe } from '../../../src/engines/identity/recipe.js';
import {
  CONVERSION_REVISION,
  conversionOptionsOf,
  conversionRecipe,
  conversionRecipeSchema,
} from '../../../src/formats/precision/options.js';
import { parsePluginTypes } from '../../../src/formats/precision/plugin-types.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-recipe-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function sample(file: string, values: readonly number[], compress = false): string {
  const path = join(folder, file);
  writeNpz(path, new Map([['x', tensorFrom('float32', [values.length], Float32Array.from(values))]]), {
    compress,
  });
  return path;
}

const digestOf = (...samples: readonly string[]) =>
  conversionRecipe('fp16', { calibration: calibrationOf({ data: samples, method: 'max' }) }).calibration;

describe('the recipe of a conversion', () => {
  test("has the revision of the converter's rules, not the version of trtforge", () => {
    expect(conversionRecipe('fp16').converter).toBe(`trtforge rules ${CONVERSION_REVISION}`);
    const pluginTypes = new Map([parsePluginTypes('Norm:fp32')]);
    expect(conversionRecipe('fp16', { pluginTypes }).converter).not.toBe(conversionRecipe('fp16').converter);
  });

  test('has every option with its default, in the schema of passports', () => {
    const recipe = conversionRecipe('fp16', { dataMax: 512, initMax: 100, maxReductionDepth: 4096 });
    expect(conversionRecipeSchema(z).parse(recipe)).toEqual(recipe);
    expect(recipe).toMatchObject({ dataMax: 512, initMax: 100, maxReductionDepth: 4096, calibration: null });
  });

  test('returns the options that it was made from', () => {
    const options = {
      ioTypes: 'convert',
      keepNodes: [/^a\/b$/i, /c/],
      keepOps: new Set(['Exp']),
      convertOps: new Set(['Pow']),
      initMax: 100,
      maxReductionDepth: 4096,
    } as const;
    const recipe = conversionRecipe('fp16', options);
    expect(conversionRecipe('fp16', conversionOptionsOf(recipe))).toEqual(recipe);
    const quantized = conversionRecipe('int4', { rest: 'bf16', unquantizedNodes: [/^head/] });
    expect(conversionRecipe('int4', conversionOptionsOf(quantized))).toEqual(quantized);
  });

  test('knows calibration samples by what they hold, without running anything', () => {
    const one = sample('one.npz', [1, 2, 3]);
    const two = sample('two.npz', [4, 5]);
    expect(digestOf(one)).toMatch(/^[0-9a-f]{64}$/);
    expect(digestOf(sample('elsewhere.npz', [1, 2, 3], true))).toBe(digestOf(one));
    expect(digestOf(two, one)).toBe(digestOf(one, two));
    expect(digestOf(one, one)).toBe(digestOf(one));
    expect(new Set([digestOf(one), digestOf(two), digestOf(one, two)]).size).toBe(3);
    expect(digestOf(sample('changed.npz', [1, 2, 3.5]))).not.toBe(digestOf(one));
  });

  test('a sample that is not there is an error before any work', () => {
    expect(() => digestOf(join(folder, 'absent.npz'))).toThrow(/absent\.npz does not exist/);
  });
});

describe('an engine of a converted model', () => {
  const target = {
    product: 'tensorrt-rtx',
    version: '1.7.1.116',
    cudaMajor: null,
    computeCapabilities: [89],
    os: 'linux',
    arch: 'x86_64',
  } as const;
  const everything = {
    ioTypes: 'convert',
    keepNodes: [/b/i, /^a/],
    keepOps: new Set(['Softmax', 'Add']),
    convertOps: new Set(['Exp']),
    initMax: 12,
    dataMax: 34,
    maxReductionDepth: 56,
  } as const;

  // Stores hold engines under these names: another revision of the conversion changes them, nothing else may.
  test.each([
    ['fp16', {}, '0bfaf700665815cf046676479e97dbbefa78b39fe0cfcd916c678ba31176a038'],
    ['fp16', everything, '702aab9eca0d38b58dea589ba7ac901ace3fa850ba3bcf6beaebce5082f32cec'],
    ['bf16', {}, 'd7527c32b8f3fae947e4ee9d42705e2a79a6e4f12b9027930adbc7bd8c6b8e87'],
    ['bf16', everything, '5b525cf2090be557b7f8482f79baa626bcc208fa51e12e60b20f5dad402506b2'],
  ] as const)('of %s with %o keeps its identity', (precision, options, digest) => {
    const recipe = { ...defaultRecipe, precision, conversion: conversionRecipe(precision, options) };
    const document: IdentityDocument = {
      schema: 'trtforge.identity/1',
      model: 'a'.repeat(64),
      recipe,
      target: { ...target, computeCapabilities: [...target.computeCapabilities] },
    };
    expect(identityDigest(document)).toBe(digest);
  });
});
