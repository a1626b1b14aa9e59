import { bundlePartsOfProducts, type CommandContext } from '../../cli/command.js';
import { buildRequest } from '../../cli/options/build.js';
import { withProfileFrom } from '../../cli/options/profile-from.js';
import { resolveOptions } from '../../cli/resolve.js';
import type { BuildOptions } from '../../engines/builder/build.js';
import { TrtforgeError } from '../../errors.js';
import { fleetOptions, inFolder, optionsIn } from './engines-file.js';

/** A model of a fleet, or a bundle. */
interface Source {
  readonly path: string;
  readonly isBundle: boolean;
  readonly options: Readonly<Record<string, unknown>>;
}

/** A build without its target; `component` is null for a model that is in no bundle. */
export interface FleetRequest {
  readonly component: string | null;
  readonly request: BuildOptions;
}

/** The builds of an entry: one, or one for each component of a bundle. Throws what reading its files throws. */
export async function requestsOf(
  { path, isBundle, options }: Source,
  folder: string,
  context: CommandContext,
): Promise<readonly FleetRequest[]> {
  const values = optionsIn(folder, options);
  const resolved = resolveOptions(fleetOptions, {}, { path, values }, {}).values;
  const asked = { ...resolved, target: undefined, toolchain: undefined, device: undefined };
  const request = buildRequest(inFolder(folder, path), asked);
  if (!isBundle) {
    const { request: whole } = await withProfileFrom(request, resolved, context);
    return [{ component: null, request: whole }];
  }
  const [partsOf] = await bundlePartsOfProducts(context.products);
  if (partsOf === undefined)
    throw new TrtforgeError('TF_USAGE', `${path} is a bundle, and this build of trtforge has none.`);
  const { model: meta, ...shared } = request;
  return (await partsOf(meta, shared)).map(({ name, request: part }) => ({ component: name, request: part }));
}
