import type { StoredEngine } from '../../../engines/store/store.js';
import { elementCount } from '../../../formats/tensor/dtype.js';
import { type ConfigTensor, dataTypes, type ModelConfig, printModelConfig } from '../model-config.js';
import type { EngineTensor, ServedModel } from './served-model.js';

type Sequence = NonNullable<ModelConfig['sequence_batching']>;

interface ConfigParts {
  readonly warmUp: ModelConfig['model_warmup'];
  readonly states: Sequence['state'];
  readonly planFile: (engine: StoredEngine) => string;
}

/** A stream that pauses this long is over: its slot and its states go to another. */
const IDLE_MICROSECONDS = 5_000_000;
/** Sequences that an instance keeps at a time, at least; each costs its states twice. */
const CANDIDATES = 64;

/** The text of config.pbtxt. */
export function modelConfig(model: ServedModel, { warmUp, states, planFile }: ConfigParts): string {
  const { name, version, isPinned, plans, maxBatch, preferred, profiles, delayMicroseconds } = model;
  const batcher = {
    ...(preferred.length === 0 ? {} : { preferred_batch_size: preferred }),
    ...(delayMicroseconds === null ? {} : { max_queue_delay_microseconds: delayMicroseconds }),
  };
  const count = profiles[0]!.length;
  const isStateful = model.states.length > 0;
  const config: ModelConfig = {
    name,
    platform: 'tensorrt_plan',
    max_batch_size: maxBatch,
    input: model.inputs.map((tensor) => ({ ...configTensor(model, tensor), ...shapeTensor(model, tensor) })),
    output: model.outputs.map((tensor) => labelled(model, configTensor(model, tensor))),
    instance_group: [
      {
        kind: 'KIND_GPU',
        count: model.instances,
        ...(count > 1 ? { profile: Array.from({ length: count }, (_, index) => String(index)) } : {}),
      },
    ],
    // No default_model_filename beside it: a GPU without an entry would load the plan of another.
    cc_model_filenames: Object.fromEntries(
      plans.map(({ capability, engine }) => [capability, planFile(engine)]),
    ),
    ...(isStateful
      ? {
          sequence_batching: {
            max_sequence_idle_microseconds: IDLE_MICROSECONDS,
            oldest: { max_candidate_sequences: Math.max(CANDIDATES, maxBatch), ...batcher },
            state: states ?? [],
          },
        }
      : maxBatch > 1
        ? { dynamic_batching: batcher }
        : {}),
    ...(isPinned ? { version_policy: { specific: { versions: [version] } } } : {}),
    ...(isStateful ? {} : { model_warmup: warmUp ?? [] }),
    parameters: Object.fromEntries(
      plans.map(({ capability, engine }) => [
        `trtforge.identity.${capability}`,
        { string_value: engine.identity },
      ]),
    ),
  };
  const comments = [
    'Written by trtforge triton export; docs/triton.md explains every field.',
    ...(isStateful
      ? [
          'With states an instance writes them back before its next execution: more instances fill the GPU.',
          'No model_warmup: a warm-up request belongs to no sequence, so the back end cannot write its states, and the load would fail.',
        ]
      : []),
  ];
  return `${comments.map((line) => `# ${line}\n`).join('')}${printModelConfig(config)}\n`;
}

/** The dimensions that a configuration has: without the batch, -1 where they are open. */
export const dimsOf = ({ maxBatch }: ServedModel, { shape }: EngineTensor): readonly number[] =>
  shape!.slice(maxBatch > 0 ? 1 : 0).map((size) => size ?? -1);

function configTensor(model: ServedModel, tensor: EngineTensor): ConfigTensor {
  const dims = dimsOf(model, tensor);
  const named = { name: tensor.name, data_type: dataTypes[tensor.dtype]! };
  // Dimensions must not be empty: one element more is taken away again.
  return dims.length === 0 ? { ...named, dims: [1], reshape: { shape: [] } } : { ...named, dims };
}

const shapeTensor = ({ profiles }: ServedModel, { name }: EngineTensor): Partial<ConfigTensor> =>
  profiles[0]?.[0]?.[name]?.values ? { is_shape_tensor: true } : {};

/** Triton counts classes along the whole output of a request. */
const labelled = ({ labels }: ServedModel, tensor: ConfigTensor): ConfigTensor =>
  labels.length > 0 && elementCount(tensor.dims ?? []) === labels.length
    ? { ...tensor, label_filename: 'labels.txt' }
    : tensor;
