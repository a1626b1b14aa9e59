import { join } from 'node:path';
import { listFolder, statIfThere } from '../../../base/files/files.js';
import { compareVersions } from '../../../behaviour/versions.js';
import type { Passport } from '../../../engines/identity/passport.js';
import { containersOf, sameTensorrt } from '../containers.js';
import type { ModelConfig } from '../model-config.js';
import { engineOf } from './engine.js';
import { checkEnsemble } from './ensemble.js';
import { Findings, type Report } from './findings.js';
import type { GpuChoice } from './gpu.js';
import { isPlan, type ModelFolder, readPlan, readRepository, type ServedPlan } from './repository.js';
import { checkLabels, checkPairs, checkStates, checkWarmups, compareStates } from './requests.js';
import type { TritonCheck } from './result.js';
import { checkTensors, compareBatches, compareTensors, isBatched, preferredSizes } from './tensors.js';

export interface CheckRequest {
  readonly repository: string;
  /** The GPU of the server. */
  readonly gpu?: GpuChoice | undefined;
  /** Its TensorRT, as many parts as are known. */
  readonly tensorrt?: string | undefined;
}

/** What Triton would meet in a repository, found from its files alone. Throws TF_FILE_NOT_FOUND, TF_USAGE, TF_FILE_UNREADABLE. */
export async function checkRepository({ repository, gpu, tensorrt }: CheckRequest): Promise<TritonCheck> {
  const findings = new Findings();
  const folders = readRepository(repository, findings);
  const byName = new Map(folders.map((folder) => [folder.name, folder]));
  const models: TritonCheck['models'] = [];
  const plans: ServedPlan[] = [];
  for (const folder of folders) {
    const { name, config } = folder;
    const at: Report = (code, field, message) =>
      findings.report(code, `${name}/config.pbtxt${field === '' ? '' : `: ${field}`}`, message);
    const backend = backendOf(folder, at);
    const versions = servedVersions(folder, backend, at);
    let served: readonly ServedPlan[] = [];
    if (config !== null && backend === 'ensemble') checkEnsemble(config, name, byName, at);
    if (config !== null && backend !== 'ensemble') checkConfig(folder, config, at);
    if (backend === 'tensorrt') {
      served = await servedPlans(folder, versions, gpu, at, findings.report);
      for (const plan of served) checkPlanOf(plan, gpu, findings.report);
      checkModel(folder, served, at);
    } else if (backend !== 'ensemble') reportPlans(folder, versions, backend, at);
    plans.push(...served);
    models.push({
      name,
      backend,
      versions: [...versions],
      plans: served.map(({ file, capability, header, passport }) => ({
        ...{ file, capability, tensorrt: header?.version ?? null },
        identity: passport?.identity.digest ?? null,
      })),
    });
  }
  const needed = checkTensorrt(plans, tensorrt, repository, findings.report);
  const list = findings.list();
  return {
    schema: 'trtforge.triton-check/1',
    repository,
    outcome: list.some(({ severity }) => severity === 'error') ? 'fail' : 'pass',
    models,
    container: {
      tensorrt: needed,
      tags: needed === null ? [] : containersOf(needed).map((each) => ({ ...each })),
      command: 'trtforge toolchain list',
    },
    findings: list,
  };
}

/** Files by which Triton completes a configuration that names no back end. */
const knownFiles: Readonly<Record<string, string>> = {
  'model.plan': 'tensorrt',
  'model.onnx': 'onnxruntime',
  'model.pt': 'pytorch',
  'model.py': 'python',
  'model.graphdef': 'tensorflow',
  'model.savedmodel': 'tensorflow',
  'model.xml': 'openvino',
};

/** Platforms of model_config.proto, and their back ends. */
const platforms: Readonly<Record<string, string>> = {
  tensorrt_plan: 'tensorrt',
  tensorflow_graphdef: 'tensorflow',
  tensorflow_savedmodel: 'tensorflow',
  onnxruntime_onnx: 'onnxruntime',
  pytorch_libtorch: 'pytorch',
  ensemble: 'ensemble',
};

