import { existsSync } from 'node:fs';
import { sha256, sha256OfFile } from '../../base/files/digest.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import { preprocessings } from '../../formats/images/preprocess.js';
import {
  type CachedRanges,
  type CalibrationIdentity,
  readCalibration,
  writeCalibration,
} from '../../formats/precision/calibrate/cache.js';
import {
  CALIBRATION_REVISION,
  type ChosenMethod,
  DEFAULT_METHOD,
  methodText,
  parseMethod,
} from '../../formats/precision/calibrate/method.js';
import type { ObservedFile } from '../../formats/precision/calibrate/observed-model.js';
import {
  CALIBRATION_LOG,
  type CalibratedRanges,
  type TensorRange,
} from '../../formats/precision/calibrate/ranges.js';
import type { Calibration } from '../../formats/precision/options.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { canonicalJson } from '../identity/canonical-json.js';
import type { PlaceOptions } from '../runtime/back-end.js';
import { isOrtProvider } from '../runtime/onnxruntime/ort-provider.js';
import { type Preparation, readSamples } from './read-samples.js';
import { partOf, type SamplePart } from './sample-part.js';
import type { SampleSource } from './sample-source.js';

/** What a calibration is made from, and where the model runs. */
export interface CalibrationRequest extends Preparation, PlaceOptions {
  /** Files and folders, see `readSamples`. */
  readonly data: readonly string[];
  /** As `parseMethod` reads it; default `mse`. */
  readonly method?: string;
  /**
   * Where ranges are kept: used where it is there and of the same data, method, type and model, else written. Without data the file states data and method; a
   * table of TensorRT or ONNX Runtime states nothing and is used as it is.
   */
  readonly cache?: string;
  /** Which of the samples count; default all. */
  readonly part?: SamplePart;
}

/**
 * A calibration over data on ONNX Runtime, which is loaded only when a model is calibrated. Throws TF_USAGE for a method that there is not and where there are neither data nor a cache;
 * its functions throw what reading the data and running the model throw.
 */
export function calibrationOf(request: CalibrationRequest): Calibration {
  const { data, method, cache, part, preprocess, imgsz, ...place } = request;
  const chosen = parseMethod(method ?? DEFAULT_METHOD);
  if (data.length === 0 && (cache === undefined || !existsSync(cache)))
    throw new TrtforgeError('TF_USAGE', 'A calibration has neither samples nor a cache.', {
      remedy: 'Pass samples: --calibration FILE.',
    });
  let known: readonly SampleSource[] | undefined;
  const sources = () => {
    const read = known ?? readSamples(data, { preprocess, imgsz });
    known ??= part === undefined ? read : [partOf(read, part)];
    return known;
  };
  /** Samples of the last run. */
  let ran = 0;
  const counted = async (signal: AbortSignal | undefined) => {
    const samples = await samplesOf(sources(), signal);
    return async function* (session: Parameters<typeof samples>[0]) {
      for await (const sample of samples(session)) {
        ran++;
        yield sample;
      }
    };
  };
  /** ONNX Runtime does not know which of the samples it fails on, and its remedies are for a run. */
  const onSample = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      const isRun = error instanceof TrtforgeError && error.code === 'TF_ONNXRUNTIME_FAILED' && ran > 0;
      if (!isRun) throw error;
      throw new TrtforgeError(error.code, `Calibration sample ${ran}: ${error.message}`, {
        remedy:
          'Pass samples that the model takes: values within what it looks up, shapes that fit together.',
        details: error.details,
        cause: error,
      });
    }
  };
  let hashed: string | undefined;
  const dataDigest = () => (hashed ??= digestOf(sources(), chosen));
  /** What ranges without samples are of, as the file states it. */
  let stated: CachedRanges | undefined;
  const origin = () => {
    stated ??= readCalibration(cache!);
    return stated.identity;
  };
  return {
    digest: () => (data.length === 0 ? (origin()?.data ?? sha256OfFile(cache!)) : dataDigest()),
    get method() {
      return data.length === 0 ? (origin()?.method ?? 'unknown') : methodText(chosen);
    },
    facts: () => ({
      data: [...data],
      samples: ran,
      cache: cache ?? null,
      preprocess: preprocess ?? null,
      imgsz: imgsz ?? (preprocess === undefined ? null : (preprocessings[preprocess]?.width ?? null)),
      provider: place.provider ?? 'cpu',
    }),
    forInputs: (inputs) => {
      if (data.length === 0) return calibrationOf(request);
      const bindings = inputs.map(({ name, dtype, shape }) => ({ name, dtype: dtype as Dtype, shape }));
      const own = data.filter((each) =>
        readSamples([each], { preprocess, imgsz }).every((source) => source.isFor(bindings)),
      );
      return own.length === 0 ? undefined : calibrationOf({ ...request, data: own });
    },
    observe: async (model, { emit, signal }) => {
      ran = 0;
      // A cache has the ranges of what is quantized only.
      if (data.length === 0) return new Map();
      const [{ observeRanges }, open, samples] = await Promise.all([
        import('../../formats/precision/calibrate/observe-ranges.js'),
        opener(model, place, { emit, signal }),
        counted(signal),
      ]);
      const total = totalOf(sources());
      return onSample(observeRanges(model, samples, open, { emit, signal, total }));
    },
    calibrate: async (model, tensors, { emit, signal, dtype, channels }) => {
      ran = 0;
      const used: ChosenMethod = dtype === null ? { name: 'max' } : chosen;
      const fitting = async () => ({
        dtype: dtype ?? 'weights',
        model: await (await import('../identity/model-digest.js')).digestModelFile(model),
      });
      if (data.length === 0)
        return cachedRanges(cache!, tensors, channels, { method, ...(await fitting()) }, emit);
      const kept = cache !== undefined && {
        path: cache,
        identity: { data: dataDigest(), method: methodText(used), ...(await fitting()) },
      };
      if (kept && existsSync(kept.path))
        return cachedRanges(kept.path, tensors, channels, kept.identity, emit);
      const [{ calibrateTensors }, open, samples] = await Promise.all([
        import('../../formats/precision/calibrate/calibrate.js'),
        opener(model, place, { emit, signal }),
        counted(signal),
      ]);
      const total = totalOf(sources());
      const context = { method: used, dtype: dtype ?? undefined, channels, emit, signal, total };
      const ranges = await onSample(calibrateTensors(model, tensors, samples, open, context));
      if (kept) writeCalibration(kept.path, kept.identity, ranges);
      return ranges;
    },
  };
}

