import { existsSync } from 'node:fs';
import { join, parse } from 'node:path';
import { canonicalJson, sha256, sha256OfFile } from '../../base/files/digest.js';
import { noteInput } from '../../base/files/user-files.js';
import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional, valuesOf } from '../../base/options/option.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener, WorkContext } from '../../events.js';
import { preparationOptions, preprocessings } from '../../formats/images/preprocess.js';
import {
  assertOrigin,
  type CachedRanges,
  readCalibration,
  writeCalibration,
} from '../../formats/precision/calibrate/cache.js';
import { CALIBRATION_REVISION } from '../../formats/precision/calibrate/calibrate.js';
import {
  type ChosenMethod,
  calibrationMethods,
  DEFAULT_METHOD,
  methodText,
  parseMethod,
} from '../../formats/precision/calibrate/methods.js';
import type { ObservedFile } from '../../formats/precision/calibrate/observed-model.js';
import {
  CALIBRATION_LOG,
  type CalibratedRanges,
  type TensorRange,
} from '../../formats/precision/calibrate/ranges.js';
import { type Calibration, sampleFiles } from '../../formats/precision/options.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { type PlaceOptions, placeOptions } from '../runtime/back-end.js';
import { isOrtProvider } from '../runtime/onnxruntime/provider-options.js';
import { readSamples, repeatedFiles } from './read-samples.js';
import { partOf, type SamplePart, type SampleSource } from './sample-source.js';

const calibrating = { group: 'Calibration' } as const;

const methods = Object.entries(calibrationMethods)
  .map(([name, what]) => `${name} (${what})`)
  .join(' · ');

/** The sources of a calibration, and the place where the model runs. */
export const calibrationOptions = {
  /** Files and folders, see `readSamples`. */
  data: needed(is.list<string>(), {
    flags: '--calibration <file>',
    ...calibrating,
    describe: `samples for int8, fp8 and better int4, nvfp4: ${sampleFiles}`,
    repeat: true,
  }),
  /** As `parseMethod` reads it; default `mse`. */
  method: optional(is.text, {
    flags: '--calibration-method <name>',
    ...calibrating,
    // No default: with a cache and no samples the method is the file's unless one is named.
    describe: `how ranges of quantized tensors are chosen (default: ${DEFAULT_METHOD}): ${methods}`,
    parse: (value: string) => methodText(parseMethod(value)),
  }),
  /**
   * Where ranges are kept: used where it is there and of the same data, method, type and model, else written. Without data the file states data and method. A
   * table of TensorRT or ONNX Runtime states nothing: its magnitudes are used as they are, and the rest is of the data, where there are any.
   */
  cache: optional(is.text, {
    flags: '--calibration-cache <file>',
    ...calibrating,
    describe:
      "ranges of quantized tensors: read where it is there, else written (.json, or TensorRT's table)",
    writes: 'missing',
  }),
  /** Which of the samples count; default all. */
  part: optional(is.word<SamplePart>()),
  ...preparationOptions,
  ...placeOptions,
};

export interface CalibrationRequest extends OptionsOf<typeof calibrationOptions> {}

/**
 * A calibration over data on ONNX Runtime, which is loaded only when a model is calibrated. Throws TF_USAGE for a method that there is not and where neither data nor a cache is named;
 * its functions throw TF_USAGE where there are no data and no file of the cache, and what reading both and running the model throw.
 */
