import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../scripts/build-native.mjs';
import { layersOfEngine } from '../../src/diagnose/engine-layers.js';
import { ignoreEvents } from '../../src/events.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-engine-layers-'));
beforeAll(() => buildAddon({ say: () => {} }), 180_000);
afterAll(() => rmSync(folder, { recursive: true }));

function plan(): string {
  const bytes = Buffer.alloc(64);
  bytes.write('ftrt', 0, 'latin1');
  bytes.writeBigUInt64LE(64n, 16);
  bytes.set([10, 6, 0, 26], 24);
  const path = join(folder, 'model.engine');
  writeFileSync(path, bytes);
  return path;
}

describe('layers of an engine', () => {
  it('need a GPU, and without one the error says what helps', async () => {
    // CUDA shows no device to a process that is told to see none.
    const environment = { ...process.env, CUDA_VISIBLE_DEVICES: '' };
    await expect(layersOfEngine(plan(), { emit: ignoreEvents, environment })).rejects.toMatchObject({
      code: 'TF_GPU_UNAVAILABLE',
      exitCode: 3,
      remedy: expect.stringMatching(/--layers-from FILE/),
    });
  });

  it('of a file that is no plan are refused before anything is loaded', async () => {
    const path = join(folder, 'text.engine');
    writeFileSync(path, 'no plan');
    await expect(layersOfEngine(path, { emit: ignoreEvents })).rejects.toMatchObject({
      code: 'TF_PLAN_INVALID',
    });
  });

  it('are not waited for after Ctrl-C', async () => {
    const signal = AbortSignal.abort();
    await expect(layersOfEngine(plan(), { emit: ignoreEvents, signal })).rejects.toMatchObject({
      code: 'TF_CANCELLED',
    });
  });
});
