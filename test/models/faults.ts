import { attribute } from 'trtforge/onnx';
import type { Attributes } from '../../examples/models/network.js';
import type { Edit, Rewrite, Variant } from './variant-network.js';

/** What went wrong with a model on its way; each changes what it computes on some valid inputs. */
export interface Fault extends Variant {
  readonly name: string;
  /** Weights are another seed's. */
  readonly otherSeed?: true;
}

const fault =
  (what: string, edit: Edit) =>
  (part: string, weight: RegExp): Fault => ({ name: `${part} ${what}`, edits: [{ weight, edit }] });

export const scaled = (factor: number) =>
  fault(`x ${factor}`, (values) => {
    for (let i = 0; i < values.length; i++) values[i]! *= factor;
  });

export const moved = (amount: number) =>
  fault(amount < 0 ? `lowered by ${-amount}` : `raised by ${amount}`, (values) => {
    for (let i = 0; i < values.length; i++) values[i]! += amount;
  });

export const setTo = (value: number) => fault(`set to ${value}`, (values) => void values.fill(value));

export const zeroed = fault('zeroed', (values) => void values.fill(0));

export const negated = fault('negated', (values) => {
  for (let i = 0; i < values.length; i++) values[i] = -values[i]!;
});

/** A quarter of the positions of an axis. */
export const quarterZeroed = (axis: number) =>
  fault('a quarter 0', (values, shape) => {
    const size = shape.at(axis)!;
    const inner = shape.slice(axis).reduce((product, each) => product * each, 1) / size;
    for (let i = 0; i < values.length; i++)
      if (Math.floor(i / inner) % size < Math.ceil(size / 4)) values[i] = 0;
  });

/** By so many standard deviations of its values. */
export const shifted = (deviations: number) =>
  fault(`shifted by ${deviations} sigma`, (values) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
    for (let i = 0; i < values.length; i++) values[i]! += deviations * deviation;
  });

/** Rows from `first` on, each in the place of the one before it. */
export const rowsTurned = (first = 0) =>
  fault(first === 0 ? 'rows turned' : `rows from ${first} turned`, (values, shape) => {
    const width = values.length / shape[0]!;
    const turned = values.subarray(first * width);
    const moved = Float32Array.from(turned, (_, i) => turned[(i + width) % turned.length]!);
    turned.set(moved);
  });

/** Rows from `first` on. */
export const rowsZeroed = (first: number) =>
  fault(`rows from ${first} zeroed`, (values, shape) => {
    values.fill(0, (first * values.length) / shape[0]!);
  });

export const largestFlattened = fault('largest value the mean', (values) => {
  let at = 0;
  for (let i = 1; i < values.length; i++) if (Math.abs(values[i]!) > Math.abs(values[at]!)) at = i;
  values[at] = values.reduce((sum, value) => sum + value, 0) / values.length;
});

export const shuffled = fault('shuffled', (values, _shape, stream) => {
  for (let i = values.length - 1; i > 0; i--) {
    const other = stream.below(i + 1);
    [values[i], values[other]] = [values[other]!, values[i]!];
  }
});

/** Positions of the second axis in the opposite order: red for blue in the first layer. */
export const channelsReversed = fault('channels reversed', (values, shape) => {
  const [rows = 0, channels = 0] = shape;
  const inner = values.length / (rows * channels);
  const before = values.slice();
  for (let i = 0; i < values.length; i++) {
    const [row, channel] = [Math.floor(i / (inner * channels)), Math.floor(i / inner) % channels];
    values[i] = before[(row * channels + channels - 1 - channel) * inner + (i % inner)]!;
  }
});

/** Of so many heads, the first one's rows of the layer that joins them. */
export const headZeroed = (heads: number) =>
  fault('one head 0', (values) => void values.fill(0, 0, values.length / heads));

/** One row of many: a class, say. */
export const rowZeroed = (row: number) =>
  fault(`row ${row} zeroed`, (values, shape) => {
    const width = values.length / shape[0]!;
    values.fill(0, row * width, (row + 1) * width);
  });

/** One row has the values of another as well as its own. */
export const rowAdded = (from: number, to: number) =>
  fault(`row ${from} added to ${to}`, (values, shape) => {
    const width = values.length / shape[0]!;
    for (let i = 0; i < width; i++) values[to * width + i]! += values[from * width + i]!;
  });

/** Nodes of these names are written otherwise. */
export const rewritten = (name: string, node: RegExp, rewrite: Rewrite): Fault => ({
  name,
  rewrites: [{ node, rewrite }],
});

export const withAttributes = (name: string, node: RegExp, attributes: Attributes): Fault =>
  rewritten(name, node, (planned) => ({ attributes: { ...planned.attributes, ...attributes } }));

/** What Keras has where PyTorch has 1e-5. */
export const epsilonsOf = (node: RegExp): Fault =>
  withAttributes('epsilon 1e-3', node, { epsilon: attribute.float(1e-3) });

export const layersSwapped = (one: string, other: string): Fault => ({
  name: `${one} and ${other} swapped`,
  swapped: [one, other],
});

export const othersWeights: Fault = { name: "another seed's weights", otherSeed: true };
