import { sha256 } from '../../base/files/digest.js';
import { type ChosenMethod, methodText, parseMethod } from '../../formats/precision/calibrate/method.js';
import type { Calibration } from '../../formats/precision/options.js';
import { canonicalJson } from '../identity/canonical-json.js';
import { type Preparation, readSamples } from './read-samples.js';
import type { SampleSource } from './sample-source.js';

/** What a calibration is made from. */
export interface CalibrationRequest extends Preparation {
  /** Files and folders, see `readSamples`. */
  readonly data: readonly string[];
  /** As `parseMethod` reads it; default `max`. */
  readonly method?: string;
}

/**
 * A calibration over data on ONNX Runtime, on the CPU, which is loaded only when a model is calibrated. Throws TF_USAGE for a method that there is not;
 * its functions throw what reading the data and running the model throw.
 */
export function calibrationOf({ data, method = 'max', ...preparation }: CalibrationRequest): Calibration {
  const chosen = parseMethod(method);
  let known: readonly SampleSource[] | undefined;
  const sources = () => (known ??= readSamples(data, preparation));
  return {
    digest: () => digestOf(sources(), chosen),
    method: methodText(chosen),
    observe: async (model, { emit, signal }) => {
      const [{ observeRanges }, open, samples] = await Promise.all([
        import('../../formats/precision/calibrate/observe-ranges.js'),
        opener(model, { emit, signal }),
        samplesOf(sources(), signal),
      ]);
      return observeRanges(model, samples, open, { emit, signal, total: totalOf(sources()) });
    },
    calibrate: async (model, tensors, { emit, signal, dtype }) => {
      const [{ calibrateTensors }, open, samples] = await Promise.all([
        import('../../formats/precision/calibrate/calibrate.js'),
        opener(model, { emit, signal }),
        samplesOf(sources(), signal),
      ]);
      const total = totalOf(sources());
      return calibrateTensors(model, tensors, samples, open, { method: chosen, dtype, emit, signal, total });
    },
  };
}

type Context = Pick<Parameters<Calibration['observe']>[1], 'emit' | 'signal'>;

async function opener(model: string, context: Context) {
  const { openOrtSession } = await import('../runtime/onnxruntime/ort-session.js');
  return (path: string) => openOrtSession(path, { ...context, givenModel: model });
}

async function samplesOf(sources: readonly SampleSource[], signal: AbortSignal | undefined) {
  const { preparedSamples } = await import('./prepared-samples.js');
  return ({ inputs }: { readonly inputs: Parameters<typeof preparedSamples>[1] }) =>
    preparedSamples(sources, inputs, signal);
}

/** Undefined where a source has to be read for it. */
const totalOf = (sources: readonly SampleSource[]): number | undefined =>
  sources.every(({ total }) => total !== undefined)
    ? sources.reduce((sum, { total = 0 }) => sum + total, 0)
    : undefined;

/** The order of samples makes no difference to their largest values; it decides the width of a histogram's bins. */
function digestOf(sources: readonly SampleSource[], method: ChosenMethod): string {
  const digests = sources.flatMap((source) => source.digests());
  return sha256(canonicalJson(method.name === 'max' ? digests.sort() : digests));
}
