import { basename, join, posix, resolve, sep } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import type { StreamsRequest } from './options.js';

/** The sizing in `models/NAME`, for `trtforge report`; its other files there are DeepStream's own. */
export const SIZING_FILE = 'deepstream-size.json';

/** The names of a model and its files in DeepStream's layout `models/{name}/…`. */
export interface StreamsNames {
  readonly modelName: string;
  /** The ONNX file's name without `.onnx`. */
  readonly modelFile: string;
  /** The folder that holds `models/`, absolute. */
  readonly root: string;
  /** Where the name differs from what the scripts of DeepStream's skill would have made of the path, and why. */
  readonly notes: readonly string[];
}

/**
 * MODEL_NAME and MODEL_FILENAME of an ONNX path. The skill derives them with `sed 's|models/\([^/]*\)/.*|\1|'` and `basename PATH .onnx`, which
 * is right only for paths that begin with `models/NAME/`. For others: the folder after the last `models/` that has a `model/` in it, then after the
 * last `models/`, then the file's own name. The root is the folder that holds that `models/`, or the working folder.
 * Throws TF_USAGE for a requested name that is not the name of one folder.
 */
export function streamsNames(
  onnxPath: string,
  requested: StreamsRequest['names'] = {},
  workingFolder: string = process.cwd(),
): StreamsNames {
  if (requested.name !== undefined && !/^(?!\.{1,2}$)[^/\0]+$/.test(requested.name))
    throw new TrtforgeError(
      'TF_USAGE',
      `"${requested.name}" cannot be the folder of a model below models/.`,
      {
        remedy: 'Use a plain name, without slashes.',
      },
    );
  const modelFile = basename(onnxPath).replace(/\.onnx$/i, '');
  const placed = place(onnxPath, workingFolder);
  const modelName = requested.name ?? placed?.name ?? modelFile;
  const root = resolve(workingFolder, requested.root ?? placed?.root ?? '.');
  const theirs = sedName(onnxPath);
  const notes: string[] = [];
  if (theirs !== modelName && requested.name === undefined) {
    notes.push(
      `The model is called "${modelName}"; the sed of DeepStream's skill makes "${theirs}" of this path.`,
    );
  }
  if (basename(onnxPath, '.onnx') !== modelFile) {
    notes.push(`The file is called "${modelFile}"; basename PATH .onnx keeps an ending in capitals.`);
  }
  return { modelName, modelFile, root, notes };
}

/** `echo PATH | sed 's|models/\([^/]*\)/.*|\1|'` */
export const sedName = (path: string): string => path.replace(/models\/([^/]*)\/.*/, '$1');

function place(
  onnxPath: string,
  workingFolder: string,
): { readonly name: string; readonly root: string } | undefined {
  const beginning = /^models\/([^/]+)\/./.exec(onnxPath)?.[1];
  if (beginning !== undefined && beginning !== '.' && beginning !== '..')
    return { name: beginning, root: workingFolder };
  const parts = resolve(workingFolder, onnxPath).split(sep);
  // `models`, a name, and at least the file.
  const candidates = parts.flatMap((part, index) =>
    part === 'models' && index + 2 < parts.length ? [index] : [],
  );
  const chosen = candidates.findLast((index) => parts[index + 2] === 'model') ?? candidates.at(-1);
  const name = chosen === undefined ? undefined : parts[chosen + 1];
  return chosen === undefined || name === undefined
    ? undefined
    : { name, root: parts.slice(0, chosen).join(sep) || sep };
}

/** `x_dynamic_b64.engine` */
const engineFileName = (modelFile: string, maxBatch: number): string =>
  `${modelFile}_dynamic_b${maxBatch}.engine`;

/** Every path of the layout. Log names carry no time on purpose: what reads them knows them by name. */
export class StreamsPaths {
  /** `models/{name}`, absolute. */
  readonly model: string;
  readonly benchmarks: string;
  readonly engines: string;
  readonly timingCache: string;
  readonly data: string;
  /** The result of the sizing, for `trtforge report`. */
  readonly sizing: string;
  readonly #names: StreamsNames;

  constructor(names: StreamsNames) {
    this.#names = names;
    this.model = join(names.root, 'models', names.modelName);
    this.benchmarks = join(this.model, 'benchmarks');
    this.engines = join(this.benchmarks, 'engines');
    this.timingCache = join(this.engines, 'timing.cache');
    this.sizing = join(this.model, SIZING_FILE);
    this.data = join(this.model, 'reports', 'benchmark_data.json');
  }

  engine(maxBatch: number): string {
    return join(this.engines, engineFileName(this.#names.modelFile, maxBatch));
  }

  /** As the summary and benchmark_data.json name an engine: below the root, with slashes. */
  shownEngine(maxBatch: number): string {
    return posix.join(
      this.shownModel(),
      'benchmarks/engines',
      engineFileName(this.#names.modelFile, maxBatch),
    );
  }

  shownModel(): string {
    return posix.join('models', this.#names.modelName);
  }

  log(batch: number): string {
    return join(this.benchmarks, `b${batch}`, `trtexec_b${batch}.log`);
  }

  /** Apart from the fixed names: a batch may be measured there on another engine than its own. */
  sensitivityLog(batch: number): string {
    return join(this.benchmarks, 'sensitivity', `b${batch}`, `trtexec_b${batch}.log`);
  }

  /** The first engine's log has no batch in its name, later ones have. */
  buildLog(maxBatch: number, isFirst: boolean, at: Date): string {
    const which = isFirst ? '' : `b${maxBatch}_`;
    return join(this.engines, `${this.#names.modelFile}_dynamic_build_${which}${timestamp(at)}.log`);
  }
}

/** `date +%Y%m%d_%H%M%S`, local time. */
export function timestamp(at: Date): string {
  const two = (part: number) => String(part).padStart(2, '0');
  const day = `${at.getFullYear()}${two(at.getMonth() + 1)}${two(at.getDate())}`;
  return `${day}_${two(at.getHours())}${two(at.getMinutes())}${two(at.getSeconds())}`;
}
