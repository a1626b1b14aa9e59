import { join } from 'node:path';
import { readText, statIfThere } from '../../../base/files/files.js';
import { TrtforgeError } from '../../../errors.js';
import { type Dtype, packedBytes } from '../../../formats/tensor/dtype.js';
import { type ConfigTensor, dataTypes, type ModelConfig } from '../model-config.js';
import { type Engine, rangeOf, servedProfiles } from './engine.js';
import type { Report } from './findings.js';
import type { ModelFolder, StatePair } from './repository.js';
import { checkDims, compareTensor, isBatched } from './tensors.js';

/** Bytes of a tensor of a batch of one; undefined for an open size and for strings. */
function bytesOf(type: string | undefined, dims: readonly number[]): number | undefined {
  const dtype = Object.keys(dataTypes).find((each) => dataTypes[each] === type) as Dtype | undefined;
  const isKnown = dtype !== undefined && dims.every((size) => size > 0);
  return isKnown
    ? packedBytes(
        dtype,
        dims.reduce((a, b) => a * b, 1),
      )
    : undefined;
}

/** Why a raw file is not the data of a tensor; null where it is. */
function dataFault(path: string, bytes: number | undefined): string | null {
  const stats = statIfThere(path);
  if (stats?.isFile() !== true) return 'is not there';
  return bytes === undefined || stats.size === bytes
    ? null
    : `has ${stats.size} bytes, and ${bytes} are needed`;
}

type State = NonNullable<NonNullable<ModelConfig['sequence_batching']>['state']>[number];

/** States by themselves: what they begin with, and that nothing else feeds them. */
export function checkStates(config: ModelConfig, { path, states }: ModelFolder, report: Report): void {
  const sequences = config.sequence_batching;
  const hasStart = (sequences?.control_input ?? []).some(({ control = [] }) =>
    control.some(({ kind = 'CONTROL_SEQUENCE_START' }) => kind === 'CONTROL_SEQUENCE_START'),
  );
  for (const [at, state] of (sequences?.state ?? []).entries()) {
    const where = `sequence_batching.state[${at}]`;
    const { input_name: input, output_name: output, dims = [], initial_state: initial = [] } = state;
    checkDims(dims, `${where}.dims`, report);
    if ((config.input ?? []).some(({ name }) => name === input))
      report(
        'state-also-input',
        `${where}.input_name`,
        `"${input}" is an input too, which clients would have to send.`,
      );
    if ((config.output ?? []).some(({ name }) => name === output))
      report(
        'state-also-output',
        `${where}.output_name`,
        `"${output}" is an output too: each response copies the state.`,
      );
    if (state.use_same_buffer_for_input_output === true)
      report('state-same-buffer', where, `"${input}" and "${output}" share a buffer.`);
    if (initial.length === 0 && !hasStart)
      report(
        'state-uninitialized',
        where,
        `Nothing states what "${input}" is in the first request of a sequence, and no control input tells the model.`,
      );
    const fault = initialFault(state, path, states.find((pair) => pair.input === input)?.initial);
    if (fault !== null) report('state-initial', `${where}.initial_state`, `"${input}": ${fault}.`);
  }
  const instances = (config.instance_group ?? [{}]).reduce((sum, { count = 1 }) => sum + count, 0);
  if ((sequences?.state ?? []).length > 0 && instances === 1)
    report('state-instances', 'instance_group', 'The model has implicit state and one instance.');
}

function initialFault(
  { data_type, dims = [], initial_state: [initial, second] = [] }: State,
  folder: string,
  promised: number | undefined,
): string | null {
  if (initial === undefined) return null;
  if (second !== undefined) return 'there are several';
  const shape = initial.dims ?? [];
  if (initial.data_type !== data_type)
    return `its type is ${initial.data_type ?? 'missing'}, that of the state ${data_type}`;
  if (
    shape.length !== dims.length ||
    shape.some((size, axis) => size < 1 || (dims[axis] !== -1 && dims[axis] !== size))
  )
    return `its dims are [${shape.join()}], those of the state [${dims.join()}]`;
  if ((initial.name ?? '') === '') return 'it has no name';
  if (initial.data_file !== undefined) {
    const fault = dataFault(join(folder, 'initial_state', initial.data_file), bytesOf(data_type, shape));
    return fault === null ? null : `initial_state/${initial.data_file} ${fault}`;
  }
  if (initial.zero_data === undefined) return 'it has neither zero_data nor data_file';
  return promised === undefined || promised === 0
    ? null
    : `it is zero, and the contract begins with ${promised}`;
}

/** States beside the engine's. */
export function compareStates(config: ModelConfig, engine: Engine, report: Report): void {
  const states = config.sequence_batching?.state ?? [];
  for (const [at, { input_name = '', output_name = '', data_type, dims }] of states.entries()) {
    const where = `sequence_batching.state[${at}]`;
    const tensor: ConfigTensor = { ...(data_type && { data_type }), ...(dims && { dims }) };
    for (const [side, name] of [
      ['inputs', input_name],
      ['outputs', output_name],
    ] as const) {
      const own = engine[side].find((each) => each.name === name);
      if (own === undefined)
        report('tensor-unknown', where, `${engine.file} has no ${side.slice(0, -1)} "${name}".`);
      else compareTensor(config, engine, own, tensor, where, side === 'inputs', report);
    }
  }
}

