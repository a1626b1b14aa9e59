import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { calibrationOf } from '../../../src/engines/calibration/calibration.js';
import { writeCalibration } from '../../../src/formats/precision/calibrate/cache.js';
import type { ConversionOptions } from '../../../src/formats/precision/options.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import type { Component } from '../../../src/products/bundle/component.js';
import { componentConversions, lowerConversion } from '../../../src/products/bundle/component-conversion.js';
import type { BundleRequest } from '../../../src/products/bundle/options.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-component-conversion-'));
const file = (name: string) => join(folder, `${name}.npz`);
const row = (value: number) => tensorFrom('float32', [1, 2], Float32Array.of(value, -value));
beforeAll(async () => {
  await writeNpz(file('sound'), new Map([['sound', row(1)]]));
  await writeNpz(
    file('both'),
    new Map([
      ['a', row(2)],
      ['b', row(3)],
    ]),
  );
  await writeNpz(file('other'), new Map([['other', row(4)]]));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const component = (name: string, ...inputs: string[]): Component => ({
  name,
  onnx: `${name}.onnx`,
  inputs: inputs.map((input) => ({ name: input, dtype: 'float32', shape: [1, 2] })),
  outputs: [],
  externalFiles: [],
  embeddingRows: null,
});
const components = [component('encoder', 'sound'), component('joint', 'a', 'b')];

function conversions(
  precision: BundleRequest['precision'],
  data: readonly string[],
  more: ConversionOptions = {},
) {
  const conversion = { ...more, calibration: calibrationOf({ data: data.map(file) }) };
  const found = componentConversions({ meta: '', outdir: '', precision, conversion }, components);
  return [...found].map(([name, { options, warnings }]) => [
    name,
    options.precision,
    options.conversion?.calibration?.facts?.().data.length ?? 0,
    warnings.length,
  ]);
}

describe('samples count for the components whose inputs they have', () => {
  it.each([
    ['int8', {}, 'fp16', 1],
    ['fp8', { rest: 'bf16' }, 'bf16', 1],
    ['int8', { rest: 'fp32' }, 'as-is', 1],
    // These formats need no samples.
    ['int4', {}, 'int4', 0],
    ['fp16', {}, 'fp16', 0],
  ] as const)('%s %j: a component without any is %s', (precision, more, expected, warnings) => {
    expect(conversions(precision, ['sound'], more)).toEqual([
      ['encoder', precision, 1, 0],
      ['joint', expected, 0, warnings],
    ]);
  });

  it('data of several components are divided among them', () => {
    expect(conversions('int8', ['sound', 'both'])).toEqual([
      ['encoder', 'int8', 1, 0],
      ['joint', 'int8', 1, 0],
    ]);
  });

  it('each component has a cache of its own, which stands in for missing samples', async () => {
    const cache = join(folder, 'ranges.json');
    const own = (name: string) => join(folder, `ranges.${name}.json`);
    const caches = (data: readonly string[]) => {
      const conversion = { calibration: calibrationOf({ data: data.map(file), cache }) };
      const found = componentConversions({ meta: '', outdir: '', precision: 'int8', conversion }, components);
      return [...found].map(([, { options }]) => options.conversion?.calibration?.facts?.().cache);
    };
    expect(caches(['sound', 'both'])).toEqual([own('encoder'), own('joint')]);
    expect(() => caches([])).toThrow(expect.objectContaining({ code: 'TF_CALIBRATION_INVALID' }));
    writeCalibration(own('joint'), { data: 'd', method: 'max', dtype: 'int8', model: 'm' }, new Map());
    expect(caches([])).toEqual([undefined, own('joint')]);
    expect(caches(['sound'])).toEqual([own('encoder'), undefined]);
  });

  it('data of no component are an error that names the inputs', () => {
    expect(() => conversions('int8', ['other'])).toThrow(
      expect.objectContaining({
        code: 'TF_CALIBRATION_INVALID',
        remedy: expect.stringMatching(/encoder takes sound; joint takes a, b/),
      }),
    );
  });

  it.each([
    ['int8', undefined, 'TF_NOT_QUANTIZABLE', 'fp16'],
    ['int8', 'bf16', 'TF_NOT_QUANTIZABLE', 'bf16'],
    ['int4', 'fp32', 'TF_NOT_QUANTIZABLE', 'as-is'],
    ['bf16', undefined, 'TF_NOT_CONVERTIBLE', 'as-is'],
    ['bf16', undefined, 'TF_BUILD_FAILED', undefined],
    ['as-is', undefined, 'TF_NOT_CONVERTIBLE', undefined],
  ] as const)('%s %s that ends with %s becomes %s', (precision, rest, code, expected) => {
    const conversion = { options: { precision, conversion: { rest } }, warnings: [] };
    const lower = lowerConversion('joint', conversion, { code, message: 'Nothing fits.' });
    expect(lower?.options.precision).toBe(expected);
    expect(lower?.warnings.length).toBe(expected && 1);
  });
});
