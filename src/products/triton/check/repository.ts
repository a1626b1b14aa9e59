import { join } from 'node:path';
import { listFolder, statIfThere } from '../../../base/files/files.js';
import { type Passport, readPassport } from '../../../engines/identity/passport.js';
import { type PlanHeader, readPlanHeader } from '../../../engines/plan/header.js';
import { checkPlan } from '../../../engines/plan/verify-engine.js';
import { TrtforgeError } from '../../../errors.js';
import type { StatePair } from '../../../formats/contract/contract.js';
import { readContractIfOne } from '../../../formats/contract/file.js';
import { backendOf, configText, type ModelConfig, platforms, readModelConfig } from '../model-config.js';
import type { Report } from './findings.js';

/** A folder of the repository that Triton takes for a model. */
export interface ModelFolder {
  readonly name: string;
  readonly path: string;
  /** null: it has none, or one that cannot be read. */
  readonly config: ModelConfig | null;
  /** Folders with a number that Triton reads, ascending. */
  readonly versions: readonly string[];
  /** The states that contracts beside the configuration declare. */
  readonly states: readonly StatePair[];
}

/** A plan that the configuration names, with what is known of it. */
export interface ServedPlan {
  /** `det/1/model.plan` */
  readonly file: string;
  /** The key of cc_model_filenames; null: for every GPU. */
  readonly capability: string | null;
  /** null: not a plan, or not TensorRT's. */
  readonly header: PlanHeader | null;
  /** null: none, or that of another plan. */
  readonly passport: Passport | null;
}

const CONFIG = 'config.pbtxt';
/** Folders beside the versions that Triton gives a meaning. */
const ownFolders = ['warmup', 'initial_state', 'configs'];
const isFolder = (path: string) => statIfThere(path)?.isDirectory() === true;
const isPlanName = (name: string) => /\.(engine|plan|trt)$/i.test(name);

/** The models of a repository, by name; what is wrong with its files is reported. Throws TF_FILE_NOT_FOUND, TF_USAGE where the folder is that of a model, TF_FILE_UNREADABLE. */
export function readRepository(path: string, report: Report): readonly ModelFolder[] {
  if (!isFolder(path)) throw new TrtforgeError('TF_FILE_NOT_FOUND', `${path} is not a folder.`);
  if (statIfThere(join(path, CONFIG)) !== undefined) {
    throw new TrtforgeError('TF_USAGE', `${path} has a ${CONFIG} itself: it is the folder of one model.`, {
      remedy: 'Pass the folder around it.',
    });
  }
  const names = listFolder(path).toSorted();
  for (const name of names) if (isPlanName(name)) report('stray-plan', name);
  const folders = names.filter((name) => isFolder(join(path, name)));
  const models = folders.flatMap((name) => readModel(name, join(path, name), report) ?? []);
  if (models.length === 0) report('no-models', '.');
  return models;
}

function readModel(name: string, path: string, report: Report): ModelFolder | undefined {
  const names = listFolder(path);
  const folders = names.filter((each) => isFolder(join(path, each)) && !ownFolders.includes(each));
  const versions = folders.filter((each) => /^(?:0|[1-9]\d*)$/.test(each));
  for (const each of folders) {
    const inside = listFolder(join(path, each));
    if (inside.includes(CONFIG)) report('nested-model', `${name}/${each}`);
    else if (!versions.includes(each) && inside.some(isPlanName))
      report('version-ignored', `${name}/${each}`);
  }
  for (const each of names) if (isPlanName(each)) report('stray-plan', `${name}/${each}`);
  const hasConfig = names.includes(CONFIG);
  if (!hasConfig && versions.length === 0) {
    report('not-a-model', name);
    return undefined;
  }
  const contracts = names.filter((each) => each.endsWith('.json'));
  return {
    ...{ name, path, config: hasConfig ? configOf(name, join(path, CONFIG), report) : null },
    versions: versions.toSorted((a, b) => Number(a) - Number(b)),
    states: contracts.flatMap((each) => statesIn(join(path, each), `${name}/${each}`, report)),
  };
}

function statesIn(path: string, file: string, report: Report): readonly StatePair[] {
  try {
    return readContractIfOne(path)?.state ?? [];
  } catch (cause) {
    report('contract-invalid', file, ours(cause).message);
    return [];
  }
}

