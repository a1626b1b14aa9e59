import { throwIfCancelled } from '../../base/process/cancel.js';
import { typedSample } from '../../engines/calibration/prepared-samples.js';
import { type Preparation, readSamples } from '../../engines/calibration/read-samples.js';
import { partOf, type SamplePart } from '../../engines/calibration/sample-part.js';
import type { CalibrationSample, SampleSource } from '../../engines/calibration/sample-source.js';
import { type PlannedInput, planInputs, sampleOf } from '../../engines/run/inputs.js';
import type { Binding } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import type { ModelLike } from '../../formats/onnx/model.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import type { SampleInfo } from './judged.js';
import type { VerifyRequest } from './request.js';

/** Samples of the user, as `readSamples` takes them. */
export interface SampleData extends Preparation {
  /** Files and folders; `random` among them draws the inputs that the others lack, which happens anyway. */
  readonly files: readonly string[];
  /** Which of the samples count; default all. */
  readonly part?: SamplePart;
}

/** A sample that is made for every model, before those that are drawn. */
export interface MadeSample {
  readonly origin: string;
  readonly inputs: (seed: number) => NamedTensors;
}

const DRAWN_FIRST = 3;
const MOST_DRAWN = 16;
/** They are in memory, with the outputs of both sides. */
export const MOST_DATA = 32;

/** The user's samples, in the types of the inputs. */
export interface DataSamples {
  readonly samples: readonly CalibrationSample[];
  /** How many there are, of which `samples` are the first. */
  readonly available: number;
}

/** What both sides of a verification run on: the user's samples in their order, else samples that are made and drawn. */
export interface SamplePlan {
  /** Of the first sample. */
  readonly inputs: readonly Omit<PlannedInput, 'tensor'>[];
  /** How many samples are judged at first, and how many there are at most. */
  readonly firstRound: number;
  readonly most: number;
  /** How many samples the user's data have, of which those that run are the first; null where there are none. */
  readonly available: number | null;
  readonly info: (sample: number) => SampleInfo;
  readonly tensors: (sample: number) => NamedTensors;
}

const sourcesOf = ({ files, part, ...preparation }: SampleData): readonly SampleSource[] => {
  const sources = readSamples(namedOf(files), preparation);
  return part === undefined ? sources : [partOf(sources, part)];
};

const namedOf = (files: readonly string[]) => files.filter((file) => file !== 'random');

/** What the samples hold, digested. Throws what reading them throws. */
export const digestsOf = (data: SampleData): readonly string[] =>
  sourcesOf(data).flatMap((source) => source.digests());

/** The samples of data for a model with these inputs. Throws TF_SESSION_INPUT and what reading throws, with the sample; TF_CALIBRATION_INVALID where there is none. */
export async function readData(
  data: SampleData,
  inputs: readonly Binding[],
  { shapes, samples: most = MOST_DATA }: Pick<VerifyRequest, 'shapes' | 'samples'>,
  signal?: AbortSignal,
): Promise<DataSamples | null> {
  const named = namedOf(data.files);
  if (named.length === 0) return null;
  const samples: CalibrationSample[] = [];
  let available = 0;
  for (const source of sourcesOf(data)) {
    const start = available;
    for await (const sample of source.samples(inputs)) {
      throwIfCancelled(signal, 'reading the samples');
      if (available++ < most) samples.push(typedSample(sample, inputs));
      // Images that are not looked at need not be decoded.
      else if (source.total !== undefined) {
        available = start + source.total;
        break;
      }
    }
  }
  if (samples.length > 0) return { samples: batched(samples, shapes), available };
  throw new TrtforgeError('TF_CALIBRATION_INVALID', `${named.join(', ')} has no sample.`, {
    remedy: 'Pass files with at least one sample.',
  });
}

