import type { ModelConfig } from '../model-config.js';
import { type Model, preferredSizes } from './tensors.js';

type BatchIo = NonNullable<ModelConfig['batch_input']>[number];
type ControlInput = NonNullable<NonNullable<ModelConfig['sequence_batching']>['control_input']>[number];

/** The allocation strategies of the TensorRT back end, as a parameter. */
const STRATEGY = 'execution_context_allocation_strategy';
const strategies = ['STATIC', 'ON_PROFILE_CHANGE'];

const CORRELATION = 'CONTROL_SEQUENCE_CORRID';
const correlationTypes = ['TYPE_UINT64', 'TYPE_INT64', 'TYPE_UINT32', 'TYPE_INT32', 'TYPE_STRING'];

/** Rules of core's `ValidateModelConfig` and of the TensorRT back end that concern no engine. In what was read the first value of an enum is absent, and so is a zero. */
export function checkCoreRules({ config, report }: Model): void {
  const { max_batch_size: most = 0, sequence_batching: sequences, input: inputs = [] } = config;
  if (most < 0) report('batch-negative', 'max_batch_size', most);
  if (config.dynamic_batching !== undefined && most === 0)
    report('batching-without-batch', 'dynamic_batching');
  for (const [where, size] of preferredSizes(config))
    if (size < 1 || size > most) report('preferred-above-max', where, size, most);
  for (const [at, { format, dims = [] }] of inputs.entries())
    if (format !== undefined && dims.length !== 3) report('format-dims', `input[${at}].format`, format, dims);
  if (config.response_cache?.enable === true) {
    if (sequences !== undefined) report('cache-unsupported', 'response_cache', 'sequence_batching');
    else if (config.model_transaction_policy?.decoupled === true)
      report('cache-unsupported', 'response_cache', 'a decoupled transaction policy');
  }
  const { minimum_slot_utilization: slots = 0 } = sequences?.direct ?? {};
  if (slots < 0 || slots > 1)
    report('slot-utilization', 'sequence_batching.direct.minimum_slot_utilization', slots);
  for (const fault of queueFaults(config.dynamic_batching)) report('queue-policy', 'dynamic_batching', fault);
  for (const field of ['batch_input', 'batch_output'] as const)
    for (const [at, each] of (config[field] ?? []).entries())
      for (const fault of batchIoFaults(each, config, field)) report('batch-io', `${field}[${at}]`, fault);
  const controls = sequences?.control_input ?? [];
  for (const [at, control] of controls.entries())
    for (const fault of controlFaults(control, controls.slice(0, at)))
      report('control-input', `sequence_batching.control_input[${at}]`, fault);
  for (const [at, { kind = '', gpus = [] }] of (config.instance_group ?? []).entries())
    if (gpus.length > 0 && ['KIND_MODEL', 'KIND_CPU'].includes(kind))
      report('instance-gpus', `instance_group[${at}].gpus`, kind);
  const { graphs = false, graph_spec: specs = [] } = config.optimization?.cuda ?? {};
  for (const [at, { batch_size: size = 0 }] of specs.entries())
    if (size > most || (most > 0 && size < 1))
      report('graph-batch', `optimization.cuda.graph_spec[${at}].batch_size`, size, most);
  if (graphs && most === 0) report('graphs-unbatched', 'optimization.cuda');
  const strategy = config.parameters?.[STRATEGY]?.string_value;
  if (strategy !== undefined && !strategies.includes(strategy))
    report('allocation-strategy', `parameters["${STRATEGY}"]`, strategy, strategies.join(', '));
}

function* queueFaults(batcher: ModelConfig['dynamic_batching'] = {}): Iterable<string> {
  const { priority_levels: levels = 0, default_priority_level: usual = 0, preserve_ordering } = batcher;
  const { priority_queue_policy: byLevel = {}, default_queue_policy: policy = {} } = batcher;
  const named = { default_priority_level: [usual], priority_queue_policy: Object.keys(byLevel) };
  for (const [field, values] of Object.entries(named))
    for (const level of Number(levels) > 0 ? values : [])
      if (Number(level) < 1 || Number(level) > Number(levels))
        yield `${field} has the level ${level}, and the levels are 1 to ${levels}`;
  if (preserve_ordering !== true) return;
  if (Number(levels) > 1) yield 'preserve_ordering allows one priority level';
  for (const { timeout_action, default_timeout_microseconds: timeout = 0 } of [
    policy,
    ...Object.values(byLevel),
  ])
    if (timeout_action === 'DELAY' && Number(timeout) > 0)
      yield 'preserve_ordering does not allow DELAY as timeout_action';
}

function* batchIoFaults(
  { data_type: type = '', source_input: sources = [], target_name: targets = [] }: BatchIo,
  { input: inputs = [], output: outputs = [] }: ModelConfig,
  field: 'batch_input' | 'batch_output',
): Iterable<string> {
  if (sources.length !== 1) yield `it has ${sources.length} entries of source_input, and needs one`;
  for (const source of sources)
    if (inputs.every(({ name }) => name !== source)) yield `there is no input "${source}"`;
  if (field === 'batch_input' && !['TYPE_INT32', 'TYPE_FP32'].includes(type))
    yield `its type is "${type}", and must be TYPE_INT32 or TYPE_FP32`;
  for (const target of field === 'batch_output' ? targets : [])
    if (outputs.every(({ name }) => name !== target)) yield `there is no output "${target}"`;
}

function* controlFaults(
  { name = '', control = [] }: ControlInput,
  before: readonly ControlInput[],
): Iterable<string> {
  if (name === '') yield 'it has no name';
  for (const each of control) {
    const { kind = 'CONTROL_SEQUENCE_START', data_type: type = '' } = each;
    const { int32_false_true: int32, fp32_false_true: fp32, bool_false_true: bool } = each;
    const values = [int32, fp32, bool].filter((pair = []) => pair.length > 0);
    if (before.some((other) => other.control?.some((one) => one.kind === each.kind)))
      yield `another one is ${kind} too`;
    if (kind !== CORRELATION && (values.length !== 1 || values[0]!.length !== 2))
      yield `${kind} needs one of int32_false_true, fp32_false_true and bool_false_true, with two values`;
    if (kind === CORRELATION && values.length > 0) yield `${kind} takes no values`;
    if (kind === CORRELATION && !correlationTypes.includes(type))
      yield `${kind} is "${type}", and must be one of ${correlationTypes.join(', ')}`;
  }
}
