import type { ConfigTensor, ModelConfig } from '../model-config.js';
import { dataTypes } from '../model-config.js';
import {
  batchesOf,
  type Engine,
  type EngineTensor,
  isShapeTensor,
  rangeOf,
  servedProfiles,
} from './engine.js';
import type { FindingCode, Report } from './findings.js';

const sides = [
  { field: 'input', tensors: 'inputs', state: 'input_name', batch: 'batch_input' },
  { field: 'output', tensors: 'outputs', state: 'output_name', batch: 'batch_output' },
] as const;

const shapeText = (shape: readonly (number | null)[]) => `[${shape.map((size) => size ?? -1).join(',')}]`;

/** Whether requests have a batch axis that dims leave out. */
export const isBatched = ({ max_batch_size = 0 }: ModelConfig): boolean => max_batch_size > 0;

/** What is wrong with inputs and outputs whatever the engine. */
export function checkTensors(config: ModelConfig, report: Report): void {
  for (const { field } of sides) {
    const seen = new Set<string>();
    for (const [at, { name = '', dims = [], reshape }] of (config[field] ?? []).entries()) {
      const where = `${field}[${at}]`;
      if (seen.has(name)) report('tensor-twice', where, `"${name}" is there twice.`);
      seen.add(name);
      checkDims(dims, `${where}.dims`, report);
      const shape = reshape === undefined ? undefined : (reshape.shape ?? []);
      if (shape === undefined) continue;
      checkDims(shape, `${where}.reshape.shape`, report);
      if (chunks(dims).join() !== chunks(shape).join())
        report(
          'reshape-differs',
          `${where}.reshape`,
          `"${name}": ${shapeText(dims)} and ${shapeText(shape)} have other numbers of elements.`,
        );
    }
  }
}

export function checkDims(dims: readonly number[], where: string, report: Report): void {
  if (dims.some((size) => size < 1 && size !== -1))
    report('dims-zero', where, `${shapeText(dims)} has a size that is neither positive nor -1.`);
}

/** Numbers of elements between open axes: [2,4,-1,6] and [8,-1,1,6] have the same. */
function chunks(dims: readonly number[]): readonly number[] {
  const counts = [1];
  for (const size of dims) {
    if (size === -1) counts.push(1);
    else counts.push(counts.pop()! * size);
  }
  return counts;
}

/** Inputs and outputs beside those of the engine. */
export function compareTensors(config: ModelConfig, engine: Engine, report: Report): void {
  const states = config.sequence_batching?.state ?? [];
  for (const { field, tensors, state, batch } of sides) {
    const configured = config[field] ?? [];
    const elsewhere = new Set([
      ...states.map((each) => each[state]),
      ...(config[batch] ?? []).flatMap(({ target_name = [] }) => target_name),
      ...(field === 'input' ? (config.sequence_batching?.control_input ?? []) : []).map(({ name }) => name),
    ]);
    const byName = new Map(engine[tensors].map((tensor) => [tensor.name, tensor]));
    const missing = engine[tensors].filter(
      ({ name }) => !elsewhere.has(name) && configured.every((each) => each.name !== name),
    );
    if (configured.length === 0 && missing.length > 0)
      report('io-completed', field, `Triton takes every ${field} from the engine.`);
    else
      for (const { name } of missing)
        report('tensor-missing', field, `"${name}" of ${engine.file} is not there.`);
    for (const [at, tensor] of configured.entries()) {
      const own = byName.get(tensor.name ?? '');
      if (own === undefined)
        report(
          'tensor-unknown',
          `${field}[${at}].name`,
          `${engine.file} has no ${field} "${tensor.name ?? ''}".`,
        );
      else compareTensor(config, engine, own, tensor, `${field}[${at}]`, field === 'input', report);
    }
  }
}

/** One tensor, or one end of a state, beside that of the engine. */
export function compareTensor(
  config: ModelConfig,
  engine: Engine,
  own: EngineTensor,
  tensor: ConfigTensor,
  where: string,
  isInput: boolean,
  report: Report,
): void {
  const { data_type: type = 'TYPE_INVALID' } = tensor;
  const carried = dataTypes[own.dtype];
  if (carried === undefined)
    report('type-not-carried', `${where}.data_type`, `"${own.name}" of ${engine.file} is ${own.dtype}.`);
  else if (type !== 'TYPE_INVALID' && type !== carried)
    report(
      'type-differs',
      `${where}.data_type`,
      `"${own.name}" is ${type}, and ${carried} in ${engine.file}.`,
    );
  const isShape = isShapeTensor(engine, own.name);
  if (isInput && isShape !== (tensor.is_shape_tensor ?? false))
    report(
      'shape-tensor',
      `${where}.is_shape_tensor`,
      `"${own.name}" is ${isShape ? 'a' : 'not a'} shape tensor of ${engine.file}.`,
    );
  const shape = tensor.reshape === undefined ? tensor.dims : (tensor.reshape.shape ?? []);
  if (shape === undefined || own.shape === null || tensor.allow_ragged_batch === true) return;
  const fault = isShape
    ? shapeFault(shape, own.shape, isBatched(config))
    : dimsFault(shape, own.shape, isBatched(config));
  if (fault !== null)
    report(
      fault,
      `${where}.dims`,
      `"${own.name}" is ${shapeText(shape)}${isBatched(config) ? ' and a batch' : ''}, and ${shapeText(own.shape)} in ${engine.file}.`,
    );
  else if (isInput && !isShape) checkRange(config, engine, own, shape, `${where}.dims`, report);
}

