import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, describe, expect, test } from 'vitest';
import { calibrationOf } from '../../../src/engines/calibration/calibration.js';
import type { WorkEvent } from '../../../src/events.js';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { integerTensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { channelsLastTwin } from '../../support/channels-last.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-calibration-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const model = join(folder, 'm.onnx');
const g = new GraphBuilder('g');
g.input('x', 'float32', ['batch', 4]);
g.node('Relu', { name: 'relu', inputs: ['x'], outputs: ['y'] });
g.output('y', 'float32', ['batch', 4]);
await writeModel(buildModel(g), model);
const data = (name: string, top: number) => {
  const path = join(folder, name);
  writeNpy(
    path,
    tensorFrom(
      'float32',
      [16, 4],
      Float32Array.from({ length: 64 }, (_, at) => (at % 2 ? top : -1)),
    ),
  );
  return path;
};
const samples = data('x.npy', 3);

async function calibrate(request: Parameters<typeof calibrationOf>[0], tensors = ['x', 'y']) {
  const events: WorkEvent[] = [];
  const ranges = await calibrationOf(request).calibrate(model, tensors, {
    emit: (event) => events.push(event),
    dtype: 'int8',
    channels: new Map(),
  });
  const hasRun = events.some(({ type }) => type === 'progress');
  const warned = events.some(({ type }) => type === 'log');
  return { y: ranges.get('y'), hasRun, warned };
}

test('runs where it is asked to, or not at all', async () => {
  const on = (provider: string) => calibrate({ data: [samples], method: 'max', provider });
  await expect(on('tpu')).rejects.toMatchObject({ code: 'TF_USAGE' });
  expect(await on('cpu')).toMatchObject({ hasRun: true });
  if (existsSync('/dev/nvidia0')) return;
  const code = expect.stringMatching(/^TF_(GPU_UNAVAILABLE|ONNXRUNTIME_MISSING|NATIVE_)/);
  await expect(on('cuda')).rejects.toMatchObject({ code });
});

test('images give the same ranges where a model takes NHWC', async () => {
  const pictures = join(folder, 'pictures');
  mkdirSync(pictures);
  for (const [index, background] of [
    { r: 250, g: 10, b: 90 },
    { r: 0, g: 200, b: 30 },
  ].entries())
    await sharp({ create: { width: 20, height: 12, channels: 3, background } })
      .png()
      .toFile(join(pictures, `${index}.png`));
  const path = join(folder, 'images.onnx');
  const network = new GraphBuilder('images');
  network.input('image', 'float32', ['batch', 3, 'height', 'width']);
  const kernel = Float32Array.from({ length: 81 }, (_, at) => (at % 7) - 3);
  network.initializer('k', tensorFrom('float32', [3, 3, 3, 3], kernel));
  network.node('Conv', { name: 'conv', inputs: ['image', 'k'], outputs: ['y'] });
  network.output('y', 'float32', null);
  await writeModel(buildModel(network), path);
  const of = async (file: string) => {
    const calibration = calibrationOf({ data: [pictures], preprocess: 'imagenet', imgsz: 16, method: 'max' });
    const context = { emit: () => {}, dtype: 'int8', channels: new Map() } as const;
    return (await calibration.calibrate(file, ['image', 'y'], context)).get('y');
  };
  const planes = await of(path);
  expect(planes?.amax).toBeGreaterThan(0);
  expect(await of(await channelsLastTwin(path))).toEqual(planes);
});

test('names the sample on which the model cannot run', async () => {
  const table = join(folder, 'table.onnx');
  const lookup = new GraphBuilder('g');
  lookup.input('ids', 'int64', ['batch', 2]);
  lookup.initializer('words', tensorFrom('float32', [3, 1], new Float32Array([1, 2, 3])));
  lookup.node('Gather', { name: 'gather', inputs: ['words', 'ids'], outputs: ['y'] });
  lookup.output('y', 'float32', ['batch', 2, 1]);
  await writeModel(buildModel(lookup), table);
  const ids = join(folder, 'ids.npy');
  writeNpy(ids, integerTensor('int64', [3, 2], [0, 1, 2, 99, 0, 0]));
  const run = calibrationOf({ data: [ids] }).calibrate(table, ['y'], {
    emit: () => {},
    dtype: 'int8',
    channels: new Map(),
  });
  await expect(run).rejects.toMatchObject({
    code: 'TF_ONNXRUNTIME_FAILED',
    message: expect.stringMatching(/sample 2 of .*ids\.npy.*99/),
  });
});

test('names the sample that makes an activation infinite', async () => {
  const steep = join(folder, 'steep.onnx');
  const powers = new GraphBuilder('g');
  powers.input('x', 'float32', ['batch', 4]);
  powers.node('Exp', { name: 'exp', inputs: ['x'], outputs: ['y'] });
  powers.output('y', 'float32', ['batch', 4]);
  await writeModel(buildModel(powers), steep);
  const run = calibrationOf({ data: [samples, data('steep.npy', 1000)] }).calibrate(steep, ['y'], {
    emit: () => {},
    dtype: 'int8',
    channels: new Map(),
  });
  await expect(run).rejects.toMatchObject({
    code: 'TF_CALIBRATION_INVALID',
    message: expect.stringMatching(/sample 1 of .*steep\.npy/),
  });
});

test('samples that are named twice are a warning, and change no digest', async () => {
  const twice = { data: [samples, data('one-more.npy', 2), samples], method: 'max' };
  expect(await calibrate(twice)).toMatchObject({ warned: true });
  expect(calibrationOf(twice).digest()).toBe(
    calibrationOf({ ...twice, data: twice.data.slice(0, 2) }).digest(),
  );
});

describe('a calibration cache', () => {
  const cache = join(folder, 'ranges.json');

  test('is written by the first run and saves the second', async () => {
    const request = { data: [samples], method: 'max', cache };
    const y = { min: 0, max: 3, amax: 3 };
    expect(await calibrate(request)).toEqual({ y, hasRun: true, warned: false });
    expect(existsSync(cache)).toBe(true);
    expect(await calibrate(request)).toEqual({ y, hasRun: false, warned: false });
    expect(await calibrate({ data: [], cache })).toEqual({ y, hasRun: false, warned: false });
  });

  test('states its data and method where there are no samples', async () => {
    const own = calibrationOf({ data: [], cache });
    const made = calibrationOf({ data: [samples], method: 'max' });
    expect([own.method, own.digest()]).toEqual(['max', made.digest()]);
    // The identity is of the method that was named, so that no engine of another is found.
    expect(calibrationOf({ data: [], cache, method: 'entropy' }).method).toBe('entropy');
    const other = join(folder, 'other.onnx');
    const h = new GraphBuilder('other');
    h.input('x', 'float32', ['batch', 4]);
    h.node('Tanh', { name: 'tanh', inputs: ['x'], outputs: ['y'] });
    h.output('y', 'float32', ['batch', 4]);
    await writeModel(buildModel(h), other);
    const reading = (path: string, dtype: 'int8' | 'float8_e4m3fn', method?: string) =>
      calibrationOf({ data: [], cache, method }).calibrate(path, ['y'], {
        emit: () => {},
        dtype,
        channels: new Map(),
      });
    for (const [differing, run] of [
      ['model', () => reading(other, 'int8')],
      ['dtype', () => reading(model, 'float8_e4m3fn')],
      ['method', () => reading(model, 'int8', 'entropy')],
    ] as const)
      await expect(run()).rejects.toMatchObject({
        code: 'TF_CALIBRATION_INVALID',
        details: { differing: [differing] },
      });
  });

  test('has a method of every spelling, and that of extremes where only weights get codes', async () => {
    const percentile = join(folder, 'percentile.json');
    await calibrate({ data: [samples], method: 'percentile', cache: percentile });
    expect(await calibrate({ data: [], method: 'percentile', cache: percentile })).toMatchObject({
      hasRun: false,
    });
    const weights = join(folder, 'weights.json');
    const ofWeights = (data: readonly string[]) =>
      calibrationOf({ data, method: 'entropy', cache: weights }).calibrate(model, ['x'], {
        emit: () => {},
        dtype: null,
        channels: new Map([['x', 1]]),
      });
    expect(await ofWeights([samples])).toEqual(await ofWeights([]));
  });

  test('of other data, by another method or without a tensor is rejected', async () => {
    const rejected = { code: 'TF_CALIBRATION_INVALID' };
    await expect(calibrate({ data: [data('other.npy', 5)], method: 'max', cache })).rejects.toMatchObject({
      ...rejected,
      details: { differing: ['data'] },
    });
    await expect(calibrate({ data: [samples], cache, method: 'mse' })).rejects.toMatchObject({
      ...rejected,
      details: { differing: expect.arrayContaining(['method']) },
    });
    await expect(calibrate({ data: [samples], method: 'max', cache }, ['z'])).rejects.toMatchObject({
      ...rejected,
      message: expect.stringContaining('z'),
    });
  });

  test("may be TensorRT's table, which needs no data and is the identity then", async () => {
    const table = join(folder, 'int8.cache');
    writeFileSync(table, 'TRT-8602-EntropyCalibration2\nx: 3c010a14\ny: 40000000\n');
    expect(await calibrate({ data: [], cache: table })).toEqual({
      y: { min: -254, max: 254, amax: 254 },
      hasRun: false,
      warned: true,
    });
    expect(calibrationOf({ data: [], cache: table }).method).toBe('unknown');
    const first = calibrationOf({ data: [], cache: table }).digest();
    writeFileSync(table, 'TRT-8602-EntropyCalibration2\nx: 3c010a14\ny: 40400000\n');
    expect(calibrationOf({ data: [], cache: table }).digest()).not.toBe(first);
  });

  test('as a table gives magnitudes, beside data that give the rest', async () => {
    const table = join(folder, 'beside.cache');
    const of = (y: string) => {
      writeFileSync(table, `TRT-8602-EntropyCalibration2\nx: 3c010a14\ny: ${y}\n`);
      const { method, digest } = calibrationOf({ data: [samples], method: 'mse', cache: table });
      return { method, digest: digest() };
    };
    const [one, other] = [of('40400000'), of('40000000')];
    const without = calibrationOf({ data: [samples], method: 'mse' }).digest();
    expect(new Set([one.digest, other.digest, without]).size).toBe(3);
    expect(one.method).toBe('unknown');
    expect(await calibrate({ data: [samples], cache: table })).toEqual({
      y: { min: 0, max: 3, amax: 254 },
      hasRun: true,
      warned: true,
    });
  });

  test('as a table that a run writes makes the next run find the same', async () => {
    const table = join(folder, 'new.cache');
    const run = async () => {
      const calibration = calibrationOf({ data: [samples], method: 'mse', cache: table });
      const ranges = await calibration.calibrate(model, ['x', 'y'], {
        emit: () => {},
        dtype: 'float8_e4m3fn',
        channels: new Map([['y', 1]]),
      });
      return { ranges, method: calibration.method };
    };
    const [first, second] = [await run(), await run()];
    expect(second.ranges).toEqual(first.ranges);
    expect(second.ranges.get('y')?.channels).toBeDefined();
    // Each is what decided the ranges of its run.
    expect([first.method, second.method]).toEqual(['mse', 'unknown']);
  });

  test('without data has to be there', async () => {
    const request = { data: [], cache: join(folder, 'absent.json') };
    const rejected = expect.objectContaining({ code: 'TF_USAGE' });
    expect(() => calibrationOf({ data: [] })).toThrow(rejected);
    expect(() => calibrationOf(request).digest()).toThrow(rejected);
    await expect(calibrate(request)).rejects.toEqual(rejected);
  });
});
