import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ProfileRequest } from '../../engines/profiles/profile.js';
import { requestedSizes } from '../../engines/profiles/sizes.js';
import { TrtforgeError } from '../../errors.js';
import type { BundleMeta } from '../../formats/contract/model-meta.js';
import { type BundleFindings, checkBundle } from './check-bundle.js';
import {
  type Component,
  type ComponentPlace,
  locateComponents,
  readComponent,
  usualComponents,
} from './component.js';
import { checkSymbols, profileOf } from './component-profile.js';
import type { BundleRequest } from './options.js';
import type { ProfilesFile } from './profiles-file.js';

/** The parts of a bundle, and their places; nothing of it is opened yet. */
export interface LocatedBundle {
  readonly meta: BundleMeta;
  readonly file: ProfilesFile | undefined;
  /** Every component the bundle has, in order. */
  readonly roster: readonly string[];
  /** Those to build. */
  readonly requested: readonly string[];
  /** Those that were requested, and of the others those that are there: the former are checked against them. */
  readonly places: readonly ComponentPlace[];
}

/** Where the models of a request lie: beside the meta file by default. */
export const modelFolder = ({ onnxDir, meta }: Pick<BundleRequest, 'onnxDir' | 'meta'>): string =>
  onnxDir ?? dirname(meta);

/** Reads the profiles file and finds the models. Throws what `readProfilesFile` and `locateComponents` throw; TF_USAGE for unknown names. */
export async function locateBundle(request: BundleRequest, meta: BundleMeta): Promise<LocatedBundle> {
  const file = await profilesFileOf(request);
  const roster = file?.components ? [...file.components.keys()] : usualComponents;
  const requested = requestedOf(roster, request.only);
  const folder = modelFolder(request);
  const files = Object.fromEntries(
    roster.map((name) => [name, file?.components?.get(name)?.onnx ?? undefined]),
  );
  const isThere = (name: string) => existsSync(join(folder, files[name] ?? `${name}.onnx`));
  const wanted = roster.filter((name) => requested.includes(name) || isThere(name));
  return { meta, file, roster, requested, places: locateComponents(request.meta, folder, wanted, files) };
}

/** YAML is loaded only where a file is passed. */
async function profilesFileOf({ profilesFile }: BundleRequest): Promise<ProfilesFile | undefined> {
  if (profilesFile === undefined) return undefined;
  const { readProfilesFile } = await import('./profiles-file.js');
  return readProfilesFile(profilesFile);
}

/** Reads every model that is there and checks it against the meta file and the others. Throws what `readComponent` throws. */
export function inspectBundle({ meta, places }: LocatedBundle): {
  readonly components: readonly Component[];
  readonly findings: BundleFindings;
} {
  const components = places.map(readComponent);
  return { components, findings: checkBundle(meta, components) };
}

/** The components to build with their profiles. Throws what `checkSymbols` and `profileOf` throw. */
export const profiledComponents = (
  { meta, file, requested }: LocatedBundle,
  components: readonly Component[],
  request: BundleRequest,
): readonly { readonly component: Component; readonly profile: ProfileRequest }[] => {
  const { batch, dims = new Map() } = requestedSizes(request) ?? {};
  checkSymbols(components, file, dims);
  return components
    .filter(({ name }) => requested.includes(name))
    .map((component) => ({ component, profile: profileOf(component, meta, { batch, dims, file }) }));
};

/** The build of one component: its own profile stands in the place of the sizes that all share. */
export const componentBuild = <S extends Pick<BundleRequest, 'batch' | 'dims'>>(
  { batch: _, dims: __, ...shared }: S,
  component: Component,
  profile: ProfileRequest,
) => ({
  ...shared,
  model: component.onnx,
  modelName: component.name,
  profiles: profile.size === 0 ? [] : [profile],
});

function requestedOf(roster: readonly string[], only: readonly string[] | undefined): readonly string[] {
  const unknown = (only ?? []).filter((name) => !roster.includes(name));
  if (unknown.length > 0) {
    throw new TrtforgeError(
      'TF_USAGE',
      `The bundle has no component ${unknown.map((name) => `"${name}"`).join(', ')}.`,
      {
        remedy: `Its components are ${roster.join(', ')}.`,
      },
    );
  }
  return only === undefined || only.length === 0 ? roster : roster.filter((name) => only.includes(name));
}