export function calibrationOf(request: CalibrationRequest): Calibration {
  const { data, method, cache: path, part, preprocess, imgsz, provider = 'cpu' } = request;
  const chosen = parseMethod(method ?? DEFAULT_METHOD);
  if (data.length === 0 && path === undefined) throw nothingToRead();
  const samples = new CalibrationData(request, chosen);
  /** Read once, and then what was written: ranges that a run writes into a table keep their method in that run. */
  let cached: { readonly content: CachedRanges | undefined } | undefined;
  const kept = (): CachedRanges | undefined => {
    if (cached === undefined) {
      const isThere = path !== undefined && existsSync(path);
      if (isThere) noteInput(path);
      cached = { content: isThere ? readCalibration(path) : undefined };
    }
    if (data.length === 0 && cached.content === undefined) throw nothingToRead(path);
    return cached.content;
  };
  return {
    digest: () => {
      const found = kept();
      if (data.length === 0) return found?.identity?.data ?? sha256OfFile(path!);
      if (found?.identity !== null) return samples.digest();
      return sha256(canonicalJson({ samples: samples.digest(), table: sha256OfFile(path!) }));
    },
    get method() {
      const found = kept();
      if (found?.identity === null) return 'unknown';
      return data.length === 0 && method === undefined ? found!.identity.method : methodText(chosen);
    },
    preprocess,
    judging:
      data.length === 0 || part === 'held-out'
        ? undefined
        : { files: data, preprocess, imgsz, ...(part === undefined ? {} : { part: 'held-out' }) },
    facts: () => ({
      data: [...data],
      samples: samples.ran,
      cache: path ?? null,
      preprocess: preprocess ?? null,
      imgsz: imgsz ?? (preprocess === undefined ? null : (preprocessings[preprocess]?.width ?? null)),
      provider,
    }),
    forComponent: (name, inputs) => {
      const own = { ...request, cache: path && cacheOfComponent(path, name) };
      if (data.length === 0) return existsSync(own.cache!) ? calibrationOf(own) : undefined;
      const bindings = inputs.map(({ name, dtype, shape }) => ({ name, dtype: dtype as Dtype, shape }));
      const fitting = data.filter((each) =>
        readSamples([each], { preprocess, imgsz }).every((source) => source.isFor(bindings)),
      );
      return fitting.length === 0 ? undefined : calibrationOf({ ...own, data: fitting });
    },
    observe: async (model, { pluginTypes, ...work }) => {
      samples.ran = 0;
      kept();
      // A cache has the ranges of what is quantized only.
      if (data.length === 0) return new Map();
      const { observeRanges } = await import('../../formats/precision/calibrate/observed-model.js');
      return samples.over(model, work, (each, open, total) =>
        observeRanges(model, each, open, { ...work, total, pluginTypes }),
      );
    },
    calibrate: async (model, tensors, { dtype, channels, ...work }) => {
      samples.ran = 0;
      const used: ChosenMethod = dtype === null ? MAX : chosen;
      const run = async (by: ChosenMethod, emit = work.emit) => {
        const { calibrateTensors } = await import('../../formats/precision/calibrate/calibrate.js');
        const sampleName = () => samples.origin;
        const context = { ...work, emit, method: by, dtype: dtype ?? undefined, channels, sampleName };
        return samples.over(model, work, (each, open, total) =>
          calibrateTensors(model, tensors, each, open, { ...context, total }),
        );
      };
      if (path === undefined) return run(used);
      const found = kept();
      if (found?.identity === null) {
        const message = `The ranges are those of ${path}: whether they are of this model is not checked.`;
        work.emit?.({ type: 'log', source: CALIBRATION_LOG, severity: 'warning', message });
        const ranges = tensorRanges(path, found.ranges, tensors, new Map());
        // A table has magnitudes only: the samples show extremes and channels.
        return data.length === 0
          ? ranges
          : withMagnitudes(await run(MAX, withoutWarnings(work.emit)), ranges);
      }
      const { digestModelFile } = await import('../identity/model-digest.js');
      const origins = { dtype: dtype ?? 'weights', model: await digestModelFile(model) };
      if (data.length === 0) {
        assertOrigin(path, found!.identity, { ...origins, method: method && methodText(used) });
        return tensorRanges(path, found!.ranges, tensors, channels);
      }
      const identity = { ...origins, data: samples.digest(), method: methodText(used) };
      if (found !== undefined) {
        assertOrigin(path, found.identity, identity);
        return tensorRanges(path, found.ranges, tensors, channels);
      }
      const observed = await run(used);
      writeCalibration(path, identity, observed);
      // A table rounds them, and the next run reads it.
      const ranges = withMagnitudes(observed, readCalibration(path).ranges);
      cached = { content: { identity: { ...identity, revision: CALIBRATION_REVISION }, ranges } };
      return ranges;
    },
  };
}

/** The data of a calibration, and the last run over them. */
class CalibrationData {
  /** Samples of the last run. */
  ran = 0;
  /** The last of them, as messages name it. */
  origin = '';
  readonly #request: CalibrationRequest;
  readonly #method: ChosenMethod;
  #sources: readonly SampleSource[] | undefined;
  #digest: string | undefined;

  constructor(request: CalibrationRequest, method: ChosenMethod) {
    this.#request = request;
    this.#method = method;
  }

  get sources(): readonly SampleSource[] {
    const { data, part, preprocess, imgsz } = this.#request;
    const read = this.#sources ?? readSamples(data, { preprocess, imgsz });
    this.#sources ??= part === undefined ? read : [partOf(read, part)];
    return this.#sources;
  }

