import type { otherThanBatch, Profile } from '../../../engines/profiles/profile.js';
import type { StatePair } from '../../../formats/contract/contract.js';
import { batchesOf, type EngineTensor, isShapeTensor, isTaken, leastBatch, openShape } from '../engine.js';
import {
  agree,
  type ConfigTensor,
  dataTypes,
  isBatched,
  type ModelConfig,
  shapeOf,
} from '../model-config.js';
import type { FindingCode, Report } from './findings.js';
import type { ModelFolder } from './repository.js';

/** A model whose configuration was read; `report` names a field of it. */
export interface Model extends ModelFolder {
  readonly config: ModelConfig;
  readonly report: Report;
}

/** The passport's facts of an engine that Triton loads. */
export interface Engine {
  /** `det/1/model.plan` */
  readonly file: string;
  readonly inputs: readonly EngineTensor[];
  readonly outputs: readonly EngineTensor[];
  readonly profiles: readonly Profile[];
  readonly states: readonly StatePair[];
  /** States by their names alone, which nothing states. */
  readonly unstated?: readonly StatePair[];
  /** Why the engine has no batch that Triton could split, where it has none. */
  readonly other?: ReturnType<typeof otherThanBatch>;
}

type Shape = readonly number[];

/** The profiles that the configuration serves, as far as the engine has them; without any it is the first. */
export function servedProfiles(
  { instance_group: groups = [{}] }: ModelConfig,
  { profiles }: Engine,
): readonly Profile[] {
  const named = groups.flatMap(({ profile = [] }) => (profile.length === 0 ? ['0'] : profile)).map(Number);
  return profiles.filter((_, index) => named.includes(index));
}

const sides = [
  { field: 'input', tensors: 'inputs', state: 'input_name', batch: 'batch_input' },
  { field: 'output', tensors: 'outputs', state: 'output_name', batch: 'batch_output' },
] as const;

const shapeText = (shape: Shape) => `[${shape.join(',')}]`;

/** Reports the faults of inputs and outputs that hold for any engine. */
export function checkTensors({ config, report }: Model): void {
  for (const { field } of sides) {
    const tensors = config[field] ?? [];
    for (const [at, { name = '', data_type, dims = [], reshape }] of tensors.entries()) {
      const where = `${field}[${at}]`;
      if (data_type === undefined || dims.length === 0) report('tensor-incomplete', where, name);
      if (tensors.findIndex((each) => each.name === name) < at) report('tensor-twice', where, name);
      checkDims(dims, `${where}.dims`, report);
      if (reshape === undefined) continue;
      const { shape = [] } = reshape;
      checkDims(shape, `${where}.reshape.shape`, report);
      if (chunks(dims).join() !== chunks(shape).join() || (shape.length === 0 && !isBatched(config)))
        report('reshape-differs', `${where}.reshape`, name, dims, shape);
    }
  }
}

export function checkDims(dims: readonly number[], where: string, report: Report): void {
  if (dims.some((size) => size < 1 && size !== -1)) report('dims-zero', where, dims);
}

/** Numbers of elements between open axes: [2,4,-1,6] and [8,-1,1,6] have the same. */
function chunks(dims: readonly number[]): readonly number[] {
  const counts = [1];
  for (const size of dims) counts.push(size === -1 ? 1 : counts.pop()! * size);
  return counts;
}

/** Inputs and outputs beside those of the engine. */
export function compareTensors(model: Model, engine: Engine): void {
  const { config, report } = model;
  const { state: states = [], control_input: controls = [] } = config.sequence_batching ?? {};
  for (const [at, { name }] of controls.entries()) {
    if (engine.inputs.every((each) => each.name !== name))
      report('tensor-unknown', `sequence_batching.control_input[${at}]`, name, engine.file);
  }
  for (const { field, tensors, state, batch } of sides) {
    const configured = config[field] ?? [];
    const elsewhere = new Set([
      ...states.map((each) => each[state]),
      ...(config[batch] ?? []).flatMap(({ target_name = [] }) => target_name),
      ...(field === 'input' ? controls : []).map(({ name }) => name),
      ...configured.map(({ name }) => name),
    ]);
    const missing = engine[tensors].filter(({ name }) => !elsewhere.has(name));
    if (configured.length === 0 && missing.length > 0) report('io-completed', field);
    else for (const { name } of missing) report('tensor-missing', field, name, engine.file);
    for (const [at, tensor] of configured.entries())
      compareTensor(model, engine, tensors, tensor, `${field}[${at}]`);
  }
}

