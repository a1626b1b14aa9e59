import type { BackEnd, OpenedModel } from '../../src/engines/runtime/back-end.js';
import { checkInputs } from '../../src/engines/runtime/check-inputs.js';
import { openNodeModel } from '../../src/engines/runtime/onnxruntime/node-model.js';
import { prepareModel } from '../../src/engines/runtime/onnxruntime/prepared-model.js';
import type { NamedTensors } from '../../src/formats/tensor/tensor.js';

/**
 * ONNX Runtime on the CPU in this process: for thousands of small models, of which each would else be a child process. A file that was opened once stays open,
 * until `forget`: files must not change. Inputs and outputs of 16 bits are not taken. `isPlain`: nodes run one by one as they stand.
 */
export function inProcessBackEnd(isPlain = false): BackEnd & { readonly forget: (path: string) => void } {
  const open = new Map<string, Promise<OpenedModel>>();
  return {
    id: 'onnxruntime-cpu',
    name: 'ONNX Runtime in this process',
    takes: 'model',
    provider: 'cpu',
    honours: new Set(['threads']),
    open: (path) => {
      const opened = open.get(path) ?? openModel(path, isPlain);
      open.set(path, opened);
      return opened;
    },
    forget: (path) => void open.delete(path),
  };
}

async function openModel(path: string, isPlain: boolean): Promise<OpenedModel> {
  const { inputs, outputs, rounding, arithmetic, isFloat8, ...prepared } = await prepareModel(path, path, {});
  const { path: modelPath, weightsFolder } = prepared;
  const request = {
    kind: 'open',
    modelPath,
    weightsFolder,
    threads: 1,
    isFloat8,
    isPlain,
    native: null,
  } as const;
  const model = await openNodeModel(request).finally(() => prepared.discard());
  const run = async (tensors: NamedTensors) => {
    checkInputs(inputs, tensors);
    const call = model.bind([...tensors], { state: [], resident: false });
    await call.run();
    return new Map(call.outputs());
  };
  const none = new Float64Array(0);
  return {
    kind: 'model',
    backEnd: 'onnxruntime-cpu',
    backend: `ONNX Runtime ${model.facts.version} (CPU)`,
    arithmetic,
    seedsRepeat: true,
    inputs,
    outputs,
    run,
    runRepeatedly: async (tensors) => ({ outputs: await run(tensors), ms: [] }),
    measure: async () => ({ startMs: none, ms: none, wallMs: 0, warmUpRuns: 0 }),
    facts: async () => ({
      roundedValues: rounding?.roundedValues ?? 0,
      cudaGraphFallbacks: null,
      weightBudgetBytes: null,
      peakHostBytes: null,
      gpuBytes: null,
      warnings: [],
      onnxRuntime: null,
    }),
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
}
