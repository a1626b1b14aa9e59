import { closing, openFile } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { lacksVoidDtype, readNpyHeader } from '../../formats/tensor/npy.js';
import { openNpz } from '../../formats/tensor/npz.js';
import type { Binding } from '../runtime/session.js';
import { checkDims, rejectUnknown } from '../runtime/session-inputs.js';
import { checkConvertible } from './inputs.js';
import type { RunRequest, RunSource } from './run-result.js';

/** An input as a passport describes it: dimensions are numbers or open. */
export interface KnownInput extends Binding {
  readonly shape: readonly (number | null)[] | null;
}

/** A tensor as the header of a file states it; null where its type stays open until the input is known. */
interface Described {
  readonly name: string;
  /** For messages. */
  readonly from: string;
  readonly header: { readonly dtype: Dtype; readonly shape: readonly number[] } | null;
}

/**
 * Checks the sources of inputs as far as possible before anything is loaded: files exist and begin as npy or npz files do, and nothing is
 * passed twice; where the inputs are known, also names, types and fixed dimensions, and that none is left out. Reads headers, not values.
 * Throws TF_USAGE, TF_SESSION_INPUT, TF_FILE_…, TF_ARCHIVE_INVALID, TF_TENSOR_….
 */
export function checkSources(
  { sources, shapes, ranges = [] }: Pick<RunRequest, 'sources' | 'shapes' | 'ranges'>,
  inputs: readonly KnownInput[] | null,
): void {
  const given = new Map<string, string>();
  for (const source of sources) {
    for (const { name, from, header } of describe(source, inputs)) {
      rejectTwice(name, given.get(name), from);
      given.set(name, from);
      if (inputs !== null && header !== null) checkHeader(bindingOf(inputs, name, from), header, from);
    }
  }
  rejectIdleRanges(ranges, given, sources);
  if (inputs === null) return;
  rejectUnknown(inputs, [...(shapes?.keys() ?? []), ...ranges.flatMap(({ name }) => name ?? [])]);
  if (!sources.some(({ kind }) => kind === 'random')) rejectMissing(inputs, given);
}

/** The input of a name. Throws TF_SESSION_INPUT where there is none. */
export function bindingOf<B extends Binding>(inputs: readonly B[], name: string, path: string): B {
  const binding = inputs.find((input) => input.name === name);
  if (binding !== undefined) return binding;
  throw new TrtforgeError('TF_SESSION_INPUT', `${path} is passed for ${name}, which is not an input.`, {
    remedy: `The inputs are ${inputs.map((input) => input.name).join(', ')}.`,
  });
}

/** Throws TF_SESSION_INPUT where an input has no source. */
export function rejectMissing(inputs: readonly Binding[], given: ReadonlyMap<string, unknown>): void {
  const names = inputs.map(({ name }) => name).filter((name) => !given.has(name));
  if (names.length === 0) return;
  throw new TrtforgeError(
    'TF_SESSION_INPUT',
    `There is no tensor for the ${names.length === 1 ? 'input' : 'inputs'} ${names.map((name) => `"${name}"`).join(', ')}.`,
    {
      remedy: `Pass ${names.length === 1 ? 'it' : 'them'}: ${names.map((name) => `${name}=@${name}.npy`).join(' ')}, or add --inputs random.`,
    },
  );
}

function describe(source: RunSource, inputs: readonly KnownInput[] | null): readonly Described[] {
  if (source.kind === 'random') return [];
  if (source.kind === 'archive') return describeArchive(source.path, inputs);
  const { name, path } = source;
  const voidDtype = inputs === null ? undefined : bindingOf(inputs, name, path).dtype;
  return [{ name, from: path, header: unlessVoid(() => inputHeader(name, path, voidDtype)) }];
}

/** Type and shape of the tensor in a file for an input (see `readInput`), from its header alone. Throws what reading the file throws. */
export function inputHeader(
  name: string,
  path: string,
  voidDtype: Dtype | undefined,
): NonNullable<Described['header']> {
  const file = path.endsWith('.npz') ? openNpz(path, { voidDtype }) : openFile(path);
  try {
    return 'describe' in file ? file.describe(name) : readNpyHeader(file, voidDtype);
  } finally {
    file.close();
  }
}

/** Types are checked where the input's is known. */
function describeArchive(path: string, inputs: readonly KnownInput[] | null): readonly Described[] {
  const voidDtypes = Object.fromEntries((inputs ?? []).map(({ name, dtype }) => [name, dtype]));
  return closing(openNpz(path, { voidDtypes }), (archive) => {
    if (archive.names.length === 0) {
      throw new TrtforgeError('TF_TENSOR_FILE_INVALID', `${path} holds no tensor: it has no .npy member.`);
    }
    return archive.names.map((name) => {
      if (inputs === null) return { name, from: path, header: null };
      bindingOf(inputs, name, path);
      return { name, from: `${name} in ${path}`, header: archive.describe(name) };
    });
  });
}

function unlessVoid(read: () => Described['header']): Described['header'] {
  try {
    return read();
  } catch (error) {
    if (lacksVoidDtype(error)) return null;
    throw error;
  }
}

function checkHeader(input: KnownInput, header: NonNullable<Described['header']>, from: string): void {
  checkConvertible(input, header.dtype, from);
  const { name, shape } = input;
  if (shape !== null) checkDims({ name, shape }, header.shape);
}

/** A range is for values that are drawn: where none is drawn it would be dropped silently. */
function rejectIdleRanges(
  ranges: NonNullable<RunRequest['ranges']>,
  given: ReadonlyMap<string, string>,
  sources: readonly RunSource[],
): void {
  if (ranges.length > 0 && !sources.some(({ kind }) => kind === 'random')) {
    throw new TrtforgeError('TF_USAGE', '--val-range has no effect: no input is drawn.', {
      remedy: 'Add --inputs random, or remove --val-range.',
    });
  }
  for (const { name } of ranges) {
    const file = name === null ? undefined : given.get(name);
    if (file === undefined) continue;
    throw new TrtforgeError(
      'TF_USAGE',
      `The input ${name} comes from ${file}, so the range of values for it has no effect.`,
      { remedy: 'Remove one of them.' },
    );
  }
}

function rejectTwice(name: string, earlier: string | undefined, from: string): void {
  if (earlier === undefined) return;
  throw new TrtforgeError('TF_USAGE', `The input ${name} is passed twice: by ${earlier} and by ${from}.`, {
    remedy: 'Remove one of them.',
  });
}
