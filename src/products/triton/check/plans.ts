import { join } from 'node:path';
import { listFolder, statIfThere } from '../../../base/files/files.js';
import { compareVersions, sameTensorrt } from '../../../behaviour/versions.js';
import { isOfProduct, type NamedGpu, runsOn } from '../../../engines/identity/target.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import type { Report } from './findings.js';
import { type ModelFolder, readPlan, type ServedPlan } from './repository.js';
import type { Model } from './tensors.js';

/** A model of another back end whose files are plans, whatever their names. */
export function checkOthers(
  { path, report }: Model,
  versions: readonly string[],
  backend: string | null,
): void {
  for (const each of versions)
    for (const name of plansIn(join(path, each)))
      report('backend-differs', 'backend', join(each, name), backend ?? '');
}

/** The files of a folder that are plans, whatever their names. */
const plansIn = (folder: string): readonly string[] =>
  listFolder(folder).filter((name) => {
    const file = join(folder, name);
    return statIfThere(file)?.isFile() === true && isEngineFile(file);
  });

/** The plans that a configuration names in the versions it serves, and those that are not there. */
export async function servedPlans(
  { name, path, config }: ModelFolder,
  versions: readonly string[],
  gpu: NamedGpu | undefined,
  report: Report,
): Promise<readonly ServedPlan[]> {
  const where = `${name}/config.pbtxt: cc_model_filenames`;
  const keyed = Object.entries(config?.cc_model_filenames ?? {});
  const fallback = config?.default_model_filename ?? 'model.plan';
  for (const [key] of keyed) if (!/^\d{1,2}\.\d$/.test(key)) report('capability-key', where, key);
  const plans: ServedPlan[] = [];
  for (const version of versions) {
    const has = (file: string) => statIfThere(join(path, version, file)) !== undefined;
    const hasDefault = keyed.length === 0 || has(fallback);
    if (keyed.length > 0 && hasDefault) report('default-beside-capabilities', where, fallback);
    if (gpu !== undefined && !hasDefault && keyed.every(([key]) => smOf(key) !== gpu.capability))
      report('gpu-without-plan', where, gpu.capability);
    for (const [capability, file] of [...keyed, ...(hasDefault ? [[null, fallback] as const] : [])]) {
      const plan = { file: `${name}/${version}/${file}`, capability };
      const near = has(file) ? undefined : plansIn(join(path, version))[0];
      if (has(file)) plans.push(await readPlan(join(path, version, file), plan, report));
      else if (capability !== null) report('capability-file-missing', plan.file, capability);
      else report(near === undefined ? 'plan-missing' : 'plan-named-otherwise', plan.file, near);
    }
  }
  return plans;
}

/** "8.9" as 89. */
export const smOf = (key: string): number => Math.round(Number(key) * 10);

/** A plan beside the GPU that loads it, by its passport; with a plan of its own (`hasOwn`) that is not the default. */
export function checkPlanFor(
  gpu: NamedGpu | undefined,
  hasOwn: boolean,
  { file, capability, passport }: ServedPlan,
  report: Report,
): void {
  const ofGpu = hasOwn ? undefined : gpu?.capability;
  const sm = capability === null ? ofGpu : smOf(capability);
  if (passport === null || sm === undefined || Number.isNaN(sm)) return;
  const { recipe, target } = passport.identity.document;
  const { hardwareCompatibility: reach } = recipe;
  const own = target.computeCapabilities;
  const names = own.map((each) => `sm_${each}`);
  if (!runsOn(sm, { recipe, target })) report('capability-differs', file, names, sm);
  const built = passport.built.gpu;
  const isNamed = gpu?.product !== undefined && gpu.capability === sm && built !== null;
  if (isNamed && reach === 'none' && !isOfProduct(built, gpu.product!))
    report('gpu-product-differs', file, built);
}

/** One TensorRT serves all plans; returns the version that the server must have. */
export function checkTensorrt(
  plans: readonly ServedPlan[],
  asked: string | undefined,
  report: Report,
): string | null {
  const versions = new Map<string, string>();
  for (const { file, header, passport } of plans) {
    const version = header?.version ?? null;
    if (version === null) continue;
    const isFlexible = passport?.identity.document.recipe.flags.includes('version-compatible') === true;
    if (!isFlexible) versions.set(version, file);
    if (asked === undefined || sameTensorrt(version, asked)) continue;
    if (!isFlexible || compareVersions(version, asked) > 0) report('tensorrt-differs', file, version, asked);
  }
  const [first, ...others] = Array.from(versions, ([version, file]) => `${version} (${file})`);
  if (others.length > 0) report('tensorrt-mixed', '.', [first, ...others].join(', '));
  return asked ?? (versions.size === 1 ? [...versions.keys()][0]! : null);
}
