import type { NamedTensors } from '../../formats/tensor/tensor.js';

/** Nothing is known of sizes before the first group has run. */
const FIRST_GROUP = 8;
const LARGEST_GROUP = 128;
/** Bytes of the tensors of a group that are in memory together. */
const GROUP_BYTES = 256 * 2 ** 20;

/** Divides the tensors of a model into groups to run, so that memory does not grow with the model: `kept` is what was in memory together for the group before. */
export function* inGroups<T>(
  tensors: readonly T[],
  kept: () => readonly NamedTensors[],
): Generator<{ readonly group: readonly T[]; readonly done: number }> {
  for (let [done, size] = [0, FIRST_GROUP]; done < tensors.length; ) {
    const group = tensors.slice(done, done + size);
    yield { group, done };
    done += group.length;
    size = Math.floor((GROUP_BYTES * group.length) / Math.max(1, bytesOf(kept())));
    size = Math.max(1, Math.min(LARGEST_GROUP, size));
  }
}

const bytesOf = (samples: readonly NamedTensors[]): number =>
  samples.flatMap((tensors) => [...tensors.values()]).reduce((sum, { bytes }) => sum + bytes.length, 0);
