import type { AppendedProvider, Setting } from '../../../addon/onnx-runtime.js';
import { flagOf } from '../../../base/options/option.js';
import { didYouMean } from '../../../base/text/suggest-name.js';
import { TrtforgeError } from '../../../errors.js';
import { placeOptions } from '../back-end.js';

/** Which of ONNX Runtime's execution providers runs a model. */
export type OrtProvider = 'cpu' | 'cuda' | 'tensorrt';

/** Where a model runs: what sessions on ONNX Runtime are opened with. */
export interface OrtPlace {
  /** Default `cpu`. */
  readonly provider?: OrtProvider;
  /** Of `cuda` and `tensorrt`: which of the visible GPUs; default 0. */
  readonly device?: number;
  /** Options of the provider, and session configuration entries, which have a dot in their key; see provider-options.ts. */
  readonly providerOptions?: Readonly<Record<string, string>>;
  /** A libonnxruntime.so, or a folder of an installation; default: what ORT_HOME names, else the first that has the provider. */
  readonly onnxRuntime?: string;
  /** Whether nodes that the provider does not take may run elsewhere (TensorRT: on CUDA, then on the CPU); without it that is TF_PROVIDER_FALLBACK. */
  readonly allowFallback?: boolean;
}

/** ONNX Runtime's own name of a provider. */
export const executionProvider = {
  cpu: 'CPUExecutionProvider',
  cuda: 'CUDAExecutionProvider',
  tensorrt: 'TensorrtExecutionProvider',
} as const satisfies Record<OrtProvider, string>;

export const isOrtProvider = (name: string): name is OrtProvider => name in executionProvider;

/** `ONNX Runtime 1.30.0 (CPU)`, `ONNX Runtime 1.30.0 (CUDA, GPU 0)`, `ONNX Runtime 1.31.1 (TensorRT 10.15.1.29, GPU 0)`. */
export function ortBackend(
  version: string,
  { provider = 'cpu', device = 0 }: OrtPlace,
  { tf32 = false, tensorrt = null }: { readonly tf32?: boolean; readonly tensorrt?: string | null } = {},
): string {
  const name = provider === 'cuda' ? 'CUDA' : tensorrt === null ? 'TensorRT' : `TensorRT ${tensorrt}`;
  const gpu = `${name}, GPU ${device}${tf32 ? ', TF32 allowed' : ''}`;
  return `ONNX Runtime ${version} (${provider === 'cpu' ? 'CPU' : gpu})`;
}

/** The provider in a backend's name (`CPU`, `CUDA`, `TensorRT`); undefined when ONNX Runtime did not run it. */
export const providerInBackend = (backend: string): string | undefined =>
  /^ONNX Runtime.*\((\w+)[^()]*\)$/.exec(backend)?.[1];

/** As its own scripts name it; the CPU is always there for what others do not take. */
export const executionProviders = (provider: string): readonly string[] => {
  const known = provider.toLowerCase() as OrtProvider;
  const own = executionProvider[known] ?? `${provider}ExecutionProvider`;
  return [...new Set([own, executionProvider.cpu])];
};

/** The keys that a provider's library knows, but for pointers and what the options of trtforge decide. */
const providerKeys: Readonly<Record<OrtProvider, readonly string[]>> = {
  cpu: [],
  // https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html
  cuda: words(
    `arena_extend_strategy cudnn_conv1d_pad_to_nc1d cudnn_conv_algo_search cudnn_conv_use_max_workspace do_copy_in_default_stream
    enable_skip_layer_norm_strict_mode fuse_conv_bias gpu_mem_limit prefer_nhwc sdpa_kernel tunable_op_enable tunable_op_max_tuning_duration_ms
    tunable_op_tuning_enable use_ep_level_unified_stream use_tf32`,
  ),
  // https://onnxruntime.ai/docs/execution-providers/TensorRT-ExecutionProvider.html
  tensorrt: words(
    `trt_auxiliary_streams trt_bf16_enable trt_build_heuristics_enable trt_builder_optimization_level trt_context_memory_sharing_enable
    trt_detailed_build_log trt_dla_core trt_dla_enable trt_dump_ep_context_model trt_dump_subgraphs trt_engine_cache_enable trt_engine_cache_path
    trt_engine_cache_prefix trt_engine_decryption_enable trt_engine_decryption_lib_path trt_engine_hw_compatible trt_ep_context_embed_mode
    trt_ep_context_file_path trt_extra_plugin_lib_paths trt_force_sequential_engine_build trt_force_timing_cache trt_fp16_enable
    trt_int8_calibration_table_name trt_int8_enable trt_int8_use_native_calibration_table trt_layer_norm_fp32_fallback trt_load_user_initializer
    trt_max_partition_iterations trt_max_workspace_size trt_min_subgraph_size trt_onnx_model_folder_path trt_op_types_to_exclude
    trt_preview_features trt_profile_max_shapes trt_profile_min_shapes trt_profile_opt_shapes trt_sparsity_enable trt_tactic_sources
    trt_timing_cache_enable trt_timing_cache_path trt_weight_stripped_engine_enable use_tf32`,
  ),
};

/** Of options for several providers without those that only others have; a key that none has stays, and is rejected where it is used. */
export const optionsFor = (
  provider: OrtProvider,
  options: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(options).filter(
      ([key]) =>
        providerKeys[provider].includes(key) ||
        !Object.values(providerKeys).some((keys) => keys.includes(key)),
    ),
  );