/** As the back end compares them: a size that is open on one side fits. */
function dimsFault(
  dims: readonly number[],
  engine: readonly (number | null)[],
  batched: boolean,
): FindingCode | null {
  if (!batched && engine[0] === null && agree(dims, engine.slice(1))) return 'batch-axis-missing';
  if (batched && typeof engine[0] === 'number' && (agree(dims, engine) || agree(dims, engine.slice(1))))
    return 'batch-axis-fixed';
  const whole = batched ? [-1, ...dims] : dims;
  if (!agree(whole, engine)) return 'dims-differ';
  return whole.some((size, axis) => size === -1 && engine[axis] !== null) ? 'dims-open' : null;
}

const agree = (dims: readonly number[], engine: readonly (number | null)[]) =>
  dims.length === engine.length &&
  dims.every((size, axis) => size === -1 || engine[axis] === null || engine[axis] === size);

/** Of the values of a shape tensor, the batch is the first and left out of dims. */
function shapeFault(dims: readonly number[], engine: readonly (number | null)[], batched: boolean) {
  const fits = engine.length === 0 || (dims[0] ?? -1) + (batched ? 1 : 0) === engine[0];
  return fits ? null : 'dims-differ';
}

function checkRange(
  config: ModelConfig,
  engine: Engine,
  own: EngineTensor,
  dims: readonly number[],
  where: string,
  report: Report,
): void {
  const first = isBatched(config) ? 1 : 0;
  const isTaken = servedProfiles(config, engine).some((profile) =>
    dims.every((size, axis) => {
      const range = rangeOf(engine, profile, own, axis + first);
      return size === -1 || range === undefined || (size >= range.min && size <= range.max);
    }),
  );
  if (!isTaken)
    report(
      'dims-outside-profile',
      where,
      `"${own.name}": no profile that is served takes ${shapeText(dims)}.`,
    );
}

/** Batches and profiles of the engine beside what is served. */
export function compareBatches(config: ModelConfig, engine: Engine, report: Report): void {
  const groups = config.instance_group ?? [];
  for (const [at, { profile = [] }] of groups.entries()) {
    for (const each of profile) {
      if (!/^\d+$/.test(each) || engine.profiles[Number(each)] === undefined)
        report(
          'profile-unknown',
          `instance_group[${at}].profile`,
          `"${each}": ${engine.file} has the profiles 0 to ${engine.profiles.length - 1}.`,
        );
    }
  }
  if (engine.profiles.length > 1 && groups.every(({ profile = [] }) => profile.length === 0))
    report(
      'profiles-unserved',
      'instance_group',
      `${engine.file} has ${engine.profiles.length} profiles, and only profile 0 is served.`,
    );
  if (!isBatched(config) || engine.inputs.some(({ shape }) => typeof shape?.[0] === 'number')) return;
  const batches = servedProfiles(config, engine).map((profile) => batchesOf(engine, profile));
  const most = Math.max(...batches.map(({ max }) => max));
  const { max_batch_size = 0 } = config;
  if (batches.length > 0 && max_batch_size > most)
    report(
      'batch-above-profile',
      'max_batch_size',
      `${max_batch_size}, and the largest batch of ${engine.file} is ${most}.`,
    );
  for (const { where, sizes } of preferredSizes(config)) {
    for (const size of sizes) {
      if (size <= max_batch_size && batches.every(({ min, max }) => size < min || size > max))
        report('preferred-outside-profile', where, `No profile that is served takes a batch of ${size}.`);
    }
  }
}

export const preferredSizes = ({ dynamic_batching, sequence_batching }: ModelConfig) => [
  { where: 'dynamic_batching.preferred_batch_size', sizes: dynamic_batching?.preferred_batch_size ?? [] },
  {
    where: 'sequence_batching.oldest.preferred_batch_size',
    sizes: sequence_batching?.oldest?.preferred_batch_size ?? [],
  },
];
