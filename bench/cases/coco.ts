import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cocoData, writeJsonList } from '../coco-data.js';
import { type BenchCase, peersOr, trtforge } from '../context.js';
import { measureCommand } from '../measure.js';
import { costs } from '../result.js';

const REQUEST = {
  seed: 3,
  images: 5000,
  categories: 80,
  annotations: 36_000,
  detections: 500_000,
  scoreDecimals: 6,
} as const;

/** The module and the class that scores, by peer. */
const PEERS = {
  pycocotools: 'from pycocotools.coco import COCO; from pycocotools.cocoeval import COCOeval as Evaluation',
  'faster-coco-eval': 'from faster_coco_eval import COCO, COCOeval_faster as Evaluation',
} as const;

const script = (imports: string): string => `
import sys
${imports}
truth = COCO(sys.argv[1])
evaluation = Evaluation(truth, truth.loadRes(sys.argv[2]), "bbox")
evaluation.evaluate()
evaluation.accumulate()
evaluation.summarize()
`;

/** A results file scored, from process start to figures. */
export const coco: BenchCase = {
  name: 'coco',
  run: (context) => {
    const skipped: string[] = [];
    const instances = join(context.folder, 'instances.json');
    const detections = join(context.folder, 'detections.json');
    try {
      const data = cocoData(REQUEST);
      writeFileSync(instances, JSON.stringify(data.instances));
      writeJsonList(detections, data.detections);
      const files = ['--instances', instances, '--detections', detections];
      const ours = measureCommand(trtforge(context, 'eval', 'coco', ...files, '--quiet'), context);
      const peers = peersOr(context, skipped);
      const beside = Object.entries(peers === undefined ? {} : PEERS).map(([name, imports]) => ({
        name,
        // A run takes up to minutes and needs no warming up.
        runs: measureCommand([peers!.python, '-c', script(imports), instances, detections], {
          runs: 1,
          warmups: 0,
        }),
      }));
      const bars = { seconds: 3, megabytes: 400 };
      return {
        case: 'coco',
        title: `Score ${REQUEST.detections} detections of ${REQUEST.categories} categories on ${REQUEST.images} images`,
        commands: [
          'trtforge eval coco --instances I --detections D',
          ...beside.map(({ name }) => `${name}: loadRes, evaluate, accumulate, summarize`),
        ],
        measurements:
          beside.length === 0
            ? costs('instances and detections to figures', ours, undefined, bars)
            : beside.flatMap((peer) => costs(`beside ${peer.name}`, ours, peer, bars)),
        skipped,
      };
    } finally {
      for (const file of [instances, detections]) rmSync(file, { force: true });
    }
  },
};
