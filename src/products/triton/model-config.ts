import { readText } from '../../base/files/files.js';
import { parseProtobufText, printProtobufText } from '../../formats/serving/protobuf-text.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { type EngineTensor, openShape } from './engine.js';

/** The fields of a config.pbtxt that trtforge writes and judges, by the file's own names; the file may have more, and any may be absent. */
export interface ModelConfig {
  readonly name?: string;
  readonly platform?: string;
  readonly backend?: string;
  readonly default_model_filename?: string;
  readonly cc_model_filenames?: Readonly<Record<string, string>>;
  readonly max_batch_size?: number;
  readonly version_policy?: {
    readonly latest?: { readonly num_versions?: number };
    readonly all?: object;
    readonly specific?: { readonly versions?: readonly number[] };
  };
  readonly input?: readonly ConfigTensor[];
  readonly output?: readonly ConfigTensor[];
  readonly batch_input?: readonly BatchIo[];
  readonly batch_output?: readonly BatchIo[];
  readonly instance_group?: readonly {
    readonly kind?: string;
    readonly count?: number;
    readonly gpus?: readonly number[];
    readonly profile?: readonly string[];
  }[];
  readonly dynamic_batching?: Batcher;
  readonly sequence_batching?: {
    readonly max_sequence_idle_microseconds?: number;
    readonly direct?: { readonly minimum_slot_utilization?: number };
    readonly oldest?: Batcher & { readonly max_candidate_sequences?: number };
    readonly control_input?: readonly {
      readonly name?: string;
      readonly control?: readonly {
        readonly kind?: string;
        readonly data_type?: string;
        readonly int32_false_true?: readonly number[];
        readonly fp32_false_true?: readonly number[];
        readonly bool_false_true?: readonly boolean[];
      }[];
    }[];
    readonly state?: readonly ConfigState[];
  };
  readonly ensemble_scheduling?: {
    readonly step?: readonly {
      readonly model_name?: string;
      readonly model_version?: number;
      readonly input_map?: Readonly<Record<string, string>>;
      readonly output_map?: Readonly<Record<string, string>>;
    }[];
  };
  readonly optimization?: {
    readonly cuda?: {
      readonly graphs?: boolean;
      readonly graph_spec?: readonly { readonly batch_size?: number }[];
    };
  };
  readonly response_cache?: { readonly enable?: boolean };
  readonly model_transaction_policy?: { readonly decoupled?: boolean };
  readonly model_warmup?: readonly {
    readonly name?: string;
    readonly batch_size?: number;
    readonly count?: number;
    readonly inputs?: Readonly<Record<string, WarmUpInput>>;
  }[];
  readonly parameters?: Readonly<Record<string, { readonly string_value?: string }>>;
}

/** A tensor that back ends make of a whole batch. */
interface BatchIo {
  readonly data_type?: string;
  readonly source_input?: readonly string[];
  readonly target_name?: readonly string[];
}

interface Typed {
  readonly data_type?: string;
  /** Without the first axis where `max_batch_size` is above 0; -1 is open. */
  readonly dims?: readonly number[];
}

export interface ConfigTensor extends Typed {
  readonly name?: string;
  readonly format?: string;
  readonly reshape?: { readonly shape?: readonly number[] };
  readonly is_shape_tensor?: boolean;
  readonly allow_ragged_batch?: boolean;
  readonly optional?: boolean;
  readonly label_filename?: string;
}

export interface ConfigState extends Typed {
  readonly input_name?: string;
  readonly output_name?: string;
  readonly initial_state?: readonly (Typed & {
    readonly name?: string;
    readonly zero_data?: boolean;
    readonly data_file?: string;
  })[];
  readonly use_same_buffer_for_input_output?: boolean;
}

/** The output that is fed into each input: core goes through both side by side, each sorted by name (`SequenceStates::OutputState`), whatever the configuration pairs. */
export function fedByOrder(
  pairs: readonly { readonly input: string; readonly output: string }[],
): ReadonlyMap<string, string> {
  const outputs = pairs.map(({ output }) => output).toSorted();
  const inputs = pairs.map(({ input }) => input).toSorted();
  return new Map(inputs.map((input, at) => [input, outputs[at]!]));
}

