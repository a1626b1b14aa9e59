import { readFileSync, writeFileSync } from 'node:fs';
import type { PlanBuilder } from '../../src/engines/builder/options.js';
import { sampleOutcome, samplePlan } from '../support/sample-engine.js';
import { fakes } from './tensorrt/library.js';

/** A second implementation of the builder: writes a plan at once and counts. */
export function countingBuilder(plan = samplePlan()): {
  readonly build: PlanBuilder;
  readonly count: () => number;
} {
  let builds = 0;
  return {
    build: async (_, { planPath }) => {
      builds++;
      writeFileSync(planPath, plan);
      return sampleOutcome(plan.length);
    },
    count: () => builds,
  };
}

/** Writes a plan of the fake of TensorRT 10 where the library would build one, and warns with the GPUs that it may use. */
export function copyingBuilder(plan: string): PlanBuilder {
  const { build } = countingBuilder(readFileSync(plan));
  return async (request, files, context) => ({
    ...(await build(request, files, context)),
    libraryVersion: fakes['10'].version,
    warnings: [`The builder sees ${context.environment?.CUDA_VISIBLE_DEVICES}.`],
  });
}