function backendOf({ config, path, versions }: ModelFolder, report: Report): string | null {
  const files = [
    config?.default_model_filename ?? '',
    ...versions.flatMap((each) => listFolder(join(path, each))),
  ];
  const completed = knownFiles[files.find((file) => knownFiles[file] !== undefined) ?? ''] ?? null;
  if (config === null) {
    report('config-missing', '', 'There is no configuration that can be read.');
    return completed;
  }
  const { platform = '', backend = '' } = config;
  if (config.ensemble_scheduling !== undefined || platform === 'ensemble') {
    if (platform !== 'ensemble')
      report('backend-unknown', 'platform', `"${platform}" is not that of an ensemble, "ensemble".`);
    return 'ensemble';
  }
  if (platform === '' && backend === '') {
    const code = completed === null ? 'backend-unknown' : 'backend-missing';
    report(
      code,
      '',
      `There is neither platform nor backend${completed === null ? '' : `: Triton takes ${completed} by the file's name`}.`,
    );
    return completed;
  }
  const ofPlatform = platforms[platform];
  if ((platform !== '' && ofPlatform === undefined && backend === '') || backend === 'tensorrt_plan') {
    report(
      'backend-unknown',
      backend === '' ? 'platform' : 'backend',
      `Triton has no ${backend === '' ? 'platform' : 'back end'} "${backend || platform}".`,
    );
    return /tensorrt/.test(platform + backend) ? 'tensorrt' : backend || platform;
  }
  if (ofPlatform !== undefined && backend !== '' && ofPlatform !== backend)
    report('backend-unknown', 'backend', `"${backend}" does not go with the platform "${platform}".`);
  return backend === '' ? ofPlatform! : backend;
}

/** The versions that the policy loads; by default the newest one. */
function servedVersions(
  { config, versions }: ModelFolder,
  backend: string | null,
  report: Report,
): readonly string[] {
  const { latest, all, specific } = config?.version_policy ?? {};
  if (versions.length === 0)
    report(
      'version-missing',
      '',
      backend === 'ensemble'
        ? 'There is no version folder; an ensemble needs one too, empty.'
        : 'There is no version folder.',
    );
  if (specific !== undefined) {
    const asked = (specific.versions ?? []).map(String);
    for (const each of asked) {
      if (!versions.includes(each))
        report('version-missing', 'version_policy.specific', `There is no folder for version ${each}.`);
    }
    return versions.filter((each) => asked.includes(each));
  }
  return all === undefined ? versions.slice(-(latest?.num_versions ?? 1)) : versions;
}

/** What a configuration has wrong by itself, whatever serves it. */
function checkConfig(folder: ModelFolder, config: ModelConfig, report: Report): void {
  const { max_batch_size: most = 0, dynamic_batching: dynamic } = config;
  if (config.name !== undefined && config.name !== folder.name)
    report('name-differs', 'name', `"${config.name}", and the folder is "${folder.name}".`);
  checkTensors(config, report);
  if (dynamic !== undefined && !isBatched(config))
    report('batching-without-batch', 'dynamic_batching', 'max_batch_size is 0: nothing is batched.');
  for (const { where, sizes } of preferredSizes(config)) {
    for (const size of sizes)
      if (size < 1 || size > most)
        report('preferred-above-max', where, `${size}, and max_batch_size is ${most}.`);
  }
  checkStates(config, folder, report);
  checkLabels(config, folder.path, report);
}

/** A model of another back end whose files are plans. */
function reportPlans(
  { name, path }: ModelFolder,
  versions: readonly string[],
  backend: string | null,
  report: Report,
) {
  for (const version of versions) {
    for (const file of listFolder(join(path, version))) {
      if (isPlan(join(path, version, file)))
        report('backend-differs', 'backend', `"${backend ?? ''}", and ${name}/${version}/${file} is a plan.`);
    }
  }
}

