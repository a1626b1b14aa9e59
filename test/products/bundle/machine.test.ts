import { expect, test } from 'vitest';
import { environmentOf } from '../../../src/products/bundle/machine.js';
import { onDevice } from '../../../src/tensorrt/addon/chosen-gpu.js';
import { twoGpus } from '../../support/gpus.js';

test('the report of a bundle speaks of the GPU that was chosen', () => {
  expect(environmentOf(onDevice(twoGpus, 1), undefined)).toMatchObject({
    gpu: 'NVIDIA H200',
    compute_capability: '9.0',
    driver: '570.86',
  });
});
