import { TrtforgeError } from '../../../errors.js';
import { type DetectionTruth, type ReadingContext, readDocument } from './annotations.js';
import { CocoRecord } from './record.js';

/** Detections in the order they were made in; the n-th of each list belongs to the n-th detection. Lists of numbers, since there may be millions. */
export interface Detections {
  /** Index into the images, and into the categories, of the truth. */
  readonly image: readonly number[];
  readonly category: readonly number[];
  readonly score: readonly number[];
  /** Four numbers each: left, top, width, height in pixels. */
  readonly box: readonly number[];
}

/** 1,600 an image of COCO's validation set; each takes about 150 bytes. */
const MOST_DETECTIONS = 8_000_000;

/**
 * Reads a COCO results file: a list of `image_id`, `category_id`, `bbox`, `score`. Detections of images that are not to be scored are left out, those of
 * unknown categories too, as a finding. Throws as `readInstances` does.
 */
export async function readDetections(
  path: string,
  truth: DetectionTruth,
  context: ReadingContext,
): Promise<Detections> {
  const { findings } = context;
  const detections = {
    image: [] as number[],
    category: [] as number[],
    score: [] as number[],
    box: [] as number[],
  };
  const take = (record: CocoRecord): void => {
    const imageId = record.id('image_id');
    const categoryId = record.id('category_id');
    const score = record.number('score');
    const [left, top, width, height] = record.box();
    if (!record.isValid) return;
    const image = truth.imageIndex.get(imageId);
    const category = truth.categoryIndex.get(categoryId);
    if (image === undefined) findings.addMissingImage(imageId, record.place);
    else if (image >= 0 && category === undefined)
      findings.add('unknown-category', `${record.place}.category_id is ${categoryId}`);
    if (image === undefined || image < 0 || category === undefined) return;
    if (score < 0 || score > 1) findings.add('score-outside', `${record.place}.score is ${score}`);
    detections.image.push(image);
    detections.category.push(category);
    detections.score.push(score);
    detections.box.push(left, top, width, height);
  };
  const records = await readDocument(path, context);
  if (!Array.isArray(records))
    throw new TrtforgeError('TF_EVAL_DATA', `${path} is not a COCO results file: it is not a list.`);
  if (records.length > MOST_DETECTIONS)
    throw new TrtforgeError('TF_EVAL_DATA', `${path} has more than ${MOST_DETECTIONS} detections.`, {
      remedy: 'Keep the 100 best of each image and category: no other counts.',
    });
  for (const [index, record] of records.entries())
    take(new CocoRecord(record, 'detections', index, findings));
  findings.throwErrors(path);
  return detections;
}
