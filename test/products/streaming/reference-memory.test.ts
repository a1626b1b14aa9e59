import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { tensorFrom } from '../../../src/formats/tensor/values.js';
import { writeReference } from '../../../src/products/streaming/reference/write.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-memory-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CHUNKS = 8;
/** The state of the encoder that the form comes from: 24 layers of 256 positions of 1024. */
const STATE = [1, 24, 256, 1024];

/** Reads the whole in a process with a small heap and says what it took. */
const READER = `
import { openReference } from ${JSON.stringify(fileURLToPath(new URL('../../../dist/products/streaming/reference/reference.js', import.meta.url)))};
const reference = openReference(process.argv[1]);
let chunks = 0, sum = 0;
for await (const { inputs, outputs } of reference.chunks()) {
  chunks++;
  for (const tensors of [inputs, outputs]) for (const { bytes } of tensors.values()) sum = (sum + bytes[0] + bytes[bytes.length - 1] + bytes.length) % 1e9;
}
console.log(JSON.stringify({ chunks, sum, peakMiB: process.resourceUsage().maxRSS / 1024 }));
`;

function readElsewhere(path: string): { chunks: number; sum: number; peakMiB: number } {
  const child = spawnSync(
    process.execPath,
    ['--max-old-space-size=48', '--input-type=module', '-e', READER, path],
    { encoding: 'utf8' },
  );
  expect(child.stderr).toBe('');
  return JSON.parse(child.stdout);
}

test('lines of 70 MB are read in less than 400 MB, whatever the form', async () => {
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
  const compact = join(folder, 'ref');
  await writeReference(jsonl, stream());
  await writeReference(compact, stream());
  expect(statSync(jsonl).size / CHUNKS).toBeGreaterThan(67e6);
  const read = [jsonl, compact].map(readElsewhere);
  for (const { chunks, peakMiB } of read) {
    expect(chunks).toBe(CHUNKS);
    expect(peakMiB).toBeLessThan(400);
  }
  expect(read[0]?.sum).toBe(read[1]?.sum);
}, 60_000);
