import { throwIfCancelled } from '../../base/process/cancel.js';
import { plural } from '../../base/text/quantity.js';
import { readSamples, repeatedFiles, typedSample } from '../../engines/calibration/read-samples.js';
import {
  type CalibrationSample,
  FEWEST_SAMPLES,
  partOf,
  type SampleFile,
  type SamplePart,
  type SampleSource,
} from '../../engines/calibration/sample-source.js';
import type { Profile } from '../../engines/profiles/profile.js';
import type { PlannedInput } from '../../engines/run/drawn-inputs.js';
import { edgeSamples, type HeadRoomLevel, headRoomLevels } from '../../engines/run/edge-samples.js';
import { drawnSwitches } from '../../engines/run/guessed-run.js';
import { findUnreached, type Unreached } from '../../engines/run/unreached.js';
import type { Binding } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import { type ModelLike, viewModel } from '../../formats/onnx/model.js';
import { type NamedTensors, numbersOf, type Tensor } from '../../formats/tensor/tensor.js';
import type { SampleInfo } from './judged.js';
import {
  dataSample,
  drawnSample,
  elementsOf,
  filled,
  mixedOf,
  type PlannedSample,
  sizesOf,
} from './mixed-samples.js';
import {
  DRAWN_FIRST,
  MOST_DATA,
  MOST_DRAWN,
  type SampleData,
  type SamplesFrom,
  type VerifyRequest,
} from './options.js';
import type { VerifyResult } from './result.js';

/** Of the first samples of a plan. */
export const samplesFrom = ({ info, available }: SamplePlan, count: number): SamplesFrom => ({
  samples: Array.from({ length: count }, (_, sample) => info(sample)),
  available,
});
/** Of the inputs of a drawn sample together. */
const MOST_ELEMENTS = 2 ** 24;

/** The user's samples, in the types of the inputs. */
export interface DataSamples {
  /** None where none fits. */
  readonly samples: readonly CalibrationSample[];
  /** Number of samples in all, of which those in `samples` are the first. */
  readonly available: number;
  /** Facts about them that a reader of the verdict has to know. */
  readonly warnings: readonly string[];
}

/** The samples of both sides of a verification: the user's in their order, else samples that are made and drawn. */
export interface SamplePlan {
  /** Of the first sample. */
  readonly inputs: readonly Omit<PlannedInput, 'tensor'>[];
  /** Number of samples that are judged at first, and the largest number of them. */
  readonly firstRound: number;
  readonly most: number;
  /** Number of samples in the user's data, of which those that run are the first; null where all are drawn. */
  readonly available: number | null;
  readonly info: (sample: number) => SampleInfo;
  /** The files of a sample's rows, where pictures or recordings are its only inputs. */
  readonly files: (sample: number) => readonly SampleFile[];
  readonly tensors: (sample: number) => NamedTensors;
  /** The planned samples that do not run. */
  readonly leftOut: readonly LeftOut[];
  /** Drawn samples beyond the range of what is drawn; none beside data. */
  readonly headRoom: readonly (HeadRoomLevel & Pick<LeftOut, 'tensors'>)[];
}

/** A sample that does not run. */
export interface LeftOut extends SampleInfo {
  readonly reason: string;
  readonly tensors: () => NamedTensors;
}

/** A plan whose next samples take the place of one that does not run. */
export const without = (plan: SamplePlan, sample: number, reason: string): SamplePlan => ({
  ...plan,
  firstRound: Math.min(plan.firstRound, plan.most - 1),
  most: plan.most - 1,
  info: (at) => plan.info(at < sample ? at : at + 1),
  files: (at) => plan.files(at < sample ? at : at + 1),
  tensors: (at) => plan.tensors(at < sample ? at : at + 1),
  leftOut: [...plan.leftOut, { ...plan.info(sample), reason, tensors: () => plan.tensors(sample) }],
});

/** The samples that did not run, why, and the branches that each alone would have taken; `message` is for people. */
export function leftOutOf(
  path: string,
  { leftOut, inputs }: SamplePlan,
  unreached: Unreached | undefined,
): NonNullable<VerifyResult['leftOut']> {
  const switches = drawnSwitches(inputs).map(({ name }) => name);
  return leftOut.map(({ origin, kind, reason, tensors }) => {
    const missed = unreached?.branches ?? [];
    const taken = () => viewModel(path, (model) => findUnreached(model, [tensors()]).branches);
    const own = new Set(missed.length === 0 ? [] : taken().map(({ message }) => message));
    const branches = missed.filter(({ message }) => !own.has(message));
    const set =
      switches.length === 0 || kind === 'data'
        ? []
        : [...tensors()].filter(([name]) => switches.includes(name));
    const values = set.map(([name, tensor]) => `${name} ${numbersOf(tensor)[0]}`);
    const only = branches.map(({ node, branch }) => ` It alone takes the ${branch} branch of ${node}.`);
    const choose = set.map(([name]) => ` To choose ${name}: --inputs ${name}=@${name}.npy.`);
    const why = reason.replace(/\.?$/, '.');
    const message = `${[origin, ...values].join(', ')}: left out, as it does not run: ${why}${[...only, ...choose].join('')}`;
    return {
      origin,
      kind,
      reason,
      branches: branches.map(({ node, branch }) => ({ node, branch })),
      message,
    };
  });
}

