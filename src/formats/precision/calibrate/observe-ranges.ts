import { type EventListener, ignoreEvents } from '../../../events.js';
import type { NamedTensors } from '../../tensor/tensor.js';
import { float32Values } from '../../tensor/values.js';
import type { ValueRange } from '../options.js';
import { MAXIMA, MINIMA, withObservedModel } from './observed-model.js';

/** Runs a model file; the runtime's sessions fit. */
interface RunningSession {
  run(inputs: NamedTensors, options?: { readonly signal?: AbortSignal }): Promise<NamedTensors>;
  close(): Promise<void>;
}

/** Samples of a model's inputs, for a session that runs it. */
export type SamplesFor<S> = (session: S) => AsyncIterable<NamedTensors> | Iterable<NamedTensors>;

export interface ObserveContext {
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
  /** How many samples there are, where that is known, for progress. */
  readonly total?: number;
}

/**
 * Runs the FP32 model on every sample and gives the range of each activation of its graph (not of the bodies of If, Loop and Scan), zero included.
 * The ranges are computed inside the model, so nothing but two small vectors comes out of it. Throws what opening, writing and running a model throw.
 */
export function observeRanges<S extends RunningSession>(
  modelPath: string,
  samples: SamplesFor<S>,
  openSession: (path: string) => Promise<S>,
  { emit = ignoreEvents, signal, total }: ObserveContext = {},
): Promise<ReadonlyMap<string, ValueRange>> {
  return withObservedModel(
    modelPath,
    'extremes',
    async ({ path, names }) => {
      if (names.length === 0) return new Map();
      const session = await openSession(path);
      try {
        const ranges = names.map(() => ({ min: 0, max: 0 }));
        let done = 0;
        for await (const sample of samples(session)) {
          const outputs = await session.run(sample, { signal });
          widen(ranges, vectorOf(outputs, MINIMA), vectorOf(outputs, MAXIMA));
          emit({ type: 'progress', phase: 'calibrate', done: ++done, total });
        }
        return new Map(names.map((name, index) => [name, ranges[index] ?? { min: 0, max: 0 }]));
      } finally {
        await session.close();
      }
    },
    signal,
  );
}

/** NaN sticks, so that a rule sees it. */
function widen(ranges: { min: number; max: number }[], minima: Float32Array, maxima: Float32Array): void {
  for (const [index, range] of ranges.entries()) {
    range.min = Math.min(range.min, minima[index] ?? Number.NaN);
    range.max = Math.max(range.max, maxima[index] ?? Number.NaN);
  }
}

function vectorOf(outputs: NamedTensors, name: string): Float32Array {
  const tensor = outputs.get(name);
  return tensor === undefined ? new Float32Array() : float32Values(tensor);
}
