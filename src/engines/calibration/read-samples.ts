import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import { openFile } from '../../base/files/byte-source.js';
import { canonicalJson, sha256, sha256OfFile } from '../../base/files/digest.js';
import { LARGEST_DOCUMENT, listFolder, readText } from '../../base/files/files.js';
import { noteInput } from '../../base/files/user-files.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import { resample } from '../../formats/audio/audio.js';
import { type FrontEnd, firstFrames, logMel, nemoFrontEnd } from '../../formats/audio/log-mel.js';
import { readAudio } from '../../formats/audio/read-audio.js';
import { preprocessings } from '../../formats/images/preprocess.js';
import { extremesOf } from '../../formats/precision/calibrate/ranges.js';
import { openReference, recordedInputs } from '../../formats/reference/reference.js';
import {
  float32Values,
  integerTensor,
  isIntegerDtype,
  type NamedTensors,
  type Tensor,
  tensorFrom,
} from '../../formats/tensor/tensor.js';
import { preparedImages, preprocessingOf } from '../run/image-inputs.js';
import { inDtype } from '../run/input-dtype.js';
import { checkInputs, rejectUnknown } from '../runtime/check-inputs.js';
import type { Binding } from '../runtime/session.js';
import { type NpyFile, npySamples, npzSamples } from './array-samples.js';
import { areInputs, type CalibrationSample, isFound, ofSample, type SampleSource } from './sample-source.js';

/** The preparation of files other than tensors as inputs. */
export type Preparation = Partial<ImagePreparation>;

type Kind = 'npz' | 'npy' | 'image' | 'audio' | 'reference';

const kinds: Readonly<Record<string, Kind>> = {
  '.npz': 'npz',
  '.npy': 'npy',
  '.jpg': 'image',
  '.jpeg': 'image',
  '.png': 'image',
  '.webp': 'image',
  '.wav': 'audio',
  '.flac': 'audio',
};

interface DataFile {
  readonly path: string;
  readonly kind: Kind;
  /** The input that `NAME=@FILE.npy` names. */
  readonly input: string | null;
}

/**
 * The samples that data name: npz files, npy files (`NAME=@FILE.npy` for a model of several inputs), images, WAV and FLAC, recorded streams, folders of such files, and text files with
 * a path a line, from the folder of the list. A file that is named twice counts once (`repeatedFiles`). Looks at names and first bytes only. Throws TF_FILE_…, TF_USAGE (images without a preparation),
 * TF_CALIBRATION_INVALID for what is none of these.
 */
export function readSamples(
  data: readonly string[],
  { uncut = false, ...preparation }: Preparation & { readonly uncut?: boolean } = {},
): readonly SampleSource[] {
  const files = [...distinctFiles(data).values()].map(([first]) => first!);
  const columns = files.filter(({ input }) => input !== null);
  const sources: SampleSource[] =
    columns.length === 0
      ? []
      : [
          npySamples(
            columns.map(({ input, path }): NpyFile => ({ name: input, path })),
            uncut,
          ),
        ];
  const images: string[] = [];
  const audio: string[] = [];
  for (const { kind, path, input } of files) {
    noteInput(path);
    if (kind === 'image') images.push(path);
    else if (kind === 'audio') audio.push(path);
    else if (kind === 'reference') sources.push(referenceSamples(path));
    else if (kind === 'npz') sources.push(npzSamples(path, uncut));
    else if (input === null) sources.push(npySamples([{ name: null, path }], uncut));
  }
  if (audio.length > 0) sources.push(audioSamples(audio));
  if (images.length > 0) sources.push(imageSamples(images, imagePreparation(preparation)));
  return sources;
}

/** By real path and input, so that links and folders within each other name no file twice. */
function distinctFiles(data: readonly string[]): ReadonlyMap<string, readonly DataFile[]> {
  const files = new Map<string, readonly DataFile[]>();
  for (const file of data.flatMap(filesOf)) {
    const key = `${file.input ?? ''}=@${existsSync(file.path) ? realpathSync(file.path) : resolve(file.path)}`;
    files.set(key, [...(files.get(key) ?? []), file]);
  }
  return files;
}

