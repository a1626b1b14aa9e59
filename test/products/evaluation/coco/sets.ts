import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type CocoAnnotation,
  type CocoData,
  type CocoDetection,
  cocoData,
  randomNumbers,
} from '../../../../bench/coco-data.js';
import { evaluateCoco } from '../../../../src/products/evaluation/coco/coco.js';
import type { CategoryScore } from '../../../../src/products/evaluation/coco/result.js';

const work = mkdtempSync(join(tmpdir(), 'trtforge-coco-'));
process.once('exit', () => rmSync(work, { recursive: true, force: true }));

let written = 0;

/** Writes text or data as JSON into a file of its own and returns its path. */
export function fileOf(content: unknown): string {
  const path = join(work, `${written++}.json`);
  writeFileSync(
    path,
    content instanceof Uint8Array || typeof content === 'string' ? content : JSON.stringify(content),
  );
  return path;
}

type PartialAnnotation = Partial<CocoAnnotation> & Pick<CocoAnnotation, 'bbox'>;
type PartialDetection = Partial<CocoDetection> & Pick<CocoDetection, 'bbox'>;

/** Data of a few records: two images, two categories, ids from 1, areas of boxes. */
export const dataOf = (
  annotations: readonly PartialAnnotation[],
  detections: readonly PartialDetection[],
): CocoData => ({
  instances: {
    images: [1, 2].map((id) => ({ id, width: 640, height: 480 })),
    categories: [
      { id: 1, name: 'cat' },
      { id: 3, name: 'dog' },
    ],
    annotations: annotations.map((annotation, index) => ({
      id: index + 1,
      image_id: 1,
      category_id: 1,
      area: annotation.bbox[2] * annotation.bbox[3],
      iscrowd: 0,
      ...annotation,
    })),
  },
  detections: detections.map((detection) => ({ image_id: 1, category_id: 1, score: 0.5, ...detection })),
});

/** Boxes on a coarse grid and few scores: equal overlaps, overlaps that are thresholds, equal scores, in any mixture of crowds and area ranges. */
export function gridData(seed: number): CocoData {
  const random = randomNumbers(seed);
  const pick = (limit: number) => Math.floor(random() * limit);
  const side = [32, 40, 96];
  const box = (): CocoAnnotation['bbox'] => [4 * pick(3), 4 * pick(3), side[pick(3)]!, side[pick(3)]!];
  const where = () => ({ image_id: 1 + pick(2), category_id: [1, 3][pick(2)]! });
  return dataOf(
    Array.from({ length: 1 + pick(20) }, (_, index) => {
      const bbox = box();
      const area = [bbox[2] * bbox[3], 1024, 9216, 1025, 9215.5][pick(5)]!;
      return { id: index + (seed % 2), ...where(), bbox, area, iscrowd: pick(5) === 0 ? 1 : 0 };
    }),
    Array.from({ length: 1 + pick(250) }, () => ({ ...where(), bbox: box(), score: pick(5) / 4 })),
  );
}

const BOX: CocoAnnotation['bbox'] = [10, 10, 50, 50];

/** What the scorer is compared with pycocotools on; the results of pycocotools are recorded in test/fixtures/coco. */
export const cocoSets: Readonly<Record<string, CocoData>> = {
  generated: cocoData({
    seed: 1,
    images: 40,
    categories: 7,
    annotations: 300,
    detections: 4000,
    scoreDecimals: 6,
  }),
  'equal scores': cocoData({
    seed: 2,
    images: 25,
    categories: 12,
    annotations: 200,
    detections: 2500,
    scoreDecimals: 1,
  }),
  'few detections': cocoData({
    seed: 3,
    images: 60,
    categories: 20,
    annotations: 500,
    detections: 300,
    scoreDecimals: 3,
  }),
  ...Object.fromEntries(Array.from({ length: 12 }, (_, seed) => [`grid ${seed}`, gridData(seed + 1)])),
  'one found': dataOf([{ bbox: BOX }], [{ bbox: BOX }]),
  'one found, of id 0': dataOf([{ bbox: BOX, id: 0 }], [{ bbox: BOX }]),
  'found twice': dataOf(
    [{ bbox: BOX }],
    [
      { bbox: BOX, score: 0.2 },
      { bbox: BOX, score: 0.9 },
    ],
  ),
  'half an overlap': dataOf([{ bbox: [0, 0, 10, 10] }], [{ bbox: [0, 0, 10, 5] }]),
  'crowd only': dataOf([{ bbox: BOX, iscrowd: 1 }], [{ bbox: BOX }]),
  'crowd before a box': dataOf(
    [{ bbox: [0, 0, 200, 200], iscrowd: 1 }, { bbox: BOX }],
    [
      { bbox: BOX, score: 0.9 },
      { bbox: BOX, score: 0.8 },
      { bbox: [12, 12, 50, 50], score: 0.7 },
    ],
  ),
  'no truth': dataOf([], [{ bbox: BOX }]),
  'no area': dataOf([{ bbox: [5, 5, 0, 9] }], [{ bbox: [5, 5, 0, 9] }, { bbox: [5, 5, 9, 9] }]),
  'bounds of areas': dataOf(
    [{ bbox: [0, 0, 32, 32] }, { bbox: [100, 0, 96, 96] }, { bbox: [300, 0, 40, 40], area: 1e11 }],
    [{ bbox: [0, 0, 32, 32] }, { bbox: [100, 0, 96, 96] }, { bbox: [300, 0, 40, 40] }],
  ),
  'scores below zero': dataOf(
    [{ bbox: BOX }, { bbox: [200, 200, 50, 50] }],
    [
      { bbox: BOX, score: -3 },
      { bbox: [0, 0, 9, 9], score: -0.5 },
      { bbox: [200, 200, 50, 50], score: 7 },
    ],
  ),
  'other category': dataOf([{ bbox: BOX, category_id: 3 }], [{ bbox: BOX }]),
  'huge boxes': dataOf([{ bbox: [0, 0, 1e90, 1e90], area: 1e9 }], [{ bbox: [0, 0, 1e90, 1e90] }]),
};

/** What pycocotools_scores.py prints of one set. */
export interface PycocotoolsScores {
  readonly stats: readonly number[];
  readonly perClass: readonly Readonly<Record<string, number | null>>[];
}

export const RECORDED = join(import.meta.dirname, '../../../fixtures/coco/pycocotools-2.0.11.json');

/** A line for each set. */
export const recordOf = (scores: Readonly<Record<string, PycocotoolsScores>>): string =>
  `{\n${Object.entries(scores)
    .map(([name, each]) => `${JSON.stringify(name)}: ${JSON.stringify(each)}`)
    .join(',\n')}\n}\n`;

/** The same figures by our scorer, read from files as the command does. */
export async function scored({ instances, detections }: CocoData): Promise<PycocotoolsScores> {
  const { stats, perClass } = await evaluateCoco({
    instances: fileOf(instances),
    detections: fileOf(detections),
  });
  const figures = ({ id, AP_50_95, AP_50, AP_75, AP_small, AP_medium, AP_large, AR_100 }: CategoryScore) => ({
    id,
    AP_50_95,
    AP_50,
    AP_75,
    AP_small,
    AP_medium,
    AP_large,
    AR_100,
  });
  return { stats, perClass: perClass.map(figures) };
}
