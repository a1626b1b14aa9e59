import { basename, join } from 'node:path';
import { openFile } from '../../base/files/byte-source.js';
import { listFolder, statIfThere } from '../../base/files/files.js';
import { TrtforgeError } from '../../errors.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { nameOfNpy, npyReader } from '../../formats/tensor/npy.js';
import { openNpz } from '../../formats/tensor/npz.js';
import { openSafetensors } from '../../formats/tensor/safetensors.js';
import { tensorFrom } from '../../formats/tensor/tensor.js';
import {
  type LoadedSlot,
  loadedSlot,
  type TensorReader,
  tensorReader,
} from '../../formats/tensor/tensor-reader.js';
import { readExportedOutput } from '../../tensorrt/trtexec/exports.js';
import { openPolygraphy } from './polygraphy.js';

export const outputFormats = ['npz', 'npy', 'safetensors', 'polygraphy', 'trtexec'] as const;
export type OutputFormat = (typeof outputFormats)[number];

/** One sample's tensors by name. */
export type OutputRun = ReadonlyMap<string, TensorReader>;

/** Recorded outputs, opened: tensors are read where they are compared. */
export interface OutputSet {
  readonly path: string;
  readonly format: OutputFormat;
  /** Of Polygraphy's results. */
  readonly runner: string | null;
  /** In the order in which they were recorded. */
  readonly runs: readonly OutputRun[];
  /** Whether the files say the elements' types: trtexec's exports do not. */
  readonly typed: boolean;
  close(): void;
}

interface OutputSetOptions {
  /** Which runner of Polygraphy's results; must be said when there are several. */
  readonly runner?: string;
  /** The type of npy elements whose type numpy lacks. */
  readonly voidDtype?: Dtype;
}

/**
 * Opens recorded outputs by what they are: an npz, npy or safetensors file, Polygraphy's or trtexec's JSON, or a folder of them. In a folder, npy files are
 * the outputs of one run, by their names; npz, safetensors and JSON files are one run (or several) each, in the order of their names.
 * Throws TF_TENSOR_FILE_INVALID, TF_TENSOR_UNSUPPORTED, TF_TRTEXEC_EXPORT_INVALID, TF_FILE_…, TF_USAGE for a runner that is not there.
 */
export function openOutputSet(path: string, options: OutputSetOptions = {}): OutputSet {
  const isFolder = statIfThere(path)?.isDirectory() === true;
  const set = isFolder ? openFolder(path, options) : openOne(path, options);
  if (set.runs.some((run) => run.size > 0)) return set;
  set.close();
  throw unknown(path, 'it has no tensor');
}

function openFolder(folder: string, options: OutputSetOptions): OutputSet {
  const names = listFolder(folder)
    .filter((name) => /\.(npy|npz|safetensors|json)$/i.test(name))
    .sort();
  const endings = new Set(names.map((name) => name.slice(name.lastIndexOf('.')).toLowerCase()));
  const [ending] = endings;
  if (ending === undefined) throw unknown(folder, 'it has no npy, npz, safetensors or JSON file');
  if (endings.size > 1) throw unknown(folder, `it mixes ${[...endings].sort().join(', ')} files`);
  const parts: OutputSet[] = [];
  try {
    for (const name of names) parts.push(openOne(join(folder, name), options));
  } catch (error) {
    for (const part of parts) part.close();
    throw error;
  }
  const runs = parts.flatMap((part) => part.runs);
  const [first] = parts;
  return {
    path: folder,
    format: first?.format ?? 'npy',
    runner: first?.runner ?? null,
    runs: ending === '.npy' ? [new Map(runs.flatMap((run) => [...run]))] : runs,
    typed: parts.every(({ typed }) => typed),
    close: () => {
      for (const part of parts) part.close();
    },
  };
}

