import { join } from 'node:path';
import { openFile } from '../../../base/files/byte-source.js';
import { canonicalJson, sha256, sha256OfFileInPieces } from '../../../base/files/digest.js';
import { statIfThere } from '../../../base/files/files.js';
import { publishFile } from '../../../base/files/publish.js';
import { allBut, valuesOf } from '../../../base/options/option.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { isUnreadable } from '../../../engines/run/image-inputs.js';
import type { OpenOptions } from '../../../engines/runtime/back-end.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { assertImageHeader, readImageFile } from '../../../formats/images/image.js';
import { preprocessings } from '../../../formats/images/preprocess.js';
import type { Metric, Recogniser, ScorerOf } from '../../../quality/tasks/task.js';
import {
  type ClassifierRequest,
  decideClassifier,
  evaluateClassifier,
} from '../classification/evaluate-classifier.js';
import type { EvaluateDetectorRequest } from '../detection/detector.js';
import { decideDetector, evaluateDetector } from '../detection/evaluate-detector.js';
import type { Findings } from '../findings.js';
import { detectionOptions, imageRunOptions } from '../options.js';
import { preparationOf, preparations } from '../run/candidate.js';
import type { ImageFile } from '../run/images.js';
import type { ComparedTaskId, Variant } from '../run/variant.js';
import {
  decideRecogniser,
  type EvaluateRecogniserRequest,
  evaluateRecogniser,
} from '../speech/evaluate-recogniser.js';
import { namedFile } from './compared-models.js';
import { type Figures, figuresOfResult } from './figures.js';

/** Data and settings that every variant is evaluated with. */
export type TaskSettings = Omit<
  EvaluateDetectorRequest,
  'model' | 'instances' | 'imagesDir' | 'preprocess' | 'imgsz' | 'output' | 'variant' | 'open'
> &
  Omit<Parameters<ScorerOf>[0], 'bundle'> & {
    /** The files that `model` is compared with: `FILE` or `NAME=FILE`. For speech `model` is the meta file that belongs to folders of engines. */
    readonly candidates?: readonly string[];
  };

interface VariantFolder {
  readonly variant: Variant;
  readonly output: string;
}

/** One way to score a model on data. */
export interface ComparedTask {
  readonly id: ComparedTaskId;
  /** The preparation of images; null for speech. */
  readonly preprocess: string | null;
  /** Width and height of images where the model leaves them open. */
  readonly imgsz: number;
  /** SHA-256 over content of the data, and settings: every file that the task reads besides the model. Throws what reading and checking them throws. */
  digest(context: WorkContext): Promise<string>;
  /** The metric that is compared, which `metrics` of a result has first. */
  readonly metric: Omit<Metric, 'value'>;
  /** Evaluates a file and, where there is a folder, writes metrics.json and what else the task writes into it. Throws what the evaluation throws. */
  run(file: string, open: OpenOptions, context: WorkContext, into?: VariantFolder): Promise<Figures | null>;
}

