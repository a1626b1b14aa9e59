import { isCloseCall } from '../../../quality/tasks/low-margin.js';
import { measure } from '../../../quality/verify/result.js';
import type { JudgedTask, TaskDifference } from '../compare/task-schema.js';

/** Differences that are listed one by one. */
const LISTED = 20;

/** One side's decision, as either kind of task sees it. */
export interface Sided {
  readonly index: number;
  /** Best score less the second best. */
  readonly margin: number;
}

/** Counts decisions and lists those that differ. */
export class TaskTally {
  readonly #differences: TaskDifference[] = [];
  readonly #unjudged: number[] = [];
  readonly #share: number;
  #decisions = 0;
  #different = 0;
  #closeCalls = 0;
  #smallestMargin = Number.POSITIVE_INFINITY;

  /** `share` of the scores' root mean square is as much as a close call may be decided by. */
  constructor(share: number) {
    this.#share = share;
  }

  /** One more decision of the reference. */
  decision(): void {
    this.#decisions++;
  }

  /** What both chose in one place, the reference among `scores`; gives whether it is the same. */
  choice(
    where: Pick<TaskDifference, 'chunk' | 'at' | 'what'>,
    reference: Sided,
    candidate: Sided,
    scores: Float32Array,
  ): boolean {
    this.#smallestMargin = Math.min(this.#smallestMargin, reference.margin);
    if (reference.index === candidate.index && !Number.isNaN(candidate.margin)) return true;
    const closeCall = !Number.isNaN(candidate.margin) && isCloseCall(reference.margin, scores, this.#share);
    this.#closeCalls += Number(closeCall);
    this.#add({
      ...where,
      reference: reference.index,
      candidate: candidate.index,
      referenceMargin: measure(reference.margin),
      candidateMargin: measure(candidate.margin),
      closeCall,
    });
    return false;
  }

  steps(chunk: number, row: number, reference: number, candidate: number): void {
    this.#add({
      chunk,
      at: [row],
      what: 'steps',
      reference,
      candidate,
      referenceMargin: null,
      candidateMargin: null,
      closeCall: false,
    });
  }

  unjudged(chunk: number): void {
    if (this.#unjudged.at(-1) !== chunk) this.#unjudged.push(chunk);
  }

  told(): Pick<
    JudgedTask,
    | 'decisions'
    | 'different'
    | 'closeCalls'
    | 'closeCallShare'
    | 'differences'
    | 'smallestMargin'
    | 'unjudged'
  > {
    return {
      decisions: this.#decisions,
      different: this.#different,
      closeCalls: this.#closeCalls,
      closeCallShare: this.#share,
      differences: [...this.#differences],
      smallestMargin:
        this.#smallestMargin === Number.POSITIVE_INFINITY ? null : measure(this.#smallestMargin),
      unjudged: [...this.#unjudged],
    };
  }

  #add(difference: TaskDifference): void {
    this.#different++;
    if (this.#differences.length < LISTED) this.#differences.push(difference);
  }
}
