import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { RandomStream } from '../../examples/models/random.js';
import { type BenchCase, peersOr } from '../context.js';
import { CommandFailed, measureCommand, median } from '../measure.js';

const CHUNKS = 12;
const STATE = [1, 24, 256, 1024] as const;

/** How a Python script reads such a reference: a line, json, base64, numpy. */
const PEER = `
import base64, json, sys, time
import numpy as np
def decode(t):
    return np.frombuffer(base64.b64decode(t["data_b64"]), dtype=t["dtype"]).reshape(t["shape"])
seconds = []
for _ in range(int(sys.argv[2])):
    started = time.perf_counter()
    looked = 0.0
    with open(sys.argv[1]) as lines:
        for line in lines:
            chunk = json.loads(line)
            for side in ("inputs", "outputs"):
                for tensor in chunk[side].values():
                    looked += float(decode(tensor).flat[-1])
    seconds.append(time.perf_counter() - started)
print(json.dumps(seconds))
`;

/** Reading a streaming reference whose lines have 67 MB, every tensor decoded; a 20 GB file is read at the same rate with the same memory. */
export const reference: BenchCase = {
  name: 'reference',
  run: (context) => {
    const skipped: string[] = [];
    const path = join(context.folder, 'reference.jsonl');
    try {
      writeLines(path);
      const bytes = statSync(path).size;
      const module = join(context.root, 'dist', 'stream', 'reference.js');
      const child = join(context.root, 'build', 'bench', 'read-reference.js');
      const command = [process.execPath, child, module, path];
      const peers = peersOr(context, skipped);
      const rate = (argv: readonly string[]): number => bytes / median(secondsOf(argv)) / 1e6;
      const { peakBytes } = measureCommand([...command, '1'], { runs: 1, warmups: 0 }).median;
      return {
        case: 'reference',
        title: `Read a ${(bytes / 1e9).toFixed(1)} GB streaming reference of ${CHUNKS} lines`,
        commands: ['openReference(path).chunks()', 'json.loads, base64.b64decode, numpy.frombuffer'],
        measurements: [
          {
            what: 'every tensor decoded, one process',
            unit: 'MB/s',
            ours: rate([...command, String(context.runs)]),
            ...(peers && { peer: { name: 'Python', figure: rate([peers.python, '-c', PEER, path, '2']) } }),
            bar: { limit: 1000, better: 'higher' },
          },
          ...(peakBytes === null
            ? []
            : [
                {
                  what: 'peak memory',
                  unit: 'MB' as const,
                  ours: peakBytes / 1e6,
                  bar: { limit: 400, better: 'lower' as const },
                },
              ]),
        ],
        skipped,
      };
    } finally {
      rmSync(path, { force: true });
    }
  },
};

function secondsOf([program = '', ...parameters]: readonly string[]): number[] {
  const child = spawnSync(program, parameters, { encoding: 'utf8' });
  const line = child.stdout?.trim().split('\n').at(-1) ?? '';
  if (child.status !== 0)
    throw new CommandFailed(`${program} failed: ${child.stderr.trim().split('\n').at(-1)}`);
  return JSON.parse(line) as number[];
}

/** Lines as the encoder's recorder writes them: a signal, a state that goes in and one that comes out. */
function writeLines(path: string): void {
  const random = new RandomStream(1, 'reference');
  const values = new Float32Array(STATE.reduce<number>((product, size) => product * size, 1));
  random.fillNormal(values.subarray(0, 1 << 20), 0, 1);
  for (let at = 1 << 20; at < values.length; at += 1 << 20)
    values.copyWithin(at, 0, Math.min(1 << 20, values.length - at));
  const state = JSON.stringify({
    dtype: 'float32',
    shape: STATE,
    data_b64: Buffer.from(values.buffer).toString('base64'),
  });
  const signal = JSON.stringify({
    dtype: 'float32',
    shape: [1, 128, 57],
    data_b64: Buffer.from(values.buffer, 0, 4 * 128 * 57).toString('base64'),
  });
  const file = openSync(path, 'w');
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    const inputs = `{"audio_signal": ${signal}, "cache_last_channel": ${state}}`;
    const outputs = `{"encoder_output": ${signal}, "cache_last_channel_out": ${state}}`;
    writeSync(
      file,
      `{"chunk_idx": ${chunk}, "inputs": ${inputs}, "outputs": ${outputs}, "metadata": {"chunk_len": 57}}\n`,
    );
  }
  closeSync(file);
}