/** Samples that are known, of `origin`. */
export const knownSamples = (samples: readonly NamedTensors[], origin: string): SamplePlan => ({
  inputs: [...samples[0]!].map(([name, { dtype, shape }]) => ({ name, dtype, shape, from: origin })),
  firstRound: samples.length,
  most: samples.length,
  available: samples.length,
  info: () => ({ origin, kind: 'data' }),
  files: () => [],
  tensors: (sample) => samples[sample]!,
  leftOut: [],
  headRoom: [],
});

function sourcesOf(
  { files, part, shares = part && [[part]], preprocess, imgsz }: SampleData,
  counted?: (samples: number) => void,
): readonly SampleSource[] {
  const all = readSamples(namedOf(files), { preprocess, imgsz });
  const partsOf = (parts: readonly SamplePart[]) =>
    parts.reduce<readonly SampleSource[]>((sources, each) => [partOf(sources, each, counted)], all);
  return shares?.flatMap(partsOf) ?? all;
}

const namedOf = (files: readonly string[]) => files.filter((file) => file !== 'random');

/** The digests of the samples' content. Throws what reading them throws. */
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
  const { profiles } = data;
  const fitsProfile = (each: CalibrationSample) => profiles === undefined || fitsAny(profiles, each.inputs);
  const sized = batched(samples, inputs, shapes, fitsProfile);
  const fitting = sized.filter(fitsProfile);
  const given = itemsIn(sized);
  const left = itemsIn(sized) - itemsIn(fitting);
  const drawn = inputs.filter(({ name }) => !samples[0]!.inputs.has(name)).map(({ name }) => name);
  const repeated = repeatedFiles(named);
  const fewSentence = `${from} has ${plural(total, 'sample')}, too few to hold some out: the samples that the ranges are made from judge the result.`;
  const leftSentence = `${left} of ${plural(given, 'sample')} of ${from} are outside of the profiles of the engine and left out${fitting.length === 0 ? ': the samples are drawn' : ''}.`;
  const batchSentence = `${from} has ${plural(samples.length, 'sample')}: ${samples.length - given} do not fill a batch and are left out.`;
  return {
    samples: fitting,
    available,
    warnings: [
      ...(repeated === null ? [] : [repeated]),
      ...(total < FEWEST_SAMPLES ? [fewSentence] : []),
      ...(drawn.length > 0 ? [`${from} has no ${drawn.join(', ')}: drawn.`] : []),
      ...(available === 1 && drawn.length === 0
        ? [`${from} has one sample: the verdict is about that one only.`]
        : []),
      ...(given < samples.length ? [batchSentence] : []),
      ...(isFilled(sized[0]!)
        ? [`${from} has ${plural(given, 'sample')}, which fill the batch more than once.`]
        : []),
      ...(left > 0 ? [leftSentence] : []),
    ],
  };
}

const isFilled = ({ inputs, items = Number.POSITIVE_INFINITY }: CalibrationSample) =>
  [...inputs.values()].some(({ shape }) => shape[0]! > items);

const itemsIn = (samples: readonly CalibrationSample[]) =>
  samples.reduce((sum, { items = 1 }) => sum + items, 0);

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

/**
 * Samples of one row together where a batch is requested. What is left over is a smaller batch where the model and `fits` allow that; else it is left out, and
 * where it is all there is, it begins again with the first sample until the batch is full.
 */
function batched(
  samples: readonly CalibrationSample[],
  inputs: readonly Binding[],
  shapes: VerifyRequest['shapes'] = new Map(),
  fits: (sample: CalibrationSample) => boolean,
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
  const isFixed = inputs.some(({ name, shape }) => names.includes(name) && typeof shape?.[0] === 'number');
  const batches = Array.from({ length: Math.ceil(samples.length / size) }, (_, batch) =>
    stacked(samples.slice(batch * size, (batch + 1) * size)),
  );
  const last = batches.at(-1)!;
  if (last.items === size || (!isFixed && fits(last))) return batches;
  const full = Array.from({ length: size }, (_, row) => samples[row % samples.length]!);
  const { files = [], ...filled } = stacked(full);
  const own = { ...filled, items: samples.length, files: files.slice(0, samples.length) };
  return batches.length > 1 ? batches.slice(0, -1) : [own];
}

