import { beforeAll, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { describeWith } from '../../support/needs.js';
import { traps } from './models.js';
import { builtBytes } from './real-build.js';

/** TensorRT-RTX builds strongly typed networks only: what it takes is well typed as TensorRT sees it. */
describeWith('toolchain', 'what TensorRT-RTX builds', (libraries) => {
  beforeAll(async () => {
    await buildAddon({ say: () => {} });
  });

  const cases = traps
    .filter(({ notForTensorrt }) => notForTensorrt !== true)
    .flatMap((trap) => (['fp16', 'bf16'] as const).map((precision) => ({ ...trap, precision })));

  it.each(cases)('$name in $precision', async ({ precision, ...trap }) => {
    expect(await builtBytes(trap, precision, libraries)).toBeGreaterThan(0);
  });
});
