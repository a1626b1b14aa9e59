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
