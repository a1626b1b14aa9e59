import { sha256 } from '../../../base/files/digest.js';
import * as is from '../../../base/options/kinds.js';
import { assertWithin } from '../../../base/options/library-arguments.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { TrtforgeError } from '../../../errors.js';
import { inPhase, type WorkContext } from '../../../events.js';
import { float32Values } from '../../../formats/tensor/tensor.js';
import { taskIdentity } from '../../../quality/tasks/task.js';
import { readLabelsBeside } from '../contradicting-labels.js';
import { Findings } from '../findings.js';
import { allowMissing, imageRequestOptions, labelledOptions } from '../options.js';
import { withCandidate } from '../run/candidate.js';
import { preprocessingFor, runImages } from '../run/images.js';
import type { ClassificationResult } from './result.js';
import { type Labelled, labelledImages } from './truth.js';

export const classifierOptions = {
  /** TSV of file name and label, without a header: a class by its number, or by its name where `labels` has the names. */
  truth: needed(is.text, {
    flags: '--truth <file>',
    describe: 'TSV of file name and label: the number of a class, or its name with --labels',
    required: '--truth FILE',
  }),
  ...labelledOptions,
  ...imageRequestOptions,
  /** So many images of the truth may have no file, or one that cannot be read; they are left out. */
  allowMissing: {
    ...allowMissing,
    describe: 'this many images may have no file, or one that cannot be read; they are left out',
  },
  /** So many images, the first by their names; default: all. */
  maxImages: optional(is.whole(1)),
};

export interface ClassifierRequest extends OptionsOf<typeof classifierOptions> {}

const TASK = { id: 'classify', revision: 2 } as const;
const MOST_CONFUSIONS = 50;

/** An evaluation with its data read and checked. */
interface DecidedClassifier {
  readonly names: readonly string[] | undefined;
  readonly images: readonly Labelled[];
  readonly findings: Findings;
}

/** Reads truth and labels, and finds the images. Throws TF_EVAL_DATA. */
export function decideClassifier(request: ClassifierRequest): DecidedClassifier {
  const findings = new Findings(request.allowMissing);
  const names = readLabelsBeside(request, findings);
  return { names, images: labelledImages(request, names, findings), findings };
}

/**
 * Runs a classifier over labelled images: top-1, top-5 and what was taken for what. Errors: TF_EVAL_DATA (truth, labels beyond the classes, images that are missing or cannot be read),
 * TF_EVAL_HEAD (an output that is not one score a class, scores that are no numbers), TF_SESSION_BINDING, and what opening and running throw.
 */
export async function evaluateClassifier(
  request: ClassifierRequest,
  work: WorkContext = {},
): Promise<ClassificationResult> {
  assertWithin(classifierOptions, request);
  const { names, images: found, findings } = decideClassifier(request);
  const images: Labelled[] = [];
  const best: Int32Array[] = [];
  const { candidate, result } = await inPhase('run samples', work.emit, () =>
    withCandidate(request.model, request.open, { ...work, preprocess: request.preprocess }, (session) => {
      const preprocessing = preprocessingFor(session, request.preprocess, request.imgsz);
      return runImages(
        session,
        found,
        { ...request, preprocessing, findings },
        work,
        ({ index }, outputs) => {
          images.push(found[index]!);
          best.push(fiveBest(scoresOf(outputs, names?.length)));
        },
      );
    }),
  );
  const classes = best[0]?.[0] ?? 0;
  assertLabelsWithin(classes, images, request.truth);
  const [top1, top5] = [hitShare(images, best, 1), hitShare(images, best, 5)];
  const dataDigest = sha256(images.map(({ id, label }) => `${id}\t${label}\n`).join(''));
  const settings = {
    preprocess: request.preprocess,
    width: result.preprocessing.width,
    height: result.preprocessing.height,
    images: result.imagesDigest,
  };
  const nameOf = (label: number) => names?.[label] ?? String(label);
  return {
    schema: 'trtforge.eval-classify/1',
    truth: request.truth,
    imagesDir: request.imagesDir,
    top1,
    top5,
    images: images.length,
    classes,
    perClass: perClassOf(images, best, nameOf),
    confusion: confusionOf(images, best, nameOf),
    dataDigest,
    comparabilityKey: taskIdentity(TASK, settings, images.length, dataDigest).comparabilityKey,
    metrics: [
      { name: 'top1', value: top1, unit: 'share', higherIsBetter: true },
      { name: 'top5', value: top5, unit: 'share', higherIsBetter: true },
    ],
    candidate,
    preprocess: request.preprocess,
    run: result,
    warnings: findings.warnings(),
  };
}