function openOne(path: string, options: OutputSetOptions): OutputSet {
  const format = formatOf(path);
  if (options.runner !== undefined && format !== 'polygraphy') {
    throw new TrtforgeError(
      'TF_USAGE',
      `${path} is ${format} and names no runners; ${options.runner} is requested.`,
      { remedy: "Leave the runner out: it chooses among Polygraphy's results." },
    );
  }
  const slot = loadedSlot();
  const set = { path, format, runner: null, typed: true };
  switch (format) {
    case 'npy':
      return { ...set, ...npyRun(path, slot, options) };
    case 'npz':
    case 'safetensors': {
      const { voidDtype } = options;
      const file = format === 'npz' ? openNpz(path, { voidDtype }) : openSafetensors(path);
      return closing(file, () => ({
        ...set,
        runs: [new Map(file.names.map((name) => [name, file.reader(name, slot)]))],
        close: () => file.close(),
      }));
    }
    case 'trtexec':
      return { ...set, typed: false, runs: [exported(path)], close: () => {} };
    case 'polygraphy': {
      const file = openPolygraphy(path, slot);
      return closing(file, () => {
        const { name, iterations } = chooseRunner(path, file.runners, options.runner);
        return { ...set, runner: name, runs: iterations, close: () => file.close() };
      });
    }
  }
}

function npyRun(
  path: string,
  slot: LoadedSlot,
  { voidDtype }: OutputSetOptions,
): Pick<OutputSet, 'runs' | 'close'> {
  const source = openFile(path);
  return closing(source, () => ({
    runs: [new Map([[nameOfNpy(basename(path)), npyReader(source, slot, voidDtype)]])],
    close: () => source.close(),
  }));
}

/** Values as trtexec printed them; of which type they were, the file does not say. */
const exported = (path: string): OutputRun =>
  new Map(
    readExportedOutput(path).map(({ name, shape, values }) => [
      name,
      tensorReader(tensorFrom('float64', shape, values)),
    ]),
  );

function chooseRunner<T extends { readonly name: string | null }>(
  path: string,
  runners: readonly T[],
  asked: string | undefined,
): T {
  const [only] = runners;
  const names = runners.map(({ name }) => name ?? 'inputs').join(', ');
  if (asked === undefined) {
    if (only === undefined) throw unknown(path, 'it has no results');
    if (runners.length === 1) return only;
    throw new TrtforgeError('TF_USAGE', `${path} has the results of several runners: ${names}.`, {
      remedy: 'Select one with --runner-a or --runner-b.',
    });
  }
  const found = runners.find(({ name }) => name === asked);
  if (found !== undefined) return found;
  throw new TrtforgeError('TF_USAGE', `${path} has no results of a runner ${asked}; it has ${names}.`);
}

/** Tells the format by the first bytes, whatever the file is called. */
function formatOf(path: string): OutputFormat {
  const source = openFile(path);
  try {
    const start = Buffer.alloc(4096);
    const text = start.toString('latin1', 0, source.read(start, 0, Math.min(start.length, source.size)));
    if (text.startsWith('\x93NUMPY')) return 'npy';
    if (text.startsWith('PK')) return 'npz';
    if (/^\s*[[{]/.test(text)) return /^\s*\[\s*\{\s*"name"\s*:\s*"/.test(text) ? 'trtexec' : 'polygraphy';
    if (text.charAt(8) === '{') return 'safetensors';
  } finally {
    source.close();
  }
  throw unknown(path, 'it is none of npz, npy, safetensors, Polygraphy JSON and trtexec JSON');
}

function closing<T>(file: { close(): void }, open: () => T): T {
  try {
    return open();
  } catch (error) {
    file.close();
    throw error;
  }
}

const unknown = (path: string, what: string): TrtforgeError =>
  new TrtforgeError('TF_TENSOR_FILE_INVALID', `${path} cannot be compared: ${what}.`, {
    remedy:
      'Pass npz, npy, safetensors, the JSON of `polygraphy run --save-outputs` or `trtexec --exportOutput`, or a folder of them.',
  });
