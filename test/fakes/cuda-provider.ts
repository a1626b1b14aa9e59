/** The environment in which children load `cuda-provider.mjs` for onnxruntime-node; `wish` and `log` are told there. */
export const cudaBinding = (wish: string, log: string): Record<string, string> => ({
  NODE_OPTIONS: `--import ${new URL('cuda-provider.mjs', import.meta.url).href}`,
  FAKE_CUDA: wish,
  FAKE_CUDA_LOG: log,
});
