import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identityDigest } from '../../../src/engines/identity/identity.js';
import { defaultRecipe } from '../../../src/engines/identity/recipe.js';
import { planId } from '../../../src/products/fleet/jobs.js';
import { type FleetPlan, fleetPlanSchema } from '../../../src/products/fleet/plan-schema.js';
import type { Submission } from '../../../src/products/fleet/schedulers/scheduler.js';
import { sampleIdentity } from '../../support/sample-engine.js';

/** Targets as an engines file has them, each with its number of jobs. */
export type Targets = Readonly<Record<string, { target: string; where: unknown; jobs: number }>>;

/** A plan of these targets, each of whose jobs is of another model; nothing of it is there. */
export function samplePlan(targets: Targets, more: Partial<FleetPlan> = {}): FleetPlan {
  const on = Object.entries(targets).flatMap(([name, { jobs }]) => Array<string>(jobs).fill(name));
  const plan = fleetPlanSchema.parse({
    schema: 'trtforge.fleet-plan/1',
    id: '0'.repeat(32),
    made: '2026-11-27T12:00:00.000Z',
    store: '/store',
    folder: '/models',
    targets: Object.fromEntries(
      Object.entries(targets).map(([name, { target, where }]) => [name, { target, where }]),
    ),
    jobs: on.map((target, index) => {
      const model = index.toString(16).padStart(64, '0');
      const document = sampleIdentity(model);
      return {
        index,
        identity: identityDigest(document),
        name: `m${index}.engine`,
        model: { digest: model, path: `m${index}.onnx`, component: null },
        options: {},
        recipe: defaultRecipe,
        target: document.target,
        on: target,
        gate: null,
        state: 'missing',
        why: { from: 'local', code: null, reason: 'nothing is there', nearest: null, differences: [] },
      };
    }),
    ...more,
  });
  return { ...plan, id: more.id ?? planId(plan) };
}

/** What is handed to a scheduler, of a target for an L4. */
export const submission = (more: Partial<Submission> = {}): Submission => ({
  plan: { id: '0123456789ab', folder: '/models' },
  address: '/store/fleet/0123456789ab.json',
  target: 'l4',
  builds: 'tensorrt@10.13.3.9:sm_89',
  jobs: [0, 1, 2, 5],
  attempt: 'mabc1234',
  ...more,
});

/** A folder of programs that stand in front of the others on the PATH: name to shell script. */
export function fakePrograms(folder: string, scripts: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  mkdirSync(folder, { recursive: true });
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return { ...process.env, PATH: `${folder}:${process.env.PATH}` };
}
