import { beforeAll, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { describeWith } from '../../support/needs.js';
import { traps } from './models.js';
import { builtBytes } from './real-build.js';

/** One model of each precision; `tensorrt.full.test.ts` builds every one. */
describeWith('toolchain', 'TensorRT-RTX builds a converted model', (libraries) => {
  beforeAll(async () => {
    await buildAddon({ say: () => {} });
  });

  it.each(['fp16', 'bf16'] as const)('in %s', async (precision) => {
    const trap = traps.find(({ notForTensorrt }) => notForTensorrt !== true)!;
    expect(await builtBytes(trap, precision, libraries)).toBeGreaterThan(0);
  });
});
