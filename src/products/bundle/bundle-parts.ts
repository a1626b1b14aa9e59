import type { BundleParts } from '../../engines/builder/options.js';
import { readMeta } from '../../formats/contract/model-meta.js';
import { rejectMismatches } from './check-bundle.js';
import { componentConversions } from './component-conversion.js';
import { componentBuild, inspectBundle, locateBundle, profiledComponents } from './read-bundle.js';

/** The builds that `bundle build` would run, component by component. Throws what stops it before its first build. */
export const bundleParts: BundleParts = async (meta, { profiles: _, ...shared }) => {
  const request = { ...shared, meta, outdir: '.' };
  const bundle = await locateBundle(request, readMeta(meta));
  const { components, findings } = inspectBundle(bundle);
  rejectMismatches(bundle.meta, findings);
  const conversions = componentConversions(request, components);
  return profiledComponents(bundle, components, request).map(({ component, profile }) => ({
    name: component.name,
    request: { ...componentBuild(shared, component, profile), ...conversions.get(component.name)!.options },
  }));
};
