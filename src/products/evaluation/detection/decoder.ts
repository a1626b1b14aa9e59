import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import { BoxEvidence, type BoxFormat, nameOf } from './box-format.js';
import { type Candidates, decode, withCorners } from './decode.js';
import { type DecodeOptions, type Head, recogniseHead, usualForm } from './heads.js';

/** So many boxes wait at most for their form: about 1 MB. */
const MOST_WAITING = 50_000;

/** The function that `take` passes candidates to, with boxes as corners in pixels. */
type Use = (candidates: Candidates, head: Head) => void;

/** The recognised form of a detector's outputs, after the last image. */
export interface DecodedHead extends Head {
  /** `distances` are from the anchor of a box: nothing is open about them. */
  readonly boxes: Omit<BoxFormat, 'layout'> & { readonly layout: BoxFormat['layout'] | 'distances' };
}

/**
 * Turns the outputs of images into boxes. The head is recognised from the first image; candidates wait until enough of them show which form boxes have, so
 * `use` may be called later than `take`.
 */
export class Decoder {
  readonly #options: DecodeOptions;
  #head: Head | undefined;
  #evidence: BoxEvidence | undefined;
  #format: BoxFormat | undefined;
  #waiting: { readonly candidates: Candidates; readonly use: Use }[] = [];
  #count = 0;

  constructor(options: DecodeOptions) {
    this.#options = options;
  }

  /** Throws what `recogniseHead` and `decode` throw, and TF_EVAL_HEAD for boxes of no known form. */
  take(outputs: NamedTensors, use: Use): void {
    this.#head ??= recogniseHead(outputs, this.#options);
    const candidates = decode(outputs, this.#head, this.#options);
    if (this.#head.kind === 'dfl') {
      use(candidates, this.#head);
      return;
    }
    this.#evidence ??= new BoxEvidence(usualForm(this.#head), this.#options);
    this.#evidence.add(candidates.box);
    this.#waiting.push({ candidates, use });
    this.#count += candidates.score.length;
    if (this.#format === undefined && (this.#evidence.isDecided || this.#count >= MOST_WAITING))
      this.#format = this.#evidence.format();
    if (this.#format !== undefined) this.#flush(this.#head, this.#format);
  }

  /** Hands over what waits. Throws TF_EVAL_HEAD for boxes of no known form, and where later boxes have another one than the first. */
  finish(): DecodedHead {
    const head = this.#head!;
    if (head.kind === 'dfl')
      return { ...head, boxes: { layout: 'distances', scale: 'pixels', alsoFits: [], count: 0, misfits: 0 } };
    const boxes = this.#evidence!.format(this.#format);
    this.#flush(head, boxes);
    const form = `boxes are ${nameOf(boxes)}${boxes.alsoFits.length > 0 ? ' (assumed)' : ''}`;
    return { ...head, boxes, reason: `${head.reason}; ${form}` };
  }

  #flush(head: Head, format: BoxFormat): void {
    for (const { candidates, use } of this.#waiting)
      use(withCorners(candidates, format, this.#options), head);
    this.#waiting = [];
  }
}
