import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { commonFolder } from '../../../../src/products/evaluation/detection/metrics-file.js';

it.each([
  ['coco/annotations', 'coco/val2017', 'coco'],
  ['coco/annotations', './coco/val2017/', 'coco'],
  ['/data/coco/annotations', '/data/coco/val2017', '/data/coco'],
  ['.', 'val2017', '.'],
  ['coco', 'coco/val2017', 'coco'],
  ['coco/val2017', 'coco', 'coco'],
  ['../a', '../b', '..'],
  ['/a', '/b', '/'],
  ['a', resolve('a/images'), resolve('a')],
  ['a', '/nowhere', '/'],
])('annotations in %s and images in %s are in %s', (annotations, images, expected) => {
  expect(commonFolder(annotations, images)).toBe(expected);
});
