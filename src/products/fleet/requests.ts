import { broughtBy, type CommandContext } from '../../cli/command.js';
import { buildRequest } from '../../cli/options/build.js';
import { withProfileFrom } from '../../cli/options/profile-from.js';
import { resolveOptions } from '../../cli/resolve.js';
import type { BuildOptions } from '../../engines/builder/build.js';
import type { TargetRequest } from '../../engines/identity/target.js';
import { TrtforgeError } from '../../errors.js';
import type { SampleData } from '../../quality/verify/request.js';
import { findToolchains, unableToBuild } from '../../tensorrt/toolchain/find.js';
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
  /** What engines are verified on; undefined: drawn inputs. */
  readonly samples: SampleData | undefined;
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
  const { inputs: files, preprocess, imgsz } = resolved;
  const samplesOf = ({ conversion }: BuildOptions) =>
    files.length > 0 ? { files, preprocess, imgsz } : conversion?.calibration?.judging;
  if (!isBundle) {
    const { request: whole } = await withProfileFrom(request, resolved, context);
    return [{ component: null, request: whole, samples: samplesOf(whole) }];
  }
  const [partsOf] = await broughtBy(context.products, 'bundleParts');
  if (partsOf === undefined)
    throw new TrtforgeError('TF_USAGE', `${path} is a bundle, and this build of trtforge has none.`);
  const { model: meta, ...shared } = request;
  return (await partsOf(meta, shared)).map(({ name, request: part }) => ({
    component: name,
    request: part,
    samples: samplesOf(part),
  }));
}

/** A target that names its TensorRT, with that of this machine where it is here; for which CUDA that is counts only where the target names one. */
export async function targetHere(
  target: TargetRequest,
  { environment }: Pick<CommandContext, 'environment'>,
): Promise<Pick<BuildOptions, 'target' | 'toolchain'>> {
  const { named, ...asked } = target;
  const toolchain = (await findToolchains(environment)).find(
    (each) =>
      each.product === target.product &&
      each.version === named?.version &&
      [null, each.cudaMajor].includes(named.cudaMajor) &&
      unableToBuild(each) === null,
  );
  return toolchain === undefined ? { target } : { target: asked, toolchain };
}
