import { throwIfCancelled } from '../../base/process/cancel.js';
import { plural } from '../../base/text/quantity.js';
import { typedSample } from '../../engines/calibration/prepared-samples.js';
import { readSamples } from '../../engines/calibration/read-samples.js';
import { FEWEST_SAMPLES, partOf } from '../../engines/calibration/sample-part.js';
import type { CalibrationSample, SampleSource } from '../../engines/calibration/sample-source.js';
import type { Profile } from '../../engines/profiles/profile.js';
import { edgeSamples } from '../../engines/run/edge-samples.js';
import { type PlannedInput, planInputs, sampleOf } from '../../engines/run/inputs.js';
import type { Binding } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import type { ModelLike } from '../../formats/onnx/model.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import type { SampleInfo } from './judged.js';
import type { SampleData, SamplesFrom, VerifyRequest } from './request.js';

/** Of the first samples of a plan. */
export const samplesFrom = ({ info, available }: SamplePlan, count: number): SamplesFrom => ({
  samples: Array.from({ length: count }, (_, sample) => info(sample)),
  available,
});

const DRAWN_FIRST = 3;
const MOST_DRAWN = 16;
/** They are in memory, with the outputs of both sides. */
const MOST_DATA = 32;

/** The user's samples, in the types of the inputs. */
export interface DataSamples {
  /** None where none fits. */
  readonly samples: readonly CalibrationSample[];
  /** How many there are, of which `samples` are the first. */
  readonly available: number;
  /** What a reader of the verdict has to know of them. */
  readonly warnings: readonly string[];
}

/** What both sides of a verification run on: the user's samples in their order, else samples that are made and drawn. */
export interface SamplePlan {
  /** Of the first sample. */
  readonly inputs: readonly Omit<PlannedInput, 'tensor'>[];
  /** How many samples are judged at first, and how many there are at most. */
  readonly firstRound: number;
  readonly most: number;
  /** How many samples the user's data have, of which those that run are the first; null where all are drawn. */
  readonly available: number | null;
  readonly info: (sample: number) => SampleInfo;
  readonly tensors: (sample: number) => NamedTensors;
}

/** Samples that are known, of `origin`. */
export const knownSamples = (samples: readonly NamedTensors[], origin: string): SamplePlan => ({
  inputs: [...samples[0]!].map(([name, { dtype, shape }]) => ({ name, dtype, shape, from: origin })),
  firstRound: samples.length,
  most: samples.length,
  available: samples.length,
  info: () => ({ origin, kind: 'data' }),
  tensors: (sample) => samples[sample]!,
});

const sourcesOf = (
  { files, part, preprocess, imgsz }: SampleData,
  counted?: (samples: number) => void,
): readonly SampleSource[] => {
  const sources = readSamples(namedOf(files), { preprocess, imgsz });
  return part === undefined ? sources : [partOf(sources, part, counted)];
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
  let [available, total] = [0, FEWEST_SAMPLES];
  for (const source of sourcesOf(data, (count) => (total = count))) {
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
  const from = named.join(', ');
  if (samples.length === 0)
    throw new TrtforgeError('TF_CALIBRATION_INVALID', `${from} has no sample.`, {
      remedy: 'Pass files with at least one sample.',
    });
  const sized = batched(samples, shapes);
  const { profiles } = data;
  const fitting = sized.filter((each) => profiles === undefined || fitsAny(profiles, each.inputs));
  const left = sized.length - fitting.length;
  const fewSentence = `${from} has ${plural(total, 'sample')}, too few to hold some out: the samples that the ranges are made from judge the result.`;
  const leftSentence = `${left} of ${plural(sized.length, 'sample')} of ${from} are outside of the profiles of the engine and left out${fitting.length === 0 ? ': the samples are drawn' : ''}.`;
  return {
    samples: fitting,
    available: Math.ceil((available * sized.length) / samples.length),
    warnings: [
      ...(total < FEWEST_SAMPLES ? [fewSentence] : []),
      ...(available === 1 ? [`${from} has one sample: the verdict is about that one only.`] : []),
      ...(left > 0 ? [leftSentence] : []),
    ],
  };
}

/** Whether the shapes of inputs lie in one of some profiles; there is none for an engine of fixed shapes. */
const fitsAny = (profiles: readonly Profile[], inputs: NamedTensors): boolean =>
  profiles.length === 0 || profiles.some((profile) => fits(profile, inputs));

/** Whether the shapes of inputs lie in a profile. */
export const fits = (profile: Profile, inputs: NamedTensors): boolean =>
  Object.entries(profile).every(([name, { min, max, values }]) => {
    const shape = inputs.get(name)?.shape;
    return (
      values || shape === undefined || shape.every((size, axis) => min[axis]! <= size && size <= max[axis]!)
    );
  });

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
 * pass one opened for this; edge samples come before those that are drawn.
 */
export function planSamples(
  model: ModelLike,
  inputs: readonly Binding[],
  request: VerifyRequest,
  data: DataSamples | null,
  attempt: number,
): SamplePlan {
  const { seed = 0, samples: asked } = request;
  if (data !== null && data.samples.length > 0) return planData(model, inputs, request, data, attempt);
  const planned = planInputs(model, inputs, request, attempt);
  const edges = edgeSamples(planned);
  const edge = (sample: number) => edges[sample] ?? sample - edges.length;
  return {
    inputs: planned,
    firstRound: edges.length + (asked ?? DRAWN_FIRST),
    most: edges.length + (asked ?? MOST_DRAWN),
    available: null,
    info: (sample) =>
      sample < edges.length
        ? { origin: edges[sample]!, kind: 'edge' }
        : { origin: `drawn with seed ${seed}, sample ${edge(sample)}`, kind: 'drawn' },
    tensors: (sample) => sampleOf(planned, seed, edge(sample)),
  };
}

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