function configOf(name: string, file: string, report: Report): ModelConfig | null {
  try {
    const text = configText(file);
    if (text.startsWith('\ufeff')) report('config-bom', `${name}/${CONFIG}`);
    if (text.includes('\0')) throw new TrtforgeError('TF_SERVING_CONFIG', 'It has a NUL byte.');
    return readModelConfig(file, text);
  } catch (cause) {
    const { message } = ours(cause);
    const code = message.includes('oneof "scheduling_choice"') ? 'two-schedulers' : 'config-unreadable';
    report(code, `${name}/${CONFIG}`, message.replace(`${file}, `, ''));
    return null;
  }
}

/** The versions that the policy loads; by default the newest one. */
export function servedVersions({ config, versions }: ModelFolder): readonly string[] {
  const { latest, specific } = config?.version_policy ?? { latest: { num_versions: 1 } };
  if (specific !== undefined) return versions.filter((each) => specific.versions?.map(String).includes(each));
  // A zero is absent in what was read.
  return latest === undefined
    ? versions
    : versions.slice(Math.max(0, versions.length - (latest.num_versions ?? 0)));
}

/** An error that states a fault of a file; any other is thrown. */
export function ours(cause: unknown): TrtforgeError {
  if (cause instanceof TrtforgeError) return cause;
  throw cause;
}

/** A plan and its passport; `file` is its name for findings. */
export async function readPlan(
  path: string,
  { file, capability }: Pick<ServedPlan, 'file' | 'capability'>,
  report: Report,
): Promise<ServedPlan> {
  try {
    const header = readPlanHeader(path);
    const isTensorrt = header.product === 'tensorrt';
    // The rest is compared all the same: a trial without a GPU has such plans.
    if (!isTensorrt) report('plan-rtx', file);
    else if (header.foreignHeader !== null || header.path !== path) report('plan-foreign-header', file);
    const passport = await passportOf(path, file, report);
    return { file, capability, header: isTensorrt ? header : null, passport };
  } catch (cause) {
    report('plan-unreadable', file, ours(cause).message);
  }
  return { file, capability, header: null, passport: null };
}

async function passportOf(path: string, file: string, report: Report): Promise<Passport | null> {
  try {
    const passport = readPassport(path);
    await checkPlan(path, passport);
    return passport;
  } catch (cause) {
    const { code, message } = ours(cause);
    const of = code.startsWith('TF_ENGINE_') ? 'passport-differs' : 'passport-unreadable';
    if (code === 'TF_PASSPORT_MISSING') report('passport-missing', file);
    else report(of, `${file}.passport.json`, message);
    return null;
  }
}

/** Files by which Triton completes a configuration that names no back end. */
const completing = /^model\.\w+$/;

/** The back end that serves a model; null: nothing states it. */
export function servingOf({ config, path, versions }: ModelFolder, report: Report): string | null {
  const files = [
    config?.default_model_filename ?? '',
    ...versions.flatMap((each) => listFolder(join(path, each))),
  ];
  const completed = files.includes('model.plan') ? 'tensorrt' : null;
  if (config === null) {
    const near = listFolder(path).find((file) =>
      /^(?!config\.pbtxt$).*\.pbtxt|^config\.(?:pb|te?xt)/i.test(file),
    );
    report(near === undefined ? 'config-missing' : 'config-named-otherwise', '', near);
    return completed;
  }
  const { platform = '', backend = '' } = config;
  const stated = backendOf(config);
  if (stated === '') {
    if (versions.length === 0 || files.some((file) => completing.test(file))) report('backend-missing', '');
    else report('backend-unknown', '', platform, backend);
    return completed;
  }
  const isKnown = (platforms.get(platform) ?? backend) === stated && stated !== 'tensorrt_plan';
  if (!isKnown) report('backend-unknown', platform === '' ? 'backend' : 'platform', platform, backend);
  return platforms.get(stated) ?? stated;
}

export function checkVersions(
  { config, versions }: ModelFolder,
  served: readonly string[],
  report: Report,
): void {
  if (versions.length === 0) report('version-missing', '', 'any version');
  else if (served.length === 0) report('version-missing', 'version_policy', 'a version that it serves');
  for (const each of config?.version_policy?.specific?.versions ?? [])
    if (!versions.includes(`${each}`))
      report('version-missing', 'version_policy.specific', `version ${each}`);
}
