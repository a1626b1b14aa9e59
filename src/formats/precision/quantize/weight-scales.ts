import type { WeightStream } from '../../onnx/weight.js';
import { smallFloatTable } from '../../tensor/low-precision.js';
import type { QuantizedFormat } from '../formats/format.js';
import { fp8 } from '../formats/fp8.js';
import { blockOf } from './placement-rules.js';
import { type InputMoments, roundingErrors } from './rounding-errors.js';
import { bitsOf, CHUNK_BYTES, forSegments, type ScaleLayout } from './scale-layout.js';
import type { StoredScale } from './stored-scale.js';
import { forTiles, tileRows } from './tiles.js';
import type { WeightOperand } from './weight-operand.js';

/** The scales of a weight. */
export interface WeightScales {
  readonly layout: ScaleLayout;
  /** Attributes of the DequantizeLinear. */
  readonly axis: number;
  readonly block: number | undefined;
  /** Dimensions of the tensor of scales. */
  readonly dims: readonly number[];
  /** As they are stored: floats, or E4M3 codes with the scale of the tensor that they multiply. */
  readonly stored: Float32Array | { readonly codes: Uint8Array; readonly tensorScale: number };
  /** The scale that a code is multiplied by. */
  readonly at: (index: number) => number;
}

/**
 * Reads a weight (twice where a block has several scales to choose from) and finds its scales, in memory that does not grow with the weight but for the scales
 * themselves. With moments of what it multiplies, scales are chosen by the error of the products. Returns why it has none where it holds infinities or NaN, or where a scale is beyond the type that it is stored in.
 */
export function weightScales(
  source: WeightStream,
  operand: WeightOperand,
  format: QuantizedFormat,
  storedScale: StoredScale,
  inputs?: InputMoments,
): WeightScales | string {
  const shape = scaleShape(operand, format);
  const count = shape.dims.reduce((product, dim) => product * dim, 1);
  const magnitudes = largestMagnitudes(source, shape.layout, count);
  const largest = magnitudes.reduce((most, magnitude) => Math.max(most, magnitude), 0);
  if (!Number.isFinite(largest)) return 'its weight holds infinities or NaN';
  const scale = { source, shape, magnitudes, format, storedScale, inputs };
  if (operand.sumAxis === undefined && format.convolutionScale === 'tensor')
    return sharedScale(scale, largest);
  return format.scaleDtype === null
    ? floatScales(scale, largest)
    : codedScales(scale, largest, format.scaleDtype);
}

interface Scaling {
  readonly source: WeightStream;
  readonly shape: ScaleShape;
  /** The largest of the values that share a scale. */
  readonly magnitudes: Float32Array;
  readonly format: QuantizedFormat;
  readonly storedScale: StoredScale;
  readonly inputs: InputMoments | undefined;
}

/** One scale for all channels. */
function sharedScale({ shape, format, storedScale }: Scaling, largest: number): WeightScales | string {
  const scale = storedScale(largest, format.largest);
  return scale === undefined
    ? beyondType(largest)
    : { ...shape, dims: [], stored: Float32Array.of(scale), at: () => scale };
}

const beyondType = (largest: number): string =>
  `its weight reaches ${largest.toPrecision(5)}, whose scale is beyond the type that it is stored in`;

function floatScales(scaling: Scaling, largest: number): WeightScales | string {
  const { shape, magnitudes, format, storedScale } = scaling;
  if (storedScale(largest, format.largest) === undefined) return beyondType(largest);
  // The search takes scales as they are before they are rounded, which costs more than it changes.
  const clips = bestClips(
    scaling,
    (index, clip) => (magnitudes[index]! * format.clips[clip]!) / format.largest,
  );
  const scales = Float32Array.from(
    magnitudes,
    (magnitude, index) => storedScale(magnitude * format.clips[clips[index]!]!, format.largest) ?? 1,
  );
  return { ...shape, stored: scales, at: (index) => scales[index]! };
}

function codedScales(
  scaling: Scaling,
  largest: number,
  scaleDtype: NonNullable<QuantizedFormat['scaleDtype']>,
): WeightScales | string {
  const { shape, magnitudes, format, storedScale } = scaling;
  const tensorScale = storedScale(largest / format.largest, fp8.largest);
  if (tensorScale === undefined) return 'the scale of its weight is beyond the type that it is stored in';
  const table = smallFloatTable(scaleDtype);
  const unit = 1 / (format.largest * tensorScale);
  const codes = format.clips.map((share) => scaleCodes(magnitudes, share * unit));
  const clips = bestClips(scaling, (index, clip) => table[codes[clip]![index]!]! * tensorScale);
  const chosen = clips.map((clip, index) => codes[clip]![index]!);
  return codedResult(shape, chosen, tensorScale, table);
}

/** A scale must be positive: a block of zeros has 1, and what is too small the smallest. */
function scaleCodes(magnitudes: Float32Array, factor: number): Uint8Array {
  const codes = new Uint8Array(magnitudes.length);
  fp8.encode(
    magnitudes.map((magnitude) => (magnitude === 0 ? 1 : magnitude * factor)),
    codes,
  );
  return codes.map((code) => Math.max(1, code));
}