/** A warning of files that data name more than once; null where there is none. Throws what `readSamples` throws of names. */
export function repeatedFiles(data: readonly string[]): string | null {
  const repeated = [...distinctFiles(data).values()].filter((named) => named.length > 1);
  if (repeated.length === 0) return null;
  const first = repeated[0]![0]!.path;
  return repeated.length === 1
    ? `${first} is named more than once among the samples and counts once.`
    : `${repeated.length} files are named more than once among the samples, ${first} first; each counts once.`;
}

/** The files among samples that other samples have too. Throws what `readSamples` throws of names. */
export function commonFiles(data: readonly string[], others: readonly string[]): readonly string[] {
  const paths = (each: readonly string[]) =>
    each.flatMap(filesOf).flatMap(({ path }) => (existsSync(path) ? [realpathSync(path)] : []));
  const known = new Set(paths(others));
  return paths(data).filter((path) => known.has(path));
}

function imagePreparation({ preprocess, imgsz }: Preparation): ImagePreparation {
  const names = Object.keys(preprocessings);
  if (preprocess !== undefined && names.includes(preprocess)) return { preprocess, imgsz };
  throw new TrtforgeError(
    'TF_USAGE',
    preprocess === undefined
      ? 'Images among the samples need a preprocessing.'
      : `"${preprocess}" does not name a preparation of images.`,
    { remedy: `Pass --preprocess ${names[0]} (or ${names.slice(1).join(', ')}), as in training.` },
  );
}

function filesOf(data: string): readonly DataFile[] {
  const named = /^([^=@]+)=@(.+)$/.exec(data);
  if (named !== null && !existsSync(data)) return [{ input: named[1]!, path: named[2]!, kind: 'npy' }];
  if (isFolder(data) && !isReference(data)) return folderFiles(data);
  if (extname(data).toLowerCase() === '.txt') return listed(data);
  return [{ path: data, kind: kindOf(data), input: null }];
}

const isFolder = (path: string): boolean => existsSync(path) && statSync(path).isDirectory();

/** In the order of their names; what is none of these kinds (labels, a note) is left out. */
function folderFiles(folder: string): readonly DataFile[] {
  const files = [...listFolder(folder)].sort().flatMap((name): readonly DataFile[] => {
    const kind = kinds[extname(name).toLowerCase()];
    return kind === undefined ? [] : [{ path: join(folder, name), kind, input: null }];
  });
  if (files.length > 0) return files;
  throw new TrtforgeError('TF_CALIBRATION_INVALID', `${folder} has no file with samples.`, {
    remedy: `Files that count end with ${Object.keys(kinds).join(', ')}.`,
  });
}

function listed(path: string): readonly DataFile[] {
  noteInput(path);
  const lines = readText(path, LARGEST_DOCUMENT, 'TF_CALIBRATION_INVALID').split('\n');
  const files = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  return files.map((file) => {
    const place = resolve(dirname(path), file);
    return { path: place, kind: kindOf(place), input: null };
  });
}

/** By the ending of the name, else by the first bytes. */
function kindOf(path: string): Kind {
  const known = kinds[extname(path).toLowerCase()];
  if (known !== undefined) return known;
  if (isReference(path)) return 'reference';
  const source = openFile(path);
  const head = Buffer.alloc(6);
  try {
    source.read(head, 0, Math.min(head.length, source.size));
  } finally {
    source.close();
  }
  if (head.toString('latin1', 0, 2) === 'PK') return 'npz';
  if (head.toString('latin1') === '\x93NUMPY') return 'npy';
  throw new TrtforgeError('TF_CALIBRATION_INVALID', `${path} has no samples that a reader knows.`, {
    remedy: `Files of samples end with ${Object.keys(kinds).join(', ')}, .jsonl; .txt is a list of such files.`,
  });
}