/** Throws TF_CALIBRATION_INVALID for a file of other origin than wanted, and for a tensor that it lacks. */
async function cachedRanges(
  path: string,
  tensors: readonly string[],
  channels: ReadonlyMap<string, number>,
  wanted: Partial<CalibrationIdentity>,
  emit: EventListener,
): Promise<CalibratedRanges> {
  const { identity, ranges } = readCalibration(path, wanted);
  const isTable = identity === null;
  if (isTable) {
    const message = `The ranges are those of ${path}: whether they are of this model is not checked.`;
    emit({ type: 'log', source: CALIBRATION_LOG, severity: 'warning', message });
  }
  return new Map(
    tensors.map((name): [string, TensorRange] => {
      const range = ranges.get(name);
      const isWhole = isTable || range?.channels !== undefined || !channels.has(name);
      if (range !== undefined && isWhole) return [name, range];
      const what = range === undefined ? 'range' : 'channels';
      throw new TrtforgeError('TF_CALIBRATION_INVALID', `${path} has no ${what} of the tensor ${name}.`, {
        remedy:
          'Pass another --calibration-cache, or remove the file to calibrate again; or keep the nodes that read the tensor FP32.',
      });
    }),
  );
}

type Context = Pick<Parameters<Calibration['observe']>[1], 'emit' | 'signal'>;

async function opener(model: string, { provider = 'cpu', ...place }: PlaceOptions, context: Context) {
  if (!isOrtProvider(provider))
    throw new TrtforgeError('TF_USAGE', `"${provider}" is not a provider that a model is calibrated on.`, {
      remedy: 'Pass one of: cpu, cuda, tensorrt.',
    });
  const { openOrtSession } = await import('../runtime/onnxruntime/ort-session.js');
  return ({ path, weightsFolder }: ObservedFile) =>
    openOrtSession(path, { provider, ...place, ...context, weightsFolder, givenModel: model });
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
  const ordered = method.name === 'max' ? digests.sort() : digests;
  return sha256(canonicalJson({ revision: CALIBRATION_REVISION, samples: ordered }));
}
