import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { imageRunOf, preprocessOption } from '../../../../src/products/evaluation/commands/image-options.js';
import { samplePassport, samplePlan } from '../../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-image-options-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['rt-detr', undefined, 'rt-detr'],
  ['rt-detr', 'yolo', 'yolo'],
  ['imagenet', undefined, 'yolo'],
  [undefined, undefined, 'yolo'],
])('calibrated on %s and asked for %s: %s', (calibrated, preprocess, expected) => {
  const file = join(folder, `${calibrated}.engine`);
  const bytes = samplePlan();
  const passport = samplePassport(bytes);
  const model = { ...passport.model, ...(calibrated !== undefined && { preprocess: calibrated }) };
  writeFileSync(file, bytes);
  writeFileSync(`${file}.passport.json`, JSON.stringify({ ...passport, model }));
  const options = { images: folder, plugin: [], providerOption: [], preprocess };
  const run = imageRunOf(file, options as never, preprocessOption(['yolo', 'rt-detr']));
  expect(run.preprocess).toBe(expected);
});
