import { describe, expect, it } from 'vitest';
import type { Image } from '../../../src/formats/images/image.js';
import { preprocess, preprocessings } from '../../../src/formats/images/preprocess.js';

/** Red is the column, green the row, blue 7. */
const image = (width: number, height: number): Image => ({
  width,
  height,
  rgb: Uint8Array.from({ length: 3 * width * height }, (_, at) => {
    const pixel = Math.floor(at / 3);
    return [pixel % width, Math.floor(pixel / width), 7][at % 3]!;
  }),
});
const floats = ({ bytes }: { readonly bytes: Uint8Array }) =>
  new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
const levels = (values: Float32Array) => Array.from(values, (value) => Math.round(255 * value));

describe('letterbox', () => {
  const how = { ...preprocessings.yolo!, width: 8, height: 8 };

  it('keeps proportions, pads with 114 and puts the odd pixel below', () => {
    const { tensor, placement } = preprocess(image(8, 5), how);
    expect(tensor.shape).toEqual([1, 3, 8, 8]);
    expect(placement).toEqual({ scaleX: 1, scaleY: 1, left: 0, top: 1 });
    const [red, green, blue] = [0, 1, 2].map((channel) =>
      levels(floats(tensor).subarray(64 * channel, 64 * channel + 64)),
    );
    expect(red?.slice(0, 8)).toEqual(new Array(8).fill(114));
    expect(red?.slice(8, 16)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect([8, 16, 24, 32, 40].map((at) => green?.[at])).toEqual([0, 1, 2, 3, 4]);
    expect(blue?.slice(8, 10)).toEqual([7, 7]);
    expect(red?.slice(48)).toEqual(new Array(16).fill(114));
  });

  it('rounds half to even, as Python does', () => {
    // 8 / 16 * 853 / 853 … : 1280 x 853 at 640 is 426.5 rows.
    const { placement } = preprocess(image(1280, 853), { ...how, width: 640, height: 640 });
    expect(placement.top).toBe((640 - 426) / 2);
  });
});

it('stretch fills the canvas and keeps both scales', () => {
  const { tensor, placement } = preprocess(image(4, 2), {
    ...preprocessings['rt-detr']!,
    width: 8,
    height: 8,
  });
  expect(placement).toEqual({ scaleX: 2, scaleY: 4, left: 0, top: 0 });
  // Half-pixel centres: 0, 0.25, 0.75, 1.25, … rounded.
  expect(levels(floats(tensor)).slice(0, 8)).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
});

it('crop takes the middle, normalised by channel', () => {
  const how = { ...preprocessings.imagenet!, width: 4, height: 4, shorterSide: 4 };
  const { tensor, placement } = preprocess(image(9, 4), how);
  expect(placement.left).toBe(-2);
  const [red, blue] = [floats(tensor)[0]!, floats(tensor)[32]!];
  expect(red).toBeCloseTo((2 / 255 - 0.485) / 0.229, 6);
  expect(blue).toBeCloseTo((7 / 255 - 0.406) / 0.225, 6);
});

it('arcface maps levels to -1 … 1, bgr swaps the channels', () => {
  const how = { ...preprocessings.arcface!, width: 2, height: 2 };
  const rgb = floats(preprocess(image(2, 2), how).tensor);
  const bgr = floats(preprocess(image(2, 2), { ...how, channels: 'bgr' }).tensor);
  expect(rgb[0]).toBe(-1);
  expect(Array.from(bgr.subarray(0, 4))).toEqual(Array.from(rgb.subarray(8, 12)));
});
