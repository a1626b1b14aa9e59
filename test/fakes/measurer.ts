import type { EngineBinding } from '../../src/engines/runtime/tensorrt/engine-interface.js';
import type { BenchedEngine, Measurer, StartMeasurer } from '../../src/quality/bench/measurer.js';
import { fakeFacts } from './addon.js';

/** An input whose batch and length are open. */
export const audio = (name: string, length: number): EngineBinding => ({
  name,
  dtype: 'float32',
  shape: [null, null],
  hostValues: false,
  profiles: [{ min: [1, 1], opt: [4, length], max: [64, 1000] }],
});

const opened = (inputs: readonly EngineBinding[], backend: string): BenchedEngine => ({
  facts: fakeFacts,
  inputs,
  backend,
  fileBytes: 100,
  passport: null,
});

/** Measures nothing: every inference takes `inferenceMs`. What was asked for is told to `asked`. */
export function measuring(
  engines: Readonly<Record<string, readonly EngineBinding[]>>,
  asked: (request: Parameters<Measurer['measure']>[0]) => void,
  inferenceMs: (engine: string, request: Parameters<Measurer['measure']>[0]) => number = () => 2,
  backend = 'TensorRT 10.3.0',
): StartMeasurer {
  const column = (value: (at: number) => number) => Float64Array.from({ length: 60 }, (_, at) => value(at));
  return (): Measurer => ({
    gpu: async () => ({
      gpu: { index: 0, uuid: 'GPU-0', name: 'none', computeCapability: 90, memoryBytes: 1 } as never,
      driver: null,
      state: null,
      pid: 1,
    }),
    open: async ({ engine }) => opened(engines[engine] ?? [], backend),
    measure: async (request) => {
      asked(request);
      const ms = inferenceMs(request.engine, request);
      return {
        measurement: {
          streams: new Int32Array(60),
          inputStart: column((i) => ms * i),
          inputEnd: column((i) => ms * i),
          computeStart: column((i) => ms * i),
          computeEnd: column((i) => ms * i + ms),
          outputStart: column((i) => ms * i + ms),
          outputEnd: column((i) => ms * i + ms),
          enqueueMs: column(() => 0.01),
          wallMs: 60 * ms,
          warmUpInferences: 1,
          graph: false,
          graphRefusal: null,
          gpuMemory: { peakUsed: 1, total: 1 },
        },
        during: [],
        after: null,
      };
    },
    layers: () => Promise.reject(new Error('nobody asks for layers')),
    cold: () => Promise.reject(new Error('nobody asks for cold starts')),
    close: async () => {},
  });
}
