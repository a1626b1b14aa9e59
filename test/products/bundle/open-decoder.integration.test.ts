import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { openOrtSession } from '../../../src/engines/runtime/onnxruntime/ort-session.js';
import { ignoreEvents } from '../../../src/events.js';
import { openDecoder } from '../../../src/products/bundle/open-decoder.js';
import { writeBundle } from '../../support/bundle.js';

vi.mock('../../../src/engines/runtime/onnxruntime/ort-session.js', () => ({
  openOrtSession: vi.fn(async () => ({ inputs: [] })),
}));

const folder = mkdtempSync(join(tmpdir(), 'trtforge-decoder-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a decoder leaves the cores to the encoder, whose steps are timed beside it', async () => {
  await openDecoder(await writeBundle(folder), { emit: ignoreEvents });
  for (const name of ['predictor', 'joint'])
    expect(openOrtSession).toHaveBeenCalledWith(
      join(folder, `${name}.onnx`),
      expect.objectContaining({ threads: 1 }),
    );
});
