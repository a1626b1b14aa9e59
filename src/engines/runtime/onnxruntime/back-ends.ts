import type { BackEnd, OpenedModel } from '../back-end.js';
import { placementWarnings } from './ort-placement.js';
import type { OrtProvider } from './ort-provider.js';
import { openOrtSession } from './ort-session.js';

/** Models on the CPU, with 16-bit values rounded after every step, as a GPU stores them (see rounded-model.ts). */
export const onnxRuntimeCpu: BackEnd = {
  id: 'onnxruntime-cpu',
  name: 'ONNX Runtime on the CPU',
  takes: 'model',
  provider: 'cpu',
  honours: new Set(['provider', 'threads']),
  open: opener('onnxruntime-cpu', 'cpu'),
};

/** Models on a GPU; nodes that the CUDA provider does not take run on the CPU. */
export const onnxRuntimeCuda: BackEnd = {
  id: 'onnxruntime-cuda',
  name: 'ONNX Runtime on CUDA',
  takes: 'model',
  provider: 'cuda',
  honours: new Set(['provider', 'threads', 'device']),
  open: opener('onnxruntime-cuda', 'cuda'),
};

function opener(id: string, provider: OrtProvider): BackEnd['open'] {
  return async (path, { threads, device }, { emit, signal, environment }): Promise<OpenedModel> => {
    const { rounding, ...session } = await openOrtSession(path, {
      provider,
      threads,
      device,
      emit,
      signal,
      environment,
    });
    return {
      ...session,
      kind: 'model',
      backEnd: id,
      seedsRepeat: true,
      facts: async () => ({
        roundedValues: rounding?.roundedValues ?? 0,
        cudaGraphFallbacks: null,
        weightBudgetBytes: null,
        warnings: placementWarnings(await session.placement()),
      }),
    };
  };
}