/** The plans that a configuration names in the versions it serves, and those it names but that are not there. */
async function servedPlans(
  { name, path, config }: ModelFolder,
  versions: readonly string[],
  gpu: GpuChoice | undefined,
  report: Report,
  reportFile: Report,
): Promise<readonly ServedPlan[]> {
  const capabilities = Object.entries(config?.cc_model_filenames ?? {});
  const hasCapabilities = capabilities.length > 0;
  const fallback = config?.default_model_filename ?? 'model.plan';
  for (const [key] of capabilities) {
    if (!/^\d{1,2}\.\d$/.test(key))
      report('capability-key', 'cc_model_filenames', `"${key}" is not a compute capability.`);
  }
  const hasEntry = gpu === undefined || capabilities.some(([key]) => capabilityOf(key) === gpu.capability);
  const plans: ServedPlan[] = [];
  for (const version of versions) {
    const has = (file: string) => statIfThere(join(path, version, file)) !== undefined;
    const entries: [string | null, string][] = capabilities.map(([key, file]) => [key, file]);
    if (!hasCapabilities || has(fallback)) entries.push([null, fallback]);
    if (hasCapabilities && has(fallback))
      report(
        'default-beside-capabilities',
        'cc_model_filenames',
        `A GPU without an entry loads ${name}/${version}/${fallback}, without a word.`,
      );
    if (!hasEntry && hasCapabilities && !has(fallback))
      report(
        'gpu-without-plan',
        'cc_model_filenames',
        `No entry is for sm_${gpu?.capability}, and ${name}/${version} has no ${fallback}.`,
      );
    for (const [key, file] of entries) {
      const at = `${name}/${version}/${file}`;
      if (has(file)) plans.push(await readPlan(join(path, version, file), at, key, reportFile));
      else if (key === null) reportFile('plan-missing', at, 'The plan is not there.');
      else
        reportFile(
          'capability-file-missing',
          at,
          `cc_model_filenames names it for "${key}", and it is not there: found only when the GPU loads it.`,
        );
    }
    const named = new Set(entries.map(([, file]) => file));
    for (const file of listFolder(join(path, version))) {
      if (!named.has(file) && isPlan(join(path, version, file)))
        reportFile('plan-unused', `${name}/${version}/${file}`, 'The configuration does not name this plan.');
    }
  }
  return plans;
}

/** "8.9" as 89. */
const capabilityOf = (key: string): number => Math.round(Number(key) * 10);

/** Whether a plan runs on a compute capability, by its passport. */
function runsOn({ identity }: Passport, capability: number): boolean {
  const { recipe, target } = identity.document;
  return (
    target.computeCapabilities.includes(capability) ||
    (recipe.hardwareCompatibility === 'ampere-plus' && capability >= 80)
  );
}

/** Plan and passport beside the GPU that it is for. */
function checkPlanOf(
  { file, capability, passport }: ServedPlan,
  gpu: GpuChoice | undefined,
  report: Report,
): void {
  if (passport === null) return;
  const key = capability === null ? gpu?.capability : capabilityOf(capability);
  const { computeCapabilities } = passport.identity.document.target;
  const own = computeCapabilities.map((each) => `sm_${each}`).join(', ');
  if (key !== undefined && !Number.isNaN(key) && !runsOn(passport, key))
    report('capability-differs', file, `Its passport states ${own}, and it is for sm_${key}.`);
  const product = passport.built.gpu?.toLowerCase();
  const isPortable = passport.identity.document.recipe.hardwareCompatibility !== 'none';
  if (
    gpu?.name !== undefined &&
    product !== undefined &&
    key === gpu.capability &&
    !isPortable &&
    !product.includes(gpu.name)
  )
    report(
      'gpu-product-differs',
      file,
      `It was built on ${passport.built.gpu}: tactics were timed for another product of this compute capability.`,
    );
}

