import { gpuBytesInUse } from '../../../addon/gpus.js';
import { namesOf, valuesOf } from '../../../base/options/option.js';
import { workOf } from '../../../events.js';
import type { BackEnd, OpenedEngine } from '../back-end.js';
import { engineOptions } from './options.js';
import { openSupervisedEngine } from './supervised-engine.js';

/** Engines on TensorRT and TensorRT-RTX. An engine need not have a passport. */
export const tensorrt: BackEnd = {
  id: 'tensorrt',
  name: 'TensorRT',
  takes: 'engine',
  provider: null,
  honours: new Set(['device', 'profile', ...namesOf(engineOptions)]),
  open: async (path, options, work): Promise<OpenedEngine> => {
    const { peakBytes, ...session } = await openSupervisedEngine(path, {
      // Nothing else of the caller's: what is left of these options goes to another process.
      ...workOf(work),
      ...valuesOf(engineOptions, options),
      device: options.device,
      requirePassport: false,
    });
    const { streamableWeightsBytes, weightBudgetBytes } = session.facts.engine;
    const { profile } = options;
    let cudaGraphFallbacks = session.facts.cudaGraphFallbacks;
    return {
      ...session,
      kind: 'engine',
      backEnd: tensorrt.id,
      arithmetic: 'as-built',
      seedsRepeat: false,
      run: (inputs, request) => session.run(inputs, { profile, ...request }),
      runRepeatedly: async (inputs, request) => {
        const ran = await session.runRepeatedly(inputs, { profile, ...request });
        ({ cudaGraphFallbacks } = ran);
        return ran;
      },
      facts: async () => ({
        roundedValues: 0,
        cudaGraphFallbacks,
        weightBudgetBytes: streamableWeightsBytes > 0 ? weightBudgetBytes : null,
        peakHostBytes: peakBytes(),
        gpuBytes: gpuBytesInUse(options.device),
        warnings: [],
        onnxRuntime: null,
      }),
    };
  },
};
