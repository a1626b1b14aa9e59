/** Which of ONNX Runtime's execution providers runs a model. */
export type OrtProvider = 'cpu' | 'cuda';

/** Where a model runs: what sessions on ONNX Runtime are opened with. */
export interface OrtPlace {
  /** Default `cpu`. With `cuda`, nodes that the provider does not take run on the CPU all the same; see `OrtSession.placement`. */
  readonly provider?: OrtProvider;
  /** Of `cuda`: which of the visible GPUs; default 0. */
  readonly device?: number;
}

/** `ONNX Runtime 1.30.0 (CPU)`, `ONNX Runtime 1.30.0 (CUDA, GPU 0)`. */
export function ortBackend(
  version: string,
  { provider = 'cpu', device = 0 }: OrtPlace,
  isTf32Allowed: boolean,
): string {
  const cuda = `CUDA, GPU ${device}${isTf32Allowed ? ', TF32 allowed' : ''}`;
  return `ONNX Runtime ${version} (${provider === 'cuda' ? cuda : 'CPU'})`;
}

/** The provider in a backend's name, in capitals (`CPU`, `CUDA`); undefined when ONNX Runtime did not run it. */
export const providerInBackend = (backend: string): string | undefined =>
  /^ONNX Runtime.*\((\w+)[^()]*\)$/.exec(backend)?.[1];

/** As its own scripts name it; the CPU is always there for what CUDA does not take. */
export const executionProviders = (provider: string): readonly string[] =>
  [...new Set([provider, 'CPU'])].map((each) => `${each}ExecutionProvider`);
