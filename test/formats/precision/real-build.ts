import { buildPlan } from '../../../src/engines/builder/build-supervised.js';
import { ignoreEvents } from '../../../src/events.js';
import { rtxToolchain } from '../../native/rtx-toolchain.js';
import { resolvedBuild } from '../../support/sample-engine.js';
import { converted, freshPath, written } from './judge.js';
import type { Trap } from './models.js';

/** Converts a model and builds it with the tensorrt-rtx of the folder; the plan's bytes. */
export async function builtBytes(
  { graph, spec, feeds }: Pick<Trap, 'graph' | 'spec' | 'feeds'>,
  precision: 'fp16' | 'bf16',
  libraries: string,
): Promise<number> {
  const { output, model } = await converted(await written(graph(), spec), { precision });
  const inputs = model.proto.graph?.input.map(({ name }) => name) ?? [];
  const shapes = Object.fromEntries(
    inputs.map((name) => {
      const dims = [...(feeds[name]?.shape ?? [])];
      return [name, { min: dims, opt: dims, max: dims, values: false }];
    }),
  );
  const { bytes } = await buildPlan(
    resolvedBuild(output, { toolchain: rtxToolchain(libraries), recipe: { profiles: [shapes] } }),
    { modelPath: output, planPath: freshPath('.plan') },
    { emit: ignoreEvents },
  );
  return bytes;
}
