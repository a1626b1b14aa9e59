import type { Contract, StatePair } from '../../../formats/contract/contract.js';
import { openAxis } from '../../../formats/contract/resolve.js';
import { lastInUse } from '../../../formats/contract/state.js';
import { elementCount } from '../../../formats/tensor/dtype.js';
import {
  elementsOf,
  float32Values,
  type NamedTensors,
  numbersOf,
  type Tensor,
} from '../../../formats/tensor/tensor.js';
import {
  type FloatArray,
  type FloatReader,
  floatsOf,
  formatOf,
} from '../../../formats/tensor/tensor-reader.js';

/** Positions `from` (included) to `to` (excluded) along one axis. */
export interface Region {
  readonly axis: number;
  readonly from: number;
  readonly to: number;
}

/** Runs of positions shorter than this are gathered in one go: a call for each would cost more than the copy. */
const SHORT_RUN = 1024;

/**
 * The part of a state tensor that means something, by the reference: the positions that its length counts (the least of the batch, within 0 and the
 * capacity), or, without a length, those up to the last one in use. null: all of it.
 */
export function validRegion(
  pair: Pick<StatePair, 'axis' | 'padSide' | 'validLength'>,
  reference: Tensor,
  outputs: NamedTensors,
): Region | null {
  const { axis } = pair;
  const size = axis === null ? undefined : reference.shape[axis];
  if (axis === null || size === undefined) return null;
  const lengths = pair.validLength === null ? undefined : outputs.get(pair.validLength);
  const valid =
    lengths === undefined ? lastInUse(reference, axis, pair.padSide) : shortest(numbersOf(lengths), size);
  if (valid >= size) return null;
  return pair.padSide === 'right' ? { axis, from: 0, to: valid } : { axis, from: size - valid, to: size };
}

function shortest(lengths: ArrayLike<number>, size: number): number {
  let least = size;
  for (let i = 0; i < lengths.length; i++) least = Math.min(least, lengths[i]!);
  return Math.max(0, least);
}

/** The elements of a region (of everything for null), in order, as float32; those of float64 as they are. */
export function regionFloats(tensor: Tensor, region: Region | null): FloatReader {
  const { dtype } = tensor;
  const values = dtype === 'float64' ? elementsOf({ ...tensor, dtype }) : float32Values(tensor);
  if (region === null) return floatsOf(values);
  const { rows, run, stride, offset } = layout(tensor.shape, region);
  if (run < SHORT_RUN) return floatsOf(gathered(values, rows, run, stride, offset));
  return {
    length: rows * run,
    format: formatOf(values),
    read: (start, target) => {
      for (let filled = 0; filled < target.length; ) {
        const row = Math.floor((start + filled) / run);
        const within = start + filled - row * run;
        const count = Math.min(run - within, target.length - filled);
        const from = row * stride + offset + within;
        target.set(values.subarray(from, from + count), filled);
        filled += count;
      }
    },
  };
}

/** Where an element of a region lies in the whole tensor: an index for each axis. */
export function placeInTensor(shape: readonly number[], region: Region | null, index: number): number[] {
  const sizes = region === null ? shape : shape.with(region.axis, region.to - region.from);
  const place: number[] = [];
  let left = index;
  for (const size of [...sizes].reverse()) {
    place.unshift(left % size);
    left = Math.floor(left / size);
  }
  return region === null ? place : place.with(region.axis, (place[region.axis] ?? 0) + region.from);
}

export const regionElements = (shape: readonly number[], region: Region | null): number =>
  elementCount(region === null ? shape : shape.with(region.axis, region.to - region.from));

function layout(shape: readonly number[], { axis, from, to }: Region) {
  const inner = elementCount(shape.slice(axis + 1));
  return {
    rows: elementCount(shape.slice(0, axis)),
    run: (to - from) * inner,
    stride: (shape[axis] ?? 0) * inner,
    offset: from * inner,
  };
}

function gathered(values: FloatArray, rows: number, run: number, stride: number, offset: number): FloatArray {
  const kept = formatOf(values).make(rows * run);
  for (let row = 0, to = 0; row < rows; row++) {
    const start = row * stride + offset;
    for (let i = 0; i < run; i++) kept[to++] = values[start + i]!;
  }
  return kept;
}

/**
 * The axis of an output along which positions in time lie, as far as the contract and the recorded outputs of its chunk show it; null where they do not.
 * Findings about sides and padding would otherwise be about channels.
 */
export function positionAxis(
  { state, lengths, outputs: bindings }: Pick<Contract, 'state' | 'lengths' | 'outputs'>,
  name: string,
  reference: Tensor,
  outputs: NamedTensors,
): number | null {
  const longest = (length: string | null): number | null => {
    const tensor = length === null ? undefined : outputs.get(length);
    return tensor === undefined ? null : Math.max(...Array.from(numbersOf(tensor)));
  };
  const pair = state.find(({ output }) => output === name);
  if (pair === undefined) {
    const valid = longest(lengths.result);
    const counted = onlyAxis(reference, (_axis, size) => size === valid);
    if (counted !== null) return counted;
    const binding = bindings.find((each) => each.name === name);
    return binding === undefined ? null : openAxis(binding);
  }
  if (pair.axis !== null) return pair.axis;
  const valid = longest(pair.validLength);
  if (valid === null || valid <= 0) return null;
  return onlyAxis(
    reference,
    (axis, size) =>
      size > valid &&
      [lastInUse(reference, axis, 'right'), lastInUse(reference, axis, 'left')].includes(valid),
  );
}

/** The one axis, the batch excepted, that fits; null for none and for several. */
function onlyAxis({ shape }: Tensor, fits: (axis: number, size: number) => boolean): number | null {
  const found = [...shape.keys()].filter((axis) => axis > 0 && fits(axis, shape[axis]!));
  return found.length === 1 ? found[0]! : null;
}
