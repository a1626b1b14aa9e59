import { expect, test } from 'vitest';
import { isCalled } from '../../../src/engines/identity/engine-name.js';

const NAME = 'det_3f2a9c1e_fp16_sm_89_10.9.0.34.engine';
const DIGEST = 'a1b2c3d4e5f6';

test.each([
  ['det', true],
  ['det_fp16', true],
  ['det_3f2a9c1e_fp16', true],
  ['det*sm_89', true],
  ['det_fp16_sm_89_10.9', true],
  ['a1b2c3', true],
  ['a1b2', false],
  ['det_fp8', false],
  ['det_int8_fp16', false],
])('%s means the engine: %s', (wanted, isMeant) => {
  expect(isCalled(wanted, DIGEST, NAME)).toBe(isMeant);
});

test('a version that the user chose is not left out', () => {
  expect(isCalled('arcface_fp16', DIGEST, 'arcface_v1.0_fp16_sm_86_1.7.1.116.engine')).toBe(false);
});