/** In a function of its own, so that what is kept does not hold the magnitudes. */
const codedResult = (
  shape: ScaleShape,
  codes: Uint8Array,
  tensorScale: number,
  table: Float32Array,
): WeightScales => ({
  ...shape,
  stored: { codes, tensorScale },
  at: (index) => table[codes[index]!]! * tensorScale,
});

/** The place in `clips` of the best share, by scale. */
const bestClips = (
  { source, shape, magnitudes, format, inputs }: Scaling,
  scaleOf: (index: number, clip: number) => number,
): Uint8Array =>
  format.clips.length > 1
    ? leastError(source, shape.layout, magnitudes.length, format, scaleOf, inputs)
    : new Uint8Array(magnitudes.length);

type ScaleShape = Pick<WeightScales, 'layout' | 'axis' | 'block' | 'dims'>;

function scaleShape({ dims, channelAxis, sumAxis }: WeightOperand, format: QuantizedFormat): ScaleShape {
  const block = sumAxis === undefined ? undefined : blockOf(dims[sumAxis] ?? 0, format);
  const columns = dims[1] ?? 1;
  if (block !== undefined && sumAxis !== undefined) {
    const layout: ScaleLayout =
      sumAxis === 0 ? { kind: 'columns', columns, rows: block } : { kind: 'runs', run: block };
    return {
      layout,
      axis: sumAxis,
      block,
      dims: dims.map((dim, axis) => (axis === sumAxis ? dim / block : dim)),
    };
  }
  const channels = dims[channelAxis] ?? 1;
  const inner = dims.slice(1).reduce((product, dim) => product * dim, 1);
  const layout: ScaleLayout =
    channelAxis === 0 ? { kind: 'runs', run: inner } : { kind: 'columns', columns, rows: dims[0] ?? 1 };
  return { layout, axis: channelAxis, block: undefined, dims: [channels] };
}

/** The largest magnitude under each scale; infinity or NaN where there is one. */
function largestMagnitudes(source: WeightStream, layout: ScaleLayout, count: number): Float32Array {
  const largest = new Int32Array(count);
  let position = 0;
  for (const chunk of source.chunks(CHUNK_BYTES)) {
    const bits = bitsOf(chunk);
    forSegments(layout, position, bits.length, (from, to, scale, isRow) => {
      if (isRow) largestOfColumns(bits, from, to, largest, scale);
      else largest[scale] = largestOfRun(bits, from, to, largest[scale]!);
    });
    position += bits.length;
  }
  return new Float32Array(largest.buffer);
}

const MAGNITUDE = 0x7fffffff;

function largestOfRun(bits: Int32Array, from: number, to: number, least: number): number {
  let most = least;
  for (let i = from; i < to; i++) {
    const magnitude = bits[i]! & MAGNITUDE;
    if (magnitude > most) most = magnitude;
  }
  return most;
}

function largestOfColumns(
  bits: Int32Array,
  from: number,
  to: number,
  largest: Int32Array,
  column: number,
): void {
  for (let i = from; i < to; i++, column++) {
    const magnitude = bits[i]! & MAGNITUDE;
    if (magnitude > largest[column]!) largest[column] = magnitude;
  }
}

/**
 * For each block the place in `clips` of the share of its largest magnitude whose scale leaves the least error; one more reading of the weight. Without `inputs`
 * the error is the sum of the squared differences d of the weights; with them the mean square of the sum over x * d, x independent: sum of variance * d^2,
 * plus the square of the sum of mean * d.
 */
function leastError(
  source: WeightStream,
  layout: ScaleLayout,
  count: number,
  format: QuantizedFormat,
  scaleOf: (index: number, clip: number) => number,
  inputs?: InputMoments,
): Uint8Array {
  const best = new Uint8Array(count);
  const size = tileRows(layout);
  const moments = inputs ?? { mean: new Float32Array(size), variance: new Float32Array(size).fill(1) };
  const clips = format.clips.length;
  const errorsOf = roundingErrors(format, moments);
  let scales = new Float64Array(0);
  forTiles(source, layout, { terms: moments.mean.length }, (tiles) => {
    const { lanes, scale, scaleStride } = tiles;
    if (scales.length !== clips * lanes) scales = new Float64Array(clips * lanes);
    for (let clip = 0, at = 0; clip < clips; clip++)
      for (let lane = 0; lane < lanes; lane++, at++) scales[at] = scaleOf(scale + lane * scaleStride, clip);
    const { squares, sums } = errorsOf(tiles, scales);
    for (let lane = 0; lane < lanes; lane++) {
      let least = Number.POSITIVE_INFINITY;
      for (let clip = 0, at = lane; clip < clips; clip++, at += lanes) {
        const error = scales[at]! ** 2 * (squares[at]! + sums[at]! * sums[at]!);
        if (!(error < least)) continue;
        least = error;
        best[scale + lane * scaleStride] = clip;
      }
    }
  });
  return best;
}