/** Why a key that a provider knows cannot be passed. */
const impossible: Readonly<Record<string, string>> = {
  device_id: 'Pass --device.',
  enable_cuda_graph:
    'Remove it: a captured graph keeps the addresses of its first run, and each run here has its own.',
  trt_cuda_graph_enable:
    'Remove it: a captured graph keeps the addresses of its first run, and each run here has its own.',
};

/** Keys of TensorRT that let it compute in 16 or 8 bits. */
export const precisionFlags = {
  int8: 'trt_int8_enable',
  float16: 'trt_fp16_enable',
  bfloat16: 'trt_bf16_enable',
} as const;
/** Entries that write an engine for others: one that is built under NVIDIA_TF32_OVERRIDE loads only where the variable is the same. */
const WRITES_ENGINE = ['trt_dump_ep_context_model', 'ep.context_enable'];
const TF32_KEY = 'use_tf32';
const TF32_SWITCH = 'NVIDIA_TF32_OVERRIDE';

function words(text: string): readonly string[] {
  return text.split(/\s+/);
}

export const isOn = (value: string | undefined): boolean => value === '1' || value?.toLowerCase() === 'true';

/** The options that a provider is appended with, and the environment of its process. */
export interface ResolvedProvider {
  readonly providers: readonly AppendedProvider[];
  readonly config: readonly Setting[];
  readonly environment: NodeJS.ProcessEnv;
  /** Whether products of float32 may be shortened to TF32. */
  readonly tf32: boolean;
  /** Whether TensorRT was allowed to compute in 16 or 8 bits. */
  readonly narrow: boolean;
}

/**
 * Checks the keys and fills in the rest. TF32 is off unless `use_tf32=1` or an NVIDIA_TF32_OVERRIDE other than 0 allows it: CUDA has an option for it, and TensorRT,
 * which has none, honours the variable, as cuBLAS and cuDNN do. https://docs.nvidia.com/cuda/cublas/
 * An engine that is written for others has TF32 unless `use_tf32=0` forbids it.
 * ONNX Runtime's telemetry is off unless ORT_DISABLE_TELEMETRY is set to something else. Throws TF_USAGE for a key that the provider does not have.
 */
export function resolveProvider(
  { provider = 'cpu', device = 0, providerOptions = {}, allowFallback = false }: OrtPlace,
  environment: NodeJS.ProcessEnv,
): ResolvedProvider {
  const config = Object.entries(providerOptions).filter(([key]) => isConfigKey(key));
  const own = Object.entries(providerOptions).filter(([key]) => !isConfigKey(key));
  for (const [key] of own) checkKey(provider, key);
  const quiet = ortEnvironment(environment);
  if (provider === 'cpu') return { providers: [], config, environment: quiet, tf32: false, narrow: false };
  const override = environment[TF32_SWITCH];
  const requested = providerOptions[TF32_KEY];
  const isKept = provider === 'tensorrt' && WRITES_ENGINE.some((key) => isOn(providerOptions[key]));
  const tf32 =
    override !== '0' && (requested === undefined ? override !== undefined || isKept : isOn(requested));
  const settings = (name: 'cuda' | 'tensorrt'): readonly Setting[] => [
    ['device_id', String(device)],
    ...(name === 'cuda' ? ([[TF32_KEY, tf32 ? '1' : '0']] as const) : []),
    ...(name === provider ? own.filter(([key]) => key !== TF32_KEY) : []),
  ];
  // The customary order; CUDA only where nodes may be there.
  const names = provider === 'tensorrt' && allowFallback ? (['tensorrt', 'cuda'] as const) : [provider];
  return {
    providers: names.map((name) => ({ name, options: settings(name) })),
    config: [['session.record_ep_graph_assignment_info', '1'], ...config],
    environment: tf32 ? quiet : { ...quiet, [TF32_SWITCH]: '0' },
    tf32,
    narrow: Object.values(precisionFlags).some((key) => isOn(providerOptions[key])),
  };
}

/** The environment of every process with ONNX Runtime: from 1.27 on the first environment writes files of telemetry below the home folder. */
export const ortEnvironment = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...environment,
  ORT_DISABLE_TELEMETRY: environment.ORT_DISABLE_TELEMETRY ?? '1',
});

/** `session.disable_prepacking`, `ep.context_enable`: entries of the session and not of a provider. */
const isConfigKey = (key: string): boolean => /^[a-z]\w*(\.\w+)+$/.test(key);

function checkKey(provider: OrtProvider, key: string): void {
  const known = providerKeys[provider];
  if (known.includes(key)) return;
  const flag = flagOf(placeOptions.providerOptions);
  const owner = Object.entries(providerKeys).find(([, keys]) => keys.includes(key))?.[0];
  const remedy =
    impossible[key] ??
    (owner === undefined
      ? known.length === 0
        ? `Remove it: on the CPU only entries of the session have an effect (session.disable_prepacking=1).`
        : `Known keys: ${known.join(', ')}; and entries of the session, which have a dot.`
      : `Remove it, or pass --provider ${owner}.`);
  throw new TrtforgeError(
    'TF_USAGE',
    `${flag} ${key}: the provider ${provider} has no such option here.${owner === undefined ? didYouMean(key, known) : ''}`,
    { remedy, details: { option: flag, key, known } },
  );
}
