import { closeSync, openSync, writeSync } from 'node:fs';

/** Sizes of a generated set of detections. */
export interface CocoRequest {
  readonly seed: number;
  readonly images: number;
  readonly categories: number;
  readonly annotations: number;
  readonly detections: number;
  /** Scores have so many decimals: two make many equal ones. */
  readonly scoreDecimals: number;
}

export interface CocoData {
  readonly instances: {
    readonly images: readonly { readonly id: number; readonly width: number; readonly height: number }[];
    readonly categories: readonly { readonly id: number; readonly name: string }[];
    readonly annotations: readonly CocoAnnotation[];
  };
  readonly detections: readonly CocoDetection[];
}

type Box = [left: number, top: number, width: number, height: number];

export interface CocoAnnotation {
  id: number;
  image_id: number;
  category_id: number;
  bbox: Box;
  area: number;
  iscrowd: 0 | 1;
}

export interface CocoDetection {
  image_id: number;
  category_id: number;
  bbox: Box;
  score: number;
}

/**
 * Detections and what they are scored against, the same for the same request on every machine: ids with holes and in no order, boxes of all sizes, areas
 * smaller than their boxes and on the bounds of the area ranges, 3 % crowds, an annotation with id 0, images and categories without annotations,
 * detections near an annotation, on it, elsewhere, and more than 100 of one category on an image.
 */
export function cocoData(request: CocoRequest): CocoData {
  const random = randomNumbers(request.seed);
  const pick = (limit: number) => Math.floor(random() * limit);
  const rounded = (value: number, decimals: number) => Number(value.toFixed(decimals));
  const images = shuffled(request.images, pick).map((at) => ({ id: 7 + 3 * at, width: 640, height: 480 }));
  const categories = shuffled(request.categories, pick).map((at) => ({
    id: 1 + at + Math.floor(at / 10),
    name: `class ${at}`,
  }));
  // The last tenth has no annotations.
  const annotated = {
    images: Math.ceil(0.9 * images.length),
    categories: Math.ceil(0.9 * categories.length),
  };
  const randomBox = (): Box => {
    // The square of an even number: many small boxes, few large ones.
    const side = () => 4 + 400 * random() ** 3;
    const [width, height] = [side(), side()];
    return [random() * (640 - width), random() * (480 - height), width, height].map((value) =>
      rounded(value, 2),
    ) as Box;
  };
  const annotations = Array.from({ length: request.annotations }, (_, id): CocoAnnotation => {
    const bbox = randomBox();
    const area = pick(50) === 0 ? [1024, 9216][pick(2)]! : bbox[2] * bbox[3] * (0.5 + random() / 2);
    return {
      id,
      image_id: images[pick(annotated.images)]!.id,
      category_id: categories[pick(annotated.categories)]!.id,
      bbox,
      area,
      iscrowd: pick(33) === 0 ? 1 : 0,
    };
  });
  const crowded = annotations[pick(annotations.length)];
  const detections = Array.from({ length: request.detections }, (_, n): CocoDetection => {
    const near = n < 150 ? crowded : pick(3) === 0 ? undefined : annotations[pick(annotations.length)];
    const score = rounded(near === undefined ? random() ** 4 : random(), request.scoreDecimals);
    if (near === undefined)
      return {
        image_id: images[pick(images.length)]!.id,
        category_id: categories[pick(categories.length)]!.id,
        bbox: randomBox(),
        score,
      };
    const spread = pick(10) === 0 ? 0 : random() * 0.4;
    const moved = (value: number, size: number) => rounded(value + (random() - 0.5) * spread * size, 3);
    const [left, top, width, height] = near.bbox;
    return {
      image_id: near.image_id,
      category_id: pick(20) === 0 ? categories[pick(categories.length)]!.id : near.category_id,
      bbox: [moved(left, width), moved(top, height), moved(width, width), moved(height, height)],
      score,
    };
  });
  return { instances: { images, categories, annotations }, detections };
}

/** Writes a list as `json.dump` would, without its text in memory as a whole. */
export function writeJsonList(path: string, list: readonly unknown[]): void {
  const file = openSync(path, 'w');
  for (let start = 0; start < list.length; start += 10_000) {
    const part = list.slice(start, start + 10_000).map((each) => JSON.stringify(each));
    writeSync(file, `${start === 0 ? '[' : ', '}${part.join(', ')}`);
  }
  writeSync(file, list.length === 0 ? '[]' : ']');
  closeSync(file);
}

function shuffled(count: number, pick: (limit: number) => number): readonly number[] {
  const order = Array.from({ length: count }, (_, at) => at);
  for (let last = count - 1; last > 0; last--) {
    const other = pick(last + 1);
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
  return order;
}

/** mulberry32: even numbers from 0 to 1 by whole-number arithmetic alone. */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
