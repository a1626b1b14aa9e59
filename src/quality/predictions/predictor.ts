import type { SampleFile } from '../../engines/calibration/sample-source.js';
import { TrtforgeError } from '../../errors.js';
import { namesOfMetadata } from '../../formats/images/labels.js';
import { viewModel } from '../../formats/onnx/model.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import {
  float32Values,
  isIntegerDtype,
  type NamedTensors,
  numbersOf,
  type Tensor,
} from '../../formats/tensor/tensor.js';
import { boxOnImage, type Candidates, Decoder, keptOf } from './decode.js';
import { type Head, mismatch, partsOf, Rows, SUM_ERROR } from './heads.js';
import type { Box, Mask, Prediction } from './prediction.js';

/** Boxes of this score or less are not shown, as Ultralytics' predict does. */
const CONFIDENCE = 0.25;
const SUPPRESSION = { overlap: 0.7, classAgnostic: false, topK: 30_000, maxDetections: 100 };
/** Cells of a mask along its longer side. */
const MOST_CELLS = 80;
/** Cells of the mask of an object along the longer side of its box. */
const MOST_BOX_CELLS = 40;
/** A map of fewer places has no picture to show. */
const LEAST_MAP = 8;
/** More classes than any network has: the number does not matter where each row states its own. */
const ANY_CLASSES = 100_000;

export interface PredictorHints {
  /** Names of the classes by index; undefined where nothing states them. */
  readonly names: readonly string[] | undefined;
  /** The preparation of the pictures: what `imagenet` prepares are classifiers. */
  readonly preprocess: string | undefined;
}

/** The names of the classes that the metadata of an ONNX model have; undefined where they do not name each. */
export function classNamesOf(model: string): PredictorHints['names'] {
  const byIndex = viewModel(model, ({ proto }) =>
    namesOfMetadata(Object.fromEntries(proto.metadataProps.map(({ key, value }) => [key, value]))),
  );
  const names = Array.from({ length: byIndex.size }, (_, index) => byIndex.get(index)?.trim() ?? '');
  return names.length > 0 && names.every((name) => name !== '') ? names : undefined;
}

type Picture = NonNullable<SampleFile['picture']>;

/** What an output is, decided by the first picture. */
type Reading = (outputs: NamedTensors, picture: Picture, use: (prediction: Prediction) => void) => void;

/**
 * Decodes the outputs of pictures, of one network, one after another: boxes of a detector's head, the class of the highest score, or the class of each place.
 * Boxes may wait for later pictures, which show the form of all; so `finish` has the predictions.
 */
export class Predictor {
  readonly #hints: PredictorHints;
  readonly #predictions: (Prediction | null)[] = [];
  #reading: Reading | undefined;
  #decoder: Decoder | undefined;
  #why: TrtforgeError | undefined;

  constructor(hints: PredictorHints) {
    this.#hints = hints;
  }