interface WarmUpInput extends Typed {
  readonly zero_data?: boolean;
  readonly random_data?: boolean;
  readonly input_data_file?: string;
}

interface Batcher {
  readonly preferred_batch_size?: readonly number[];
  readonly max_queue_delay_microseconds?: number;
  readonly preserve_ordering?: boolean;
  readonly priority_levels?: number;
  readonly default_priority_level?: number;
  readonly default_queue_policy?: QueuePolicy;
  readonly priority_queue_policy?: Readonly<Record<string, QueuePolicy>>;
}

interface QueuePolicy {
  readonly timeout_action?: string;
  readonly default_timeout_microseconds?: number;
}

/** Real files have some hundred lines. */
const LARGEST_CONFIG = 4 << 20;

/** Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export const configText = (path: string): string => readText(path, LARGEST_CONFIG, 'TF_SERVING_CONFIG');

/** Throws as `configText`, and TF_SERVING_CONFIG. */
export const readModelConfig = (path: string, text: string = configText(path)): ModelConfig =>
  parseProtobufText('inference.ModelConfig', text, path);

export const printModelConfig = (config: ModelConfig): string =>
  printProtobufText('inference.ModelConfig', { ...config });

/** Triton's name of a type of numpy; undefined for one that its TensorRT back end does not carry. */
export const dataTypes: Readonly<Record<string, string>> = {
  bool: 'TYPE_BOOL',
  uint8: 'TYPE_UINT8',
  int8: 'TYPE_INT8',
  int32: 'TYPE_INT32',
  int64: 'TYPE_INT64',
  float16: 'TYPE_FP16',
  bfloat16: 'TYPE_BF16',
  float32: 'TYPE_FP32',
};

const dtypes = new Map(Object.entries(dataTypes).map(([dtype, type]) => [type, dtype as Dtype]));

/** numpy's name of a type of config.pbtxt; undefined for one that no engine has. */
export const dtypeOf = (type = ''): Dtype | undefined => dtypes.get(type);

/** The back end of each platform, the older way to name a back end. */
export const platforms: ReadonlyMap<string, string> = new Map([
  ['tensorrt_plan', 'tensorrt'],
  ['tensorflow_graphdef', 'tensorflow'],
  ['tensorflow_savedmodel', 'tensorflow'],
  ['onnxruntime_onnx', 'onnxruntime'],
  ['pytorch_libtorch', 'pytorch'],
  ['ensemble', 'ensemble'],
]);

/** The back end that a configuration states; empty where it leaves that to the names of files. */
export const backendOf = ({ platform = '', backend = '', ensemble_scheduling }: ModelConfig): string =>
  ensemble_scheduling === undefined ? backend || (platforms.get(platform) ?? platform) : 'ensemble';

/** Whether requests have a batch axis that dims leave out. */
export const isBatched = ({ max_batch_size = 0 }: ModelConfig): boolean => max_batch_size > 0;

/** Dimensions that the model itself gets: `reshape` takes away or splits axes of a request. */
export const innerDims = ({ dims = [], reshape }: ConfigTensor): readonly number[] =>
  reshape === undefined ? dims : (reshape.shape ?? []);

/** The same with the batch. */
export const shapeOf = (config: ModelConfig, tensor: ConfigTensor): readonly number[] =>
  isBatched(config) ? [-1, ...innerDims(tensor)] : innerDims(tensor);

/** Whether dimensions are the same where neither is open. */
export const agree = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((size, axis) => size === -1 || b[axis] === -1 || size === b[axis]);

/** An input or output as a configuration has it, of an engine whose types Triton carries. */
export function configTensor(tensor: EngineTensor, isBatched: boolean): ConfigTensor {
  const dims = (openShape(tensor) ?? []).slice(isBatched ? 1 : 0);
  const named = { name: tensor.name, data_type: dataTypes[tensor.dtype]! };
  // Dimensions must not be empty: `reshape` takes the one away again.
  return dims.length === 0 ? { ...named, dims: [1], reshape: { shape: [] } } : { ...named, dims };
}