/** What a TensorRT model's configuration has wrong, alone and beside each of its engines. */
function checkModel(folder: ModelFolder, plans: readonly ServedPlan[], report: Report): void {
  const { path, states } = folder;
  const config = folder.config ?? {};
  const params = Object.entries(config.parameters ?? {});
  const isMultiDevice = params.some(([key]) => key === 'enable_multi_device');
  for (const [at, { kind = 'KIND_AUTO' }] of (config.instance_group ?? []).entries()) {
    if (kind === 'KIND_CPU' || (kind === 'KIND_MODEL' && !isMultiDevice))
      report('instance-kind', `instance_group[${at}].kind`, `${kind}: Triton runs plans on GPUs alone.`);
  }
  const identities = plans.flatMap(({ passport }) => passport?.identity.digest ?? []);
  for (const [key, { string_value: value = '' }] of params) {
    if (
      key.startsWith('trtforge.identity') &&
      identities.length === plans.length &&
      !identities.includes(value)
    )
      report(
        'identity-differs',
        `parameters["${key}"]`,
        `${value.slice(0, 16)}… is the identity of no plan that is there.`,
      );
  }
  const engines = plans.flatMap((plan) => engineOf(plan, states) ?? []);
  if (engines.length === 0) {
    checkPairs(config, states, 'the contract', report);
    checkWarmups(config, path, null, report);
  }
  const before = new Set<string>();
  for (const engine of engines) {
    const own: string[] = [];
    // What holds for the engine of one capability mostly holds for the others.
    const once: Report = (code, field, message) => {
      own.push(`${code} ${field}`);
      if (!before.has(`${code} ${field}`)) report(code, field, message);
    };
    compareTensors(config, engine, once);
    compareBatches(config, engine, once);
    compareStates(config, engine, once);
    checkPairs(config, engine.states, engine.file, once);
    checkWarmups(config, path, engine, once);
    for (const each of own) before.add(each);
  }
  const { graphs = false, graph_spec = [] } = config.optimization?.cuda ?? {};
  const isOpen = (dims: readonly (number | null)[] = []) => dims.some((size) => size === -1 || size === null);
  const inputs =
    config.input ??
    engines[0]?.inputs.map(({ shape }) => ({ dims: shape?.slice(isBatched(config) ? 1 : 0) }));
  if (graphs && graph_spec.length === 0 && inputs?.some(({ dims }) => isOpen(dims)))
    report(
      'graphs-open-dims',
      'optimization.cuda',
      'Inputs have open axes besides the batch, and no graph_spec states the shapes to capture.',
    );
}

/** One TensorRT serves all plans; gives the version that the server must have. */
function checkTensorrt(
  plans: readonly ServedPlan[],
  asked: string | undefined,
  path: string,
  report: Report,
): string | null {
  const built = plans.flatMap(({ file, header, passport }) => {
    const version = header?.version ?? null;
    const isFlexible = passport?.identity.document.recipe.flags.includes('version-compatible') ?? false;
    return version === null ? [] : [{ file, version, isFlexible }];
  });
  for (const { file, version, isFlexible } of asked === undefined ? [] : built) {
    const fits = sameTensorrt(version, asked!) || (isFlexible && compareVersions(version, asked!) < 0);
    if (!fits)
      report('tensorrt-differs', file, `It was built with TensorRT ${version}, and the server has ${asked}.`);
  }
  const versions = [...new Set(built.filter(({ isFlexible }) => !isFlexible).map(({ version }) => version))];
  if (versions.length > 1) {
    const each = versions.map(
      (version) => `${version} (${built.find((one) => one.version === version)?.file})`,
    );
    report('tensorrt-mixed', path, `Plans were built with TensorRT ${each.join(' and ')}.`);
  }
  return asked ?? (versions.length === 1 ? versions[0]! : null);
}
