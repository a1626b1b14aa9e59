import type { Image } from './image.js';

/** Bits of the weights, as OpenCV's `INTER_RESIZE_COEF_BITS`. */
const ONE = 1 << 11;

interface Taps {
  /** Index of the first of two neighbours, by target place. */
  readonly first: Int32Array;
  readonly second: Int32Array;
  readonly firstWeight: Int32Array;
  readonly secondWeight: Int32Array;
}

/** Where a target pixel lies between two source pixels: half-pixel centres, edges repeated. */
function tapsOf(source: number, target: number): Taps {
  const [first, second] = [new Int32Array(target), new Int32Array(target)];
  const [firstWeight, secondWeight] = [new Int32Array(target), new Int32Array(target)];
  const scale = source / target;
  for (let at = 0; at < target; at++) {
    const place = Math.min(Math.max((at + 0.5) * scale - 0.5, 0), source - 1);
    const left = Math.floor(place);
    const share = Math.fround(place - left);
    first[at] = left;
    second[at] = Math.min(left + 1, source - 1);
    firstWeight[at] = roundHalfEven((1 - share) * ONE);
    secondWeight[at] = roundHalfEven(share * ONE);
  }
  return { first, second, firstWeight, secondWeight };
}

/** As Python's and C's `round` to even: JavaScript rounds 426.5 to 427. */
export function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest < 0.5 || (rest === 0.5 && floor % 2 === 0) ? floor : floor + 1;
}

/** Bilinear resizing with OpenCV's fixed-point arithmetic (`cv2.INTER_LINEAR`): within 1 level of it, equal at 1:1 and 2:1. */
export function resizeBilinear(image: Image, width: number, height: number): Image {
  if (image.width === width && image.height === height) return image;
  const columns = tapsOf(image.width, width);
  const rows = tapsOf(image.height, height);
  const rgb = new Uint8Array(3 * width * height);
  // Two source rows at target width: a row of the target often needs one that the row before needed.
  let [upper, lower] = [new Int32Array(3 * width), new Int32Array(3 * width)];
  let [upperRow, lowerRow] = [-1, -1];
  let to = 0;
  for (let y = 0; y < height; y++) {
    const [top, bottom] = [rows.first[y]!, rows.second[y]!];
    if (top === lowerRow) {
      [upper, lower] = [lower, upper];
      [upperRow, lowerRow] = [lowerRow, upperRow];
    }
    if (top !== upperRow) resizeRow(image, top, columns, upper);
    upperRow = top;
    if (bottom !== lowerRow) resizeRow(image, bottom, columns, lower);
    lowerRow = bottom;
    const [upperWeight, lowerWeight] = [rows.firstWeight[y]!, rows.secondWeight[y]!];
    for (let x = 0; x < 3 * width; x++)
      rgb[to++] =
        (((upperWeight * (upper[x]! >> 4)) >> 16) + ((lowerWeight * (lower[x]! >> 4)) >> 16) + 2) >> 2;
  }
  return { width, height, rgb };
}

function resizeRow({ width, rgb }: Image, row: number, columns: Taps, out: Int32Array): void {
  const { first, second, firstWeight, secondWeight } = columns;
  const start = 3 * width * row;
  for (let x = 0, to = 0; x < first.length; x++) {
    const [left, right] = [start + 3 * first[x]!, start + 3 * second[x]!];
    const [a, b] = [firstWeight[x]!, secondWeight[x]!];
    out[to++] = rgb[left]! * a + rgb[right]! * b;
    out[to++] = rgb[left + 1]! * a + rgb[right + 1]! * b;
    out[to++] = rgb[left + 2]! * a + rgb[right + 2]! * b;
  }
}

/** Bits of Pillow's weights: 32 less 8 of a level and 2 for sums. */
const PILLOW_BITS = 22;

interface Window {
  readonly first: number;
  readonly weights: Int32Array;
}

/** The source pixels under a target pixel with the weights of a triangle, which is as wide as shrinking asks for (`precompute_coeffs` of Pillow). */
function windowsOf(source: number, target: number): readonly Window[] {
  const scale = source / target;
  const support = Math.max(scale, 1);
  return Array.from({ length: target }, (_, at) => {
    const center = (at + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - support + 0.5));
    const last = Math.min(source, Math.trunc(center + support + 0.5));
    const shares = Float64Array.from({ length: last - first }, (_, x) =>
      Math.max(0, 1 - Math.abs((x + first - center + 0.5) * (1 / support))),
    );
    const sum = shares.reduce((total, share) => total + share, 0);
    return { first, weights: Int32Array.from(shares, (share) => 0.5 + (share / sum) * (1 << PILLOW_BITS)) };
  });
}

/** Bilinear resizing with antialiasing: within one level of Pillow's `Image.BILINEAR`, whose versions differ in which axis comes first. */
export function resizeAntialiased(image: Image, width: number, height: number): Image {
  const narrow = resampled(image.rgb, image.height, image.width, width, 3);
  return { width, height, rgb: resampled(narrow, 1, image.height, height, 3 * width) };
}

/** `levels` are [lines, source, inner]; the result is [lines, target, inner]. */
function resampled(
  levels: Uint8Array,
  lines: number,
  source: number,
  target: number,
  inner: number,
): Uint8Array {
  if (source === target) return levels;
  const windows = windowsOf(source, target);
  const out = new Uint8Array(lines * target * inner);
  let to = 0;
  for (let line = 0; line < lines; line++)
    for (const { first, weights } of windows)
      for (let channel = 0; channel < inner; channel++) {
        let sum = 1 << (PILLOW_BITS - 1);
        let from = (line * source + first) * inner + channel;
        for (let at = 0; at < weights.length; at++, from += inner) sum += levels[from]! * weights[at]!;
        out[to++] = sum >> PILLOW_BITS;
      }
  return out;
}
