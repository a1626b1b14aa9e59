import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import { openFile } from '../../base/files/byte-source.js';
import { canonicalJson, sha256, sha256OfFile } from '../../base/files/digest.js';
import { LARGEST_DOCUMENT, listFolder, readText } from '../../base/files/files.js';
import { noteInput } from '../../base/files/user-files.js';
import { TrtforgeError } from '../../errors.js';
import { preprocessings } from '../../formats/images/preprocess.js';
import { openReference, recordedInputs } from '../../formats/reference/jsonl.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { preparedImages, preprocessingOf } from '../run/image-inputs.js';
import { type CutOptions, type NpyFile, npySamples, npzSamples } from './array-samples.js';
import { audioSamples } from './audio-samples.js';
import { areInputs, type CalibrationSample, isFound, type SampleSource } from './sample-source.js';

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
 * a path a line, from the folder of the list. Looks at names and first bytes only. Throws TF_FILE_…, TF_USAGE (images without a preparation),
 * TF_CALIBRATION_INVALID for what is none of these.
 */
export function readSamples(
  data: readonly string[],
  { uncut, ...preparation }: Preparation & CutOptions = {},
): readonly SampleSource[] {
  const files = data.flatMap(filesOf);
  const columns = files.filter(({ input }) => input !== null);
  const sources: SampleSource[] =
    columns.length === 0
      ? []
      : [
          npySamples(
            columns.map(({ input, path }): NpyFile => ({ name: input, path })),
            { uncut },
          ),
        ];
  const images: string[] = [];
  const audio: string[] = [];
  for (const { kind, path, input } of files) {
    noteInput(path);
    if (kind === 'image') images.push(path);
    else if (kind === 'audio') audio.push(path);
    else if (kind === 'reference') sources.push(referenceSamples(path));
    else if (kind === 'npz') sources.push(npzSamples(path, { uncut }));
    else if (input === null) sources.push(npySamples([{ name: null, path }], { uncut }));
  }
  if (audio.length > 0) sources.push(audioSamples(audio));
  if (images.length > 0) sources.push(imageSamples(images, imagePreparation(preparation)));
  return sources;
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
      for await (const image of preparedImages(inputs, paths, preprocessing))
        yield { origin: paths[at++]!, inputs: image.inputs };
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
