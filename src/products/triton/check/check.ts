import { dirname, join } from 'node:path';
import { listFolder } from '../../../base/files/files.js';
import { containersOf } from '../../../behaviour/versions.js';
import { parseGpu } from '../../../engines/identity/target.js';
import { changedModel } from '../../../engines/plan/context-model.js';
import { axesOf, otherThanBatch } from '../../../engines/profiles/profile.js';
import type { WorkContext } from '../../../events.js';
import { pairStates } from '../../../formats/contract/state.js';
import { knownStates, profilesOf } from '../engine.js';
import { checkCoreRules } from './core-rules.js';
import { checkEnsemble } from './ensemble.js';
import { Findings, type Report } from './findings.js';
import type { TritonCheckRequest } from './options.js';
import { checkOthers, checkPlanFor, checkTensorrt, servedPlans, smOf } from './plans.js';
import { checkVersions, readRepository, type ServedPlan, servedVersions, servingOf } from './repository.js';
import {
  checkLabels,
  checkPairs,
  checkStates,
  checkWarmups,
  compareStates,
  compareWarmups,
} from './requests.js';
import type { TritonCheck } from './result.js';
import {
  checkLeastBatch,
  checkTensors,
  compareBatches,
  compareTensors,
  type Engine,
  type Model,
} from './tensors.js';

/**
 * Finds what Triton would meet in a repository, from its files alone. Throws TF_FILE_NOT_FOUND, TF_USAGE, TF_FILE_UNREADABLE.
 *
 * ```ts
 * const checked = await checkRepository({ repository: 'models', gpu: 'L4', tensorrt: '10.13.3.9' });
 * use(checked.findings);
 * ```
 */
export async function checkRepository(
  request: TritonCheckRequest,
  context?: WorkContext,
): Promise<TritonCheck> {
  const { repository, tensorrt } = request;
  const gpu = typeof request.gpu === 'string' ? parseGpu(request.gpu) : request.gpu;
  const findings = new Findings();
  const folders = readRepository(repository, findings.report);
  const byName = new Map(folders.map((folder) => [folder.name, folder]));
  const models: TritonCheck['models'] = [];
  const plans: ServedPlan[] = [];
  for (const folder of folders) {
    const { name } = folder;
    const report: Report = (code, field, ...values) =>
      findings.report(code, `${name}/config.pbtxt${field === '' ? '' : `: ${field}`}`, ...values);
    const backend = servingOf(folder, report);
    const versions = servedVersions(folder);
    checkVersions(folder, versions, report);
    const model: Model = { ...folder, config: folder.config ?? {}, report };
    checkCoreRules(model);
    if (backend === 'ensemble') checkEnsemble(model, byName);
    else checkConfig(model);
    const served = backend === 'tensorrt' ? await servedPlans(folder, versions, gpu, findings.report) : [];
    if (backend === 'tensorrt') compareModel(model, served);
    else if (backend !== 'ensemble') checkOthers(model, versions, backend);
    const hasOwn = served.some(
      ({ capability }) => capability !== null && smOf(capability) === gpu?.capability,
    );
    for (const plan of served) {
      checkPlanFor(gpu, hasOwn, plan, findings.report);
      const file = join(repository, plan.file);
      const models = listFolder(dirname(file)).filter((each) => each.endsWith('.onnx'));
      const only = models.length === 1 ? join(dirname(file), models[0]!) : undefined;
      const changed = plan.passport && (await changedModel(file, plan.passport, context, only));
      if (changed !== null) findings.report('model-changed', plan.file, changed);
    }
    plans.push(...served);
    const ofPlan = ({ file, capability, header, passport }: ServedPlan) => {
      const identity = passport?.identity.digest ?? null;
      return { file, capability, tensorrt: header?.version ?? null, identity };
    };
    models.push({ name, backend, versions: [...versions], plans: served.map(ofPlan) });
  }
  const needed = checkTensorrt(plans, tensorrt, findings.report);
  const list = findings.list();
  const isWrong = list.some(({ severity }) => severity === 'error');
  const tags = needed === null ? [] : [...containersOf(needed)];
  const container = { tensorrt: needed, tags, command: 'trtforge toolchain list' };
  const outcome = isWrong ? 'fail' : 'pass';
  return { schema: 'trtforge.triton-check/1', repository, outcome, models, container, findings: list };
}

/** Reports the faults of a configuration by itself, whatever serves it. */
function checkConfig(model: Model): void {
  const { config, report } = model;
  const { name = model.name } = config;
  if (name !== model.name) report('name-differs', 'name', name, model.name);
  checkTensors(model);
  checkStates(model);
  checkLabels(model);
}

/** Reports the faults of a TensorRT model's configuration beside its engines. */
function compareModel(model: Model, plans: readonly ServedPlan[]): void {
  const { config, states, report } = model;
  const { instance_group: groups = [], parameters = {} } = config;
  const allowed = ['KIND_GPU', ...('enable_multi_device' in parameters ? ['KIND_MODEL'] : [])];
  for (const [at, { kind = 'KIND_GPU' }] of groups.entries())
    if (!allowed.includes(kind)) report('instance-kind', `instance_group[${at}].kind`, kind);
  for (const [key, { string_value: value = '' }] of Object.entries(parameters)) {
    const found = /^trtforge\.identity(?:\.(.+))?$/.exec(key);
    if (found === null) continue;
    const [, capability] = found;
    const named = plans.filter((plan) => capability === undefined || plan.capability === capability);
    const identities = named.map(({ passport }) => passport?.identity.digest ?? value);
    if (identities.length > 0 && !identities.includes(value))
      report('identity-differs', `parameters["${key}"]`, value);
  }
  const engines = plans.flatMap((plan) => engineOf(plan, states) ?? []);
  for (const engine of engines) {
    compareTensors(model, engine);
    compareBatches(model, engine);
    compareStates(model, engine);
    checkPairs(model, engine);
    compareWarmups(model, engine);
  }
  checkLeastBatch(model, engines);
  if (engines.length === 0) checkPairs(model, { file: 'the contract', states, inputs: [] });
  checkWarmups(model);
  const { graphs = false, graph_spec: specs = [] } = config.optimization?.cuda ?? {};
  const isOpen = config.input?.some(({ dims }) => dims?.includes(-1)) === true;
  if (graphs && specs.length === 0 && isOpen) report('graphs-open-dims', 'optimization.cuda');
}

/** The states are those of the contract, and what the known answer feeds back besides. */
function engineOf({ file, passport }: ServedPlan, contract: Model['states']): Engine | null {
  if (passport === null) return null;
  const { inputs, outputs } = passport.plan;
  const others = knownStates(passport).filter(({ input }) => contract.every((pair) => pair.input !== input));
  const other = otherThanBatch(axesOf(passport));
  const states = [...contract, ...others];
  const unstated = states.length === 0 ? pairStates(inputs, outputs) : [];
  return { file, inputs, outputs, profiles: profilesOf(passport), states, unstated, other };
}
