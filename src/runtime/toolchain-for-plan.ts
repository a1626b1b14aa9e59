import { loadsIn } from '../engine/plan-header.js';
import { TrtforgeError } from '../errors.js';
import { chooseToolchain, findToolchains, toolchainNamed, unknownVersion } from '../toolchain/find.js';
import type { Toolchain } from '../toolchain/toolchain.js';
import type { PlanOnDisk } from './plan-on-disk.js';

export interface ToolchainChoice {
  /** A toolchain, or the name of one; undefined for the first that loads the plan. */
  readonly toolchain?: Toolchain | string | undefined;
  readonly allowHostCode: boolean;
  readonly environment: NodeJS.ProcessEnv;
}

/** The TensorRT that a plan is to be loaded with. Throws TF_TOOLCHAIN_NOT_FOUND, TF_ENGINE_VERSION_MISMATCH. */
export async function toolchainForPlan(plan: PlanOnDisk, choice: ToolchainChoice): Promise<Toolchain> {
  const { toolchain, environment } = choice;
  if (typeof toolchain === 'object') return fitting(plan, [toolchain], choice);
  const found = await findToolchains(environment);
  if (toolchain !== undefined) return fitting(plan, [toolchainNamed(found, toolchain)], choice);
  const { product, version } = plan.header;
  const candidates = found.filter((each) => each.product === product && unknownVersion(each) === null);
  if (candidates.length === 0) {
    chooseToolchain(found, { product, purpose: 'run', ...(version === null ? {} : { version }) });
  }
  return fitting(plan, candidates, choice);
}

function fitting(
  plan: PlanOnDisk,
  candidates: readonly Toolchain[],
  { allowHostCode }: ToolchainChoice,
): Toolchain {
  const judged = candidates.map((toolchain) => ({ toolchain, ...judge(plan, toolchain) }));
  const exact = judged.find(({ loads }) => loads === 'yes');
  if (exact !== undefined) return exact.toolchain;
  const compatible = judged.find(({ loads }) => loads === 'if-version-compatible');
  if (compatible !== undefined && allowHostCode) return compatible.toolchain;
  const nearest = compatible ?? judged[0];
  throw new TrtforgeError('TF_ENGINE_VERSION_MISMATCH', `${plan.path} cannot be loaded: ${nearest?.why}`, {
    ...(compatible === undefined
      ? {}
      : {
          remedy:
            'A version-compatible plan carries its own runtime, which is code: allow it with --allow-host-code (allowHostCode) if you trust the file.',
        }),
    details: {
      built: { product: plan.header.product, version: plan.header.version },
      found: candidates.map(({ product, version }) => ({ product, version })),
    },
  });
}

/** The header tells versions apart, the passport whether the plan was built to be loaded by later ones; lean runtimes load nothing else. */
function judge({ header, passport }: PlanOnDisk, toolchain: Toolchain): ReturnType<typeof loadsIn> {
  const byVersion = loadsIn(header, toolchain);
  const isLean = toolchain.flavour !== undefined && toolchain.flavour !== 'full';
  if (byVersion.loads === 'no' || (byVersion.loads === 'yes' && !isLean)) return byVersion;
  const isCompatible = passport?.identity.document.recipe.flags.includes('version-compatible');
  const here = `${toolchain.product} ${toolchain.version}`;
  if (isCompatible === false)
    return {
      loads: 'no',
      why: `${byVersion.why} Its passport says that it was not; ${here} cannot load it.`,
    };
  return { loads: 'if-version-compatible', why: byVersion.why };
}
