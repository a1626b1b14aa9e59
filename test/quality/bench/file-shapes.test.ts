import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { EngineBinding } from '../../../src/engines/runtime/tensorrt/engine-interface.js';
import { elementCount } from '../../../src/formats/tensor/dtype.js';
import { npyHeader, writeNpy } from '../../../src/formats/tensor/npy.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { floatTensor, integerTensor } from '../../../src/formats/tensor/tensor.js';
import { withFileShapes } from '../../../src/quality/bench/shape-cases.js';
import { refusal } from '../../support/refusal.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-file-shapes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const binding = (name: string, dtype: EngineBinding['dtype'], hostValues = false): EngineBinding => ({
  name,
  dtype,
  shape: [null],
  hostValues,
  profiles: [],
});
const inputs = [binding('x', 'float32'), binding('half', 'bfloat16'), binding('sizes', 'int64', true)];

const shapesOf = (files: Readonly<Record<string, string>>, shapes = new Map<string, readonly number[]>()) => {
  const wish = withFileShapes(inputs, {
    shapes: { kind: 'shapes', shapes },
    inputs: { seed: 0, ranges: [], files: Object.entries(files).map(([name, path]) => ({ name, path })) },
  } as Parameters<typeof withFileShapes>[1]);
  return wish.kind === 'shapes' ? Object.fromEntries(wish.shapes) : wish.kind;
};

/** An npy file of which only the header was written; its elements are a hole. */
function hollow(shape: readonly number[], bytes = 4 * elementCount(shape)): string {
  const path = join(folder, 'hollow.npy');
  const header = npyHeader({ dtype: 'float32', shape, bytes: new Uint8Array() });
  writeFileSync(path, header);
  truncateSync(path, header.length + bytes);
  return path;
}

describe('shapes of the files for inputs', () => {
  it('come from headers: a file of 40 GB is not read', () => {
    const shape = [1, 10, 1_000_000_000];
    expect(shapesOf({ x: hollow(shape) })).toEqual({ x: shape });
  });

  it('are those of npy and npz, compressed too, of types numpy lacks, and values where these decide shapes', () => {
    const half = floatTensor('bfloat16', [2, 3], new Float32Array(6));
    writeNpy(join(folder, 'half.npy'), half);
    writeNpy(join(folder, 'sizes.npy'), integerTensor('int64', [3], [1, 2, 4]));
    for (const compress of [false, true]) {
      const path = join(folder, `${compress}.npz`);
      writeNpz(path, new Map([['x', floatTensor('float32', [5, 7], new Float32Array(35))]]), { compress });
      const files = { x: path, half: join(folder, 'half.npy'), sizes: join(folder, 'sizes.npy') };
      expect(shapesOf(files)).toEqual({ x: [5, 7], half: [2, 3], sizes: [1, 2, 4] });
      expect(shapesOf(files, new Map([['x', [35]]]))).toMatchObject({ x: [35] });
    }
  });

  it('are rejected in a file that is cut short', () => {
    expect(refusal(() => shapesOf({ x: hollow([4, 4], 60) }))).toMatchObject({
      code: 'TF_TENSOR_FILE_INVALID',
      message: expect.stringMatching(/needs 64 bytes, 60 are there/),
    });
  });
});
