// Forges in a process whose loader knows the fake GPUs, with a plan that a fake library runs in place of a build; prints the result as JSON.
//   node forge-in-child.mjs '{ "options": ForgeOptions, or a BundleRequest, "plan": path, "outcome": BuildOutcome }'
import { copyFileSync } from 'node:fs';
import { forge } from '../../dist/forge/forge.js';
import { forgeBundle } from '../../dist/products/bundle/forge-bundle.js';

const { options, plan, outcome } = JSON.parse(process.argv[2]);
const build = async ({ planPath }, { env }) => {
  copyFileSync(plan, planPath);
  return { ...outcome, warnings: [`The builder sees ${env.CUDA_VISIBLE_DEVICES}.`] };
};
const forged = 'meta' in options ? forgeBundle(options, { build }) : forge(options, { build });
console.log(JSON.stringify(await forged));
