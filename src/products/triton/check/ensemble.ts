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

type ConfigStep = NonNullable<NonNullable<ModelConfig['ensemble_scheduling']>['step']>[number];

interface Step extends ConfigStep {
  readonly model_name: string;
  /** The field that states it. */
  readonly where: string;
  /** Of its model; undefined where the repository has none of that name. */
  readonly folder: ModelFolder | undefined;
  /** Of its model; empty where that has none that can be read. */
  readonly own: ModelConfig;
}

const SCHEDULING = 'ensemble_scheduling';

/** An ensemble's steps and tensors, as the core compares them when it loads. */
export function checkEnsemble(model: Model, models: ReadonlyMap<string, ModelFolder>): void {
  const { config, report } = model;
  checkFields(model);
  const steps = (config.ensemble_scheduling?.step ?? []).map(({ model_name = '', ...step }, index): Step => {
    const folder = models.get(model_name);
    return { ...step, model_name, where: `${SCHEDULING}.step[${index}]`, folder, own: folder?.config ?? {} };
  });
  if (steps.length === 0) report('ensemble-step', SCHEDULING, 'There is none');
  const wiring = new Wiring(model);
  wiring.connectEnds();
  for (const step of steps) {
    checkModel(step, model);
    wiring.connectStep(step);
    checkInputs(step, model);
  }
  wiring.checkFlow(steps);
}

/** Reports fields beside the steps that an ensemble must not have, or lacks. */
function checkFields({ config, report }: Model): void {
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
}

/** Reports a step whose model is not served, or takes smaller batches than the ensemble. */
function checkModel(
  { model_name, model_version: version = -1, where, folder, own }: Step,
  { config, report }: Model,
): void {
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
}

/** Reports inputs of a step's model that the step does not feed. */
function checkInputs({ model_name, input_map, where, own }: Step, { report }: Model): void {
  for (const { name: input = '', optional } of own.input ?? []) {
    if (input_map?.[input] === undefined && optional !== true)
      report('ensemble-step', `${where}.input_map`, `Input "${input}" of ${model_name} is not there`);
  }
}

/** The tensors by which an ensemble's steps are connected with each other, and with its inputs and outputs. */
class Wiring {
  readonly #model: Model;
  /** The side that named each tensor first. */
  readonly #tensors = new Map<string, Side>();
  readonly #read: Set<string>;
  readonly #written: Set<string>;

  constructor(model: Model) {
    this.#model = model;
    this.#read = namesOf(model.config.output);
    this.#written = namesOf(model.config.input);
  }

  /** Takes the ensemble's own inputs and outputs. */
  connectEnds(): void {
    const { config, name } = this.#model;
    for (const { field } of sides) {
      for (const tensor of config[field] ?? [])
        this.#connect(tensor.name ?? '', { ...tensor, dims: innerDims(tensor), of: name, config }, field);
    }
  }

  /** Takes what a step reads and writes; reports what its model lacks, and what another step writes too. */
  connectStep({ model_name, own, ...step }: Step): void {
    const { report } = this.#model;
    for (const { field, map } of sides) {
      const where = `${step.where}.${map}`;
      for (const [key, tensor] of Object.entries(step[map] ?? {})) {
        if (field === 'output' && this.#written.has(tensor))
          report('ensemble-tensor', where, tensor, 'is written twice');
        (field === 'input' ? this.#read : this.#written).add(tensor);
        const end = own[field]?.find((each) => each.name === key);
        // Core takes the dims of a step as they are, without its reshape.
        if (end !== undefined) this.#connect(tensor, { ...end, of: model_name, config: own }, where);
        else if (own[field] !== undefined)
          report('ensemble-step', where, `${model_name} has no ${field} "${key}"`);
      }
    }
  }

  /** Reports tensors that no chain of steps computes from the inputs, or that nothing reads. */
  checkFlow(steps: readonly Step[]): void {
    const { config, report } = this.#model;
    const ready = namesOf(config.input);
    for (let before = -1; before !== ready.size; ) {
      before = ready.size;
      for (const { input_map = {}, output_map = {} } of steps) {
        const isReady = Object.values(input_map).every((tensor) => ready.has(tensor));
        for (const tensor of isReady ? Object.values(output_map) : []) ready.add(tensor);
      }
    }
    for (const tensor of new Set([...this.#read, ...this.#written])) {
      if (!ready.has(tensor)) report('ensemble-tensor', SCHEDULING, tensor, 'is not connected to the inputs');
      else if (!this.#read.has(tensor)) report('ensemble-tensor', SCHEDULING, tensor, 'is not read');
    }
  }

  #connect(tensor: string, side: Side, where: string): void {
    const before = this.#tensors.get(tensor);
    if (before === undefined) this.#tensors.set(tensor, side);
    else if (!isConsistent(before, side))
      this.#model.report('ensemble-shape', where, tensor, textOf(before), textOf(side));
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