function scoresOf(
  outputs: ReadonlyMap<string, Parameters<typeof float32Values>[0]>,
  labels: number | undefined,
): Float32Array {
  const [entry, ...others] = [...outputs];
  const shape = entry?.[1].shape.filter((size) => size !== 1) ?? [];
  if (entry === undefined || others.length > 0 || shape.length !== 1)
    throw new TrtforgeError('TF_EVAL_HEAD', 'A classifier has one output with a score a class.', {
      details: { outputs: [...outputs].map(([name, { shape: dims }]) => ({ name, shape: dims })) },
    });
  const scores = float32Values(entry[1], entry[0]);
  if (labels !== undefined && labels !== scores.length)
    throw new TrtforgeError(
      'TF_EVAL_HEAD',
      `The model has ${scores.length} classes and --labels ${labels} names.`,
    );
  // -Infinity is a class that a model leaves out.
  if (scores.some((score) => Number.isNaN(score) || score === Number.POSITIVE_INFINITY))
    throw new TrtforgeError('TF_EVAL_HEAD', 'A score is not a finite number.', {
      remedy: 'Look for overflow: `trtforge verify` names outputs with NaN or infinities.',
    });
  return scores;
}

/** The number of classes, then the indices of the five highest scores; equal ones in their order. */
function fiveBest(scores: Float32Array): Int32Array {
  const order = Array.from(scores.keys()).sort((a, b) => scores[b]! - scores[a]! || a - b);
  return Int32Array.of(scores.length, ...order.slice(0, 5));
}

/** Throws TF_EVAL_DATA for a label that the model has no class for. */
function assertLabelsWithin(classes: number, images: readonly Labelled[], truth: string): void {
  const outside = images.find(({ label }) => label >= classes);
  if (outside === undefined) return;
  throw new TrtforgeError(
    'TF_EVAL_DATA',
    `${truth} has the label ${outside.label} (${outside.id}); the model has ${classes} classes.`,
    { remedy: 'Use the truth of the data set that the model was trained for.' },
  );
}

/** The share of images whose label is among so many of their highest scores. */
const hitShare = (images: readonly Labelled[], best: readonly Int32Array[], count: number): number =>
  images.filter(({ label }, at) => best[at]!.subarray(1, 1 + count).includes(label)).length / images.length;

function perClassOf(
  images: readonly Labelled[],
  best: readonly Int32Array[],
  nameOf: (label: number) => string,
) {
  const counts = new Map<number, { images: number; hits: number }>();
  images.forEach(({ label }, at) => {
    const count = counts.get(label) ?? { images: 0, hits: 0 };
    counts.set(label, count);
    count.images++;
    if (best[at]![1] === label) count.hits++;
  });
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([label, count]) => ({
      label: nameOf(label),
      images: count.images,
      top1: count.hits / count.images,
    }));
}

function confusionOf(
  images: readonly Labelled[],
  best: readonly Int32Array[],
  nameOf: (label: number) => string,
) {
  const pairs = new Map<string, { label: string; taken: string; count: number }>();
  images.forEach(({ label }, at) => {
    const taken = best[at]![1]!;
    if (taken === label) return;
    const pair = pairs.get(`${label} ${taken}`) ?? { label: nameOf(label), taken: nameOf(taken), count: 0 };
    pairs.set(`${label} ${taken}`, pair);
    pair.count++;
  });
  return [...pairs.values()].sort((a, b) => b.count - a.count).slice(0, MOST_CONFUSIONS);
}
