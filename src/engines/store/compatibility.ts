import { canonicalJson } from '../../base/files/digest.js';
import { isAmperePlus } from '../../behaviour/facts.js';
import { differencesOf, type FieldDifference, type IdentityDocument } from '../identity/identity.js';
import type { Target } from '../identity/target.js';
import { loadsAcross, loadsIn } from '../plan/loads.js';

/** Why a stored engine may serve a request, or may not. */
export interface Compatibility {
  readonly serves: boolean;
  /** The rule that decided; the table of `docs/store.md` has the same names. */
  readonly rule: CompatibilityRule;
  /** One sentence. */
  readonly reason: string;
}

export type CompatibilityRule =
  | 'exact'
  | 'other-model'
  | 'other-recipe'
  | 'other-product'
  | 'other-platform'
  | 'other-version'
  | 'other-cuda'
  | 'other-gpu'
  | 'several-gpus'
  | 'version-compatible'
  | 'hardware-compatible'
  | 'version-and-hardware-compatible';

/**
 * Whether an engine of one identity may serve in place of another. Model and recipe must be the same in every field, since they decide what is
 * computed; the target may differ only as far as the recipe asked for when the engine was built (TensorRT's support matrix), or where a
 * tensorrt-rtx engine was built for several GPUs and one of them is wanted.
 */
export function mayServe(wanted: IdentityDocument, stored: IdentityDocument): Compatibility {
  if (wanted.model !== stored.model) return no('other-model', 'It is an engine of another model.');
  if (canonicalJson(wanted.recipe) !== canonicalJson(stored.recipe))
    return no('other-recipe', otherRecipe(wanted.recipe, stored.recipe));
  const [want, have] = [wanted.target, stored.target];
  if (want.product !== have.product)
    return no('other-product', `It is an engine of ${have.product}, ${want.product} is wanted.`);
  // What is unproven is built again.
  const elsewhere = loadsAcross(have, want);
  if (elsewhere !== null) return no('other-platform', elsewhere.why);
  if (want.cudaMajor !== have.cudaMajor)
    return no(
      'other-cuda',
      `It was built with the libraries for CUDA ${have.cudaMajor ?? 'unknown'}, those for ${want.cudaMajor ?? 'unknown'} are wanted.`,
    );
  return acrossVersionAndHardware(versionRule(wanted, have), hardwareRule(wanted, have));
}

/** The field that decides most: `precision` before what follows from it. */
function otherRecipe(wanted: unknown, stored: unknown): string {
  const depth = ({ field }: FieldDifference) => field.split('.').length;
  const [first] = [...differencesOf(wanted, stored)].sort((a, b) => depth(a) - depth(b));
  const text = (value: unknown) => JSON.stringify(value) ?? 'nothing';
  return `Its recipe has ${text(first?.b)} as ${first?.field}, ${text(first?.a)} is wanted.`;
}

/** Whether the recipe or the product lets any identity but the wanted one serve; false saves a search. */
export const othersMayServe = ({ recipe, target }: IdentityDocument): boolean =>
  target.product === 'tensorrt-rtx' ||
  recipe.flags.includes('version-compatible') ||
  recipe.hardwareCompatibility !== 'none';

function acrossVersionAndHardware(version: Compatibility, hardware: Compatibility): Compatibility {
  if (!version.serves) return version;
  if (!hardware.serves) return hardware;
  if (version.rule === 'exact') return hardware;
  if (hardware.rule === 'exact') return version;
  return yes('version-and-hardware-compatible', `${version.reason} ${hardware.reason}`);
}

function versionRule({ recipe, target }: IdentityDocument, have: Target): Compatibility {
  if (target.version === have.version) return exact;
  if (!recipe.flags.includes('version-compatible'))
    return no(
      'other-version',
      `It was built by ${have.version}, ${target.version} is wanted, and it is not version-compatible.`,
    );
  const { loads, why } = loadsIn(have, target, recipe.flags);
  return loads === 'no'
    ? no('other-version', why)
    : yes(
        'version-compatible',
        `It was built version-compatible by ${have.version}, which ${target.version} loads.`,
      );
}

function hardwareRule({ recipe, target }: IdentityDocument, have: Target): Compatibility {
  const [wanted, built] = [target.computeCapabilities, have.computeCapabilities];
  if (wanted.length === built.length && wanted.every((sm) => built.includes(sm))) return exact;
  const names = (list: readonly number[]) => list.map((sm) => `sm_${sm}`).join(', ');
  if (have.product === 'tensorrt-rtx') {
    return wanted.every((sm) => built.includes(sm))
      ? yes('several-gpus', `It was built for ${names(built)}, and ${names(wanted)} is wanted.`)
      : no('other-gpu', `It was built for ${names(built)}, not for all of ${names(wanted)}.`);
  }
  if (recipe.hardwareCompatibility === 'ampere-plus' && [...wanted, ...built].every(isAmperePlus))
    return yes(
      'hardware-compatible',
      `It was built on ${names(built)} for Ampere and newer, so ${names(wanted)} runs it.`,
    );
  return no('other-gpu', `It was built for ${names(built)}, ${names(wanted)} is wanted.`);
}

const exact: Compatibility = { serves: true, rule: 'exact', reason: 'It is the very identity.' };
const yes = (rule: CompatibilityRule, reason: string): Compatibility => ({ serves: true, rule, reason });
const no = (rule: CompatibilityRule, reason: string): Compatibility => ({ serves: false, rule, reason });
