import { quotedInRange } from '../../base/options/readers.js';
import { shellLine } from '../../base/text/shell-line.js';
import { formatNamed, quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import { patterns } from '../../formats/precision/options.js';
import type { IdentityDocument } from './identity.js';
import { builderConfigTexts, type ProfileRange, type Recipe } from './recipe.js';
import { type TargetRequest, targetText } from './target.js';

const ends = ['min', 'opt', 'max'] as const;

/** A profile as `parseProfile` reads it. */
export const profileText = (profile: Readonly<Record<string, ProfileRange>>): string =>
  Object.entries(profile)
    .map(([name, { values, ...range }]) => {
      const sizes = ends.map((end) => (range[end].length === 0 ? 'scalar' : range[end].join('x')));
      const shown = new Set(sizes).size === 1 ? sizes.slice(0, 1) : sizes;
      return `${quotedInRange(name)}${values ? '=' : ':'}${shown.join('/')}`;
    })
    .join(',');

/** A recipe as a passport states it, and the target as it is to be named. */
interface Stated {
  readonly recipe: Recipe;
  readonly target: TargetRequest;
}

/**
 * The words that build an engine of a model by a recipe. Paths of plug-ins, the samples of a calibration and what a configuration file alone sets are not in a recipe: the
 * caller adds them.
 */
export function buildWords(
  { recipe, target }: Stated,
  model: string,
  profiles: readonly string[] = recipe.profiles.map(profileText),
): readonly string[] {
  const { precision, conversion, stronglyTyped, flags } = recipe;
  const format = formatNamed(precision)?.id;
  const keepNodes = patterns.read(conversion?.keepNodes ?? []);
  const others = { ...recipe, flags: flags.filter((flag) => flag !== 'refit') };
  return [
    ...['trtforge', 'build', model],
    ...(format === undefined ? [] : ['--precision', format]),
    ...(stronglyTyped ? [] : ['--weakly-typed']),
    ...keepNodes.flatMap(({ source }) => ['--keep-nodes', source]),
    ...(conversion?.keepOps.length ? ['--keep-ops', conversion.keepOps.join(',')] : []),
    ...(conversion?.ioTypes === 'convert' ? ['--io-types', 'convert'] : []),
    ...profiles.flatMap((profile) => ['--profile', profile]),
    ...['--target', targetText(target)],
    ...builderConfigTexts(others).flatMap((text) => ['--builder-config', text]),
    ...(flags.includes('refit') ? ['--refit'] : []),
  ];
}

/** Whether an engine computes with codes, which are made for the weights of its model. */
export const isCoded = ({ precision, stronglyTyped }: Pick<Recipe, 'precision' | 'stronglyTyped'>): boolean =>
  stronglyTyped && quantizedFormatNamed(precision) !== undefined;

/** The line that builds an engine as another one was, of another model, so that it takes other weights where it can. */
export function refittableLine(
  { recipe, target }: IdentityDocument,
  model: string,
  {
    plugins = [],
    profiles,
  }: { readonly plugins?: readonly string[]; readonly profiles?: readonly string[] } = {},
): string {
  const others = recipe.flags.filter((flag) => flag !== 'refit');
  const flags = isCoded(recipe) ? others : [...others, 'refit'];
  return shellLine([
    ...buildWords({ recipe: { ...recipe, flags }, target }, model, profiles),
    ...(recipe.conversion?.calibration ? ['--calibration', 'SAMPLES'] : []),
    ...plugins.flatMap((plugin) => ['--plugin', plugin]),
  ]);
}
