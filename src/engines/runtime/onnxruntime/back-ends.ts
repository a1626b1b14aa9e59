import { gpuBytesInUse } from '../../../addon/gpus.js';
import type { BackEnd, OpenedModel, OpenOptions } from '../back-end.js';
import { openOrtSession } from './ort-session.js';
import { placementWarnings } from './provider-fallback.js';
import type { OrtProvider } from './provider-options.js';

const everywhere = ['provider', 'providerOptions', 'onnxRuntime', 'threads'] as const;
const onGpus = [...everywhere, 'device', 'allowFallback'] as const;

/** Models on the CPU, with 16-bit values rounded after every step, as a GPU stores them (see prepared-model.ts). */
export const onnxRuntimeCpu = backEnd('cpu', 'ONNX Runtime on the CPU', everywhere);

/** The same node by node as the graph stands: nothing is merged, so that equal nodes give equal bits. For proofs; it is none of those that a user chooses. */
export const onnxRuntimePlain = backEnd('cpu', 'ONNX Runtime on the CPU, node by node', everywhere, true);

/** Models on a GPU, with cuBLAS, cuDNN and ONNX Runtime's own kernels. */
export const onnxRuntimeCuda = backEnd('cuda', 'ONNX Runtime on CUDA', onGpus);

/** Models on a GPU, as engines that TensorRT builds when a session is opened. */
export const onnxRuntimeTensorrt = backEnd('tensorrt', 'ONNX Runtime on TensorRT', onGpus);

function backEnd(
  provider: OrtProvider,
  name: string,
  honours: readonly (keyof OpenOptions)[],
  isPlain = false,
): BackEnd {
  const id = `onnxruntime-${provider}`;
  return {
    id,
    name,
    takes: 'model',
    provider,
    honours: new Set(honours),
    open: async (path, options, work): Promise<OpenedModel> => {
      const opening = { ...options, ...work, provider, isPlain };
      const { rounding, facts, peakBytes, ...session } = await openOrtSession(path, opening);
      return {
        ...session,
        kind: 'model',
        backEnd: id,
        seedsRepeat: true,
        facts: async () => {
          const onnxRuntime = await facts();
          return {
            roundedValues: rounding?.roundedValues ?? 0,
            cudaGraphFallbacks: null,
            weightBudgetBytes: null,
            peakHostBytes: peakBytes(),
            gpuBytes: provider === 'cpu' ? null : gpuBytesInUse(options.device),
            warnings: placementWarnings(onnxRuntime.placement),
            onnxRuntime,
          };
        },
      };
    },
  };
}
