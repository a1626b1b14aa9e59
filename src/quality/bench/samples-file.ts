import { extname } from 'node:path';
import { publishFile } from '../../base/files/publish.js';
import { writeNpz } from '../../formats/tensor/npz.js';
import { tensorFrom } from '../../formats/tensor/values.js';
import type { Times } from './times.js';

const columnNames = ['startMs', 'inputMs', 'computeMs', 'outputMs', 'latencyMs', 'enqueueMs'] as const;

/**
 * Writes every sample: `.npz` with one array per column (`streams` int32, the rest float64, milliseconds), anything else as JSON
 * `{schema: "trtforge.bench-samples/1", wallMs, columns: {…}}`. Throws TF_WRITE_FAILED.
 */
export function writeSamples(path: string, times: Times): void {
  if (extname(path).toLowerCase() === '.npz') {
    const count = times.streams.length;
    writeNpz(
      path,
      new Map([
        ['streams', tensorFrom('int32', [count], times.streams)],
        ...columnNames.map(
          (name) => [name, tensorFrom('float64', [times[name].length], times[name])] as const,
        ),
        ['wallMs', tensorFrom('float64', [], Float64Array.of(times.wallMs))],
      ]),
    );
    return;
  }
  const columns = Object.fromEntries(columnNames.map((name) => [name, Array.from(times[name])]));
  const { wallMs } = times;
  const document = {
    schema: 'trtforge.bench-samples/1',
    wallMs,
    columns: { streams: [...times.streams], ...columns },
  };
  publishFile(path, `${JSON.stringify(document)}\n`);
}

/** Where the samples of one of several batches go: `samples.npz` at batch 8 is `samples.b8.npz`. */
export function samplesPath(path: string, batch: number, several: boolean): string {
  if (!several) return path;
  const extension = extname(path);
  return `${path.slice(0, path.length - extension.length)}.b${batch}${extension}`;
}
