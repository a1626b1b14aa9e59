import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { openOrtSession } from '../../../src/engines/runtime/onnxruntime/ort-session.js';
import type { Session } from '../../../src/engines/runtime/session.js';
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

test('predictor and joint network open at the same time, and one is closed where the other cannot be opened', async () => {
  const meta = await writeBundle(folder);
  const asked: string[] = [];
  let meet = () => {};
  const both = new Promise<void>((resolve) => {
    meet = resolve;
  });
  const close = vi.fn(async () => {});
  const opening = openDecoder(meta, {}, async ({ name }) => {
    if (asked.push(name) === 2) meet();
    await both;
    if (name === 'joint') throw new Error('no joint network');
    return { inputs: [], close } as unknown as Session;
  });
  await expect(opening).rejects.toThrow('no joint network');
  expect(asked).toEqual(['predictor', 'joint']);
  expect(close).toHaveBeenCalledOnce();
});
