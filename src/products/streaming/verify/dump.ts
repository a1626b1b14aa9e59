import { join } from 'node:path';
import { writeNpz } from '../../../formats/tensor/npz.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';

/** One chunk that did not pass: what went in, what came out, what was recorded. */
export interface FailingChunk {
  readonly chunk: number;
  readonly inputs: NamedTensors;
  readonly outputs: NamedTensors;
  readonly reference: NamedTensors;
  readonly isShapeMismatch: boolean;
}

/** The names that scripts read for the five inputs of the streaming encoder; others are called `in_<name>`. */
const inputNames: ReadonlyMap<string, string> = new Map(
  Object.entries({
    audio_signal: 'audio',
    length: 'length',
    cache_last_channel: 'cache_ch_in',
    cache_last_time: 'cache_tm_in',
    cache_last_channel_len: 'cache_len_in',
  }),
);

/** Writes `chunk_00012_fail.npz` (or `_shape_mismatch.npz`) with the inputs, `got_<output>` and `ref_<output>`; gives its path. */
export function dumpChunk(folder: string, failing: FailingChunk): string {
  const kind = failing.isShapeMismatch ? 'shape_mismatch' : 'fail';
  const path = join(folder, `chunk_${String(failing.chunk).padStart(5, '0')}_${kind}.npz`);
  const arrays = new Map<string, Tensor>();
  for (const [name, tensor] of failing.inputs) arrays.set(inputNames.get(name) ?? `in_${name}`, tensor);
  for (const [name, tensor] of failing.outputs) arrays.set(`got_${name}`, tensor);
  for (const [name, tensor] of failing.reference) arrays.set(`ref_${name}`, tensor);
  writeNpz(path, arrays);
  return path;
}
