import { chosenGpu, visibleGpus } from '../../../addon/gpus.js';
import { TrtforgeError } from '../../../errors.js';
import { workOf } from '../../../events.js';
import { factsOfModel } from '../../../formats/onnx/inspect.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import { benchEngine } from '../../../quality/bench/bench-engine.js';
import { defaultMode, defaultRequest } from '../../../quality/bench/options.js';
import { buildOrLoad } from '../../../quality/known-answer/build-or-load.js';
import type { AdviseContext, EngineTimes } from './options.js';

interface TimedOn {
  /** Ordinal of the GPU; default 0. */
  readonly device?: number | undefined;
  readonly toolchain?: string | undefined;
  /** Where engines are kept; default as `build`. */
  readonly store?: string | undefined;
}

/**
 * Builds engines on a GPU, at the shapes of a sample, and measures them with the times of their layers. Throws TF_GPU_UNAVAILABLE at once where there is no such
 * GPU; what it returns throws what building and measuring throw.
 */
export function engineTimer(
  { device = 0, toolchain, store }: TimedOn,
  context: AdviseContext,
): NonNullable<AdviseContext['timeEngine']> {
  const work = workOf(context);
  chosenGpu(visibleGpus(), device, 'Measuring latency needs an NVIDIA GPU', 'Run it without --latency.');
  return async (model: string, sample: NamedTensors): Promise<EngineTimes> => {
    const open = factsOfModel(model).inputs.filter(({ shape }) =>
      shape?.some((size) => typeof size !== 'number'),
    );
    const shapes = open.map(({ name }) => {
      const dims = [...sample.get(name)!.shape];
      return [name, { min: dims, opt: dims, max: dims, values: false }] as const;
    });
    const { engine } = await buildOrLoad(
      {
        model,
        precision: 'as-is',
        profiles: shapes.length === 0 ? [] : [new Map(shapes)],
        settings: { profilingVerbosity: 'detailed' },
        knownAnswer: false,
        store,
        device,
        toolchain,
      },
      { ...work, areSizesKnown: true },
    );
    const { gpuMs, layers } = await benchEngine(
      // Without a CUDA graph the GPU of a small engine waits for launches, whatever the types of its layers.
      { ...defaultRequest(engine), device, toolchain, layers: true, mode: { ...defaultMode, graph: true } },
      work,
    );
    if (gpuMs === null || layers === null)
      throw new TrtforgeError('TF_RUN_FAILED', `${engine} ran, and no time of its layers was measured.`);
    return { medianMs: gpuMs.median, layers };
  };
}
