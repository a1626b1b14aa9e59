import { agree, type ConfigTensor, innerDims, type ModelConfig, shapeOf } from '../model-config.js';
import { type ModelFolder, servedVersions } from './repository.js';
import type { Model } from './tensors.js';

/** A tensor of an ensemble as one side of it states it: a model's configuration, or the ensemble's own. */
interface Side extends Pick<ConfigTensor, 'data_type' | 'dims'> {
  readonly of: string;
  readonly config: ModelConfig;
}

const sides = [
  { field: 'input', map: 'input_map' },
  { field: 'output', map: 'output_map' },
] as const;

/** An ensemble's steps and tensors, as the core compares them when it loads. */
export function checkEnsemble(
  { config, name, report }: Model,
  models: ReadonlyMap<string, ModelFolder>,
): void {
  const { platform = '', backend = '' } = config;
  if (platform !== 'ensemble' || backend !== '')
    report('ensemble-step', 'platform', 'The platform must be "ensemble", and backend absent');
  for (const field of ['instance_group', 'model_warmup', 'optimization'] as const) {
    if (config[field] !== undefined) report('ensemble-extra', field, field);
  }
  for (const { field } of sides) {
    for (const [index, { name: tensor, data_type, dims }] of (config[field] ?? []).entries())
      if (data_type === undefined || dims === undefined)
        report(
          'ensemble-shape',
          `${field}[${index}]`,
          tensor,
          'without data_type or dims',
          'Triton completes none',
        );
  }
  const at = 'ensemble_scheduling';
  const steps = config.ensemble_scheduling?.step ?? [];
  if (steps.length === 0) report('ensemble-step', at, 'There is none');
  const tensors = new Map<string, Side>();
  const connect = (tensor: string, side: Side, where: string) => {
    const before = tensors.get(tensor);
    if (before === undefined) tensors.set(tensor, side);
    else if (!isConsistent(before, side))
      report('ensemble-shape', where, tensor, textOf(before), textOf(side));
  };
  for (const { field } of sides) {
    for (const tensor of config[field] ?? [])
      connect(tensor.name ?? '', { ...tensor, dims: innerDims(tensor), of: name, config }, field);
  }
  const [read, written] = [namesOf(config.output), namesOf(config.input)];
  for (const [index, { model_name = '', ...step }] of steps.entries()) {
    const where = `${at}.step[${index}]`;
    const folder = models.get(model_name);
    const own = folder?.config ?? {};
    const { model_version: version = -1 } = step;
    if (folder !== undefined && version !== -1 && !servedVersions(folder).includes(`${version}`))
      report('ensemble-step', `${where}.model_version`, `${model_name} does not serve version ${version}`);
    if (folder === undefined)
      report('ensemble-step', `${where}.model_name`, `The repository has no model "${model_name}"`);
    const { max_batch_size: most = 0 } = own;
    if (most > 0 && most < (config.max_batch_size ?? 0))
      report(
        'ensemble-step',
        where,
        `${model_name} takes batches of at most ${most}, the ensemble ${config.max_batch_size}`,
      );
    for (const { field, map } of sides) {
      for (const [key, tensor] of Object.entries(step[map] ?? {})) {
        if (field === 'output' && written.has(tensor))
          report('ensemble-tensor', `${where}.${map}`, tensor, 'is written twice');
        (field === 'input' ? read : written).add(tensor);
        const end = own[field]?.find((each) => each.name === key);
        // Core takes the dims of a step as they are, without its reshape.
        if (end !== undefined) connect(tensor, { ...end, of: model_name, config: own }, `${where}.${map}`);
        else if (own[field] !== undefined)
          report('ensemble-step', `${where}.${map}`, `${model_name} has no ${field} "${key}"`);
      }
    }
    for (const { name: input = '', optional } of own.input ?? []) {
      if (step.input_map?.[input] === undefined && optional !== true)
        report('ensemble-step', `${where}.input_map`, `Input "${input}" of ${model_name} is not there`);
    }
  }
  const ready = namesOf(config.input);
  for (let before = -1; before !== ready.size; ) {
    before = ready.size;
    for (const { input_map = {}, output_map = {} } of steps) {
      const isReady = Object.values(input_map).every((tensor) => ready.has(tensor));
      for (const tensor of isReady ? Object.values(output_map) : []) ready.add(tensor);
    }
  }
  for (const tensor of new Set([...read, ...written])) {
    if (!ready.has(tensor)) report('ensemble-tensor', at, tensor, 'is not connected to the inputs');
    else if (!read.has(tensor)) report('ensemble-tensor', at, tensor, 'is not read');
  }
}

const namesOf = (tensors: readonly ConfigTensor[] = []) => new Set(tensors.map(({ name = '' }) => name));

/** Dims that fit as they are, or with the batch of each: a model without batching may have it as its first axis. */
function isConsistent(a: Side, b: Side): boolean {
  if (a.data_type !== undefined && b.data_type !== undefined && a.data_type !== b.data_type) return false;
  return a.dims === undefined || b.dims === undefined || agree(a.dims, b.dims) || agree(whole(a), whole(b));
}

const whole = ({ config, dims = [] }: Side) => shapeOf(config, { dims });

const textOf = (side: Side) => `${side.data_type} [${whole(side)}] in ${side.of}`;
