import { LARGEST_DOCUMENT, readText } from '../../../base/files/files.js';
import * as is from '../../../base/options/kinds.js';
import { assertWithin } from '../../../base/options/library-arguments.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { ExitCode, TrtforgeError } from '../../../errors.js';
import { inPhase, type WorkContext } from '../../../events.js';
import { taskIdentity } from '../../../quality/tasks/task.js';
import { Findings } from '../findings.js';
import { allowMissing as allowed } from '../options.js';
import { type Annotation, type DetectionTruth, digestOfTruth, readInstances } from './annotations.js';
import { type Detections, readDetections } from './detections.js';
import { overlapOf } from './match.js';
import type { Box, Size } from './record.js';
import type { CocoResult } from './result.js';
import { scoreDetections } from './scores.js';

export const cocoOptions = {
  /** A file of COCO instances. */
  instances: needed(is.text, {
    flags: '--instances <file>',
    describe: 'the annotations: a file of COCO instances',
    required: '--instances FILE',
  }),
  /** A COCO results file. */
  detections: needed(is.text, {
    flags: '--detections <file>',
    describe: 'what to score: a COCO results file, a list of image_id, category_id, bbox, score',
    required: '--detections FILE',
  }),
  /** A file with the ids of the images to score, one a line; default all of the instances. */
  imageIds: optional(is.text, {
    flags: '--image-ids <file>',
    describe: 'score only these images: one id a line, # begins a comment',
  }),
  /** Up to this many images that the ids or the detections name and the instances lack are left out; default none. */
  allowMissing: {
    ...allowed,
    describe:
      'leave out up to this many images that the detections or --image-ids name and the instances lack',
  },
};

export interface CocoRequest extends OptionsOf<typeof cocoOptions> {}

/** Scores a results file. Errors: TF_EVAL_DATA, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_CANCELLED. */
export async function evaluateCoco(
  { instances, detections, imageIds, allowMissing }: CocoRequest,
  { emit, signal }: WorkContext = {},
): Promise<CocoResult> {
  assertWithin(cocoOptions, { allowMissing });
  const findings = new Findings(allowMissing);
  const ids = imageIds === undefined ? undefined : readImageIds(imageIds);
  const truth = await inPhase('read instances', emit, () =>
    readInstances(instances, { imageIds: ids, findings, signal }),
  );
  const found = await inPhase('read detections', emit, () =>
    readDetections(detections, truth, { findings, signal }),
  );
  const scored = await inPhase('score', emit, async () => scoredResult(truth, found, findings));
  return { schema: 'trtforge.eval-coco/1', instances, detections, ...scored };
}

/** Raised when the same truth and detections may score differently. */
const TASK = { id: 'coco', revision: 1 } as const;

/** Scores, identity and warnings of detections, wherever they come from; `settings` is what made them, for the key that states what compares. */
export function scoredResult(
  truth: DetectionTruth,
  detections: Detections,
  findings: Findings,
  settings: unknown = {},
): Omit<CocoResult, 'schema' | 'instances' | 'detections'> {
  addCounts(truth, detections, findings);
  const scores = scoreDetections(truth, detections);
  if (scores.stats[1]! < 0.5) addReadingFinding(truth, detections, findings);
  const [whole, at50, at75, small, medium, large] = scores.stats.map((value) => (value < 0 ? null : value));
  return {
    ...taskIdentity(TASK, settings, truth.images.length, digestOfTruth(truth)),
    metrics: {
      mAP_50_95: whole ?? null,
      mAP_50: at50 ?? null,
      mAP_75: at75 ?? null,
      mAP_small: small ?? null,
      mAP_medium: medium ?? null,
      mAP_large: large ?? null,
      num_images: truth.images.length,
      num_detections: detections.score.length,
    },
    subset: truth.images.length < truth.imagesOfFile,
    imagesOfInstances: truth.imagesOfFile,
    ...scores,
    warnings: findings.warnings(),
    exitCode: typeof whole === 'number' ? ExitCode.pass : ExitCode.inconclusive,
  };
}

/** Adds the findings about the whole: an image without detections is valid, but many of them are a run that was cut short. */
function addCounts(
  { images, sizes, annotations }: DetectionTruth,
  { image, box }: Detections,
  findings: Findings,
): void {
  const places = annotations.map((each) => each.image);
  addCornerFinding('annotations', places, (at) => annotations[at]!.box, sizes, findings);
  addCornerFinding(
    'detections',
    image,
    (at) => box.slice(4 * at, 4 * at + 4) as unknown as Box,
    sizes,
    findings,
  );
  const detected = new Set(image);
  const annotated = new Set(annotations.filter(({ isCrowd }) => !isCrowd).map((each) => each.image));
  if (annotated.size === 0) findings.add('no-truth', `${images.length} images`);
  if (detected.size === 0) findings.add('no-detections', `${images.length} images`);
  else
    for (const index of annotated)
      if (!detected.has(index)) findings.add('image-without-detections', `image ${images[index]}`);
}

/** The tolerance of a share where a box leaves its image a little. */
const SLACK = 0.05;

