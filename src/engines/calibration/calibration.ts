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
  type CalibrationIdentity,
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
  type ObserveRanges,
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
  const cache = path === undefined ? undefined : new CalibrationCache(path, request, samples);
  return {
    digest: () => {
      const found = cache?.read();
      if (data.length === 0) return found?.identity?.data ?? sha256OfFile(path!);
      if (found?.identity !== null) return samples.digest();
      return sha256(canonicalJson({ samples: samples.digest(), table: sha256OfFile(path!) }));
    },
    get method() {
      const found = cache?.read();
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
    forComponent: (name, inputs) => componentCalibration(request, name, inputs),
    observe: async (model, context) => {
      samples.ran = 0;
      cache?.read();
      // A cache has the ranges of what is quantized only.
      return data.length === 0 ? new Map() : samples.observe(model, context);
    },
    calibrate: async (model, tensors, context) => {
      samples.ran = 0;
      const used = context.dtype === null ? MAX : chosen;
      return (cache ?? samples).calibrate(model, tensors, used, context);
    },
  };
}

/** The calibration of one model of several; undefined where no sample fits its inputs, or where its cache is missing and there are no samples. */
function componentCalibration(
  request: CalibrationRequest,
  name: string,
  inputs: DeclaredInputs,
): Calibration | undefined {
  const { data, cache: path, preprocess, imgsz } = request;
  const own = { ...request, cache: path && cacheOfComponent(path, name) };
  if (data.length === 0) return existsSync(own.cache!) ? calibrationOf(own) : undefined;
  const bindings = inputs.map(({ name, dtype, shape }) => ({ name, dtype: dtype as Dtype, shape }));
  const fitting = data.filter((each) =>
    readSamples([each], { preprocess, imgsz }).every((source) => source.isFor(bindings)),
  );
  return fitting.length === 0 ? undefined : calibrationOf({ ...own, data: fitting });
}

type DeclaredInputs = Parameters<NonNullable<Calibration['forComponent']>>[1];
type CalibrateContext = Parameters<Calibration['calibrate']>[2];

/** The file of a calibration's ranges. */
class CalibrationCache {
  readonly #path: string;
  readonly #request: CalibrationRequest;
  readonly #samples: CalibrationData;
  #found: { readonly content: CachedRanges | undefined } | undefined;

  constructor(path: string, request: CalibrationRequest, samples: CalibrationData) {
    this.#path = path;
    this.#request = request;
    this.#samples = samples;
  }

  /** Its ranges, read once; undefined where there is no file. Throws TF_USAGE where there are no samples either. */
  read(): CachedRanges | undefined {
    const path = this.#path;
    if (this.#found === undefined) {
      const isThere = existsSync(path);
      if (isThere) noteInput(path);
      this.#found = { content: isThere ? readCalibration(path) : undefined };
    }
    const { content } = this.#found;
    if (this.#isAlone && content === undefined) throw nothingToRead(path);
    return content;
  }

  /** The ranges of a model's tensors; those of the samples are written where there is no file. Throws TF_CALIBRATION_INVALID for ranges of another origin. */
  async calibrate(
    model: string,
    tensors: readonly string[],
    method: ChosenMethod,
    context: CalibrateContext,
  ): Promise<CalibratedRanges> {
    const { dtype, channels } = context;
    const found = this.read();
    if (found?.identity === null) return this.#withTable(found.ranges, model, tensors, context);
    const { digestModelFile } = await import('../identity/model-digest.js');
    const origin = { dtype: dtype ?? 'weights', model: await digestModelFile(model) };
    if (this.#isAlone) {
      const requested = this.#request.method && methodText(method);
      assertOrigin(this.#path, found!.identity, { ...origin, method: requested });
      return tensorRanges(this.#path, found!.ranges, tensors, channels);
    }
    const identity = { ...origin, data: this.#samples.digest(), method: methodText(method) };
    if (found === undefined)
      return this.#keep(identity, await this.#samples.calibrate(model, tensors, method, context));
    assertOrigin(this.#path, found.identity, identity);
    return tensorRanges(this.#path, found.ranges, tensors, channels);
  }

  /** Whether there are no samples. */
  get #isAlone(): boolean {
    return this.#request.data.length === 0;
  }

  /** A table has magnitudes only: the samples show extremes and channels. */
  async #withTable(
    table: CalibratedRanges,
    model: string,
    tensors: readonly string[],
    context: CalibrateContext,
  ): Promise<CalibratedRanges> {
    const { emit } = context;
    const message = `The ranges are those of ${this.#path}: whether they are of this model is not checked.`;
    emit?.({ type: 'log', source: CALIBRATION_LOG, severity: 'warning', message });
    const ranges = tensorRanges(this.#path, table, tensors, new Map());
    if (this.#isAlone) return ranges;
    const quiet = withoutWarnings(emit);
    return withMagnitudes(await this.#samples.calibrate(model, tensors, MAX, context, quiet), ranges);
  }

  /** Writes ranges, and returns them as the next run reads them: a table rounds them. In this run they keep the method, which a table does not state. */
  #keep(identity: CalibrationIdentity, observed: CalibratedRanges): CalibratedRanges {
    writeCalibration(this.#path, identity, observed);
    const ranges = withMagnitudes(observed, readCalibration(this.#path).ranges);
    this.#found = { content: { identity: { ...identity, revision: CALIBRATION_REVISION }, ranges } };
    return ranges;
  }
}

/** The data of a calibration, and the last run over them. */
class CalibrationData {
  /** Samples of the last run. */
  ran = 0;
  /** The last of them, as messages name it. */
  #origin = '';
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

  async observe(model: string, { pluginTypes, ...work }: Parameters<ObserveRanges>[1]) {
    const { observeRanges } = await import('../../formats/precision/calibrate/observed-model.js');
    return this.#over(model, work, (each, open, total) =>
      observeRanges(model, each, open, { ...work, total, pluginTypes }),
    );
  }

  /** The ranges of a model's tensors; `emit` takes the events of finding them. */
  async calibrate(
    model: string,
    tensors: readonly string[],
    method: ChosenMethod,
    { dtype, channels, ...work }: CalibrateContext,
    emit = work.emit,
  ): Promise<CalibratedRanges> {
    const { calibrateTensors } = await import('../../formats/precision/calibrate/calibrate.js');
    const sampleName = () => this.#origin;
    const context = { ...work, emit, method, dtype: dtype ?? undefined, channels, sampleName };
    return this.#over(model, work, (each, open, total) =>
      calibrateTensors(model, tensors, each, open, { ...context, total }),
    );
  }

  /** Runs over all samples. ONNX Runtime does not know which of them it fails on, and its remedies are for a run. */
  async #over<T>(model: string, work: WorkContext, use: OverSamples<T>): Promise<T> {
    const message = repeatedFiles(this.#request.data);
    if (message !== null) work.emit?.({ type: 'log', source: CALIBRATION_LOG, severity: 'warning', message });
    const [open, samples] = await Promise.all([
      opener(model, valuesOf(placeOptions, this.#request), work),
      samplesOf(this.sources, work.signal, (sample) => {
        this.ran++;
        this.#origin = sample;
      }),
    ]);
    try {
      return await use(samples, open, totalOf(this.sources));
    } catch (error) {
      const isRun = error instanceof TrtforgeError && error.code === 'TF_ONNXRUNTIME_FAILED' && this.ran > 0;
      if (!isRun) throw error;
      throw new TrtforgeError(error.code, `The calibration fails on ${this.#origin}: ${error.message}`, {
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