/** Images as the evaluation prepares them: a name of `preprocessings`, and width and height where the model leaves them open. */
interface ImagePreparation {
  readonly preprocess: string;
  /** Default: that of the preparation. */
  readonly imgsz?: number;
}

function imageSamples(paths: readonly string[], { preprocess, imgsz }: ImagePreparation): SampleSource {
  const pixels = imgsz ?? preprocessings[preprocess]!.width;
  return {
    total: paths.length,
    digests: () =>
      paths.map((path) => sha256(canonicalJson({ image: sha256OfFile(path), preprocess, imgsz: pixels }))),
    isFor: (inputs) => isFound(() => preprocessingOf(inputs, preprocess, pixels)),
    async *samples(inputs): AsyncIterable<CalibrationSample> {
      let at = 0;
      const preprocessing = preprocessingOf(inputs, preprocess, pixels);
      const { width, height } = preprocessing;
      for await (const image of preparedImages(inputs, paths, preprocessing)) {
        const path = paths[at++]!;
        const picture = {
          ...{ width: image.width, height: image.height },
          ...{ placement: image.placement, canvas: { width, height } },
        };
        yield { origin: path, inputs: image.inputs, files: [{ path, sha256: image.sha256, picture }] };
      }
    },
  };
}

/** Whether a path names a recorded stream. */
const isReference = (path: string): boolean => /\.jsonl$/i.test(path);

/** A recorded stream: each chunk is a sample, with the states that the model had made of the chunks before. */
const referenceSamples = (path: string): SampleSource => ({
  total: undefined,
  digests: () => Array.from(recordedInputs(path), digestOf),
  isFor: (inputs) => {
    for (const first of recordedInputs(path)) return areInputs([...first.keys()], inputs);
    return false;
  },
  async *samples(): AsyncIterable<CalibrationSample> {
    using reference = openReference(path);
    for await (const { inputs, meta } of reference.chunks({ select: (side) => side === 'inputs' }))
      yield { origin: `chunk ${meta.line} of ${path}`, inputs };
  },
});

/** As of arrays with these names, whatever form the reference has. */
const digestOf = (inputs: NamedTensors): string =>
  sha256(
    canonicalJson(
      Object.fromEntries(
        [...inputs].map(([name, { dtype, shape, bytes }]) => [
          name,
          { dtype, shape: [...shape], sha256: sha256(bytes) },
        ]),
      ),
    ),
  );

/** Utterances as log-mel features, as NeMo computes them for Parakeet and FastConformer: whole, one after another. */
function audioSamples(paths: readonly string[]): SampleSource {
  return {
    total: paths.length,
    digests: () =>
      paths.map((path) =>
        sha256(canonicalJson({ audio: sha256OfFile(path), frontEnd: { ...nemoFrontEnd } })),
      ),
    isFor: (inputs) => isFound(() => audioInputs(inputs)),
    async *samples(inputs): AsyncIterable<CalibrationSample> {
      const network = audioInputs(inputs);
      for (const path of paths) {
        const files = [{ path, sha256: sha256OfFile(path) }];
        yield { origin: path, inputs: await featuresOf(path, network), files };
      }
    },
  };
}

interface AudioInputs {
  readonly features: string;
  readonly length: Binding | undefined;
  readonly frontEnd: FrontEnd;
}

/** Finds the inputs of an encoder. Throws TF_SESSION_BINDING where there is not one float input [1, mels, frames], and at most one of integers, [1], for its length. */
function audioInputs(inputs: readonly Binding[]): AudioInputs {
  const lengths = inputs.filter(({ dtype, shape }) => isIntegerDtype(dtype) && shape?.length === 1);
  const [features, ...others] = inputs.filter((input) => !lengths.includes(input));
  const mels = features?.shape?.[1];
  if (
    features?.shape?.length !== 3 ||
    others.length > 0 ||
    lengths.length > 1 ||
    features.dtype !== 'float32'
  )
    throw new TrtforgeError('TF_SESSION_BINDING', 'The network cannot be run on audio.', {
      remedy:
        'Audio is for encoders with one float32 input [1, mels, frames] and one integer input [1], its length; record the inputs of others as npz.',
      details: { inputs },
    });
  const frontEnd = typeof mels === 'number' ? { ...nemoFrontEnd, mels } : nemoFrontEnd;
  return { features: features.name, length: lengths[0], frontEnd };
}

