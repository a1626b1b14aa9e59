import { createHash } from 'node:crypto';
import { openFile } from '../../base/files/byte-source.js';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { TrtforgeError } from '../../errors.js';
import { type Dtype, elementCount, packedBytes } from '../../formats/tensor/dtype.js';
import { npyReader } from '../../formats/tensor/npy.js';
import { openNpz } from '../../formats/tensor/npz.js';
import type { Tensor } from '../../formats/tensor/tensor.js';
import { loadedSlot, type TensorReader } from '../../formats/tensor/tensor-reader.js';
import type { Binding } from '../runtime/session.js';
import { areInputs, type CalibrationSample, type SampleSource } from './sample-source.js';

/** A file of arrays by the names of inputs; `null` is the only input of a model. */
interface Arrays {
  readonly path: string;
  readonly readers: ReadonlyMap<string | null, TensorReader>;
  close(): void;
}

/** An npy file, for the only input of a model or for the one named. */
export interface NpyFile {
  readonly name: string | null;
  readonly path: string;
}

/**
 * One npz file, with an array for each input: one sample, or several along the first axis. `uncut`: an array that fits its input is one sample, as a call
 * takes it; otherwise an open first axis counts samples.
 */
export const npzSamples = (path: string, uncut: boolean): SampleSource => {
  const open = (voidDtypes: Readonly<Record<string, Dtype>> = {}): Arrays => {
    const file = openNpz(path, { voidDtypes });
    const slot = loadedSlot();
    try {
      const readers = new Map(file.names.map((name) => [name, file.reader(name, slot)]));
      return { path, readers, close: () => file.close() };
    } catch (error) {
      file.close();
      throw error;
    }
  };
  return {
    digests: () => [digestOf(open())],
    isFor: (inputs) => {
      const arrays = open(typesOf(inputs));
      arrays.close();
      return areInputs([...arrays.readers.keys()] as string[], inputs);
    },
    samples: (inputs) => rowsOf(open, inputs, uncut),
    total: undefined,
  };
};

/** npy files that belong together, one for each input: samples are along the first axis. */
export const npySamples = (files: readonly NpyFile[], uncut: boolean): SampleSource => {
  const open = (voidDtypes: Readonly<Record<string, Dtype>> = {}): Arrays => {
    const sources = files.map(({ path }) => openFile(path));
    const close = () => {
      for (const source of sources) source.close();
    };
    try {
      const readers = files.map(({ name }, at): [string | null, TensorReader] => {
        const voidDtype = name === null ? Object.values(voidDtypes)[0] : voidDtypes[name];
        return [name, npyReader(sources[at]!, loadedSlot(), voidDtype)];
      });
      return { path: files.map(({ path }) => path).join(', '), readers: new Map(readers), close };
    } catch (error) {
      close();
      throw error;
    }
  };
  return {
    digests: () => [digestOf(open())],
    isFor: (inputs) =>
      files.every(({ name }) => (name === null ? inputs.length === 1 : areInputs([name], inputs))),
    samples: (inputs) => rowsOf(open, inputs, uncut),
    total: undefined,
  };
};

/** For arrays of a type that numpy lacks, which npy files declare as bytes. */
const typesOf = (inputs: readonly Binding[]): Readonly<Record<string, Dtype>> =>
  Object.fromEntries(inputs.map(({ name, dtype }) => [name, dtype]));

const PIECE_BYTES = 4 << 20;

/** Of names, dtypes, shapes and values, whatever file they are in. */
function digestOf(arrays: Arrays): string {
  try {
    const tensors = [...arrays.readers].map(([name, reader]) => {
      const { dtype, shape } = reader;
      const bytes = packedBytes(dtype, elementCount(shape));
      const hash = createHash('sha256');
      for (let at = 0; at < bytes; at += PIECE_BYTES)
        hash.update(piece(reader, at, Math.min(PIECE_BYTES, bytes - at)));
      return [name ?? '', { dtype, shape: [...shape], sha256: hash.digest('hex') }] as const;
    });
    return sha256(canonicalJson(Object.fromEntries(tensors)));
  } finally {
    arrays.close();
  }
}

