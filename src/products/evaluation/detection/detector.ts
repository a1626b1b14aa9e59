import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { listFolder } from '../../../base/files/files.js';
import * as is from '../../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { labelsOfMetadata } from '../../../formats/images/labels.js';
import { boxOnImage, Decoder, keptOf } from '../../../quality/predictions/decode.js';
import type { DetectionTruth } from '../coco/annotations.js';
import type { Detections } from '../coco/detections.js';
import type { Size } from '../coco/record.js';
import { comparable, metadataOf, readLabelsBeside } from '../contradicting-labels.js';
import type { Findings } from '../findings.js';
import { detectionOptions, imageRequestOptions, labelledOptions } from '../options.js';
import { withCandidate } from '../run/candidate.js';
import { type ImageFile, type ImageSample, preprocessingFor, runImages } from '../run/images.js';
import type { Variant } from '../run/variant.js';
import type { DetectorRun } from './result.js';

/** Names and defaults of what makes detections of outputs are those of auto-quantize-model's evaluators. Default of `labels`: the metadata of the model. */
export const detectorOptions = {
  /** A file of COCO instances. */
  instances: needed(is.text, {
    flags: '--instances <file>',
    describe: 'the annotations: a file of COCO instances',
    required: '--instances FILE',
  }),
  /** Folder for metrics.json and detections.json. */
  output: optional(is.text, {
    flags: '-o, --output <folder>',
    describe: 'metrics.json and detections.json, a COCO results file',
    writes: true,
  }),
  ...labelledOptions,
  ...imageRequestOptions,
  ...detectionOptions,
  /** Which variant of a comparison it is, for metrics.json. */
  variant: optional(is.object<Variant>()),
};

export interface EvaluateDetectorRequest extends OptionsOf<typeof detectorOptions> {}

/** A detector with the images to run and the category of each label, before anything is opened. */
export interface Detecting {
  readonly request: EvaluateDetectorRequest;
  readonly labels: { readonly names: readonly string[]; readonly from: string };
  /** By label, an index of the truth's categories. */
  readonly categories: readonly number[];
  /** With their place in the truth, and the size that it states. */
  readonly images: readonly (ImageFile & {
    readonly id: number;
    readonly index: number;
    readonly size: Size | null;
  })[];
  readonly findings: Findings;
}

/** Throws TF_EVAL_DATA for images that are missing beyond what the findings allow, and for labels that the truth does not have. */
export function detectingOf(
  request: EvaluateDetectorRequest,
  truth: DetectionTruth,
  findings: Findings,
): Detecting {
  const labels = labelsFor(request, findings);
  const categories = categoriesOf(labels, truth, findings);
  const images = imagesOf(request.imagesDir, truth, findings);
  return { request, labels, categories, images, findings };
}

/**
 * Runs a detector over its images; `ids` are those that could be read. Errors: TF_EVAL_HEAD, TF_EVAL_DATA (all images that cannot be read, where the findings
 * do not allow them), TF_SESSION_BINDING, and what opening and running throw.
 */
export async function detect(
  { request, labels, categories, images, findings }: Detecting,
  context: WorkContext,
): Promise<{ readonly detections: Detections; readonly ids: readonly number[]; readonly run: DetectorRun }> {
  const detections = noDetections();
  const ids: number[] = [];
  const own = { ...context, preprocess: request.preprocess };
  const { candidate, result } = await withCandidate(request.model, request.open, own, async (session) => {
    const preprocessing = preprocessingFor(session, request.preprocess, request.imgsz);
    const { width, height } = preprocessing;
    const classes = labels.names.length;
    const { conf: confidence, multiLabel } = request;
    const decoder = new Decoder({ classes, width, height, confidence, multiLabel });
    const running = { ...request, preprocessing, findings };
    const ran = await runImages(session, images, running, context, (sample, outputs) => {
      const image = images[sample.index]!;
      ids.push(image.id);
      addSizeFinding(sample, image, findings);
      decoder.take(outputs, (candidates, { needsNms }) => {
        const settings = {
          overlap: request.iou,
          classAgnostic: request.agnosticNms,
          topK: request.preNmsTopk,
          maxDetections: request.maxDet,
        };
        for (const at of keptOf(candidates, needsNms, settings)) {
          const category = categories[candidates.category[at]!]!;
          if (category === NOT_SCORED) continue;
          detections.image.push(image.index);
          detections.category.push(category);
          detections.score.push(candidates.score[at]!);
          detections.box.push(...boxOnImage(candidates.box.subarray(4 * at), sample));
        }
      });
    });
    const head = decoder.finish();
    if (head.boxes.alsoFits.length > 0 && head.boxes.count > 0)
      findings.add(
        'assumed-box-form',
        `${head.boxes.layout} ${head.boxes.scale}, where ${head.boxes.alsoFits.join(', ')} fits too`,
      );
    return { ran, head, imgsz: [width, height] as [number, number] };
  });
  const { preprocess, conf, iou, maxDet, preNmsTopk, agnosticNms, multiLabel, warmupRuns, skipLatency } =
    request;
  const { ran, head, imgsz } = result;
  return {
    detections,
    ids,
    run: {
      candidate,
      head: { ...head, boxes: { ...head.boxes, alsoFits: [...head.boxes.alsoFits] } },
      labels: { count: labels.names.length, from: labels.from },
      settings: { preprocess, imgsz, conf, iou, maxDet, preNmsTopk, agnosticNms, multiLabel },
      warmupRuns,
      skipLatency,
      ...ran,
    },
  };
}

