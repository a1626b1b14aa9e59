import { closing } from '../../../base/files/byte-source.js';
import { ignoreEvents, type WorkContext } from '../../../events.js';
import type { NamedTensors, Tensor } from '../../tensor/tensor.js';
import { float32Values } from '../../tensor/values.js';
import type { ValueRange } from '../options.js';
import { EXTREMES, type ObservedFile, withObservedModel } from './observed-model.js';

/** Runs a model file; the runtime's sessions fit. */
interface RunningSession {
  run(inputs: NamedTensors, options?: { readonly signal?: AbortSignal }): Promise<NamedTensors>;
  close(): Promise<void>;
}

/** Samples of a model's inputs, for a session that runs it. */
export type SamplesFor<S> = (session: S) => AsyncIterable<NamedTensors> | Iterable<NamedTensors>;

export interface ObserveContext extends WorkContext {
  /** Number of samples, where it is known, for progress. */
  readonly total?: number;
}

/**
 * Runs the FP32 model on every sample and gives the range of each activation of its graph (not of the bodies of If, Loop and Scan), zero included.
 * The ranges are computed inside the model, so nothing but a small vector comes out of it. Throws what opening, writing and running a model throw.
 */
export function observeRanges<S extends RunningSession>(
  modelPath: string,
  samples: SamplesFor<S>,
  openSession: (model: ObservedFile) => Promise<S>,
  { emit = ignoreEvents, signal, total }: ObserveContext = {},
): Promise<ReadonlyMap<string, ValueRange>> {
  return withObservedModel(
    modelPath,
    'extremes',
    async ({ names, ...file }) => {
      if (names.length === 0) return new Map();
      return closing(await openSession(file), async (session) => {
        const ranges = names.map(() => ({ min: 0, max: 0 }));
        let done = 0;
        for await (const sample of samples(session)) {
          const outputs = await session.run(sample, { signal });
          widen(ranges, outputs.get(EXTREMES));
          emit({ type: 'progress', phase: 'calibrate', done: ++done, total });
        }
        return new Map(names.map((name, index) => [name, ranges[index] ?? { min: 0, max: 0 }]));
      });
    },
    signal,
  );
}

/** NaN sticks, so that a rule sees it. */
function widen(ranges: { min: number; max: number }[], extremes: Tensor | undefined): void {
  const values = extremes === undefined ? [] : float32Values(extremes);
  for (const [index, range] of ranges.entries()) {
    range.min = Math.min(range.min, values[2 * index] ?? Number.NaN);
    range.max = Math.max(range.max, values[2 * index + 1] ?? Number.NaN);
  }
}