/** The arrays cut into samples, or as the one sample that they are. */
function* rowsOf(
  open: (voidDtypes: Readonly<Record<string, Dtype>>) => Arrays,
  inputs: readonly Binding[],
  uncut: boolean,
): Generator<CalibrationSample> {
  const arrays = open(typesOf(inputs));
  try {
    const columns = columnsOf(arrays, inputs, uncut);
    const rows = columns[0]?.rows ?? 1;
    const uneven = columns.find((column) => column.rows !== rows);
    if (uneven !== undefined)
      throw new TrtforgeError(
        'TF_CALIBRATION_INVALID',
        `${arrays.path} has ${rows} samples, but ${uneven.rows} of ${uneven.name}.`,
        { remedy: 'Pass arrays whose first axis has the same length for every input.' },
      );
    for (let row = 0; row < rows; row++)
      yield {
        origin: rows === 1 ? arrays.path : `sample ${row + 1} of ${arrays.path}`,
        inputs: new Map(columns.map(({ name, read }) => [name, read(row)])),
      };
  } finally {
    arrays.close();
  }
}

interface Column {
  readonly name: string;
  readonly rows: number;
  readonly read: (row: number) => Tensor;
}

function columnsOf({ path, readers }: Arrays, inputs: readonly Binding[], uncut: boolean): readonly Column[] {
  const named = [...readers].map(([name, reader]): [string, TensorReader] => {
    const [only, ...others] = inputs;
    if (name !== null) return [name, reader];
    if (only !== undefined && others.length === 0) return [only.name, reader];
    throw new TrtforgeError(
      'TF_CALIBRATION_INVALID',
      `${path} is the array of one input, and the model has ${inputs.length}: ${inputs.map((input) => input.name).join(', ')}.`,
      { remedy: 'Name the input of each array, NAME=@FILE.npy, or pass an npz file with an array for each.' },
    );
  });
  // Sizes of the batch that belong together are cut together, or not at all: a length that varies is no batch.
  const batches = new Set(inputs.flatMap(({ shape }) => (shape && shape.length > 1 ? shape[0]! : [])));
  const cuts = named.map(([name, { shape }]) => {
    const input = inputs.find((each) => each.name === name);
    if (!uncut) assertWholeBatches(path, input, shape);
    return cutOf(input, shape, batches);
  });
  const areCut =
    !uncut && cuts.every((cut) => cut !== undefined) && new Set(cuts.map((cut) => cut?.rows)).size === 1;
  return named.map(([name, reader], at) => {
    const { dtype, shape } = reader;
    const cut = cuts[at];
    if (!areCut && cut?.isNeeded !== true)
      return {
        name,
        rows: 1,
        read: () => ({ dtype, shape, bytes: piece(reader, 0, packedBytes(dtype, elementCount(shape))) }),
      };
    const { rows, dims } = cut!;
    const bytes = packedBytes(dtype, elementCount(dims));
    return { name, rows, read: (row) => ({ dtype, shape: dims, bytes: piece(reader, row * bytes, bytes) }) };
  });
}

/** Throws TF_CALIBRATION_INVALID for rows of the input's shape that do not fill its batch. */
function assertWholeBatches(path: string, input: Binding | undefined, shape: readonly number[]): void {
  const [batch, ...rest] = input?.shape ?? [];
  const [rows = 0, ...dims] = shape;
  const isRow =
    dims.length === rest.length && rest.every((dim, at) => typeof dim !== 'number' || dim === dims[at]);
  if (typeof batch !== 'number' || batch === 0 || !isRow || rows % batch === 0) return;
  throw new TrtforgeError(
    'TF_CALIBRATION_INVALID',
    `${path} has ${rows} rows of ${input!.name}, which takes ${batch} at a time.`,
    { remedy: `Pass a multiple of ${batch} rows.` },
  );
}

interface Cut {
  readonly rows: number;
  /** Of one sample. */
  readonly dims: readonly number[];
  /** Uncut the array does not fit the input. */
  readonly isNeeded: boolean;
}

/**
 * The cut of an array along its first axis: rows of the batch that the input has, or of one where it is open; without that axis where the array has
 * one more than the input. Undefined where it is one sample only.
 */
function cutOf(
  input: Binding | undefined,
  shape: readonly number[],
  batches: ReadonlySet<unknown>,
): Cut | undefined {
  const declared = input?.shape;
  const [first = 0, ...rest] = shape;
  if (declared === undefined || declared === null) return undefined;
  if (shape.length === declared.length + 1) return { rows: first, dims: rest, isNeeded: true };
  if (shape.length !== declared.length || shape.length === 0) return undefined;
  const [batch] = declared;
  const size = typeof batch === 'number' ? batch : 1;
  const isNeeded = typeof batch === 'number' && batch !== first;
  // A single open axis is a length more often than a batch, unless inputs of more axes begin with the same.
  const isLength = shape.length === 1 && !batches.has(batch);
  if (size === 0 || first % size !== 0 || (!isNeeded && isLength)) return undefined;
  return { rows: first / size, dims: [size, ...rest], isNeeded };
}

function piece(reader: TensorReader, position: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  if (length > 0) reader.readBytes(position, bytes);
  return bytes;
}