/** The task is what the data is for: JSON has boxes, a header with `utt_id` utterances, any other TSV labels. Throws TF_USAGE where images are missing. */
export function taskFor(request: TaskSettings, recognisers: readonly Recogniser[]): ComparedTask {
  const head = headOf(request.data);
  if (/^\s*\{/.test(head)) return detection(request);
  return /^\ufeff?[^\n]*\butt_id\b/.test(head) ? speech(request, recognisers) : classification(request);
}

const HEAD_BYTES = 4096;

function headOf(path: string): string {
  const source = openFile(path);
  try {
    const bytes = Buffer.alloc(Math.min(HEAD_BYTES, source.size));
    return bytes.toString('utf8', 0, source.read(bytes, 0, bytes.length));
  } finally {
    source.close();
  }
}

function imagesOf({ data, imagesDir }: TaskSettings): string {
  if (imagesDir !== undefined) return imagesDir;
  throw new TrtforgeError('TF_USAGE', `${data} is about images, and no folder of images is named.`, {
    remedy: 'Pass it: --images FOLDER.',
    details: { option: '--images' },
  });
}

function detection(request: TaskSettings): ComparedTask {
  const { data, imageIds, labels } = request;
  const imagesDir = imagesOf(request);
  const settings = settingsOf(request, preparations.detector);
  const requestFor = (model: string, open: OpenOptions): EvaluateDetectorRequest => ({
    ...settings,
    namedBy: settings.model,
    instances: data,
    imagesDir,
    model,
    open,
  });
  return {
    id: 'coco',
    preprocess: settings.preprocess,
    imgsz: settings.imgsz,
    digest: async (context) => {
      const { detecting, findings } = await decideDetector(requestFor(settings.model, {}), context);
      const { images } = detecting;
      const files = [data, imageIds, labels];
      const digest = await digestOfData('coco', decisive(settings), files, images, context, findings);
      findings.throwErrors(imagesDir);
      return digest;
    },
    metric: { name: 'mAP_50_95', unit: 'share', higherIsBetter: true },
    run: async (model, open, context, into) =>
      figuresOfResult(await evaluateDetector({ ...requestFor(model, open), ...into }, context)),
  };
}

function classification(request: TaskSettings): ComparedTask {
  const { data, labels, imageIds } = request;
  const imagesDir = imagesOf(request);
  if (imageIds !== undefined)
    throw new TrtforgeError('TF_USAGE', `--image-ids names images of COCO instances, and ${data} has none.`, {
      remedy: `Remove --image-ids, and the other lines from ${data}.`,
      details: { option: '--image-ids' },
    });
  const settings = settingsOf(request, preparations.classifier);
  const requestFor = (model: string, open: OpenOptions): ClassifierRequest => ({
    ...settings,
    namedBy: settings.model,
    truth: data,
    imagesDir,
    model,
    open,
  });
  return {
    id: 'classify',
    preprocess: settings.preprocess,
    imgsz: settings.imgsz,
    digest: async (context) => {
      const { images, findings } = decideClassifier(requestFor(settings.model, {}));
      const files = [data, labels];
      const digest = await digestOfData('classify', decisive(settings), files, images, context, findings);
      findings.throwErrors(imagesDir);
      return digest;
    },
    metric: { name: 'top1', unit: 'share', higherIsBetter: true },
    run: async (model, open, context, into) => {
      const result = await evaluateClassifier(requestFor(model, open), context);
      if (into !== undefined)
        publishFile(
          join(into.output, 'metrics.json'),
          `${JSON.stringify({ ...result, variant: into.variant }, null, 2)}\n`,
        );
      return figuresOfResult(result);
    },
  };
}

function speech(request: TaskSettings, recognisers: readonly Recogniser[]): ComparedTask {
  const { model, data: manifest, audioDir, normalizer } = request;
  const requestFor = (file: string, open: OpenOptions): EvaluateRecogniserRequest => {
    // A folder has engines of the bundle that is compared.
    const isFolder = statIfThere(file)?.isDirectory() === true;
    const bundle = isFolder ? { meta: model, open: { ...open, engines: file } } : { meta: file, open };
    return { ...bundle, manifest, audioDir, normalizer };
  };
  return {
    id: 'wer',
    preprocess: null,
    imgsz: 0,
    digest: async (context) => {
      const { recordings } = decideRecogniser(requestFor(model, {}), recognisers);
      return digestOfData('wer', { normalizer }, [manifest], recordings, context);
    },
    metric: { name: 'wer', unit: 'share', higherIsBetter: false },
    run: async (file, open, context, into) =>
      figuresOfResult(await evaluateRecogniser({ ...requestFor(file, open), ...into }, recognisers, context)),
  };
}

type Settings = TaskSettings & { readonly preprocess: string; readonly imgsz: number };

function settingsOf(request: TaskSettings, choices: readonly string[]): Settings {
  const files = [request.model, ...(request.candidates ?? []).map((text) => namedFile(text).file)];
  const preprocess = preparationOf(request.preprocess, files, choices);
  return { ...request, preprocess, imgsz: request.imgsz ?? preprocessings[preprocess]!.width };
}

/** Files count by their content. */
const decisiveOptions = { ...imageRunOptions, ...allBut(detectionOptions, 'labels', 'imageIds') };

/** Settings that decide figures or times besides the model, the back end and the data. */
const decisive = (settings: Settings) => ({
  preprocess: settings.preprocess,
  ...valuesOf(decisiveOptions, settings),
});

/**
 * Places of files are not part of it, their content is. A sample may lack its file, as many as the evaluation allows. `unreadable` takes samples that are no
 * images by their header, so that they are known before a variant is made; only a run decodes pixels.
 */
async function digestOfData(
  task: ComparedTaskId,
  settings: object,
  named: readonly (string | undefined)[],
  samples: readonly Pick<ImageFile, 'id' | 'path'>[],
  { emit, signal }: WorkContext,
  unreadable?: Findings,
): Promise<string> {
  const files: (string | null)[] = [];
  const total = named.length + samples.length;
  const take = async (path: string | undefined, digestOf: (path: string) => Promise<string | null>) => {
    throwIfCancelled(signal, 'reading the data');
    const isThere = path !== undefined && statIfThere(path)?.isFile() === true;
    files.push(isThere ? await digestOf(path) : null);
    emit?.({ type: 'progress', phase: 'read data', done: files.length, total });
  };
  for (const path of named) await take(path, sha256OfFileInPieces);
  for (const { id, path } of samples)
    await take(
      path,
      unreadable === undefined ? sha256OfFileInPieces : () => digestOfImage(id, path, unreadable),
    );
  return sha256(canonicalJson({ task, settings, files }));
}

async function digestOfImage(id: ImageFile['id'], path: string, unreadable: Findings) {
  let digest: string | null = null;
  try {
    const bytes = readImageFile(path);
    digest = sha256(bytes);
    await assertImageHeader(path, bytes);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    unreadable.addUnreadableFile(id, error);
  }
  return digest;
}