  digest(): string {
    this.#digest ??= digestOf(this.sources, this.#method);
    return this.#digest;
  }

  /** Runs over all samples. ONNX Runtime does not know which of them it fails on, and its remedies are for a run. */
  async over<T>(model: string, work: WorkContext, use: OverSamples<T>): Promise<T> {
    const message = repeatedFiles(this.#request.data);
    if (message !== null) work.emit?.({ type: 'log', source: CALIBRATION_LOG, severity: 'warning', message });
    const [open, samples] = await Promise.all([
      opener(model, valuesOf(placeOptions, this.#request), work),
      samplesOf(this.sources, work.signal, (sample) => {
        this.ran++;
        this.origin = sample;
      }),
    ]);
    try {
      return await use(samples, open, totalOf(this.sources));
    } catch (error) {
      const isRun = error instanceof TrtforgeError && error.code === 'TF_ONNXRUNTIME_FAILED' && this.ran > 0;
      if (!isRun) throw error;
      throw new TrtforgeError(error.code, `The calibration fails on ${this.origin}: ${error.message}`, {
        remedy:
          'Pass samples that the model takes: values within what it looks up, shapes that fit together.',
        details: error.details,
        cause: error,
      });
    }
  }
}

type OverSamples<T> = (
  samples: Awaited<ReturnType<typeof samplesOf>>,
  open: Awaited<ReturnType<typeof opener>>,
  total: ReturnType<typeof totalOf>,
) => Promise<T>;

const MAX: ChosenMethod = { name: 'max' };

const nothingToRead = (cache?: string) =>
  new TrtforgeError(
    'TF_USAGE',
    cache === undefined
      ? 'A calibration has neither samples nor a cache.'
      : `There are no samples, and the calibration cache ${cache} does not exist.`,
    { remedy: 'Pass samples: --calibration FILE.' },
  );

/** `ranges.json` of an encoder is `ranges.encoder.json`. */
function cacheOfComponent(cache: string, component: string): string {
  const { dir, name, ext } = parse(cache);
  return join(dir, `${name}.${component}${ext}`);
}

/** Throws TF_CALIBRATION_INVALID for a tensor that the ranges of a file lack. */
function tensorRanges(
  path: string,
  ranges: CalibratedRanges,
  tensors: readonly string[],
  channels: ReadonlyMap<string, number>,
): CalibratedRanges {
  return new Map(
    tensors.map((name): [string, TensorRange] => {
      const range = ranges.get(name);
      const isWhole = range?.channels !== undefined || !channels.has(name);
      if (range !== undefined && isWhole) return [name, range];
      const what = range === undefined ? 'range' : 'channels';
      throw new TrtforgeError('TF_CALIBRATION_INVALID', `${path} has no ${what} of the tensor ${name}.`, {
        remedy:
          'Pass another --calibration-cache, or remove the file to calibrate again; or keep the nodes that read the tensor FP32.',
      });
    }),
  );
}

const withMagnitudes = (observed: CalibratedRanges, magnitudes: CalibratedRanges): CalibratedRanges =>
  new Map(
    [...observed].map(([name, range]) => [
      name,
      { ...range, amax: magnitudes.get(name)?.amax ?? range.amax },
    ]),
  );

/** For a run whose ranges do not count: whether they grow makes no difference. */
const withoutWarnings =
  (emit: EventListener | undefined): EventListener =>
  (event) => {
    if (event.type !== 'log' || event.source !== CALIBRATION_LOG) emit?.(event);
  };

async function opener(model: string, { provider = 'cpu', ...place }: PlaceOptions, work: WorkContext) {
  if (!isOrtProvider(provider))
    throw new TrtforgeError('TF_USAGE', `"${provider}" is not a provider that a model is calibrated on.`, {
      remedy: 'Pass one of: cpu, cuda, tensorrt.',
    });
  const { openOrtSession } = await import('../runtime/onnxruntime/ort-session.js');
  return ({ path, weightsFolder }: ObservedFile) =>
    openOrtSession(path, { provider, ...place, ...work, weightsFolder, givenModel: model });
}

async function samplesOf(
  sources: readonly SampleSource[],
  signal: AbortSignal | undefined,
  began: (origin: string) => void,
) {
  const { preparedSamples } = await import('./read-samples.js');
  return ({ inputs }: { readonly inputs: Parameters<typeof preparedSamples>[1] }) =>
    preparedSamples(sources, inputs, signal, began);
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
