import { join } from 'node:path';
import { publishFile } from '../../../base/files/publish.js';
import { assertWithin } from '../../../base/options/library-arguments.js';
import { inPhase, type WorkContext } from '../../../events.js';
import { type DetectionTruth, readInstances } from '../coco/annotations.js';
import { readImageIds, scoredResult } from '../coco/coco.js';
import type { Detections } from '../coco/detections.js';
import { Findings } from '../findings.js';
import {
  type Detecting,
  detect,
  detectingOf,
  detectorOptions,
  type EvaluateDetectorRequest,
} from './detector.js';
import { type DetectorMetrics, metricsOf } from './metrics-file.js';
import type { DetectorResult } from './result.js';

/** An evaluation with its data read and checked. */
interface DecidedDetector {
  readonly truth: DetectionTruth;
  readonly findings: Findings;
  readonly detecting: Detecting;
}

/** Reads the truth, and finds images and labels. Throws what `evaluateCoco` and `detectingOf` throw. */
export async function decideDetector(
  request: EvaluateDetectorRequest,
  { emit, signal }: WorkContext = {},
): Promise<DecidedDetector> {
  const { instances, imageIds, maxImages } = request;
  const findings = new Findings(request.allowMissing);
  const ids = imageIds === undefined ? undefined : readImageIds(imageIds);
  const truth = await inPhase('read instances', emit, () =>
    readInstances(instances, { imageIds: ids, maxImages, findings, signal }),
  );
  return { truth, findings, detecting: detectingOf(request, truth, findings) };
}

/** Runs a detector over annotated images and scores what it finds. Throws what `decideDetector` and `detect` throw. */
export async function evaluateDetector(
  request: EvaluateDetectorRequest,
  work: WorkContext = {},
): Promise<DetectorResult> {
  assertWithin(detectorOptions, request);
  const { instances, imagesDir, output } = request;
  const { truth, findings, detecting } = await decideDetector(request, work);
  const { detections, ids, run } = await inPhase('run samples', work.emit, () => detect(detecting, work));
  const present = new Set(ids);
  const missing = truth.images.filter((id) => !present.has(id));
  const settings = {
    ...run.settings,
    images: run.imagesDigest,
    ...(missing.length === 0 ? {} : { missing }),
  };
  const scored = await inPhase('score', work.emit, async () =>
    scoredResult(truth, detections, findings, settings),
  );
  const result: DetectorResult = {
    schema: 'trtforge.eval-detector/1',
    instances,
    imagesDir,
    ...scored,
    run,
    output: output ?? null,
  };
  if (output !== undefined) publish(output, metricsOf(result, request.variant), truth, detections);
  return result;
}

function publish(
  folder: string,
  metrics: DetectorMetrics,
  truth: DetectionTruth,
  detections: Detections,
): void {
  publishFile(join(folder, 'detections.json'), `${JSON.stringify(resultsOf(truth, detections))}\n`);
  publishFile(join(folder, 'metrics.json'), `${JSON.stringify(metrics, null, 2)}\n`);
}

/** As a COCO results file: scored again it has the same figures. */
const resultsOf = (truth: DetectionTruth, { image, category, score, box }: Detections) =>
  score.map((value, at) => ({
    image_id: truth.images[image[at]!],
    category_id: truth.categories[category[at]!]!.id,
    bbox: box.slice(4 * at, 4 * at + 4),
    score: value,
  }));
