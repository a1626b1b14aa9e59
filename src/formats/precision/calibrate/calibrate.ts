import { closing } from '../../../base/files/byte-source.js';
import { TrtforgeError } from '../../../errors.js';
import type { NamedTensors } from '../../tensor/tensor.js';
import type { QuantizedDtype } from './grid.js';
import type { Histogram } from './histogram.js';
import { type ChosenMethod, entropyAmax, methodText, mseAmax, percentileAmax } from './methods.js';
import {
  type ObserveContext,
  type Observed,
  type ObservedFile,
  type Observing,
  type SamplesFor,
  withObservedModel,
} from './observed-model.js';
import { CALIBRATION_LOG, type CalibratedRanges, type Extremes, type TensorRange } from './ranges.js';

/** Rises when the same data, method and model give other ranges. */
export const CALIBRATION_REVISION = 2;

/** Runs a model and keeps what its outputs were, where they are: an ONNX Runtime session in its own process. */
export interface ObservingSession {
  /** Runs one sample; the extremes of each output by its name. */
  observe(
    inputs: NamedTensors,
    options: Observing & { readonly signal?: AbortSignal },
  ): Promise<ReadonlyMap<string, Extremes>>;
  /** The requested statistics of all samples observed. */
  observed(): Promise<Observed>;
  close(): Promise<void>;
}

export interface CalibrateContext extends ObserveContext {
  readonly method: ChosenMethod;
  /** The type that the ranges are for; only `mse` looks at it. Default INT8. */
  readonly dtype?: QuantizedDtype;
  /** The tensors whose channels are wanted too, with the axis of the channels. */
  readonly channels?: ReadonlyMap<string, number>;
  /** The name of the running sample in messages; default: its number. */
  readonly sampleName?: () => string;
}

/** So much growth of a range in the last quarter of the samples, in more than this share of the tensors, means that more samples would widen ranges on. */
const GROWTH = 1.1;
const GROWING_SHARE = 0.1;

/**
 * Runs the FP32 model on every sample, once, and gives the range of each tensor named, by the method. Warns (a log event) where ranges still grew at the
 * end. Throws TF_CALIBRATION_INVALID for a tensor that is not an activation of the graph, for values that are NaN or infinite and where there is no sample,
 * and what opening, writing and running a model throw.
 */
export function calibrateTensors<S extends ObservingSession>(
  modelPath: string,
  tensors: readonly string[],
  samples: SamplesFor<S>,
  openSession: (model: ObservedFile) => Promise<S>,
  context: CalibrateContext,
): Promise<CalibratedRanges> {
  const { method, dtype = 'int8', channels = new Map(), sampleName, total } = context;
  const { emit, signal } = context;
  return withObservedModel(
    modelPath,
    tensors,
    async ({ outputs, ...file }) => {
      if (tensors.length === 0) return new Map();
      return closing(await openSession(file), async (session) => {
        const seen = tensors.map(() => new Seen());
        const observing: Observing = {
          histograms: method.name !== 'max',
          channels: new Map(
            tensors.flatMap((name, index) => {
              const axis = channels.get(name);
              return axis === undefined ? [] : [[outputs[index]!, axis] as const];
            }),
          ),
        };
        let done = 0;
        for await (const sample of samples(session)) {
          const extremes = await session.observe(sample, { ...observing, signal });
          done++;
          for (const [index, output] of outputs.entries())
            seen[index]!.add(
              finite(extremes.get(output), tensors[index]!, sampleName?.() ?? `sample ${done}`),
            );
          emit?.({ type: 'progress', phase: 'calibrate', done, total });
        }
        if (done === 0) throw invalid('The calibration data have no sample.', 'Pass one sample at least.');
        const warning = growthWarning(tensors, seen);
        if (warning !== undefined)
          emit?.({ type: 'log', source: CALIBRATION_LOG, severity: 'warning', message: warning });
        const observed = await session.observed();
        return new Map(
          tensors.map((name, index): [string, TensorRange] => {
            const { min, max } = seen[index]!;
            const largest = Math.max(-min, max);
            const histogram = observed.histograms.get(outputs[index]!);
            const moments = observed.channels.get(outputs[index]!);
            const chosen = histogram === undefined ? largest : amaxOf(histogram, method, dtype);
            const range = { min, max, amax: Math.min(chosen, largest) };
            return [name, moments === undefined ? range : { ...range, channels: moments }];
          }),
        );
      });
    },
    context,
  );
}

function amaxOf(histogram: Histogram, method: ChosenMethod, dtype: QuantizedDtype): number {
  switch (method.name) {
    case 'percentile':
      return percentileAmax(histogram, method.percentile);
    case 'entropy':
      return entropyAmax(histogram);
    case 'mse':
      return mseAmax(histogram, dtype);
    case 'max':
      throw new TrtforgeError('TF_INTERNAL', `${methodText(method)} needs no histogram.`);
  }
}

/** Range of a tensor so far, and its largest magnitude after each sample. */
class Seen {
  min = 0;
  max = 0;
  readonly #largest: number[] = [];

  add({ min, max }: Extremes): void {
    this.min = Math.min(this.min, min);
    this.max = Math.max(this.max, max);
    this.#largest.push(Math.max(-this.min, this.max));
  }

  get samples(): number {
    return this.#largest.length;
  }

  /** The factor by which the last quarter of the samples enlarged the range. */
  get growth(): number {
    const before = this.#largest[Math.ceil(this.samples * 0.75) - 1]!;
    return this.#largest.at(-1)! / before;
  }
}

/** Of fewer samples the last quarter is so few that ranges often do not grow in it. */
const FEWEST = 16;

function growthWarning(tensors: readonly string[], seen: readonly Seen[]): string | undefined {
  const samples = seen[0]?.samples ?? 0;
  const more = 'Pass more samples: some 500 images, or 64 texts.';
  if (samples < FEWEST) return `The ranges are of ${samples} sample${samples === 1 ? '' : 's'} only. ${more}`;
  // A tensor of zeros that stays one does not grow.
  const growing = seen.flatMap(({ growth }, index) => (growth > GROWTH ? [{ index, growth }] : []));
  if (growing.length <= GROWING_SHARE * tensors.length) return undefined;
  const worst = growing.reduce((a, b) => (b.growth > a.growth ? b : a));
  const by = Number.isFinite(worst.growth) ? `${Math.round((worst.growth - 1) * 100)} %` : 'from 0';
  return `In the last quarter of ${samples} samples the ranges of ${growing.length} of ${tensors.length} tensors still grew by more than 10 %, that of ${tensors[worst.index]} by ${by}. ${more}`;
}

function finite(extremes: Extremes | undefined, tensor: string, sample: string): Extremes {
  if (extremes === undefined) throw new TrtforgeError('TF_INTERNAL', `No run gave ${tensor}.`);
  const { min, max } = extremes;
  if (Number.isFinite(min) && Number.isFinite(max)) return extremes;
  const what = Number.isNaN(min) ? 'NaN' : 'an infinity';
  throw invalid(
    `The activation ${tensor} has ${what} in ${sample}.`,
    'Its inputs are finite, so the model computes it: see which weight or operation does, or remove the sample.',
  );
}

const invalid = (message: string, remedy: string) =>
  new TrtforgeError('TF_CALIBRATION_INVALID', message, { remedy });