  /** Takes the outputs of one sample, their batch of 1; of other samples nothing is decoded. */
  take(outputs: NamedTensors, picture: Picture | undefined): void {
    const at = this.#predictions.push(null) - 1;
    if (picture === undefined) return;
    this.#attempt(() => {
      this.#reading ??= this.#readingOf(outputs, picture);
      this.#reading(outputs, picture, (prediction) => {
        this.#predictions[at] = prediction;
      });
    });
  }

  /** By sample; null for what cannot be decoded, and `why` of the last such picture. */
  finish(): {
    readonly predictions: readonly (Prediction | null)[];
    readonly why: TrtforgeError | undefined;
  } {
    this.#attempt(() => this.#decoder?.finish());
    return { predictions: this.#predictions, why: this.#why };
  }

  /** Why no decoder knows the outputs, as far as pictures were taken. */
  get unknown(): TrtforgeError | undefined {
    return this.#reading === undefined ? this.#why : undefined;
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof TrtforgeError)) throw error;
      this.#why = error;
    }
  }

  /** By all outputs together, else by the first of several that is known alone: exports also have those of training. */
  #readingOf(outputs: NamedTensors, picture: Picture): Reading {
    const names = [...outputs.keys()];
    let why: unknown;
    for (const chosen of [names, ...(names.length > 1 ? names.map((name) => [name]) : [])]) {
      const of = (all: NamedTensors): NamedTensors =>
        new Map(chosen.flatMap((name) => (all.has(name) ? [[name, all.get(name)!] as const] : [])));
      try {
        const reading = this.#readingOfThose(of(outputs), picture);
        return (all, at, use) => reading(of(all), at, use);
      } catch (error) {
        why ??= error;
      }
    }
    throw why;
  }

  #readingOfThose(outputs: NamedTensors, picture: Picture): Reading {
    const plain = [classReading, maskReading].find((reading) => reading(outputs, picture, this.#hints));
    if (plain !== undefined)
      return (each, at, use) => {
        const prediction = plain(each, at, this.#hints);
        if (prediction !== null) use(prediction);
      };
    let why: unknown = unknown(outputs);
    for (const classes of numbersOfClasses(outputs, this.#hints)) {
      const options = { ...picture.canvas, classes, confidence: CONFIDENCE, multiLabel: false };
      try {
        const trial = new Decoder(options);
        trial.take(outputs, () => {});
        trial.finish();
        this.#decoder = new Decoder(options);
        return this.#boxes(this.#decoder);
      } catch (error) {
        why = error;
      }
    }
    throw why;
  }

  #boxes(decoder: Decoder): Reading {
    return (outputs, picture, use) =>
      decoder.take(outputs, (candidates, head) => {
        const masks = instanceMasks(outputs, head, picture);
        use({
          kind: 'boxes',
          boxes: keptOf(candidates, head.needsNms, SUPPRESSION).flatMap((at) => {
            const box = this.#box(candidates, at, picture);
            const [, , width, height] = box.box;
            // Of what lies in the padding nothing is on the picture.
            if (width <= 0 || height <= 0) return [];
            return [masks === undefined ? box : { ...box, mask: masks(candidates.row[at]!, box.box) }];
          }),
        });
      });
  }

  #box({ box, score, category }: Candidates, at: number, picture: Picture) {
    const [left, top, width, height] = boxOnImage(box.subarray(4 * at), picture).map((side) =>
      rounded(side, 1),
    ) as [number, number, number, number];
    return {
      label: nameOf(category[at]!, this.#hints),
      score: rounded(score[at]!, 2),
      box: [left, top, width, height] as [number, number, number, number],
    };
  }
}

const unknown = (outputs: NamedTensors) =>
  mismatch(
    `No decoder knows the outputs ${[...outputs].map(([name, { shape }]) => `${name} [${shape.join(',')}]`).join(', ')}: they are not those of a detector, of a classifier or of a map of classes.`,
    'Pass the names of its classes: --labels FILE.',
  );

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

const nameOf = (label: number, { names }: PredictorHints): string => names?.[label] ?? `class ${label}`;

/** The numbers of classes that a detector may have: of its names, else as its channels suggest. */
function numbersOfClasses(outputs: NamedTensors, { names }: PredictorHints): readonly number[] {
  if (names !== undefined) return [names.length];
  const { tensor, prototypes } = partsOf(outputs) ?? {};
  const [, first = 0, second = 0] = tensor?.shape.length === 3 ? tensor.shape : [];
  if (first === 0) return [];
  const { weights = 0 } = prototypes ?? {};
  const channels =
    first < second ? [first - weights - 4, first - 64] : [second - weights - 5, second - weights - 4];
  return [...(second === 6 ? [ANY_CLASSES] : []), ...channels].filter((classes) => classes > 0);
}

const onlyOutput = (outputs: NamedTensors): Tensor | null =>
  outputs.size === 1 ? [...outputs.values()][0]! : null;

type Plain = (outputs: NamedTensors, picture: Picture, hints: PredictorHints) => Prediction | null;

/** The class of one vector of scores: of as many as there are names, of probabilities, or of what is prepared as for ImageNet. */
const classReading: Plain = (outputs, _, hints) => {
  const tensor = onlyOutput(outputs);
  if (tensor === null || dtypes[tensor.dtype].kind !== 'float') return null;
  const sizes = tensor.shape.filter((size) => size !== 1);
  if (sizes.length !== 1) return null;
  const scores = float32Values(tensor);
  const isKnown = hints.names?.length === scores.length || hints.preprocess === 'imagenet';
  if (!isKnown && !areShares(scores)) return null;
  if (!scores.every(Number.isFinite)) throw mismatch('A score is not a finite number.', NOT_FINITE);
  const best = highest(scores.length, (at) => scores[at]!);
  const sum = scores.reduce((all, score) => all + Math.exp(score - scores[best]!), 0);
  const areProbabilities = scores.every((score) => score >= 0 && score <= 1);
  const probability = areProbabilities ? scores[best]! : 1 / sum;
  return { kind: 'class', label: nameOf(best, hints), probability: rounded(probability, 4) };
};

const NOT_FINITE = 'Look for overflow: `trtforge verify` names outputs with NaN or infinities.';

const areShares = (scores: Float32Array): boolean =>
  scores.every((score) => score >= 0 && score <= 1) &&
  Math.abs(scores.reduce((sum, score) => sum + score, 0) - 1) <= SUM_ERROR;

function highest(count: number, score: (at: number) => number): number {
  let best = 0;
  for (let at = 1; at < count; at++) if (score(at) > score(best)) best = at;
  return best;
}

/** The class of each place: integers [1, height, width], or scores [1, classes, height, width] of as many classes as there are names. */
const maskReading: Plain = (outputs, picture, hints) => {
  const tensor = onlyOutput(outputs);
  if (tensor === null) return null;
  const [, channels = 0] = tensor.shape.length === 4 ? tensor.shape : [1, 1];
  const areLabels = isIntegerDtype(tensor.dtype) && channels === 1;
  if (!areLabels && (channels < 2 || hints.names?.length !== channels)) return null;
  const [down = 0, across = 0] = tensor.shape.slice(-2);
  if (tensor.shape.length < 3 || Math.min(down, across) < LEAST_MAP) return null;
  const values = numbersOf(tensor);
  const { placement, canvas } = picture;
  const area = seenArea(picture);
  // Places of the map that the area has, and of these so many as a page shows.
  const [wide, high] = [
    (area.width * placement.scaleX * across) / canvas.width,
    (area.height * placement.scaleY * down) / canvas.height,
  ];
  const step = Math.max(1, Math.max(wide, high) / MOST_CELLS);
  const [columns, rows] = [wide, high].map((places) => Math.max(1, Math.round(places / step))) as [
    number,
    number,
  ];
  const label = (column: number, row: number) => {
    const x = (area.left + ((column + 0.5) * area.width) / columns) * placement.scaleX + placement.left;
    const y = (area.top + ((row + 0.5) * area.height) / rows) * placement.scaleY + placement.top;
    const place = Math.floor((y * down) / canvas.height) * across + Math.floor((x * across) / canvas.width);
    return areLabels ? values[place]! : highest(channels, (at) => values[at * down * across + place]!);
  };
  const found: number[] = [];
  const runs = runsOf(columns, rows, (column, row) => {
    const own = label(column, row);
    return found.includes(own) ? found.indexOf(own) : found.push(own) - 1;
  });
  return { kind: 'mask', area, columns, rows, labels: found.map((each) => nameOf(each, hints)), runs };
};

/** The mask of a row within a box of the picture: prototypes added up by the row's weights, where their sum is above 0. Undefined for a head without masks. */
function instanceMasks(outputs: NamedTensors, { outputs: { scores }, masks }: Head, picture: Picture) {
  const [prototypes, tensor] = [outputs.get(masks?.prototypes ?? ''), outputs.get(scores)];
  if (masks === undefined || prototypes === undefined || tensor === undefined) return undefined;
  const [, weights = 0, down = 0, across = 0] = prototypes.shape;
  const values = float32Values(prototypes);
  const { placement, canvas } = picture;
  const rows = new Rows(tensor, scores, masks.axis);
  return (row: number, [left, top, width, height]: Box['box']): Box['mask'] => {
    const step = Math.max(1, Math.max(width, height) / MOST_BOX_CELLS);
    const [columns, lines] = [width, height].map((side) => Math.max(1, Math.round(side / step))) as [
      number,
      number,
    ];
    const isInside = (column: number, line: number) => {
      const x = (left + ((column + 0.5) * width) / columns) * placement.scaleX + placement.left;
      const y = (top + ((line + 0.5) * height) / lines) * placement.scaleY + placement.top;
      const place = Math.floor((y * down) / canvas.height) * across + Math.floor((x * across) / canvas.width);
      let sum = 0;
      for (let at = 0; at < weights; at++)
        sum += rows.at(row, rows.channels - weights + at) * values[at * down * across + place]!;
      return sum > 0 ? 1 : 0;
    };
    return { columns, rows: lines, runs: runsOf(columns, lines, isInside) };
  };
}

/** Equal values of a grid behind one another, row by row. */
function runsOf(columns: number, rows: number, at: (column: number, row: number) => number): Mask['runs'] {
  const runs: Mask['runs'] = [];
  for (let cell = 0; cell < columns * rows; cell++) {
    const value = at(cell % columns, Math.floor(cell / columns));
    const last = runs.at(-1);
    if (last?.[0] === value) last[1]++;
    else runs.push([value, 1]);
  }
  return runs;
}

/** The part of a picture that the network sees: a crop cuts some away. */
function seenArea({ width, height, placement, canvas }: Picture): Mask['area'] {
  const seen = (side: number, input: number, offset: number, scale: number) => {
    const from = Math.max(0, -offset / scale);
    return [rounded(from, 1), rounded(Math.min(side, (input - offset) / scale) - from, 1)] as const;
  };
  const [left, across] = seen(width, canvas.width, placement.left, placement.scaleX);
  const [top, down] = seen(height, canvas.height, placement.top, placement.scaleY);
  return { left, top, width: across, height: down };
}
