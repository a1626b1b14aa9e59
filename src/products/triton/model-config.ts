import { readText } from '../../base/files/files.js';
import { parseProtobufText, printProtobufText } from '../../formats/serving/protobuf-text.js';

/** What trtforge writes and judges of a config.pbtxt, by the file's own names; the file may have more, and any of it may be absent. */
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
  readonly batch_input?: readonly { readonly target_name?: readonly string[] }[];
  readonly batch_output?: readonly { readonly target_name?: readonly string[] }[];
  readonly instance_group?: readonly {
    readonly name?: string;
    readonly kind?: string;
    readonly count?: number;
    readonly gpus?: readonly number[];
    readonly profile?: readonly string[];
  }[];
  readonly dynamic_batching?: Batcher;
  readonly sequence_batching?: {
    readonly max_sequence_idle_microseconds?: number;
    readonly direct?: object;
    readonly oldest?: Batcher & { readonly max_candidate_sequences?: number };
    readonly control_input?: readonly {
      readonly name?: string;
      readonly control?: readonly { readonly kind?: string }[];
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
    readonly cuda?: { readonly graphs?: boolean; readonly graph_spec?: readonly object[] };
  };
  readonly model_warmup?: readonly {
    readonly name?: string;
    readonly batch_size?: number;
    readonly count?: number;
    readonly inputs?: Readonly<
      Record<
        string,
        {
          readonly data_type?: string;
          readonly dims?: readonly number[];
          readonly zero_data?: boolean;
          readonly random_data?: boolean;
          readonly input_data_file?: string;
        }
      >
    >;
  }[];
  readonly parameters?: Readonly<Record<string, { readonly string_value?: string }>>;
}

export interface ConfigTensor {
  readonly name?: string;
  readonly data_type?: string;
  /** Without the first axis where `max_batch_size` is above 0; -1 is open. */
  readonly dims?: readonly number[];
  readonly reshape?: { readonly shape?: readonly number[] };
  readonly is_shape_tensor?: boolean;
  readonly is_non_linear_format_io?: boolean;
  readonly allow_ragged_batch?: boolean;
  readonly optional?: boolean;
  readonly label_filename?: string;
}

interface Batcher {
  readonly preferred_batch_size?: readonly number[];
  readonly max_queue_delay_microseconds?: number;
}

interface ConfigState {
  readonly input_name?: string;
  readonly output_name?: string;
  readonly data_type?: string;
  readonly dims?: readonly number[];
  readonly initial_state?: readonly {
    readonly name?: string;
    readonly data_type?: string;
    readonly dims?: readonly number[];
    readonly zero_data?: boolean;
    readonly data_file?: string;
  }[];
  readonly use_same_buffer_for_input_output?: boolean;
}

/** Real files have some hundred lines. */
const LARGEST_CONFIG = 4 << 20;

/** Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_SERVING_CONFIG. */
export const readModelConfig = (path: string): ModelConfig =>
  parseProtobufText('inference.ModelConfig', readText(path, LARGEST_CONFIG, 'TF_SERVING_CONFIG'), path);

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

/** Whether the file begins with the mark that some editors write. */
export const hasByteOrderMark = (path: string): boolean =>
  readText(path, LARGEST_CONFIG, 'TF_SERVING_CONFIG').startsWith('\ufeff');
