import { join } from 'node:path';
import { writeNpz } from '../../../formats/tensor/npz.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { dumpedAs } from '../fastconformer.js';

/** One chunk that did not pass: what went in, what came out, what was recorded. */
export interface FailingChunk {
  readonly chunk: number;
  readonly inputs: NamedTensors;
  readonly outputs: NamedTensors;
  readonly reference: NamedTensors;
  readonly isShapeMismatch: boolean;
}

/** Writes `chunk_00012_fail.npz` (or `_shape_mismatch.npz`) with the inputs, `got_<output>` and `ref_<output>`; returns its path. Inputs of the streaming encoder have the names that its scripts read, others `in_<name>`. */
export function dumpChunk(folder: string, failing: FailingChunk): string {
  const kind = failing.isShapeMismatch ? 'shape_mismatch' : 'fail';
  const path = join(folder, `chunk_${String(failing.chunk).padStart(5, '0')}_${kind}.npz`);
  const arrays = new Map<string, Tensor>();
  for (const [name, tensor] of failing.inputs) arrays.set(dumpedAs.get(name) ?? `in_${name}`, tensor);
  for (const [name, tensor] of failing.outputs) arrays.set(`got_${name}`, tensor);
  for (const [name, tensor] of failing.reference) arrays.set(`ref_${name}`, tensor);
  writeNpz(path, arrays);
  return path;
}
