import { readFileSync } from 'node:fs';
import { freemem } from 'node:os';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';

/** The library itself, loaded and idle (tensorrt-rtx 1.7: 234 MB of code, its tables). */
const LIBRARY_BYTES = 512 << 20;

/** Peak of a tensorrt-rtx build over the bytes of its model's weights; measured 3.2 to 4.8 for models of 50 to 340 MB. */
const BYTES_PER_WEIGHT_BYTE = 5;

/** The estimated peak memory of a build of tensorrt-rtx. */
export const estimateBuildBytes = (typedWeightBytes: number): number =>
  LIBRARY_BYTES + BYTES_PER_WEIGHT_BYTE * typedWeightBytes;

/** Memory that can be had without pushing anything out: as the kernel reports it, or else what is free. */
export function availableMemory(): number {
  try {
    const [, kib] = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8')) ?? [];
    if (kib !== undefined) return Number(kib) * 1024;
  } catch {
    // Only Linux has this file.
  }
  return freemem();
}

export interface PlannedTask<T> {
  readonly bytes: number;
  run(): Promise<T>;
}

/**
 * Runs tasks side by side as long as their estimates fit into the budget together, at least one and at most `most` at a time, and returns their results in the
 * order of the tasks. The first failure keeps further tasks from starting; it is thrown once those at work have ended.
 */
export async function runWithin<T>(
  tasks: readonly PlannedTask<T>[],
  budget: number,
  most: number,
): Promise<T[]> {
  const results = new Map<number, T>();
  const waiting = [...tasks.entries()];
  const running = new Set<Promise<void>>();
  let used = 0;
  let failure: { readonly reason: unknown } | undefined;
  while (waiting.length > 0 && failure === undefined) {
    const next = running.size === 0 ? 0 : waiting.findIndex(([, { bytes }]) => used + bytes <= budget);
    if (next < 0 || running.size >= most) {
      await Promise.race(running);
      continue;
    }
    const [[index, task]] = waiting.splice(next, 1) as [[number, PlannedTask<T>]];
    used += task.bytes;
    const job: Promise<void> = task
      .run()
      .then(
        (result) => void results.set(index, result),
        (reason: unknown) => {
          failure ??= { reason };
        },
      )
      .finally(() => {
        used -= task.bytes;
        running.delete(job);
      });
    running.add(job);
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure.reason;
  return [...results].sort(([a], [b]) => a - b).map(([, result]) => result);
}

/** Builds of TensorRT on one GPU spoil each other's tactic timing. */
const ONE_AT_A_TIME = 1;

/** Runs builds of one product; those of tensorrt-rtx, which measures nothing, side by side in `budget` bytes, by default half of what can be had. */
export const buildWithin = <T>(
  builds: readonly PlannedTask<T>[],
  product: Toolchain['product'],
  budget: number = availableMemory() / 2,
): Promise<T[]> => runWithin(builds, budget, product === 'tensorrt-rtx' ? builds.length : ONE_AT_A_TIME);
