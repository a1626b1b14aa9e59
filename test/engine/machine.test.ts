import { describe, expect, test } from 'vitest';
import { onlyGpu } from '../../src/engine/machine.js';

describe('the environment of a child that sees one GPU', () => {
  test.each([
    [{}, 2, '2'],
    [{ CUDA_VISIBLE_DEVICES: '3,5' }, 0, '3'],
    [{ CUDA_VISIBLE_DEVICES: '3,5' }, 1, '5'],
    [{ CUDA_VISIBLE_DEVICES: 'GPU-aaaa, GPU-bbbb' }, 1, 'GPU-bbbb'],
    [{ CUDA_VISIBLE_DEVICES: '3' }, 1, 'none'],
    [{ CUDA_VISIBLE_DEVICES: '' }, 0, ''],
  ])('%j, GPU %i: %s', (environment, device, visible) => {
    expect(onlyGpu({ ...environment, HOME: '/h' }, device)).toEqual({
      CUDA_VISIBLE_DEVICES: visible,
      HOME: '/h',
    });
  });
});
