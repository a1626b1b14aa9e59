import { expect, test } from 'vitest';
import { buildOrLoad, forge } from '../src/index.js';

test.each([
  ['forge', forge],
  ['buildOrLoad', buildOrLoad],
])(
  '%s rejects an option that does not exist before it begins, and names the nearest',
  async (_name, call) => {
    const misspelt = { model: 'nothing-here.onnx', presicion: 'fp16' };
    await expect(call(misspelt)).rejects.toMatchObject({
      code: 'TF_USAGE',
      message: expect.stringContaining('precision'),
    });
    await expect(call({ model: 'nothing-here.onnx' })).rejects.toMatchObject({ code: 'TF_FILE_NOT_FOUND' });
  },
);