async function featuresOf(path: string, { features, length, frontEnd }: AudioInputs): Promise<NamedTensors> {
  const { samples } = resample(await readAudio(path), frontEnd.rate);
  const computed = logMel(samples, frontEnd);
  const { mels, valid } = computed;
  // Whole utterances end with the last valid frame.
  const kept = firstFrames(computed, valid);
  const tensors = new Map([[features, tensorFrom('float32', [1, mels, valid], kept)]]);
  if (length !== undefined && isIntegerDtype(length.dtype))
    tensors.set(length.name, integerTensor(length.dtype, [1], [valid]));
  return tensors;
}

const floats: ReadonlySet<string> = new Set(['float16', 'bfloat16', 'float32', 'float64']);

/**
 * The samples in the types of the inputs, each checked: names, types, shapes, NaN and infinities, and at the end that no float input was 0 in all of
 * them. `began` gets how messages call each, before it. Throws TF_SESSION_INPUT and TF_CALIBRATION_INVALID with the input and the file, what reading throws, TF_CANCELLED.
 */
export async function* preparedSamples(
  sources: readonly SampleSource[],
  inputs: readonly Binding[],
  signal: AbortSignal | undefined,
  began: (origin: string) => void = () => {},
): AsyncIterable<NamedTensors> {
  const largest = new Map<string, number>();
  for (const source of sources)
    for await (const sample of source.samples(inputs)) {
      throwIfCancelled(signal, 'reading the calibration data');
      const { inputs: tensors } = typedSample(sample, inputs);
      ofSample(sample.origin, () => checkInputs(inputs, tensors));
      for (const [name, tensor] of tensors) note(largest, name, tensor, sample.origin);
      began(sample.origin);
      yield tensors;
    }
  for (const [name, magnitude] of largest)
    if (magnitude === 0)
      throw new TrtforgeError(
        'TF_CALIBRATION_INVALID',
        `The input ${name} is 0 in every calibration sample.`,
        {
          remedy: 'Pass real inputs: from zeros no range of an activation can be learned.',
        },
      );
}

/** A sample in the types of the inputs; it may lack some. Throws TF_SESSION_INPUT for names, types and shapes that are not those of the inputs, with the sample. */
export const typedSample = (sample: CalibrationSample, inputs: readonly Binding[]): CalibrationSample =>
  ofSample(sample.origin, () => {
    const { inputs: tensors } = sample;
    rejectUnknown(inputs, tensors.keys());
    const own = inputs.filter(({ name }) => tensors.has(name));
    const typed = new Map(
      own.map((input) => [input.name, inDtype(input, tensors.get(input.name)!, input.name)]),
    );
    checkInputs(own, typed);
    return { ...sample, inputs: typed };
  });

function note(largest: Map<string, number>, name: string, tensor: Tensor, origin: string): void {
  if (!floats.has(tensor.dtype)) return;
  const { min, max } = extremesOf(float32Values(tensor));
  const magnitude = Math.max(-min, max);
  if (!Number.isFinite(magnitude))
    throw new TrtforgeError(
      'TF_CALIBRATION_INVALID',
      `The input ${name} has ${Number.isNaN(magnitude) ? 'NaN' : 'an infinity'} in ${origin}.`,
      { remedy: 'Remove the sample, or repair what wrote it.' },
    );
  largest.set(name, Math.max(largest.get(name) ?? 0, magnitude));
}
