import { describe, expect, test } from 'vitest';
import { assertGpuPresent, checkDevice, chosenGpu, onDevice, whyNoGpu } from '../../src/addon/gpus.js';
import { noDevices, noGpus, twoGpus } from '../fakes/gpus.js';

const running = 'Running an engine needs an NVIDIA GPU';

describe('one of the visible GPUs', () => {
  test('is found by its number', () => {
    expect(chosenGpu(twoGpus, 1, running)).toBe(twoGpus.gpus[1]);
    expect(onDevice(twoGpus, 1)).toEqual({ ...twoGpus, gpus: [twoGpus.gpus[1]] });
  });

  test.each([
    [twoGpus, 2, 'there is no GPU 2 here: 0 is NVIDIA L4, 1 is NVIDIA H200.'],
    [noGpus, 0, 'this machine shows none: There is no driver.'],
    [{ ...noGpus, reason: null }, 1, 'this machine shows none.'],
  ])('that is not there is an error that names those that are: %#', (list, device, why) => {
    const message = `Running an engine needs an NVIDIA GPU, and ${why}`;
    expect(() => chosenGpu(list, device, running)).toThrow(
      expect.objectContaining({ code: 'TF_GPU_UNAVAILABLE', message }),
    );
  });

  test('is looked for with what to do instead, where that is known', () => {
    expect(() => chosenGpu(noGpus, 0, running, 'Run it elsewhere.')).toThrow(
      expect.objectContaining({ remedy: 'Run it elsewhere.' }),
    );
  });

  test('that is not there leaves a list that states why it is empty', () => {
    expect(whyNoGpu(onDevice(twoGpus, 7))).toBe('there is no GPU 7 here');
    expect(whyNoGpu(onDevice(noGpus, 0))).toBe('There is no driver');
    expect(whyNoGpu({ reason: null })).toBe('none is visible');
  });

  test.each(noDevices)('has a number from 0, which %s is not', (device) => {
    const refused = expect.objectContaining({
      code: 'TF_USAGE',
      message: `device is ${device}, and must be a whole number from 0.`,
    });
    for (const attempt of [checkDevice, (each: number) => assertGpuPresent(twoGpus, each, running)])
      expect(() => attempt(device)).toThrow(refused);
    expect(() => chosenGpu(noGpus, device, running)).toThrow(refused);
  });
});

describe('a GPU that is used where there is one', () => {
  test.each([
    ['no choice', noGpus, undefined],
    ['the first, on a machine without any', noGpus, 0],
    ['one that is there', twoGpus, 1],
  ])('%s is taken', (_, list, device) => {
    expect(() => assertGpuPresent(list, device, running)).not.toThrow();
  });

  test.each([
    [twoGpus, 2],
    [noGpus, 1],
  ])('one that was chosen and is not there is an error: %#', (list, device) => {
    expect(() => assertGpuPresent(list, device, running)).toThrow(
      expect.objectContaining({ code: 'TF_GPU_UNAVAILABLE' }),
    );
  });
});
