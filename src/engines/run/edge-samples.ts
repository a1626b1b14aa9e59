import { channelAxis } from '../../formats/onnx/image-layout.js';
import { type Dtype, dtypes, elementCount } from '../../formats/tensor/dtype.js';
import { float32Values, floatTensor, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';
import type { InputRange } from './input-range.js';

const edges = ['zeros', 'one zero row', 'highest values', 'lowest values'] as const;

/** A sample at the edges of what is drawn, by what its floats are. Integers are at their lowest with zeros; masks are whole off with zeros, else whole on. */
export type EdgeSample = (typeof edges)[number];

/** A random sample by its number, or an edge. */
export type Sample = number | EdgeSample;

interface Drawn {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  /** Absent for what a file has. */
  readonly range?: InputRange;
}

/** Deviations from the mean that count as saturated. */
const SATURATED = 3;

/** The edges that inputs have: none twice, and none where files have all of them. */
export function edgeSamples(plan: readonly Drawn[]): readonly EdgeSample[] {
  const seen = new Set<string>();
  return edges.filter((edge) => {
    if (edge === 'one zero row')
      return plan.some(
        (input) =>
          isFloat(input) &&
          ['normal', 'uniform'].includes(input.range?.spread.kind ?? '') &&
          blankAxes(input.shape).length > 0,
      );
    const values = plan.map((input) => edgeValue(input, edge));
    const key = values.join();
    if (seen.has(key) || values.every((value) => value === undefined)) return false;
    seen.add(key);
    return true;
  });
}

/** The value of every element of an input in a sample; undefined where elements differ. */
export function edgeValue({ dtype, range }: Omit<Drawn, 'shape'>, sample: Sample): number | undefined {
  if (range === undefined || typeof sample === 'number') return undefined;
  const { spread } = range;
  if (spread.kind === 'mask') return Number(sample !== 'zeros');
  if (sample === 'one zero row') return undefined;
  const isUniform = spread.kind === 'uniform';
  const low = isUniform ? spread.low : spread.mean - SATURATED * spread.deviation;
  const high = isUniform ? spread.high : spread.mean + SATURATED * spread.deviation;
  if (!isFloat({ dtype })) return sample === 'highest values' ? Math.floor(high) : Math.ceil(low);
  return { zeros: nearestZero(low, high), 'highest values': high, 'lowest values': low }[sample];
}

/** Zero where the range has it. */
const nearestZero = (low: number, high: number): number => Math.min(Math.max(0, low), high);

/**
 * Sets one row of values to zero: the last of a batch; of a single item a quarter of every axis but channels, so that frames, lines and features are blank
 * whichever axis they are on.
 */
export function blankRow(values: Float32Array, shape: readonly number[], { spread }: InputRange): void {
  const zero = spread.kind === 'uniform' ? nearestZero(spread.low, spread.high) : 0;
  const axes = blankAxes(shape);
  for (let at = 0; at < values.length; at++)
    if (axes.some(({ size, stride, from, to }) => isBetween(Math.floor(at / stride) % size, from, to)))
      values[at] = zero;
}

function blankAxes(shape: readonly number[]) {
  const axes = shape.map((size, axis) => {
    const from = axis === 0 && shape.length > 1 ? size - 1 : Math.floor(size / 2);
    const stride = elementCount(shape.slice(axis + 1));
    return { axis, size, stride, from, to: from + Math.ceil(size / 4) };
  });
  const open = axes.filter(({ axis, size }) => size > 1 && axis !== channelAxis(shape));
  return open[0]?.axis === 0 ? open.slice(0, 1) : open;
}

const isBetween = (place: number, from: number, to: number) => place >= from && place < to;
const isFloat = ({ dtype }: Pick<Drawn, 'dtype'>) => dtypes[dtype].kind === 'float';

/** Inputs that are made larger than they are drawn, as far as their use allows. */
export interface HeadRoomLevel {
  readonly inputs: readonly string[];
  /** Their largest absolute value, and the largest that is drawn or an edge. */
  readonly upTo: number;
  readonly drawnUpTo: number;
  /** Whether the graph takes inputs of any size. */
  readonly isFree: boolean;
  /** A drawn sample, with these inputs larger. */
  readonly larger: (sample: NamedTensors) => NamedTensors;
}

/** Levels to try beyond the drawn values, the smallest first: of inputs that may have any size, else of all that may be larger. */
export function headRoomLevels(
  plan: readonly (Drawn & { readonly name: string })[],
): readonly HeadRoomLevel[] {
  const all = plan.flatMap(({ name, range }) =>
    range?.headRoom === undefined ? [] : [{ name, ...range.headRoom, peak: peakOf(range) }],
  );
  const free = all.filter(({ isFree }) => isFree);
  const chosen = free.length > 0 ? free : all;
  const count = Math.max(0, ...chosen.map(({ sizes }) => sizes.length));
  return Array.from({ length: count }, (_, level) => {
    const sizes = new Map(chosen.map(({ name, sizes }) => [name, sizes[Math.min(level, sizes.length - 1)]!]));
    return {
      inputs: [...sizes.keys()],
      upTo: Math.max(...sizes.values()),
      drawnUpTo: Math.max(...chosen.map(({ peak }) => peak)),
      isFree: free.length > 0,
      larger: (sample) =>
        new Map(
          [...sample].map(([name, tensor]) => [
            name,
            sizes.has(name) ? scaledTo(tensor, sizes.get(name)!) : tensor,
          ]),
        ),
    };
  });
}

const peakOf = ({ spread }: InputRange): number => {
  if (spread.kind === 'normal') return Math.abs(spread.mean) + SATURATED * spread.deviation;
  return spread.kind === 'uniform' ? Math.max(Math.abs(spread.low), Math.abs(spread.high)) : 1;
};

function scaledTo({ dtype, shape, bytes }: Tensor, size: number): Tensor {
  const values = float32Values({ dtype, shape, bytes });
  const peak = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return floatTensor(
    dtype as 'float32',
    shape,
    values.map((value) => (value / peak) * size),
  );
}
