import { constants } from 'node:buffer';
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { readText, statIfThere } from '../../../base/files/files.js';
import { pythonJson } from '../../../base/files/json.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import type { Findings } from '../findings.js';
import { type Box, CocoRecord, type Size } from './record.js';

export interface Annotation {
  /** Index into the images, and into the categories, of the truth. */
  readonly image: number;
  readonly category: number;
  readonly box: Box;
  /** In pixels; that of the segmentation, so it may differ from width times height. */
  readonly area: number;
  readonly isCrowd: boolean;
  /** pycocotools takes a match with an annotation of id 0 for none. */
  readonly hasIdZero: boolean;
}

/** The truth that detections are scored against. */
export interface DetectionTruth {
  /** Ids of the images to score, ascending. */
  readonly images: readonly number[];
  /** Of those images; null where the file has none. */
  readonly fileNames: readonly (string | null)[];
  readonly sizes: readonly (Size | null)[];
  /** Number of images in the file: more than are scored where those are a subset. */
  readonly imagesOfFile: number;
  /** Ascending by id. */
  readonly categories: readonly { readonly id: number; readonly name: string }[];
  /** In the order of the file. */
  readonly annotations: readonly Annotation[];
  /** Index into `images` by id; -1 for an image of the file that is not scored. */
  readonly imageIndex: ReadonlyMap<number, number>;
  /** Index into `categories` by id. */
  readonly categoryIndex: ReadonlyMap<number, number>;
}

/** Which images are scored; default all. */
export interface ImageChoice {
  readonly imageIds?: readonly number[] | undefined;
  /** So many of the lowest ids. */
  readonly maxImages?: number | undefined;
}

/** The context of a reader besides its file. */
export interface ReadingContext {
  readonly findings: Findings;
  readonly signal?: AbortSignal | undefined;
}

/** More than COCO's training set has (860,001); each takes about 1.1 kB. */
const MOST_ANNOTATIONS = 1_000_000;
/** The curves of each category take 32 kB. */
const MOST_CATEGORIES = 20_000;

interface RawInstances {
  /** By id. */
  readonly images: Map<number, { readonly fileName: string | null; readonly size: Size | null }>;
  /** Names by id. */
  readonly categories: Map<number, string>;
  readonly annotations: Map<
    number,
    Pick<Annotation, 'box' | 'area' | 'isCrowd'> & { readonly imageId: number; readonly categoryId: number }
  >;
}

/**
 * Reads a file of COCO instances. `imageIds` are the images to score, default all. What is wrong with single records becomes findings; errors among them
 * are thrown as one TF_EVAL_DATA. Throws TF_EVAL_DATA for another kind of file too, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_CANCELLED.
 */
export async function readInstances(
  path: string,
  { imageIds, maxImages, ...context }: ReadingContext & ImageChoice,
): Promise<DetectionTruth> {
  const { findings } = context;
  const raw: RawInstances = { images: new Map(), categories: new Map(), annotations: new Map() };
  const takers = {
    images: takeImage,
    categories: takeCategory,
    annotations: takeAnnotation,
  } as const;
  const document = await readDocument(path, context);
  const lists = Object.entries(takers).map(([name, take]) => ({
    name,
    take,
    elements: listOf(document, name),
  }));
  const missing = lists.filter(({ elements }) => elements === undefined).map(({ name }) => name);
  if (missing.length > 0)
    throw new TrtforgeError(
      'TF_EVAL_DATA',
      `${path} is not a file of COCO instances: it has no list "${missing.join('", "')}".`,
    );
  if (lists.some(({ name, elements }) => name === 'annotations' && elements!.length > MOST_ANNOTATIONS))
    throw new TrtforgeError('TF_EVAL_DATA', `${path} has more than ${MOST_ANNOTATIONS} annotations.`, {
      remedy: 'Evaluate it in parts.',
    });
  for (const { name, take, elements } of lists)
    elements?.forEach((element, index) => {
      take(raw, new CocoRecord(element, name, index, findings), findings);
    });
  if (raw.categories.size > MOST_CATEGORIES)
    throw new TrtforgeError(
      'TF_EVAL_DATA',
      `${path} has ${raw.categories.size} categories, more than ${MOST_CATEGORIES}.`,
    );
  findings.throwErrors(path);
  const truth = truthOf(raw, { imageIds, maxImages }, findings);
  findings.throwErrors(path);
  return truth;
}

/** A JSON file with NaN and Infinity as Python writes them. Throws TF_EVAL_DATA for another file, and for one that is too large to be one text. */
export async function readDocument(path: string, { signal }: ReadingContext): Promise<unknown> {
  const bytes = statIfThere(path)?.size ?? 0;
  if (bytes > constants.MAX_STRING_LENGTH)
    throw new TrtforgeError(
      'TF_EVAL_DATA',
      `${path} has ${bytes} bytes, more than the ${constants.MAX_STRING_LENGTH} that are read.`,
      { remedy: 'Leave out what is not scored, such as segmentations, or score fewer images.' },
    );
  const text = readText(path, constants.MAX_STRING_LENGTH, 'TF_EVAL_DATA');
  try {
    return pythonJson(text);
  } catch (cause) {
    throw new TrtforgeError('TF_EVAL_DATA', `${path} cannot be read: it is not JSON.`, { cause });
  } finally {
    await setImmediate();
    throwIfCancelled(signal, `reading ${path}`);
  }
}

