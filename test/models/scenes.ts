import type { RandomStream } from '../../examples/models/random.js';
import { floats, normals, type SampleTensor } from './kind.js';

export const SCENE_SIDE = 96;
export const SCENE_CLASSES = 14;

/** Textures and filters are squares of so many pixels. */
export const CELL = 4;
const CELLS = SCENE_SIDE / CELL;
const BACKGROUND = 0.45;
const CONTRAST = 0.25;

const COLOURS = [
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
  [1, 1, -1],
] as const;

const isOdd = (bits: number): boolean => [1, 2, 4, 8].filter((bit) => bits & bit).length % 2 === 1;

/** What an object of a class looks like, [3, CELL, CELL]: a Walsh pattern of its own in one of four colours, so that no class answers to another one's filter. */
export function textureOf(kind: number): Float32Array {
  const pattern = 1 + ((kind * 4) % 15);
  const colour = COLOURS[kind % COLOURS.length]!;
  return Float32Array.from({ length: 3 * CELL ** 2 }, (_, i) => {
    const at = i % CELL ** 2;
    return colour[Math.floor(i / CELL ** 2)]! * (isOdd(pattern & at) ? -1 : 1);
  });
}

/** An object of a scene: a class and a square of cells. */
interface SceneObject {
  readonly kind: number;
  readonly x: number;
  readonly y: number;
  readonly side: number;
  readonly contrast: number;
}

/** Three to five objects of two or three classes out of all: most classes are in a few scenes only. */
function objectsOf(stream: RandomStream): SceneObject[] {
  const kinds = Array.from({ length: 2 + stream.below(2) }, () => stream.below(SCENE_CLASSES));
  return Array.from({ length: 3 + stream.below(3) }, (_, at) => {
    const side = 4 + stream.below(5);
    return {
      kind: kinds[at % kinds.length]!,
      x: stream.below(CELLS - side),
      y: stream.below(CELLS - side),
      side,
      contrast: CONTRAST * (0.75 + stream.below(50) / 100),
    };
  });
}

/** A picture of objects in front of a ramp and some noise, in 256 levels of 0 to 1: [1, 3, SCENE_SIDE, SCENE_SIDE]. */
export function scene(stream: RandomStream): SampleTensor {
  const plane = SCENE_SIDE ** 2;
  const values = normals(stream, 3 * plane, 0.03);
  const [slope = 0] = normals(stream, 1, 0.1);
  for (let i = 0; i < values.length; i++)
    values[i]! += BACKGROUND + slope * ((i % SCENE_SIDE) / SCENE_SIDE - 0.5);
  for (const { kind, x, y, side, contrast } of objectsOf(stream)) {
    const texture = textureOf(kind);
    for (let c = 0; c < 3; c++)
      for (let row = y * CELL; row < (y + side) * CELL; row++)
        for (let column = x * CELL; column < (x + side) * CELL; column++) {
          const of = texture[c * CELL ** 2 + (row % CELL) * CELL + (column % CELL)]!;
          values[c * plane + row * SCENE_SIDE + column]! += contrast * of;
        }
  }
  const levels = values.map((value) => Math.round(255 * Math.min(1, Math.max(0, value))) / 255);
  return floats([1, 3, SCENE_SIDE, SCENE_SIDE], levels);
}

/** The levels of a scene by row, red, green and blue of each pixel, as image files have them. */
export function pixelsOf({ bytes, shape }: SampleTensor): Uint8Array {
  const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  const plane = shape[2]! * shape[3]!;
  return Uint8Array.from({ length: 3 * plane }, (_, i) =>
    Math.round(255 * values[(i % 3) * plane + Math.floor(i / 3)]!),
  );
}
