import { join } from 'node:path';
import { z } from 'zod';
import { openFile } from '../../base/files/byte-source.js';
import { statIfThere } from '../../base/files/files.js';
import { noteInput, protectingInputs } from '../../base/files/user-files.js';
import { readSamples, repeatedFiles, typedSample } from '../../engines/calibration/read-samples.js';
import type { CalibrationSample, SampleFile, SampleSource } from '../../engines/calibration/sample-source.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { rejectMissing } from '../../engines/run/gather-inputs.js';
import type { RunRequest } from '../../engines/run/options.js';
import { type RunResult, runResultSchema } from '../../engines/run/result.js';
import {
  passportHere,
  type RunContext,
  type Runs,
  runOpened,
  writeOutputs,
} from '../../engines/run/run-file.js';
import type { OpenedEngine, OpenedModel } from '../../engines/runtime/back-end.js';
import { callShapeOf, chooseProfile } from '../../engines/runtime/tensorrt/choose-profile.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { readLabels } from '../../formats/images/labels.js';
import { predictionSchema } from './prediction.js';
import { classNamesOf, Predictor, type PredictorHints } from './predictor.js';

/** The result of `run`; of a run over samples it has each. */
export const runSamplesResultSchema = runResultSchema.extend({
  /** Absent where one set of inputs was run. `outputs` are then those of all samples together, with the shapes of the first. */
  samples: z
    .array(
      z.object({
        /** A file, or its row or chunk. */
        origin: z.string(),
        /** Where its outputs are; null where no output was requested. */
        output: z.string().nullable(),
        /** What its outputs state, of a picture that a decoder knows; null for others. */
        prediction: predictionSchema.nullable(),
        /** The picture with its prediction drawn over it; null where none was requested. */
        drawn: z.string().nullable(),
      }),
    )
    .optional(),
});
export interface RunSamplesResult extends z.infer<typeof runSamplesResultSchema> {}

interface RunSamplesRequest extends Omit<RunRequest, 'sources' | 'seed' | 'shapes' | 'ranges'> {
  /** Files of samples, as `readSamples` takes them. */
  readonly samples: readonly string[];
  /** Of pictures; default: as the passport of an engine states. */
  readonly preprocess?: string | undefined;
  readonly imgsz?: number | undefined;
  /** Names of the classes, a file; default: the metadata of a model. */
  readonly labels?: string | undefined;
  /** Throws TF_USAGE for a sample that is not a picture, and TF_EVAL_HEAD for outputs that no decoder knows, at the first sample. */
  readonly pictures?: boolean;
}

/** A sample with the picture that it is made of. */
export type RunSample = NonNullable<RunSamplesResult['samples']>[number] & {
  readonly file: SampleFile | undefined;
};

/**
 * Runs a model or an engine once for each sample of files, and decodes what it states of pictures. `-o` is a folder, of one npz a sample in their order; a single sample is written as
 * `runFile` writes it. Throws what `runFile` and reading samples throw; TF_SESSION_INPUT for inputs that the samples lack.
 */
export function runSamples(
  request: RunSamplesRequest,
  context: RunContext = {},
): Promise<RunResult & { readonly samples: readonly RunSample[] }> {
  return protectingInputs([request.file, request.labels], () => run(request, context));
}

async function run(request: RunSamplesRequest, context: RunContext) {
  const { output, pictures = false } = request;
  for (const path of request.samples) assertThere(path);
  const hints = hintsOf(request);
  const sources = readSamples(request.samples, { preprocess: hints.preprocess, imgsz: request.imgsz });
  const total = sources.reduce((sum, each) => sum + (each.total ?? Number.NaN), 0);
  checkPlace(output, total);
  const predictor = new Predictor(hints);
  const samples: Omit<RunSample, 'prediction'>[] = [];
  const runAll = async (session: OpenedEngine | OpenedModel, { emit, signal, started }: Runs) => {
    const openMs = performance.now() - started;
    const ms: number[] = [];
    let facts: Pick<RunResult, 'inputs' | 'outputs' | 'profile'> | undefined;
    for await (const sample of samplesFor(session.inputs, sources)) {
      const [file] = sample.files ?? [];
      if (pictures) assertPicture(sample.origin, file);
      const ran = await runOne(session, sample, request, signal);
      const place = output === undefined || total === 1 ? output : join(output, npzName(samples.length));
      const written = writeOutputs(ran.outputs, place);
      facts = {
        profile: ran.profile,
        inputs: facts?.inputs ?? describedInputs(sample, request.samples),
        outputs: facts?.outputs.map((one, at) => together(one, written[at]!)) ?? written,
      };
      predictor.take(ran.outputs, file?.picture);
      if (pictures && predictor.unknown !== undefined) throw predictor.unknown;
      ms.push(...ran.ms);
      samples.push({ origin: sample.origin, output: place ?? null, drawn: null, file });
      emit?.({ type: 'progress', phase: 'run', done: samples.length, total: total || samples.length });
    }
    if (facts === undefined)
      throw new TrtforgeError('TF_CALIBRATION_INVALID', `${request.samples.join(', ')} has no sample.`);
    const outputs =
      total === 1 ? facts.outputs : facts.outputs.map((one) => ({ ...one, file: output ?? null }));
    return { ...facts, outputs, openMs, ms };
  };
  const result = await runOpened(
    request,
    context,
    () => {},
    (session, runs) => inPhase('run', runs.emit, () => runAll(session, runs)),
  );
  const { predictions, why } = predictor.finish();
  const predicted = samples.map((sample, at) => ({ ...sample, prediction: predictions[at] ?? null }));
  const lost = pictures ? predicted.filter(({ prediction }) => prediction === null) : [];
  const repeated = repeatedFiles(request.samples);
  const undrawn = lost.map(({ origin }) => `${origin} is not drawn: ${why?.message}`);
  return {
    ...result,
    warnings: [...result.warnings, ...(repeated === null ? [] : [repeated]), ...undrawn],
    samples: predicted,
  };
}

