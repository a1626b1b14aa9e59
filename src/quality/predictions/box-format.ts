import { TrtforgeError } from '../../errors.js';

/** The meaning of the four numbers of a box: left, top, right, bottom · centre, width, height · left, top, width, height. */
export const boxLayouts = ['corners', 'centre-size', 'left-top-size'] as const;
/** `normalised`: from 0 to 1, a share of the input's width or height. */
export const boxScales = ['pixels', 'normalised'] as const;

export interface BoxForm {
  readonly layout: (typeof boxLayouts)[number];
  readonly scale: (typeof boxScales)[number];
}

/** The form in which boxes were read. */
export interface BoxFormat extends BoxForm {
  /** Forms that the values do not exclude either: the usual one of the head was taken. */
  readonly alsoFits: readonly string[];
  /** So many boxes decided, all those above the confidence, and so many of them do not fit. */
  readonly count: number;
  readonly misfits: number;
}

export interface CanvasSize {
  readonly width: number;
  readonly height: number;
}

/** Left, top, right and bottom in pixels of the input. */
type Corners = readonly [number, number, number, number];

const forms: readonly BoxForm[] = boxScales.flatMap((scale) =>
  boxLayouts.map((layout) => ({ layout, scale })),
);

/** A box may reach so far beyond the input, as a share of its side. In the detector of examples/ 0.2 % of corners do, and 0.8 % of centres with sizes. */
const OVERHANG = 0.05;
/** A box whose numbers are all below this is not in pixels. */
const SMALLEST_PIXELS = 2;
/** From so many boxes on their form is decided where only one fits. */
const ENOUGH_BOXES = 50;

export function cornersOf(
  { layout, scale }: BoxForm,
  box: Float32Array,
  at: number,
  canvas: CanvasSize,
): Corners {
  const [scaleX, scaleY] = scale === 'normalised' ? [canvas.width, canvas.height] : [1, 1];
  const [x, y] = [box[at]! * scaleX, box[at + 1]! * scaleY];
  const [third, fourth] = [box[at + 2]! * scaleX, box[at + 3]! * scaleY];
  if (layout === 'corners') return [x, y, third, fourth];
  if (layout === 'left-top-size') return [x, y, x + third, y + fourth];
  return [x - third / 2, y - fourth / 2, x + third / 2, y + fourth / 2];
}

export const nameOf = ({ layout, scale }: BoxForm): string =>
  `${layout} ${scale === 'pixels' ? 'in pixels' : 'from 0 to 1'}`;

/** Number of boxes that cannot be of a form: their sides in the wrong order, beyond the input, or in pixels and none of them large. */
function misfitsOf({ layout, scale }: BoxForm, boxes: Float32Array, canvas: CanvasSize): number {
  const [width, height] = scale === 'normalised' ? [1, 1] : [canvas.width, canvas.height];
  const smallest = scale === 'normalised' ? 0 : SMALLEST_PIXELS;
  // Of a size, what lies before the point and what behind it.
  const [before, behind] = layout === 'centre-size' ? [0.5, 0.5] : [0, 1];
  const [x, y] = [OVERHANG * width, OVERHANG * height];
  let misfits = 0;
  for (let at = 0; at < boxes.length; at += 4) {
    const [first, second] = [boxes[at]!, boxes[at + 1]!];
    const [third, fourth] = [boxes[at + 2]!, boxes[at + 3]!];
    const isCorners = layout === 'corners';
    const left = isCorners ? first : first - before * third;
    const top = isCorners ? second : second - before * fourth;
    const right = isCorners ? third : first + behind * third;
    const bottom = isCorners ? fourth : second + behind * fourth;
    const isInside =
      left >= -x && top >= -y && right >= left && bottom >= top && right <= width + x && bottom <= height + y;
    if (!isInside || Math.max(first, second, third, fourth) < smallest) misfits++;
  }
  return misfits;
}

/** The evidence in the values of boxes for their form. */
export class BoxEvidence {
  readonly #usual: BoxForm;
  readonly #canvas: CanvasSize;
  readonly #misfits = forms.map(() => 0);
  #count = 0;

  /** `usual`: the form of the head as it is commonly exported. */
  constructor(usual: BoxForm, canvas: CanvasSize) {
    this.#usual = usual;
    this.#canvas = canvas;
  }

  /** Takes boxes, four numbers each. There may be millions, so nothing is allocated for one. */
  add(boxes: Float32Array): void {
    this.#count += boxes.length / 4;
    for (let index = 0; index < forms.length; index++)
      this.#misfits[index]! += misfitsOf(forms[index]!, boxes, this.#canvas);
  }

  /** Whether some form fits nearly all boxes. */
  get isOfBoxes(): boolean {
    return Math.min(...this.#misfits) <= this.#count / 5 + Math.sqrt(this.#count);
  }

  /** Whether more boxes would hardly change the form. */
  get isDecided(): boolean {
    return this.#count >= ENOUGH_BOXES && this.#possible().length === 1;
  }

  /** The forms that cannot be excluded. Others have three times the misfits of the best one, and a few: more boxes decide finer. */
  #possible(): readonly BoxForm[] {
    const most = 3 * Math.min(...this.#misfits) + Math.sqrt(this.#count) / 5;
    return forms.filter((_, index) => this.#misfits[index]! <= most);
  }

  /** The form of the boxes; `used` is what it was before there were all of them. Throws TF_EVAL_HEAD where no form fits, and where `used` fits no more. */
  format(used?: BoxForm): BoxFormat {
    const count = this.#count;
    const fewest = Math.min(...this.#misfits);
    const reject = (message: string, remedy: string) =>
      new TrtforgeError('TF_EVAL_HEAD', message, {
        remedy,
        details: {
          boxes: count,
          misfits: Object.fromEntries(forms.map((form, index) => [nameOf(form), this.#misfits[index]])),
        },
      });
    if (!this.isOfBoxes)
      throw reject(
        `The boxes have no known form: of ${count}, ${fewest} or more lie outside of the input or have their sides in the wrong order.`,
        'Export boxes as left, top, right, bottom, as centre and size, or as left, top and size, in pixels of the input or from 0 to 1.',
      );
    const possible = this.#possible();
    const form = possible.find(isForm(used ?? this.#usual)) ?? possible[0]!;
    if (used !== undefined && !isForm(used)(form))
      throw reject(
        `The first boxes are ${nameOf(used)}, all ${count} of them are ${nameOf(form)}.`,
        'Check that the model has one form of boxes, whatever the image.',
      );
    return {
      ...form,
      alsoFits: possible.filter((each) => each !== form).map(nameOf),
      count,
      misfits: this.#misfits[forms.indexOf(form)]!,
    };
  }
}

const isForm =
  (form: BoxForm) =>
  ({ layout, scale }: BoxForm): boolean =>
    layout === form.layout && scale === form.scale;
