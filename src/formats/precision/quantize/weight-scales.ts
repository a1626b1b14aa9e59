import type { WeightStream } from '../../onnx/weight.js';
import { smallFloatTable } from '../../tensor/low-precision.js';
import type { QuantizedFormat } from '../formats/format.js';
import { encodeE4m3, fp8 } from '../formats/fp8.js';
import type { WeightOperand } from './operands.js';
import { blockOf } from './placement-rules.js';
import type { StoredScale } from './stored-scale.js';

/**
 * Which values share a scale, in the order in which the weight is stored. `runs`: `run` values in a row have one scale, the next `run` the next.
 * `columns`: each of `columns` values in a row has its own, and so do the next `rows` rows.
 */
export type ScaleLayout =
  | { readonly kind: 'runs'; readonly run: number }
  | { readonly kind: 'columns'; readonly columns: number; readonly rows: number };

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

/** Source bytes read at once. */
const CHUNK_BYTES = 1 << 20;

/**
 * Reads a weight (twice where a block has several scales to choose from) and finds its scales, in memory that does not grow with the weight but for the scales
 * themselves. Returns why it has none where it holds infinities or NaN, or where a scale is beyond the type that it is stored in.
 */
export function weightScales(
  source: WeightStream,
  operand: WeightOperand,
  format: QuantizedFormat,
  storedScale: StoredScale,
): WeightScales | string {
  const shape = scaleShape(operand, format);
  const count = shape.dims.reduce((product, dim) => product * dim, 1);
  const magnitudes = largestMagnitudes(source, shape.layout, count);
  const largest = magnitudes.reduce((most, magnitude) => Math.max(most, magnitude), 0);
  if (!Number.isFinite(largest)) return 'its weight holds infinities or NaN';
  const choose = (scaleOf: (index: number, share: number) => number): Float32Array | undefined =>
    format.clips.length > 1 ? leastSquares(source, shape.layout, count, format, scaleOf) : undefined;
  if (format.scaleDtype === null) {
    const scaleOf = (index: number, share: number) => storedScale(magnitudes[index]! * share, format.largest);
    if (scaleOf(magnitudes.indexOf(largest), 1) === undefined)
      return `its weight reaches ${largest.toPrecision(5)}, whose scale is beyond the type that it is stored in`;
    const valid = (index: number, share: number) => scaleOf(index, share) ?? 1;
    const shares = choose(valid);
    const scales = Float32Array.from(magnitudes, (_, index) => valid(index, shares?.[index] ?? 1));
    return { ...shape, stored: scales, at: (index) => scales[index]! };
  }
  const tensorScale = storedScale(largest / format.largest, fp8.largest);
  if (tensorScale === undefined) return 'the scale of its weight is beyond the type that it is stored in';
  const table = smallFloatTable(format.scaleDtype);
  const one = new Float32Array(1);
  const code = new Uint8Array(1);
  const codeOf = (index: number, share: number): number => {
    one[0] = (magnitudes[index]! * share) / format.largest / tensorScale;
    encodeE4m3(one, code);
    // A scale must be positive: a block of zeros has 1, and what is too small the smallest.
    return magnitudes[index] === 0 ? ONE : Math.max(1, code[0]!);
  };
  const shares = choose((index, share) => table[codeOf(index, share)]! * tensorScale);
  const codes = Uint8Array.from(magnitudes, (_, index) => codeOf(index, shares?.[index] ?? 1));
  return { ...shape, stored: { codes, tensorScale }, at: (index) => table[codes[index]!]! * tensorScale };
}

/** The E4M3 code of 1. */
const ONE = 0x38;

function scaleShape(
  { dims, channelAxis, sumAxis }: WeightOperand,
  format: QuantizedFormat,
): Pick<WeightScales, 'layout' | 'axis' | 'block' | 'dims'> {
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

const floatsOf = (chunk: Uint8Array): Float32Array =>
  new Float32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength >> 2);

/** The largest magnitude under each scale; infinity or NaN where there is one. */
function largestMagnitudes(source: WeightStream, layout: ScaleLayout, count: number): Float32Array {
  const largest = new Float32Array(count);
  let position = 0;
  for (const chunk of source.chunks(CHUNK_BYTES)) {
    const values = floatsOf(chunk);
    forSegments(layout, position, values.length, (from, to, scale, isRow) => {
      if (isRow)
        for (let i = from; i < to; i++) {
          const magnitude = Math.abs(values[i]!);
          if (magnitude > largest[scale + i - from]! || Number.isNaN(magnitude))
            largest[scale + i - from] = magnitude;
        }
      else {
        let most = largest[scale]!;
        for (let i = from; i < to; i++) {
          const magnitude = Math.abs(values[i]!);
          if (magnitude > most || Number.isNaN(magnitude)) most = magnitude;
        }
        largest[scale] = most;
      }
    });
    position += values.length;
  }
  return largest;
}

/**
 * Splits `length` values, of which the first is the weight's value `position`, into segments: within one run, with the scale `scale` for all; or within one row,
 * with the scale `scale` for the first and the next for the next.
 */
export function forSegments(
  layout: ScaleLayout,
  position: number,
  length: number,
  visit: (from: number, to: number, scale: number, isRow: boolean) => void,
): void {
  const { kind } = layout;
  const width = kind === 'runs' ? layout.run : layout.columns;
  for (let from = 0; from < length; ) {
    const at = position + from;
    const row = Math.floor(at / width);
    const inRow = at - row * width;
    const to = Math.min(length, from + width - inRow);
    if (kind === 'runs') visit(from, to, row, false);
    else visit(from, to, Math.floor(row / layout.rows) * width + inRow, true);
    from = to;
  }
}

/** The share of each scale's magnitude that leaves the least squared error; one more reading of the weight. */
function leastSquares(
  source: WeightStream,
  layout: ScaleLayout,
  count: number,
  { clips, nearest }: QuantizedFormat,
  scaleOf: (index: number, share: number) => number,
): Float32Array {
  const best = new Float32Array(count);
  const least = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  // Whole groups in a chunk, so that a group's errors are complete when the chunk ends.
  const group = layout.kind === 'runs' ? layout.run : layout.columns * layout.rows;
  const groups = layout.kind === 'runs' ? Math.max(4, Math.floor((CHUNK_BYTES >> 2) / group / 4) * 4) : 1;
  const perGroup = layout.kind === 'runs' ? 1 : layout.columns;
  let first = 0;
  for (const chunk of source.chunks(4 * group * groups)) {
    const values = floatsOf(chunk);
    const scales = (values.length / group) * perGroup;
    const errors = new Float64Array(scales);
    const steps = new Float64Array(scales);
    for (const share of clips) {
      for (let index = 0; index < scales; index++) steps[index] = scaleOf(first + index, share);
      errors.fill(0);
      forSegments(layout, 0, values.length, (from, to, scale, isRow) => {
        if (isRow)
          for (let i = from; i < to; i++) {
            const step = steps[scale + i - from]!;
            const error = nearest(values[i]! / step) * step - values[i]!;
            errors[scale + i - from]! += error * error;
          }
        else {
          const step = steps[scale]!;
          let sum = 0;
          for (let i = from; i < to; i++) {
            const error = nearest(values[i]! / step) * step - values[i]!;
            sum += error * error;
          }
          errors[scale]! += sum;
        }
      });
      for (let index = 0; index < scales; index++)
        if (errors[index]! < least[first + index]!) {
          least[first + index] = errors[index]!;
          best[first + index] = share;
        }
    }
    first += scales;
  }
  return best;
}
