import type { ConfigTensor, ModelConfig } from '../model-config.js';
import type { Report } from './findings.js';
import type { ModelFolder } from './repository.js';
import { isBatched } from './tensors.js';

/** A tensor of an ensemble as one side of it states it. */
interface Side {
  readonly of: string;
  readonly type: string | undefined;
  readonly dims: readonly number[] | undefined;
  readonly batched: boolean;
}

/** An ensemble's steps and tensors, as the core compares them when it loads. */
export function checkEnsemble(
  config: ModelConfig,
  name: string,
  models: ReadonlyMap<string, ModelFolder>,
  report: Report,
): void {
  for (const field of ['instance_group', 'model_warmup', 'optimization'] as const) {
    if (config[field] !== undefined) report('ensemble-extra', field, `An ensemble takes no ${field}.`);
  }
  const steps = config.ensemble_scheduling?.step ?? [];
  if (steps.length === 0) report('ensemble-step', 'ensemble_scheduling', 'There is no step.');
  const tensors = new Map<string, Side>();
  const sideOf = (tensor: ConfigTensor, of: string, batched: boolean): Side => ({
    of,
    type: tensor.data_type,
    dims: tensor.dims,
    batched,
  });
  const connect = (tensor: string, side: Side, where: string) => {
    const before = tensors.get(tensor);
    if (before === undefined) tensors.set(tensor, side);
    else if (!isConsistent(before, side))
      report('ensemble-shape', where, `"${tensor}" is ${textOf(before)}, and ${textOf(side)}.`);
  };
  const [read, written] = [new Set<string>(), new Set<string>()];
  for (const each of config.input ?? []) {
    written.add(each.name ?? '');
    connect(each.name ?? '', sideOf(reshaped(each), name, isBatched(config)), 'input');
  }
  for (const each of config.output ?? []) {
    read.add(each.name ?? '');
    connect(each.name ?? '', sideOf(reshaped(each), name, isBatched(config)), 'output');
  }
  for (const [at, { model_name = '', input_map = {}, output_map = {} }] of steps.entries()) {
    const where = `ensemble_scheduling.step[${at}]`;
    const model = models.get(model_name);
    if (model === undefined)
      report('ensemble-step', `${where}.model_name`, `The repository has no model "${model_name}".`);
    const own = model?.config ?? {};
    const most = own.max_batch_size ?? 0;
    if (most > 0 && most < (config.max_batch_size ?? 0))
      report(
        'ensemble-step',
        where,
        `${model_name} takes batches of at most ${most}, the ensemble of ${config.max_batch_size}.`,
      );
    for (const [field, map, seen] of [
      ['input', input_map, read],
      ['output', output_map, written],
    ] as const) {
      if (Object.keys(map).length === 0) report('ensemble-step', `${where}.${field}_map`, 'It is empty.');
      for (const [key, tensor] of Object.entries(map)) {
        if (field === 'output' && written.has(tensor))
          report('ensemble-tensor', `${where}.output_map`, `"${tensor}" is written twice.`);
        seen.add(tensor);
        const end = own[field]?.find((each) => each.name === key);
        if (end !== undefined)
          connect(tensor, sideOf(end, model_name, isBatched(own)), `${where}.${field}_map`);
        else if (own[field] !== undefined)
          report('ensemble-step', `${where}.${field}_map`, `${model_name} has no ${field} "${key}".`);
      }
    }
    for (const { name: input = '', optional } of own.input ?? []) {
      if (input_map[input] === undefined && optional !== true)
        report('ensemble-step', `${where}.input_map`, `Input "${input}" of ${model_name} is not there.`);
    }
  }
  const ready = new Set((config.input ?? []).map((each) => each.name ?? ''));
  for (let before = -1; before !== ready.size; ) {
    before = ready.size;
    for (const { input_map = {}, output_map = {} } of steps) {
      if (Object.values(input_map).every((tensor) => ready.has(tensor)))
        for (const tensor of Object.values(output_map)) ready.add(tensor);
    }
  }
  for (const tensor of new Set([...read, ...written])) {
    if (!ready.has(tensor))
      report(
        'ensemble-tensor',
        'ensemble_scheduling',
        `"${tensor}" is not connected to the inputs of the ensemble.`,
      );
    else if (!read.has(tensor)) report('ensemble-tensor', 'ensemble_scheduling', `"${tensor}" is not read.`);
  }
}

const reshaped = (tensor: ConfigTensor): ConfigTensor =>
  tensor.reshape === undefined ? tensor : { ...tensor, dims: tensor.reshape.shape ?? [] };

/** Dims that fit as they are, or with the batch of each: a model without batching may have it as its first axis. */
function isConsistent(a: Side, b: Side): boolean {
  if (a.type !== undefined && b.type !== undefined && a.type !== b.type) return false;
  return a.dims === undefined || b.dims === undefined || agree(a.dims, b.dims) || agree(whole(a), whole(b));
}

const whole = ({ dims = [], batched }: Side) => (batched ? [-1, ...dims] : dims);

const agree = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((size, axis) => size === -1 || b[axis] === -1 || size === b[axis]);

const textOf = (side: Side) => `${side.type} [${whole(side).join()}] in ${side.of}`;
