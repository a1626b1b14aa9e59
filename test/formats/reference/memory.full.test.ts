import { constants } from 'node:buffer';
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { type DamagedLine, openReference } from '../../../src/formats/reference/reference.js';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { writeReference } from '../../support/write-reference.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-memory-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CHUNKS = 12;
/** The state of the encoder that the form comes from: 24 layers of 256 positions of 1024. */
const STATE = [1, 24, 256, 1024];

/** Reads the whole in a process whose heap is far smaller than the file, and prints the most that it held of what the collector leaves. */
const READER = `
import { openReference } from ${JSON.stringify(fileURLToPath(new URL('../../../dist/formats/reference/reference.js', import.meta.url)))};
const reference = openReference(process.argv[1]);
let chunks = 0, sum = 0, held = 0;
for await (const { inputs, outputs } of reference.chunks()) {
  chunks++;
  for (const tensors of [inputs, outputs]) for (const { bytes } of tensors.values()) sum = (sum + bytes[0] + bytes[bytes.length - 1] + bytes.length) % 1e9;
  await new Promise(setImmediate);
  gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  held = Math.max(held, (heapUsed + arrayBuffers) / 2 ** 20);
}
console.log(JSON.stringify({ chunks, sum, heldMiB: held }));
`;

function readElsewhere(path: string): { chunks: number; sum: number; heldMiB: number } {
  const child = spawnSync(
    process.execPath,
    ['--expose-gc', '--max-old-space-size=256', '--input-type=module', '-e', READER, path],
    { encoding: 'utf8' },
  );
  expect(child.stderr).toBe('');
  return JSON.parse(child.stdout);
}

test('a file of 800 MB in lines of 67 MB is read in memory for a line, a few times over', async () => {
  const random = randomStream(1);
  const bits = Uint32Array.from({ length: 1 << 16 }, () => random.bits());
  const state = (chunk: number) => {
    const values = new Uint8Array(4 * STATE.reduce((product, size) => product * size, 1));
    const piece = new Uint8Array(bits.buffer);
    for (let at = 0; at < values.length; at += piece.length) values.set(piece, at);
    values[0] = chunk;
    return { dtype: 'float32', shape: STATE, bytes: values } as const;
  };
  function* stream() {
    let before = state(0);
    for (let index = 0; index < CHUNKS; index++) {
      const after = state(index + 1);
      yield {
        index,
        inputs: new Map([['cache', before]]),
        outputs: new Map([
          ['cache_out', after],
          ['y', tensorFrom('float32', [1], Float32Array.of(index))],
        ]),
        metadata: {},
      };
      before = after;
    }
  }
  const jsonl = join(folder, 'ref.jsonl');
  await writeReference(jsonl, stream());
  expect(statSync(jsonl).size / CHUNKS).toBeGreaterThan(67e6);
  const { chunks, heldMiB } = readElsewhere(jsonl);
  expect(chunks).toBe(CHUNKS);
  expect(heldMiB).toBeLessThan(300);
});

test('a line beyond the longest string of Node.js is named, with the way out, and can be skipped', async () => {
  const path = join(folder, 'long.jsonl');
  const line = (index: number) => `{"chunk_idx":${index},"inputs":{"x":[1]},"outputs":{"y":[1]}}\n`;
  writeFileSync(path, line(0));
  // The zeros of a hole in the file, up to the next line.
  truncateSync(path, constants.MAX_STRING_LENGTH + 1000);
  appendFileSync(path, `\n${line(2)}`);
  using reference = openReference(path);
  const damaged: DamagedLine[] = [];
  const read: number[] = [];
  for await (const { index } of reference.chunks({ onDamaged: (damage) => damaged.push(damage) }))
    read.push(index);
  expect([read, damaged.map(({ line: number }) => number)]).toEqual([[0, 2], [2]]);
  const all = reference.chunks()[Symbol.asyncIterator]();
  await all.next();
  const error = await all.next().catch((cause: unknown) => cause);
  expect(error).toMatchObject({ code: 'TF_REFERENCE_INVALID', details: { line: 2 } });
  expect((error as { remedy?: string }).remedy).toContain('npy_path');
});