const noDetections = (): { readonly [K in keyof Detections]: number[] } => ({
  image: [],
  category: [],
  score: [],
  box: [],
});

/** Boxes of the truth are elsewhere on an image of another size, and may be on one that EXIF turned, where its size does not show the way that is meant. */
function addSizeFinding(
  { width, height, orientation }: ImageSample,
  { id, size }: Detecting['images'][number],
  findings: Findings,
): void {
  const isOther = size !== null && (size[0] !== width || size[1] !== height);
  if (isOther) findings.add('other-size', `image ${id} of ${width}x${height}, stated ${size[0]}x${size[1]}`);
  const isShown = size !== null && orientation >= 5 && width !== height;
  if (!isOther && !isShown && orientation > 1)
    findings.add('turned-image', `image ${id} of ${width}x${height}, EXIF orientation ${orientation}`);
}

/** A label that the truth has no category for. */
const NOT_SCORED = -1;

function labelsFor(request: EvaluateDetectorRequest, findings: Findings): Detecting['labels'] {
  const read = readLabelsBeside(request, findings);
  if (read !== undefined) return { names: read, from: request.labels! };
  const names = labelsOfMetadata(metadataOf(request));
  if (names !== undefined) return { names, from: 'metadata "names" of the model' };
  throw new TrtforgeError('TF_EVAL_DATA', `${request.namedBy ?? request.model} does not name its classes.`, {
    remedy:
      'Pass --labels FILE: a name a line in the order of the classes, or YAML with "names". There is no default list.',
  });
}

/** The category of the truth by label: by name, since ids of data sets have gaps. */
function categoriesOf(
  { names, from }: Detecting['labels'],
  truth: DetectionTruth,
  findings: Findings,
): readonly number[] {
  const byName = new Map<string, number>();
  for (const [index, { id, name }] of truth.categories.entries()) {
    if (byName.has(comparable(name))) findings.add('duplicate-category-name', `category ${id}, "${name}"`);
    byName.set(comparable(name), index);
  }
  findings.throwErrors('The instances');
  const known = new Set(names.map(comparable));
  const missing = truth.categories.filter(({ name }) => !known.has(comparable(name)));
  if (missing.length > 0)
    throw new TrtforgeError(
      'TF_EVAL_DATA',
      `${from} has no label for ${missing.length} of ${truth.categories.length} categories, the first "${missing[0]!.name}".`,
      {
        remedy: 'Pass the labels that the model was trained with: --labels FILE.',
        details: { missing: missing.slice(0, 20).map(({ name }) => name), labels: names.slice(0, 20) },
      },
    );
  return names.map((name, at) => {
    const category = byName.get(comparable(name));
    if (category === undefined) findings.add('label-without-category', `label ${at}, "${name}"`);
    return category ?? NOT_SCORED;
  });
}

/** The images to run, with their place in the truth. A file is at the path that the instances state below the folder, or has the last part of it for a name. */
function imagesOf(folder: string, truth: DetectionTruth, findings: Findings): Detecting['images'] {
  const present = new Set(listFolder(folder));
  const taken = new Set<string>();
  const images = truth.images.flatMap((id, index) => {
    const name = truth.fileNames[index] ?? '';
    const below = [name, basename(name)].find(
      (each) => present.has(each) || (/^[^/].*\//.test(each) && existsSync(join(folder, each))),
    );
    if (below === undefined) {
      findings.add('missing-file', `image ${id}, ${name === '' ? 'which has no file_name' : name}`);
      return [];
    }
    if (taken.has(below)) findings.add('duplicate-file', `image ${id}, ${below}`);
    taken.add(below);
    return [{ id, index, size: truth.sizes[index]!, path: join(folder, below) }];
  });
  findings.throwErrors(folder);
  if (images.length === 0)
    throw new TrtforgeError('TF_EVAL_DATA', `${folder} has none of the images.`, {
      remedy: 'Check --images, and that the instances list images with a file_name.',
    });
  return images;
}
