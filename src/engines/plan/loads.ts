import { behaviour } from '../../behaviour/facts.js';
import type { Flavour } from '../../tensorrt/toolchain/toolchain.js';
import type { IdentityDocument } from '../identity/identity.js';
import type { Platform, Target } from '../identity/target.js';
import { type PlanHeader, versionText } from './header.js';

/**
 * `if-allowed`: the plan carries the runtime that runs it, which is code. `if-version-compatible`: that, where it was built so, which is not known. `unproven`: it is of another
 * platform, and nobody loaded such a plan there yet.
 */
export type Loads = 'yes' | 'if-allowed' | 'if-version-compatible' | 'unproven' | 'no';

interface PlanLoads {
  readonly loads: Loads;
  readonly why: string;
}

interface Runtime extends Partial<Platform> {
  readonly product: string;
  readonly version: string;
  /** Default `full`. */
  readonly flavour?: Flavour;
}

/** The platform that an engine is for; that of the machine which built it, unless the recipe names Windows. */
export const platformOfEngine = ({
  recipe,
  target,
}: Pick<IdentityDocument, 'recipe' | 'target'>): Platform =>
  recipe.runtimePlatform === 'windows-amd64'
    ? { os: 'windows', arch: 'x86_64' }
    : { os: target.os, arch: target.arch };

const across: Readonly<Record<Target['product'], 'unproven' | 'no'>> = behaviour['other-platform'].value;

/** Whether an engine loads on another platform than its own; null on its own, and where one of both is not stated. */
export function loadsAcross(
  { product, os, arch }: Pick<Target, 'product'> & Partial<Platform>,
  there: Partial<Platform>,
): PlanLoads | null {
  const isStated = os !== undefined && there.os !== undefined;
  if (!isStated || (os === there.os && arch === there.arch)) return null;
  const loads = across[product];
  const judged =
    loads === 'no'
      ? `engines of ${product} do not load on another platform`
      : `that engines of ${product} load there is unproven`;
  return { loads, why: `It was built for ${os} ${arch}, and this is ${there.os} ${there.arch}: ${judged}.` };
}

/** Whether a plan of a recipe carries the runtime that runs it: code, which runs only with permission. */
export const carriesHostCode = ({ flags }: { readonly flags: readonly string[] }): boolean =>
  flags.includes('version-compatible') && !flags.includes('exclude-lean-runtime');

/**
 * Whether a runtime can load a plan. A plan loads in the version that built it. Another version loads it only where it was built version-compatible
 * and carries its own lean runtime (support policies of TensorRT: forward within a major version, and as `forward-compatible` lists); a lean runtime runs
 * version-compatible plans of its own version (seen with 10.6 plans in the lean runtimes of 10.16 and 11.3: "Version tag does not match"), and
 * a dispatch runtime only those that carry theirs. The platform is judged where the passport states it. `flags` are the builder flags of the passport; undefined where they are not known.
 */
export function loadsIn(
  header: Pick<PlanHeader, 'product' | 'version'> & Partial<Platform>,
  runtime: Runtime,
  flags?: readonly string[],
): PlanLoads {
  const built = `${header.product} ${versionText(header.version)}`;
  const { flavour = 'full' } = runtime;
  const here = `${flavour === 'full' ? '' : `the ${flavour} runtime of `}${runtime.product} ${runtime.version}`;
  if (header.product !== runtime.product)
    return { loads: 'no', why: `It is a plan of ${built}, another product than ${here}.` };
  if (header.version === null)
    return { loads: 'no', why: `It is a plan of ${built}; ${here} does not load it.` };
  const order = orderOf(header.version, runtime.version);
  // tensorrt-rtx has no version-compatible engines, whatever flag was set.
  if (order === 'older' || (order === 'newer' && header.product === 'tensorrt-rtx'))
    return {
      loads: 'no',
      why: `It was built by ${built}; ${here} cannot load it. Build it again with ${runtime.product} ${runtime.version}.`,
    };
  const elsewhere = loadsAcross(header, runtime);
  if (elsewhere !== null) return elsewhere;
  const isSame = order === 'same';
  const mayLoad = isSame && flavour !== 'dispatch';
  const itsOwn: PlanLoads = { loads: 'yes', why: `It was built by ${built}.` };
  if (flags === undefined)
    return mayLoad
      ? itsOwn
      : {
          loads: 'if-version-compatible',
          why: `It was built by ${built}; ${here} loads it only if it was built version-compatible and carries its runtime, and without a passport that is not known.`,
        };
  if (!flags.includes('version-compatible'))
    return isSame && flavour === 'full'
      ? itsOwn
      : {
          loads: 'no',
          why: `It was built by ${built}, and its passport states that it is not version-compatible; ${here} cannot load it.`,
        };
  if (carriesHostCode({ flags }))
    return {
      loads: 'if-allowed',
      why: `It was built version-compatible by ${built} and carries the runtime that ${here} runs it with.`,
    };
  return mayLoad
    ? itsOwn
    : {
        loads: 'no',
        why: `It was built by ${built} without the lean runtime inside, so only that version, full or lean, loads it; ${here} cannot.`,
      };
}

const forward: Readonly<Record<number, number>> = behaviour['forward-compatible'].value;

/** The order of a runtime and the version that built a plan. */
function orderOf(plan: string, library: string): 'same' | 'newer' | 'older' {
  if (sameVersion(plan, library)) return 'same';
  const [builtMajor = 0, builtMinor = 0] = numbers(plan);
  const [major = 0, minor = 0] = numbers(library);
  const isNewer = major === builtMajor ? minor >= builtMinor : forward[builtMajor] === major;
  return isNewer ? 'newer' : 'older';
}

/** Compares versions as far as both state them; the build number modulo 256, as plans keep it. */
function sameVersion(plan: string, library: string): boolean {
  const ours = numbers(plan);
  return numbers(library).every(
    (number, index) => (index === 3 ? number % 256 : number) === (ours[index] ?? 0),
  );
}

const numbers = (version: string): number[] => version.split('.').map(Number);
