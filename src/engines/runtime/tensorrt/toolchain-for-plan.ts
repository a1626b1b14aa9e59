import type { OptionsOf } from '../../../base/options/option.js';
import { TrtforgeError } from '../../../errors.js';
import {
  chooseToolchain,
  surveyToolchains,
  thisMachine,
  toolchainNamed,
  unknownVersion,
} from '../../../tensorrt/toolchain/find.js';
import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';
import { loadsIn } from '../../plan/loads.js';
import type { loadOptions } from './engine-options.js';
import type { PlanFacts } from './plan-on-disk.js';

export interface ToolchainChoice extends OptionsOf<typeof loadOptions> {
  readonly environment: NodeJS.ProcessEnv;
}

/** The remedy for a plan that runs only with permission. */
export const HOST_CODE_REMEDY =
  'A version-compatible plan carries its own runtime, which is code: allow it with --allow-host-code if you trust the file.';

/** The TensorRT that a plan is to be loaded with. Throws TF_TOOLCHAIN_NOT_FOUND, TF_ENGINE_VERSION_MISMATCH. */
export async function toolchainForPlan(plan: PlanFacts, choice: ToolchainChoice): Promise<Toolchain> {
  const { toolchain, environment } = choice;
  if (typeof toolchain === 'object') return fitting(plan, [toolchain], choice);
  const machine = thisMachine(environment);
  const { toolchains: found, damaged } = await surveyToolchains(machine);
  if (toolchain !== undefined) return fitting(plan, [toolchainNamed(found, toolchain, machine)], choice);
  const { product, version } = plan.header;
  const candidates = found.filter((each) => each.product === product && unknownVersion(each) === null);
  if (candidates.length === 0) {
    chooseToolchain(found, { product, purpose: 'run', version: version ?? undefined }, damaged);
  }
  return fitting(plan, candidates, choice);
}

function fitting(
  plan: PlanFacts,
  candidates: readonly Toolchain[],
  { allowHostCode }: ToolchainChoice,
): Toolchain {
  const flags = plan.passport?.identity.document.recipe.flags;
  const judged = candidates.map((toolchain) => ({ toolchain, ...loadsIn(plan.header, toolchain, flags) }));
  const exact = judged.find(({ loads }) => loads === 'yes');
  if (exact !== undefined) return exact.toolchain;
  const compatible = judged.find(({ loads }) => loads !== 'no');
  if (compatible !== undefined && allowHostCode) return compatible.toolchain;
  const nearest = compatible ?? judged[0];
  throw new TrtforgeError('TF_ENGINE_VERSION_MISMATCH', `${plan.path} cannot be loaded: ${nearest?.why}`, {
    remedy:
      compatible === undefined
        ? undefined
        : compatible.loads === 'if-allowed'
          ? HOST_CODE_REMEDY
          : `Build it again with ${compatible.toolchain.product} ${compatible.toolchain.version}. If it was built version-compatible with its runtime inside, --allow-host-code loads it.`,
    details: {
      built: { product: plan.header.product, version: plan.header.version },
      found: candidates.map(({ product, version }) => ({ product, version })),
    },
  });
}