/** Preparation and names of an engine come from its passport and `--labels`, those of a model from `--preprocess` and its metadata. */
function hintsOf({ file, labels, preprocess }: RunSamplesRequest): PredictorHints {
  const isEngine = isEngineFile(file);
  const calibrated = isEngine ? passportHere(file)?.model.preprocess : undefined;
  const own = isEngine ? undefined : classNamesOf(file);
  return {
    names: labels === undefined ? own : readLabels(labels),
    preprocess: preprocess ?? calibrated ?? undefined,
  };
}

/** The samples in the types of the inputs, none of which they lack. */
async function* samplesFor(
  inputs: OpenedModel['inputs'],
  sources: readonly SampleSource[],
): AsyncIterable<CalibrationSample> {
  for (const source of sources)
    for await (const read of source.samples(inputs)) {
      const sample = typedSample(read, inputs);
      rejectMissing(inputs, sample.inputs);
      yield sample;
    }
}

const describedInputs = ({ inputs }: CalibrationSample, files: readonly string[]): RunResult['inputs'] =>
  [...inputs].map(([name, { dtype, shape }]) => ({ name, dtype, shape: [...shape], from: files.join(', ') }));

async function runOne(
  session: OpenedEngine | OpenedModel,
  { inputs }: CalibrationSample,
  { iterations = 1, profile: requested }: RunSamplesRequest,
  signal: AbortSignal | undefined,
) {
  if (session.kind === 'model')
    return { ...(await session.runRepeatedly(inputs, { iterations, signal })), profile: null };
  const profile = chooseProfile(session.inputs, callShapeOf(session.inputs, inputs), requested);
  return { ...(await session.runRepeatedly(inputs, { iterations, profile, signal })), profile };
}

/** Before anything is loaded. */
function assertThere(path: string): void {
  if (path.includes('=@') || statIfThere(path) !== undefined) return;
  noteInput(path);
  openFile(path).close();
}

function assertPicture(origin: string, file: SampleFile | undefined): void {
  if (file?.picture !== undefined) return;
  throw new TrtforgeError('TF_USAGE', `--draw draws pictures, and ${origin} is not a picture.`, {
    remedy: 'Pass JPEG, PNG or WebP files, or a folder of them.',
    details: { option: '--draw' },
  });
}

function checkPlace(place: string | undefined, samples: number): void {
  if (place === undefined || samples === 1 || !/\.(npz|npy|json|safetensors)$/i.test(place)) return;
  throw new TrtforgeError('TF_USAGE', `The outputs of several samples cannot be written to ${place}.`, {
    remedy: 'Pass a folder: one npz for each sample.',
    details: { option: '-o' },
  });
}

/** In the order of the samples, as `compare` reads a folder. */
const npzName = (index: number): string => `${String(index).padStart(6, '0')}.npz`;

type RunOutput = RunResult['outputs'][number];

/** The figures of one output over two sets of samples. */
function together(a: RunOutput, b: RunOutput): RunOutput {
  const finite = ({ elements, nan, infinite }: RunOutput) => elements - nan - infinite;
  const sum = (one: RunOutput) => (one.mean ?? 0) * finite(one);
  const least = [a.min, b.min].filter((each) => each !== null);
  const most = [a.max, b.max].filter((each) => each !== null);
  const count = finite(a) + finite(b);
  return {
    ...a,
    elements: a.elements + b.elements,
    min: least.length === 0 ? null : Math.min(...least),
    max: most.length === 0 ? null : Math.max(...most),
    mean: count === 0 ? null : (sum(a) + sum(b)) / count,
    nan: a.nan + b.nan,
    infinite: a.infinite + b.infinite,
  };
}