/** Other readings of a box's four numbers in an image of a size, as left, top, width, height. */
const readings: Readonly<Record<string, (box: Box, size: Size) => Box>> = {
  'centre, width and height': ([x, y, width, height]) => [x - width / 2, y - height / 2, width, height],
  'top, left, height and width': ([y, x, height, width]) => [x, y, width, height],
  'boxes of the padded square': ([left, top, ...sides], [width, height]) => {
    const side = Math.max(width, height);
    return [left - (side - width) / 2, top - (side - height) / 2, ...sides];
  },
};

/** So many annotations show a form; a few may fit one by chance. */
const FEWEST_FITS = 3;
/** Of an image and category: as many show it as all of them. */
const MOST_OF_A_CELL = 100;

/** Whether boxes that fit few annotations fit a third of them, and four times as many, when they are read in another form. */
function addReadingFinding(
  { annotations, sizes, categories }: DetectionTruth,
  { image, category, box }: Detections,
  findings: Findings,
): void {
  const cellOf = (image: number, category: number) => image * categories.length + category;
  const cells = new Map<number, Annotation[]>();
  for (const each of annotations) {
    const cell = cells.get(cellOf(each.image, each.category)) ?? [];
    cells.set(cellOf(each.image, each.category), cell);
    if (!each.isCrowd && cell.length < MOST_OF_A_CELL) cell.push(each);
  }
  const fitting = (read: (box: Box, size: Size) => Box): number => {
    const fits = new Set<Annotation>();
    image.forEach((index, at) => {
      const cell = cells.get(cellOf(index, category[at]!));
      if (cell === undefined) return;
      const own = box.slice(4 * at, 4 * at + 4) as unknown as Box;
      const other = read(own, sizes[index] ?? [0, 0]);
      for (const each of cell) if (overlapOf(other, 0, each) >= 0.5) fits.add(each);
    });
    return fits.size;
  };
  const asTheyAre = fitting((own) => own);
  const others = Object.entries(readings).map(([name, read]) => ({ name, fits: fitting(read) }));
  const best = others.reduce((one, other) => (other.fits > one.fits ? other : one));
  if (best.fits >= Math.max(FEWEST_FITS, annotations.length / 3, 4 * asTheyAre))
    findings.add(
      'boxes-of-other-form',
      `detections: ${best.fits} of ${annotations.length} annotations fit boxes read as ${best.name}, ${asTheyAre} as they are`,
    );
}

/** An image of one or two boxes has no size of its own that corners could be held against. */
const FEWEST_FOR_SIZE = 3;

/**
 * Corners are in order and inside of their image, and read as left, top, width and height most of them leave it. The size of an image is the stated one, or
 * the smallest that holds its boxes as corners.
 */
function addCornerFinding(
  list: 'annotations' | 'detections',
  images: readonly number[],
  boxAt: (at: number) => Box,
  sizes: DetectionTruth['sizes'],
  findings: Findings,
): void {
  let isShare = images.length > 0;
  const extents = new Map<number, { width: number; height: number; count: number }>();
  images.forEach((image, at) => {
    const [, , right, bottom] = boxAt(at);
    isShare &&= boxAt(at).every((side) => side >= -SLACK && side <= 1 + SLACK);
    const { width = 0, height = 0, count = 0 } = extents.get(image) ?? {};
    extents.set(image, { width: Math.max(width, right), height: Math.max(height, bottom), count: count + 1 });
  });
  if (isShare) findings.add('boxes-from-0-to-1', `${list}: all ${images.length}`);
  let [looked, corners, leaving] = [0, 0, 0];
  images.forEach((image, at) => {
    const { width, height, count } = extents.get(image)!;
    const size = sizes[image] ?? (count < FEWEST_FOR_SIZE ? null : ([width, height] as const));
    if (size === null) return;
    const [left, top, third, fourth] = boxAt(at);
    looked++;
    // A pixel is what rounding moves a side.
    if (left <= third && top <= fourth && third <= size[0] + 1 && fourth <= size[1] + 1) corners++;
    if (left + third > size[0] + 1 || top + fourth > size[1] + 1) leaving++;
  });
  if (leaving > 0 && corners >= 0.99 * looked && leaving >= looked / 3)
    findings.add('boxes-like-corners', `${list}: ${leaving} of ${looked} leave their image`);
}

/** One id a line; `#` begins a comment. */
export function readImageIds(path: string): readonly number[] {
  const lines = readText(path, LARGEST_DOCUMENT, 'TF_EVAL_DATA').split(/\r?\n/);
  const ids = lines.flatMap((line, index) => {
    const text = line.replace(/#.*/, '').trim();
    const id = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (text !== '' && !Number.isSafeInteger(id))
      throw new TrtforgeError('TF_EVAL_DATA', `${path}, line ${index + 1} is not an id of an image.`, {
        remedy: 'Write one whole number a line.',
      });
    return text === '' ? [] : [id];
  });
  if (ids.length === 0) throw new TrtforgeError('TF_EVAL_DATA', `${path} has no id of an image.`);
  return ids;
}
