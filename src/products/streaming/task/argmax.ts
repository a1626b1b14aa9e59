import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import { float32Values } from '../../../formats/tensor/values.js';
import { largestOf } from '../../../quality/tasks/transducer-decoder.js';
import type { JudgedTask } from '../compare/task-schema.js';
import type { TaskJudge } from './judge.js';
import { TaskTally } from './tally.js';

/**
 * The rule for outputs that are class scores: at every place the largest score along the last axis must be that of the same class. Nothing is masked:
 * what is padding in the reference counts too.
 */
export class ArgmaxTask implements TaskJudge {
  readonly #output: string;
  readonly #tally: TaskTally;
  #agreed = 0;

  /** `share` as `TaskTally` takes it. */
  constructor(output: string, share: number) {
    this.#output = output;
    this.#tally = new TaskTally(share);
  }

  async take(chunk: number, candidate: NamedTensors | null, reference: NamedTensors): Promise<void> {
    const theirs = reference.get(this.#output);
    const ours = candidate?.get(this.#output);
    if (theirs === undefined || ours === undefined || ours.shape.join() !== theirs.shape.join()) {
      this.#tally.unjudged(chunk);
      return;
    }
    const classes = theirs.shape.at(-1) ?? 1;
    const places = theirs.shape.slice(0, -1);
    const [expected, actual] = [float32Values(theirs), float32Values(ours)];
    for (let start = 0; start < expected.length; start += classes) {
      const where = { chunk, at: placeOf(start / classes, places), what: 'class' } as const;
      this.#tally.decision();
      const end = start + classes;
      const [theirs, ours] = [largestOf(expected, start, end), largestOf(actual, start, end)];
      if (this.#tally.choice(where, theirs, ours, expected.subarray(start, end))) this.#agreed++;
    }
  }

  result(): JudgedTask {
    return {
      kind: 'argmax',
      output: this.#output,
      decoder: null,
      ...this.#tally.told(),
      agreed: this.#agreed,
      durationsAgreed: null,
      emitted: null,
      swap: null,
    };
  }

  async close(): Promise<void> {}
}

/** The indices of a place in C order. */
function placeOf(place: number, sizes: readonly number[]): number[] {
  const at: number[] = [];
  let rest = place;
  for (const size of sizes.toReversed()) {
    at.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return at;
}
