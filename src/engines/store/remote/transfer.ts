import type { EventListener } from '../../../events.js';
import type { ByteRange } from './objects.js';

/** Large enough that signing and round trips vanish, small enough that a cut connection costs little. S3 wants at least 5 MiB. */
const PART_BYTES = 16 << 20;
export const PARTS_AT_ONCE = 4;
/** S3 takes at most this many parts; larger files get larger parts. */
const MOST_PARTS = 10_000;

/** The ranges a file of `bytes` is moved in: equal parts, the last shorter. */
export function partsOf(bytes: number): readonly ByteRange[] {
  const size = Math.max(PART_BYTES, Math.ceil(bytes / MOST_PARTS));
  return Array.from({ length: Math.ceil(bytes / size) }, (_, index) => ({
    first: index * size,
    last: Math.min(bytes, (index + 1) * size) - 1,
  }));
}

/** Adds up bytes of parallel parts into progress events. */
export class TransferProgress {
  #done = 0;

  constructor(
    private readonly phase: 'upload' | 'download',
    private readonly total: number,
    private readonly emit: EventListener | undefined,
    done = 0,
  ) {
    this.#done = done;
  }

  add(bytes: number): void {
    this.#done += bytes;
    this.emit?.({
      type: 'progress',
      phase: this.phase,
      done: this.#done,
      total: this.total,
      detail: 'bytes',
    });
  }
}
