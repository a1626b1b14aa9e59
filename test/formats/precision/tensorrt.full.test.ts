import { beforeAll, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { buildPlan } from '../../../src/engines/builder/build-plan.js';
import { defaultRecipe } from '../../../src/engines/identity/recipe.js';
import { ignoreEvents } from '../../../src/events.js';
import { rtxToolchain } from '../../native/rtx-toolchain.js';
import { describeWith } from '../../support/needs.js';
import { converted, freshPath, written } from './judge.js';
import { traps } from './models.js';

/** TensorRT-RTX builds strongly typed networks only: what it takes is well typed as TensorRT sees it. */
describeWith('toolchain', 'what TensorRT-RTX builds', (libraries) => {
  beforeAll(async () => {
    await buildAddon({ say: () => {} });
  });

  const cases = traps
    .filter(({ notForTensorrt }) => notForTensorrt !== true)
    .flatMap((trap) => (['fp16', 'bf16'] as const).map((precision) => ({ ...trap, precision })));

  it.each(cases)('$name in $precision', async ({ graph, spec, precision, feeds }) => {
    const { output, model } = await converted(await written(graph(), spec), { precision });
    const inputs = model.proto.graph?.input.map(({ name }) => name) ?? [];
    const shapes = Object.fromEntries(
      inputs.map((name) => {
        const dims = [...(feeds[name]?.shape ?? [])];
        return [name, { min: dims, opt: dims, max: dims, values: false }];
      }),
    );
    const outcome = await buildPlan(
      {
        toolchain: rtxToolchain(libraries),
        modelPath: output,
        planPath: freshPath('.plan'),
        recipe: { ...defaultRecipe, profiles: [shapes] },
        computeCapabilities: [89],
        timingCachePath: null,
        pluginPaths: [],
      },
      { emit: ignoreEvents },
    );
    expect(outcome.bytes).toBeGreaterThan(0);
  });
});