/** One tensor, or one end of a state, beside that of the engine. */
export function compareTensor(
  { config, report }: Model,
  engine: Engine,
  side: 'inputs' | 'outputs',
  tensor: ConfigTensor,
  where: string,
): void {
  const { name = '', data_type: type = 'TYPE_INVALID', is_shape_tensor = false } = tensor;
  const own = engine[side].find((each) => each.name === name);
  if (own === undefined) {
    report('tensor-unknown', where, name, engine.file);
    return;
  }
  const carried = dataTypes[own.dtype];
  if (carried === undefined) report('type-not-carried', `${where}.data_type`, name, own.dtype, engine.file);
  else if (type !== 'TYPE_INVALID' && type !== carried)
    report('type-differs', `${where}.data_type`, name, type, carried, engine.file);
  const isShape = side === 'inputs' && isShapeTensor(engine.profiles, name);
  if (side === 'inputs' && isShape !== is_shape_tensor)
    report('shape-tensor', `${where}.is_shape_tensor`, name, isShape, engine.file);
  const wanted = openShape(own);
  if (tensor.dims === undefined || wanted === null || tensor.allow_ragged_batch === true) return;
  const shape = shapeOf(config, tensor);
  const fault = (isShape ? valuesFault : dimsFault)(shape, wanted, isBatched(config));
  const isServed = () => servedProfiles(config, engine).some((profile) => isTaken(profile, own, shape));
  if (fault !== null) report(fault, `${where}.dims`, name, shapeText(shape), shapeText(wanted), engine.file);
  else if (side === 'inputs' && !isServed())
    report('dims-outside-profile', `${where}.dims`, name, shapeText(shape));
}

/** As the back end compares them: a size that is open on one side fits. */
function dimsFault(shape: Shape, engine: Shape, batched: boolean): FindingCode | null {
  const [first, ...rest] = engine;
  if (!batched && first === -1 && agree(shape, rest)) return 'batch-axis-missing';
  if (batched && first !== -1 && (agree(shape.slice(1), engine) || agree(shape.slice(1), rest)))
    return 'batch-axis-fixed';
  if (!agree(shape, engine)) return 'dims-differ';
  return shape.some((size, axis) => size === -1 && engine[axis] !== -1) ? 'dims-open' : null;
}

/** Of the values of a shape tensor, the batch is the first and left out of dims. */
function valuesFault(shape: Shape, engine: Shape, batched: boolean): FindingCode | null {
  const count = batched ? (shape[1] ?? -1) + 1 : (shape[0] ?? -1);
  return engine.length === 0 || count === engine[0] ? null : 'dims-differ';
}

/** Batches and profiles of the engine beside what is served. */
export function compareBatches({ config, report }: Model, engine: Engine): void {
  const { instance_group: groups = [], max_batch_size: most = 0 } = config;
  const last = engine.profiles.length - 1;
  const { other } = engine;
  if (isBatched(config) && other !== undefined)
    report('batch-axis-other', 'max_batch_size', other.tensor, other.why, engine.file);
  for (const [at, { profile = [] }] of groups.entries()) {
    for (const each of profile) {
      if (!/^\d+$/.test(each) || Number(each) > last)
        report('profile-unknown', `instance_group[${at}].profile`, each, last, engine.file);
    }
  }
  if (last > 0 && groups.every(({ profile = [] }) => profile.length === 0))
    report('profiles-unserved', 'instance_group', last + 1, engine.file);
  const batches = servedBatches(config, engine);
  if (batches.length === 0) return;
  const largest = Math.max(...batches.map(({ max }) => max));
  if (most > largest) report('batch-above-profile', 'max_batch_size', most, largest, engine.file);
  for (const [where, size] of preferredSizes(config)) {
    if (size <= most && batches.every(({ min, max }) => size < min || size > max))
      report('preferred-outside-profile', where, size);
  }
}

/** The batches of each profile that is served; none without batching, and for an engine that has one batch. */
function servedBatches(config: ModelConfig, engine: Engine) {
  const inputs = engine.inputs.filter(({ name }) => !isShapeTensor(engine.profiles, name));
  return isBatched(config) && inputs.every(({ shape }) => typeof shape?.[0] !== 'number')
    ? servedProfiles(config, engine).map((profile) => batchesOf(profile, inputs))
    : [];
}

/** Batches up to max_batch_size that core passes on, and that an engine does not take. */
export function checkLeastBatch({ config, report }: Model, engines: readonly Engine[]): void {
  const batches = engines.map((engine) => servedBatches(config, engine)).filter(({ length }) => length > 0);
  if (batches.length === 0) return;
  const least = leastBatch(batches, config.max_batch_size!);
  if (least === undefined) report('batch-without-profile', 'max_batch_size', config.max_batch_size);
  else if (least > 1) report('batch-below-profile', 'max_batch_size', least);
}

/** Preferred batch sizes, each with where it is. */
export function preferredSizes({
  dynamic_batching,
  sequence_batching,
}: ModelConfig): readonly [string, number][] {
  const { preferred_batch_size: dynamic = [] } = dynamic_batching ?? {};
  const { preferred_batch_size: oldest = [] } = sequence_batching?.oldest ?? {};
  return [
    ...dynamic.map((size): [string, number] => ['dynamic_batching.preferred_batch_size', size]),
    ...oldest.map((size): [string, number] => ['sequence_batching.oldest.preferred_batch_size', size]),
  ];
}