/** Outputs that become inputs of the next step: an entry must do that. `of` promises them: an engine or a contract. */
export function checkPairs(
  config: ModelConfig,
  pairs: readonly StatePair[],
  of: string,
  report: Report,
): void {
  const states = config.sequence_batching?.state ?? [];
  for (const { input, output } of pairs) {
    const entry = states.find(({ input_name }) => input_name === input);
    if (entry === undefined)
      report(
        'state-not-fed',
        'sequence_batching.state',
        `"${output}" of ${of} becomes "${input}" of the next step, and no entry does that.`,
      );
    else if (entry.output_name !== output)
      report(
        'state-differs',
        'sequence_batching.state',
        `"${input}" is fed from "${entry.output_name}", and ${of} gives it as "${output}".`,
      );
  }
}

/** Warm-up requests: what they name, their sizes and data. */
export function checkWarmups(config: ModelConfig, path: string, engine: Engine | null, report: Report): void {
  const states = new Set((config.sequence_batching?.state ?? []).map(({ input_name }) => input_name));
  const fromEngine = (engine?.inputs ?? [])
    .filter(({ name }) => !states.has(name))
    .map(({ name }) => ({ name }));
  const inputs: readonly ConfigTensor[] = config.input ?? fromEngine;
  const others = new Set([
    ...states,
    ...(config.sequence_batching?.control_input ?? []).map(({ name }) => name),
  ]);
  for (const [at, { batch_size = 0, inputs: given = {} }] of (config.model_warmup ?? []).entries()) {
    const where = `model_warmup[${at}]`;
    const most = Math.max(1, config.max_batch_size ?? 0);
    if (batch_size < 1 || batch_size > most)
      report(
        'warmup-batch',
        `${where}.batch_size`,
        batch_size < 1
          ? 'Triton skips a warm-up of batch 0.'
          : `${batch_size} is above the largest batch, ${most}.`,
      );
    for (const { name = '', optional } of inputs) {
      if (given[name] === undefined && optional !== true)
        report('warmup-input-missing', `${where}.inputs`, `Input "${name}" is not there.`);
    }
    for (const [name, { data_type, dims = [], zero_data, random_data, input_data_file }] of Object.entries(
      given,
    )) {
      const of = `${where}.inputs["${name}"]`;
      const input = inputs.find((each) => each.name === name);
      if (input === undefined && !others.has(name) && inputs.length > 0)
        report('warmup-input-unknown', of, `The model has no input "${name}".`);
      const fault = dims.some((size) => size < 1)
        ? 'has an open size'
        : input && tensorFault(input, data_type, dims);
      if (fault) report('warmup-dims', of, `"${name}" [${dims.join()}] ${fault}.`);
      const data =
        input_data_file === undefined
          ? zero_data === undefined && random_data === undefined
            ? 'has no data'
            : null
          : dataFault(join(path, 'warmup', input_data_file), bytesOf(data_type, dims));
      if (data !== null)
        report(
          'warmup-data',
          of,
          `${input_data_file === undefined ? `"${name}"` : `warmup/${input_data_file}`} ${data}.`,
        );
    }
    if (engine !== null) compareWarmup(config, engine, { batch: batch_size, given, inputs }, where, report);
  }
}

function tensorFault(input: ConfigTensor, type: string | undefined, dims: readonly number[]): string | null {
  if (input.data_type !== undefined && type !== input.data_type)
    return `is ${type ?? 'of no type'}, and the input ${input.data_type}`;
  const own = input.dims;
  const fits =
    own === undefined ||
    (own.length === dims.length && own.every((size, axis) => size === -1 || size === dims[axis]));
  return fits ? null : `and the input is [${own.join()}]`;
}

/** One profile must take all inputs of a request at once. */
function compareWarmup(
  config: ModelConfig,
  engine: Engine,
  request: {
    readonly batch: number;
    readonly given: Readonly<Record<string, { readonly dims?: readonly number[] }>>;
    readonly inputs: readonly ConfigTensor[];
  },
  where: string,
  report: Report,
): void {
  const { batch, given, inputs } = request;
  const reshaped = new Set(inputs.filter(({ reshape }) => reshape !== undefined).map(({ name }) => name));
  const tensors = engine.inputs.filter(({ name }) => given[name] !== undefined && !reshaped.has(name));
  const isTaken = servedProfiles(config, engine).some((profile) =>
    tensors.every((tensor) => {
      if (engine.profiles[profile]?.[tensor.name]?.values === true) return true;
      const { dims = [] } = given[tensor.name]!;
      return (isBatched(config) ? [batch, ...dims] : dims).every((size, axis) => {
        const range = rangeOf(engine, profile, tensor, axis);
        return range === undefined || (size >= range.min && size <= range.max);
      });
    }),
  );
  if (!isTaken)
    report('warmup-dims', where, `No profile of ${engine.file} that is served takes this request.`);
}

/** Files of class names. */
export function checkLabels(config: ModelConfig, path: string, report: Report): void {
  for (const [at, { label_filename: file = '', dims = [] }] of (config.output ?? []).entries()) {
    if (file === '') continue;
    const where = `output[${at}].label_filename`;
    try {
      const lines = readText(join(path, file), 64 << 20, 'TF_FILE_UNREADABLE').split(/\r?\n/);
      const count = lines.at(-1) === '' ? lines.length - 1 : lines.length;
      const classes = dims.at(-1) ?? -1;
      if (classes > 0 && classes !== count)
        report('label-count', where, `${file} has ${count} labels, and the last axis ${classes}.`);
    } catch (cause) {
      if (!(cause instanceof TrtforgeError)) throw cause;
      report('label-file', where, cause.message);
    }
  }
}