function stacked(rows: readonly CalibrationSample[]): CalibrationSample & { readonly items: number } {
  const [first, last] = [rows[0]!, rows.at(-1)!];
  const together = (name: string): Tensor => {
    const tensors = rows.map(({ inputs }) => inputs.get(name)!);
    const { dtype, shape } = tensors[0]!;
    const bytes = Buffer.concat(tensors.map((tensor) => tensor.bytes));
    return { dtype, shape: [rows.length, ...shape.slice(1)], bytes };
  };
  return {
    origin: rows.length === 1 ? first.origin : `${first.origin} to ${last.origin}`,
    inputs: new Map([...first.inputs.keys()].map((name) => [name, together(name)])),
    items: rows.length,
    files: rows.every(({ files }) => files !== undefined) ? rows.flatMap(({ files = [] }) => files) : [],
  };
}

/**
 * Plans the samples of a model, at the sizes of an attempt where sizes are guessed (see `planInputs`, which throws what this throws). `model` is changed, so
 * pass one opened for this. Edge samples and those at the ends of the profiles come first. Inputs that the data lack are drawn: then there may be more samples
 * than the data have, from their beginning again.
 */
export function planSamples(
  model: ModelLike,
  inputs: readonly Binding[],
  request: VerifyRequest,
  data: DataSamples | null,
  attempt: number,
): SamplePlan {
  const { seed = 0, samples: asked } = request;
  const known = data?.samples ?? [];
  const sizes = known.length > 0 ? [] : sizesOf(model, inputs, request, attempt);
  const cycle = known.length > 0 ? mixedOf(model, inputs, request, known, attempt) : sizes.slice(0, 1);
  const first = cycle[0]!;
  const isWhole = cycle.every(({ plan }) => plan.length === 0);
  const isData = known.length > 0 && elementsOf([...first.inputs.values()]) >= elementsOf(first.plan);
  const edges = isData ? [] : edgeSamples(first.plan);
  const special: readonly PlannedSample[] = [
    ...edges.map((edge) => ({
      info: { origin: edge, kind: 'edge' } as const,
      files: [],
      tensors: () => filled(first, seed, edge),
    })),
    ...sizes.slice(1).map((end, at) => drawnSample(end, seed, at)),
  ];
  const at = (sample: number) => {
    const number = sample - special.length;
    const one = cycle[number % cycle.length]!;
    return special[sample] ?? (isData ? dataSample : drawnSample)(one, seed, number);
  };
  const most = isWhole ? cycle.length : (asked ?? Math.max(known.length, MOST_DRAWN));
  const source = sourceText(request, data);
  const plan: SamplePlan = {
    inputs: inputs.map(({ name, dtype }) => {
      const shape = first.inputs.get(name)?.shape;
      return shape === undefined
        ? first.plan.find((input) => input.name === name)!
        : { name, dtype, shape, from: source };
    }),
    firstRound:
      special.length + Math.min(most, isWhole ? most : (asked ?? Math.max(known.length, DRAWN_FIRST))),
    most: special.length + most,
    available: data?.available ?? null,
    info: (sample) => at(sample).info,
    files: (sample) => at(sample).files,
    tensors: (sample) => at(sample).tensors(),
    leftOut: [],
    headRoom: (isData ? [] : headRoomLevels(first.plan)).map((level) => ({
      ...level,
      tensors: () => level.larger(filled(first, seed, 0)),
    })),
  };
  return sizes.slice(1).reduceRight((left, end, index) => {
    const elements = elementsOf(end.plan);
    const reason = `its inputs have ${plural(elements, 'element')}, more than are run on the CPU.`;
    return elements > MOST_ELEMENTS ? without(left, edges.length + index, reason) : left;
  }, plan);
}

/** `8 of the 40 samples of pictures, in 2 batches`. */
function sourceText({ data: from }: VerifyRequest, data: DataSamples | null): string {
  const files = namedOf(from?.files ?? []).join(', ');
  if (data === null || data.available === 1) return files;
  const { samples, available } = data;
  const isBatched = samples.some(({ items }) => items !== undefined);
  return `${itemsIn(samples)} of the ${available} samples of ${files}${isBatched ? `, in batches: ${samples.length}` : ''}`;
}
