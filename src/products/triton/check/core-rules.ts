import type { ModelConfig } from '../model-config.js';
import type { Model } from './tensors.js';

type Batcher = NonNullable<ModelConfig['dynamic_batching']>;
type BatchIo = NonNullable<ModelConfig['batch_input']>[number];
type ControlInput = NonNullable<NonNullable<ModelConfig['sequence_batching']>['control_input']>[number];

/** The allocation strategies of the TensorRT back end, as a parameter. */
const STRATEGY = 'execution_context_allocation_strategy';
const strategies = ['STATIC', 'ON_PROFILE_CHANGE'];

const CORRELATION = 'CONTROL_SEQUENCE_CORRID';
const correlationTypes = ['TYPE_UINT64', 'TYPE_INT64', 'TYPE_UINT32', 'TYPE_INT32', 'TYPE_STRING'];

/** Rules of core's `ValidateModelConfig` and of the TensorRT back end that concern no engine. In what was read the first value of an enum is absent, and so is a zero. */
export function checkCoreRules({ config, report }: Model): void {
  const { max_batch_size: most = 0, sequence_batching: sequences } = config;
  for (const [at, { format, dims = [] }] of (config.input ?? []).entries())
    if (format !== undefined && dims.length !== 3) report('format-dims', `input[${at}].format`, format, dims);
  if (config.response_cache?.enable === true) {
    const other =
      sequences !== undefined
        ? 'sequence_batching'
        : config.model_transaction_policy?.decoupled === true
          ? 'a decoupled transaction policy'
          : null;
    if (other !== null) report('cache-unsupported', 'response_cache', other);
  }
  const { minimum_slot_utilization: slots = 0 } = sequences?.direct ?? {};
  if (slots < 0 || slots > 1)
    report('slot-utilization', 'sequence_batching.direct.minimum_slot_utilization', slots);
  if (config.dynamic_batching !== undefined)
    for (const fault of queueFaults(config.dynamic_batching))
      report('queue-policy', 'dynamic_batching', fault);
  for (const [field, tensors, targets] of [
    ['batch_input', config.batch_input, undefined],
    ['batch_output', config.batch_output, config.output],
  ] as const)
    for (const [at, each] of (tensors ?? []).entries())
      for (const fault of batchIoFaults(each, config.input, targets))
        report('batch-io', `${field}[${at}]`, fault);
  for (const [at, { data_type: type = '' }] of (config.batch_input ?? []).entries())
    if (!['TYPE_INT32', 'TYPE_FP32'].includes(type))
      report(
        'batch-io',
        `batch_input[${at}].data_type`,
        `its type is "${type}", and must be TYPE_INT32 or TYPE_FP32`,
      );
  const controls = sequences?.control_input ?? [];
  for (const [at, control] of controls.entries())
    for (const fault of controlFaults(control, controls.slice(0, at)))
      report('control-input', `sequence_batching.control_input[${at}]`, fault);
  for (const [at, { kind = 'KIND_AUTO', gpus = [] }] of (config.instance_group ?? []).entries())
    if (gpus.length > 0 && (kind === 'KIND_MODEL' || kind === 'KIND_CPU'))
      report('instance-gpus', `instance_group[${at}].gpus`, kind);
  const { graphs = false, graph_spec: specs = [] } = config.optimization?.cuda ?? {};
  for (const [at, { batch_size: size = 0 }] of specs.entries())
    if (most > 0 ? size < 1 || size > most : size !== 0)
      report('graph-batch', `optimization.cuda.graph_spec[${at}].batch_size`, size, most);
  if (graphs && most === 0) report('graphs-unbatched', 'optimization.cuda');
  const strategy = config.parameters?.[STRATEGY]?.string_value;
  if (strategy !== undefined && !strategies.includes(strategy))
    report('allocation-strategy', `parameters["${STRATEGY}"]`, strategy, strategies.join(', '));
}

function queueFaults(batcher: Batcher): readonly string[] {
  const { priority_levels: levels = 0, default_priority_level: usual = 0, preserve_ordering } = batcher;
  const { priority_queue_policy: byLevel = {}, default_queue_policy: policy = {} } = batcher;
  const isLevel = (level: number) => level >= 1 && level <= levels;
  const outside = Object.keys(byLevel).filter((level) => !isLevel(Number(level)));
  const delays = [policy, ...Object.values(byLevel)].filter(
    ({ timeout_action: action, default_timeout_microseconds: timeout = 0 }) =>
      action === 'DELAY' && Number(timeout) > 0,
  );
  return [
    ...(Number(levels) > 0 && !isLevel(Number(usual))
      ? [`default_priority_level is ${usual}, and the levels are 1 to ${levels}`]
      : []),
    ...(Number(levels) > 0 ? outside : []).map(
      (level) => `priority_queue_policy has the level ${level}, and the levels are 1 to ${levels}`,
    ),
    ...(preserve_ordering === true && Number(levels) > 1
      ? ['preserve_ordering allows one priority level']
      : []),
    ...(preserve_ordering === true && delays.length > 0
      ? ['preserve_ordering does not allow DELAY as timeout_action']
      : []),
  ];
}

function batchIoFaults(
  { source_input: sources = [], target_name: targets = [] }: BatchIo,
  inputs: ModelConfig['input'] = [],
  outputs: ModelConfig['output'],
): readonly string[] {
  const lacks = (tensors: typeof inputs, name: string) => tensors.every((tensor) => tensor.name !== name);
  return [
    ...(sources.length === 1 ? [] : [`it has ${sources.length} entries of source_input, and needs one`]),
    ...sources.filter((name) => lacks(inputs, name)).map((name) => `there is no input "${name}"`),
    ...(outputs === undefined ? [] : targets.filter((name) => lacks(outputs, name))).map(
      (name) => `there is no output "${name}"`,
    ),
  ];
}

function controlFaults(
  { name = '', control = [] }: ControlInput,
  before: readonly ControlInput[],
): readonly string[] {
  return [
    ...(name === '' ? ['it has no name'] : []),
    ...control.flatMap((each) => {
      const { kind = 'CONTROL_SEQUENCE_START', data_type: type = '' } = each;
      const isThere = before.some((other) => other.control?.some((one) => one.kind === each.kind));
      const values = [each.int32_false_true, each.fp32_false_true, each.bool_false_true].filter(
        (pair = []) => pair.length > 0,
      );
      const needsPair = kind !== CORRELATION;
      return [
        ...(isThere ? [`another one is ${kind} too`] : []),
        ...(needsPair && (values.length !== 1 || values[0]!.length !== 2)
          ? [`${kind} needs one of int32_false_true, fp32_false_true and bool_false_true, with two values`]
          : []),
        ...(!needsPair && values.length > 0 ? [`${kind} takes no values`] : []),
        ...(!needsPair && !correlationTypes.includes(type)
          ? [`${kind} is ${type || 'without data_type'}, and must be ${correlationTypes.join(', ')}`]
          : []),
      ];
    }),
  ];
}
