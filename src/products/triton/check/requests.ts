import { join } from 'node:path';
import { LARGEST_DOCUMENT, readText, statIfThere } from '../../../base/files/files.js';
import { elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import { isTaken } from '../engine.js';
import { agree, type ConfigState, dtypeOf, fedByOrder, isBatched } from '../model-config.js';
import { ours } from './repository.js';
import { checkDims, compareTensor, type Engine, type Model, servedProfiles } from './tensors.js';

/** Why a raw file is not the data of a tensor of a batch of one; null where it is, or its size is open. */
function dataFault(path: string, type: string | undefined, dims: readonly number[]): string | null {
  const size = statIfThere(path)?.size;
  if (size === undefined) return `has no file ${path}`;
  const dtype = dtypeOf(type);
  if (dtype === undefined || dims.some((each) => each < 1)) return null;
  const bytes = packedBytes(dtype, elementCount(dims));
  return size === bytes ? null : `needs ${bytes} bytes, and ${path} has ${size}`;
}

/** Whether dims are complete and of a tensor that has these. */
const areOf = (dims: readonly number[], own: readonly number[]) =>
  dims.every((size) => size > 0) && agree(dims, own);

/** States by themselves: what they begin with, and that nothing else feeds them. */
export function checkStates(model: Model): void {
  const { config, report } = model;
  const { state: states = [], control_input: controls = [] } = config.sequence_batching ?? {};
  const fed = fedByOrder(
    states.map(({ input_name: input = '', output_name: output = '' }) => ({ input, output })),
  );
  // The first value of the enum is absent in what was read.
  const hasStart = controls.some(({ control = [] }) => control.some(({ kind }) => kind === undefined));
  for (const [at, state] of states.entries()) {
    const where = `sequence_batching.state[${at}]`;
    const {
      input_name: input = '',
      output_name: output = '',
      dims = [],
      initial_state: initial = [],
    } = state;
    checkDims(dims, `${where}.dims`, report);
    if (config.input?.some(({ name }) => name === input))
      report('state-also-input', `${where}.input_name`, input);
    if (config.output?.some(({ name }) => name === output))
      report('state-also-output', `${where}.output_name`, output);
    if (fed.get(input) !== output) report('state-order', where, input, fed.get(input));
    if (state.use_same_buffer_for_input_output === true) report('state-same-buffer', where, input);
    if (initial.length === 0 && !hasStart) report('state-uninitialized', where, input);
    const fault = initialFault(state, model);
    if (fault !== null) report('state-initial', `${where}.initial_state`, input, fault);
  }
  const instances = (config.instance_group ?? [{}]).reduce((sum, { count = 1 }) => sum + count, 0);
  if (states.length > 0 && instances === 1) report('state-instances', 'instance_group');
}

function initialFault(state: ConfigState, { path, states }: Model): string | null {
  const { data_type, dims = [], initial_state: [initial, second] = [] } = state;
  if (initial === undefined) return null;
  if (second !== undefined) return 'there are several';
  const shape = initial.dims ?? [];
  if (initial.data_type !== data_type || !areOf(shape, dims))
    return `it is ${initial.data_type} [${shape}], and the state ${data_type} [${dims}]`;
  if (initial.name === undefined) return 'it has no name';
  if (initial.data_file !== undefined)
    return dataFault(join(path, 'initial_state', initial.data_file), data_type, shape);
  const promised = states.find(({ input }) => input === state.input_name)?.initial ?? 0;
  if (initial.zero_data === undefined) return 'it has neither zero_data nor data_file';
  return promised === 0 ? null : `it is zero, and the contract begins with ${promised}`;
}

/** States beside the engine's tensors. */
export function compareStates(model: Model, engine: Engine): void {
  const states = model.config.sequence_batching?.state ?? [];
  for (const [at, { input_name = '', output_name = '', ...typed }] of states.entries()) {
    const where = `sequence_batching.state[${at}]`;
    compareTensor(model, engine, 'inputs', { ...typed, name: input_name }, where);
    compareTensor(model, engine, 'outputs', { ...typed, name: output_name }, where);
  }
}

/** Checks that states fed back by an engine or a contract are in an entry, or with the client where Triton cannot keep them. */
export function checkPairs(
  { config, report }: Model,
  of: Pick<Engine, 'file' | 'states' | 'inputs' | 'unstated'>,
): void {
  const where = 'sequence_batching.state';
  for (const { input, output } of of.unstated ?? [])
    if (config.input?.some(({ name }) => name === input))
      report('state-by-name', where, input, output, of.file);
  for (const { input, output } of of.states) {
    const entry = config.sequence_batching?.state?.find(({ input_name }) => input_name === input);
    const rank = of.inputs.find(({ name }) => name === input)?.shape?.length;
    const isSent = config.input?.some(({ name }) => name === input) && rank === 1 && isBatched(config);
    if (isSent) report('state-by-client', where, input, output);
    else if (entry === undefined) report('state-not-fed', where, input, output, of.file);
    else if (entry.output_name !== output)
      report('state-differs', where, input, entry.output_name, output, of.file);
  }
}

/** Warm-up requests: what they name, their sizes and data. */
export function checkWarmups({ config, path, report }: Model): void {
  const { state = [], control_input: controls = [] } = config.sequence_batching ?? {};
  const others = [...state.map(({ input_name }) => input_name), ...controls.map(({ name }) => name)];
  const { input: inputs, max_batch_size = 0 } = config;
  for (const [at, { batch_size = 0, inputs: given = {} }] of (config.model_warmup ?? []).entries()) {
    const where = `model_warmup[${at}]`;
    if (state.length > 0) report('warmup-with-states', where);
    const most = Math.max(1, max_batch_size);
    if (batch_size < 1 || batch_size > most) report('warmup-batch', `${where}.batch_size`, batch_size, most);
    for (const { name = '', optional } of inputs ?? []) {
      if (given[name] === undefined && optional !== true)
        report('warmup-input-missing', `${where}.inputs`, name);
    }
    for (const [name, data] of Object.entries(given)) {
      const { data_type, dims = [], input_data_file: file } = data;
      const of = `${where}.inputs["${name}"]`;
      const input = inputs?.find((each) => each.name === name);
      if (inputs !== undefined && input === undefined && !others.includes(name))
        report('warmup-input-unknown', of, name);
      const { data_type: type = data_type, dims: own = dims } = input ?? {};
      if (type !== data_type || !areOf(dims, own))
        report('warmup-dims', of, name, `is ${data_type} [${dims}], and the input ${type} [${own}]`);
      const none = data.zero_data === undefined && data.random_data === undefined ? 'has no data' : null;
      const fault = file === undefined ? none : dataFault(join(path, 'warmup', file), data_type, dims);
      if (fault !== null) report('warmup-data', of, name, fault);
    }
  }
}

/** One profile must take all inputs of a warm-up request at once; a reshaped one has other axes there. */
export function compareWarmups({ config, report }: Model, engine: Engine): void {
  const reshaped = (config.input ?? []).flatMap(({ name, reshape }) => (reshape === undefined ? [] : [name]));
  const compared = engine.inputs.filter(({ name }) => !reshaped.includes(name));
  for (const [at, { batch_size = 0, inputs = {} }] of (config.model_warmup ?? []).entries()) {
    const isServed = servedProfiles(config, engine).some((profile) =>
      compared.every((input) => {
        const { dims } = inputs[input.name] ?? {};
        return (
          dims === undefined || isTaken(profile, input, isBatched(config) ? [batch_size, ...dims] : dims)
        );
      }),
    );
    const fault = `is outside of every profile of ${engine.file} that is served`;
    if (!isServed) report('warmup-dims', `model_warmup[${at}]`, Object.keys(inputs), fault);
  }
}

/** Files of class names. */
export function checkLabels({ config, path, report }: Model): void {
  for (const [at, { label_filename: file = '', dims = [] }] of (config.output ?? []).entries()) {
    if (file === '') continue;
    const where = `output[${at}].label_filename`;
    try {
      const lines = readText(join(path, file), LARGEST_DOCUMENT, 'TF_FILE_UNREADABLE').trimEnd().split('\n');
      const classes = dims.at(-1) ?? -1;
      if (classes > 0 && classes !== lines.length) report('label-count', where, file, lines.length, classes);
    } catch (cause) {
      report('label-file', where, ours(cause).message);
    }
  }
}
