import { expect, test } from 'vitest';
import { imageLayout } from '../../../src/formats/onnx/image-layout.js';

test.each([
  [['N', 3, 480, 640], 'NCHW'],
  [['N', null, null, null], 'NCHW'],
  [['N', 480, 640, 3], 'NHWC'],
  [['N', 'h', 'w', 1], 'NHWC'],
  [['N', 3, 640, 3], 'NCHW'],
  [['N', 480, 640, 'c'], 'NHWC'],
  [['N', 'c', 480, 640], 'NCHW'],
  [['N', 3, 4, 480, 640], null],
  [['N', 80], null],
  [null, null],
] as const)('%j is %s', (shape, layout) => {
  const found = imageLayout(shape === null ? null : [...shape]);
  expect(found?.layout ?? null).toBe(layout);
  if (found !== null) expect([found.channels, found.height, found.width].toSorted()).toEqual([1, 2, 3]);
});
