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