/** Samples of one row together where a batch is requested; the last one begins again with the first sample. */
function batched(
  samples: readonly CalibrationSample[],
  shapes: VerifyRequest['shapes'] = new Map(),
): readonly CalibrationSample[] {
  const [first] = samples;
  const names = [...first!.inputs.keys()];
  const [size = 1] = names.flatMap((name) => shapes.get(name)?.[0] ?? []);
  const isRow = ({ inputs }: CalibrationSample) =>
    names.every((name) => {
      const [rows, ...dims] = inputs.get(name)?.shape ?? [];
      const [batch, ...sizes] = shapes.get(name) ?? [];
      return rows === 1 && batch === size && dims.join() === sizes.join();
    });
  if (size === 1 || !samples.every(isRow)) return samples;
  return Array.from({ length: Math.ceil(samples.length / size) }, (_, batch) => {
    const rows = Array.from({ length: size }, (_, row) => samples[(batch * size + row) % samples.length]!);
    const stacked = (name: string): Tensor => {
      const tensors = rows.map(({ inputs }) => inputs.get(name)!);
      const { dtype, shape } = tensors[0]!;
      return {
        dtype,
        shape: [size, ...shape.slice(1)],
        bytes: Buffer.concat(tensors.map(({ bytes }) => bytes)),
      };
    };
    return {
      origin: `${rows[0]!.origin} to ${rows.at(-1)!.origin}`,
      inputs: new Map(names.map((name) => [name, stacked(name)])),
    };
  });
}

/**
 * Plans the samples of a model, at the sizes of an attempt where sizes are guessed (see `planInputs`, which throws what this throws). `model` is changed, so
 * pass one opened for this; `made` come before those that are drawn.
 */
export function planSamples(
  model: ModelLike,
  inputs: readonly Binding[],
  request: VerifyRequest,
  data: DataSamples | null,
  attempt: number,
  made: readonly MadeSample[] = [],
): SamplePlan {
  const { seed = 0, samples: asked } = request;
  if (data !== null) return planData(model, inputs, request, data, attempt);
  const planned = planInputs(model, inputs, request, attempt);
  return {
    inputs: planned,
    firstRound: made.length + (asked ?? DRAWN_FIRST),
    most: made.length + (asked ?? MOST_DRAWN),
    available: null,
    info: (sample) =>
      sample < made.length
        ? { origin: made[sample]!.origin, kind: 'edge' }
        : { origin: drawnText(seed, sample), kind: 'drawn' },
    tensors: (sample) => made[sample]?.inputs(seed) ?? sampleOf(planned, seed, sample),
  };
}

const drawnText = (seed: number, sample: number) => `drawn with seed ${seed}, sample ${sample}`;

/** Inputs that the data lack are drawn, at sizes that go with those of each sample: then there may be more samples than the data have, from their beginning again. */
function planData(
  model: ModelLike,
  inputs: readonly Binding[],
  { seed = 0, samples: asked, data: from, ...options }: VerifyRequest,
  { samples, available }: DataSamples,
  attempt: number,
): SamplePlan {
  const plans = new Map<string, readonly PlannedInput[]>();
  const planned = samples.map((sample) => {
    const given = [...sample.inputs].map(([name, { shape }]) => [name, shape] as const);
    const key = JSON.stringify(given);
    const shapes = new Map([...(options.shapes ?? []), ...given]);
    // Where nothing is drawn, nothing has to be planned.
    const isWhole = inputs.every(({ name }) => sample.inputs.has(name));
    const plan =
      plans.get(key) ?? (isWhole ? [] : planInputs(model, inputs, { ...options, shapes }, attempt));
    plans.set(key, plan);
    return { ...sample, isWhole, plan };
  });
  const at = (sample: number) => planned[sample % planned.length]!;
  const areWhole = planned.every(({ isWhole }) => isWhole);
  const most = areWhole ? samples.length : (asked ?? Math.max(samples.length, MOST_DRAWN));
  const files = namedOf(from?.files ?? []).join(', ');
  const source = available === 1 ? `${files}` : `${samples.length} of the ${available} samples of ${files}`;
  const first = at(0);
  return {
    inputs: inputs.map(({ name, dtype }) => {
      const tensor = first.inputs.get(name);
      if (tensor === undefined) return first.plan.find((input) => input.name === name)!;
      return { name, dtype, shape: tensor.shape, from: source };
    }),
    firstRound: areWhole ? most : Math.min(most, Math.max(samples.length, DRAWN_FIRST)),
    most,
    available,
    info: (sample) => ({ origin: at(sample).origin, kind: 'data' }),
    tensors: (sample) => new Map([...sampleOf(at(sample).plan, seed, sample), ...at(sample).inputs]),
  };
}