function listOf(document: unknown, name: string): readonly unknown[] | undefined {
  if (typeof document !== 'object' || document === null) return undefined;
  const value: unknown = Object.getOwnPropertyDescriptor(document, name)?.value;
  return Array.isArray(value) ? value : undefined;
}

function takeImage({ images }: RawInstances, record: CocoRecord, findings: Findings): void {
  const id = record.id('id');
  if (!record.isValid) return;
  if (images.has(id)) findings.add('duplicate-image', `${record.place}.id is ${id}`);
  images.set(id, { fileName: record.text('file_name'), size: record.size() });
}

function takeCategory({ categories }: RawInstances, record: CocoRecord, findings: Findings): void {
  const id = record.id('id');
  if (!record.isValid) return;
  if (categories.has(id)) findings.add('duplicate-category', `${record.place}.id is ${id}`);
  categories.set(id, record.text('name') ?? String(id));
}

function takeAnnotation({ annotations }: RawInstances, record: CocoRecord, findings: Findings): void {
  const id = record.id('id');
  const [imageId, categoryId, box] = [record.id('image_id'), record.id('category_id'), record.box()];
  const hasArea = record.has('area');
  const area = hasArea ? record.number('area') : box[2] * box[3];
  const hasCrowd = record.has('iscrowd');
  const annotation = { imageId, categoryId, box, area, isCrowd: hasCrowd && record.bit('iscrowd') };
  if (!record.isValid) return;
  if (!hasArea) findings.add('computed-area', record.place);
  if (!hasCrowd) findings.add('assumed-no-crowd', record.place);
  if (annotations.has(id)) findings.add('duplicate-annotation-id', `${record.place}.id is ${id}`);
  annotations.set(id, annotation);
}

function truthOf(
  raw: RawInstances,
  { imageIds, maxImages }: ImageChoice,
  findings: Findings,
): DetectionTruth {
  const imageIndex = new Map(Array.from(raw.images.keys(), (id) => [id, -1]));
  for (const id of imageIds ?? []) if (!raw.images.has(id)) findings.addMissingImage(id, 'the list of ids');
  const images = [...new Set(imageIds ?? raw.images.keys())]
    .filter((id) => raw.images.has(id))
    .sort((a, b) => a - b)
    .slice(0, maxImages);
  for (const [index, id] of images.entries()) imageIndex.set(id, index);
  const categories = Array.from(raw.categories, ([id, name]) => ({ id, name })).sort((a, b) => a.id - b.id);
  const categoryIndex = new Map(categories.map(({ id }, index) => [id, index]));
  const annotations: Annotation[] = [];
  for (const [id, { imageId, categoryId, ...annotation }] of raw.annotations) {
    const image = imageIndex.get(imageId);
    const category = categoryIndex.get(categoryId);
    if (image === undefined)
      findings.add('annotation-of-unknown-image', `annotation ${id} of image ${imageId}`);
    else if (category === undefined)
      findings.add('annotation-of-unknown-category', `annotation ${id} of category ${categoryId}`);
    else if (image >= 0) {
      if (id === 0) findings.add('annotation-id-0', `image ${imageId}`);
      annotations.push({ ...annotation, image, category, hasIdZero: id === 0 });
    }
  }
  const facts = images.map((id) => raw.images.get(id)!);
  const fileNames = facts.map(({ fileName }) => fileName);
  const sizes = facts.map(({ size }) => size);
  const imagesOfFile = raw.images.size;
  return { images, fileNames, sizes, imagesOfFile, categories, annotations, imageIndex, categoryIndex };
}

/**
 * SHA-256 over what is scored: the ids of images and categories, and by image and category the boxes, areas, crowd flags and zero ids. How the file is
 * laid out does not matter, nor ids of annotations; within an image and category their order does, since it decides between equal overlaps.
 */
export function digestOfTruth({ images, categories, annotations }: DetectionTruth): string {
  const hash = createHash('sha256');
  // JSON has one spelling of each number, and a negative zero is the zero that it equals.
  const add = (what: string, values: readonly unknown[]) =>
    hash.update(`${what} ${values.length}\n`).update(`${JSON.stringify(values)}\n`);
  add('images', images);
  add(
    'categories',
    categories.map(({ id }) => id),
  );
  const cells = [...annotations].sort((a, b) => a.image - b.image || a.category - b.category);
  hash.update(`annotations ${cells.length}\n`);
  for (const { image, category, box, area, isCrowd, hasIdZero } of cells)
    add('annotation', [images[image], categories[category]?.id, ...box, area, isCrowd, hasIdZero]);
  return hash.digest('hex');
}
