import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { RandomStream } from '../../examples/models/random.js';
import { type BenchCase, peersOr } from '../context.js';
import { CommandFailed, measureCommand, median } from '../measure.js';

const CHUNKS = 12;
const STATE = [1, 24, 256, 1024] as const;
/** Of a line whose tensors are lists of numbers: about 80 MB. */
const LIST = [1, 24, 64, 1024] as const;
const LIST_LINES = 3;

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

/** Python's `json` gives lists of its own numbers, which numpy makes float32. */
const LIST_PEER = PEER.replace(
  'return np.frombuffer(base64.b64decode(t["data_b64"]), dtype=t["dtype"]).reshape(t["shape"])',
  'return np.asarray(t, dtype=np.float32)',
);

/** Reading a streaming reference whose lines have 67 MB, every tensor decoded; memory is that of a line, a few times over, however long the file. */
export const reference: BenchCase = {
  name: 'reference',
  run: (context) => {
    const skipped: string[] = [];
    const path = join(context.folder, 'reference.jsonl');
    const lists = join(context.folder, 'lists.jsonl');
    try {
      writeLines(path);
      writeLists(lists);
      const bytes = statSync(path).size;
      const module = join(context.root, 'dist', 'formats', 'reference', 'reference.js');
      const child = join(context.root, 'build', 'bench', 'read-reference.js');
      const command = [process.execPath, child, module];
      const peers = peersOr(context, skipped);
      const rate = (file: string, argv: readonly string[]): number =>
        statSync(file).size / median(secondsOf(argv)) / 1e6;
      const ours = (file: string): number => rate(file, [...command, file, String(context.runs)]);
      const { peakBytes } = measureCommand([...command, path, '1'], { runs: 1, warmups: 0 }).median;
      return {
        case: 'reference',
        title: `Read a ${(bytes / 1e9).toFixed(1)} GB streaming reference of ${CHUNKS} lines`,
        commands: ['openReference(path).chunks()', 'json.loads, base64.b64decode, numpy.frombuffer'],
        measurements: [
          {
            what: 'every tensor decoded, one process',
            unit: 'MB/s',
            ours: ours(path),
            ...(peers && {
              peer: { name: 'Python', figure: rate(path, [peers.python, '-c', PEER, path, '2']) },
            }),
            bar: { limit: 500, better: 'higher' },
          },
          {
            what: 'tensors as nested lists of numbers',
            unit: 'MB/s',
            ours: ours(lists),
            ...(peers && {
              peer: { name: 'Python', figure: rate(lists, [peers.python, '-c', LIST_PEER, lists, '2']) },
            }),
            bar: { limit: 500, better: 'higher' },
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
      for (const file of [path, lists]) rmSync(file, { force: true });
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

/** Lines whose tensors are what `json.dumps(tensor.tolist())` writes. */
function writeLists(path: string): void {
  const values = new Float32Array(LIST.reduce<number>((product, size) => product * size, 1));
  new RandomStream(1, 'lists').fillNormal(values, 0, 1);
  let place = 0;
  const list = (axis: number): string =>
    axis === LIST.length
      ? String(values[place++])
      : `[${Array.from({ length: LIST[axis] ?? 0 }, () => list(axis + 1)).join(', ')}]`;
  const tensor = list(0);
  const file = openSync(path, 'w');
  for (let chunk = 0; chunk < LIST_LINES; chunk++)
    writeSync(
      file,
      `{"chunk_idx": ${chunk}, "inputs": {"cache": ${tensor}}, "outputs": {"cache_out": ${tensor}}}\n`,
    );
  closeSync(file);
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
