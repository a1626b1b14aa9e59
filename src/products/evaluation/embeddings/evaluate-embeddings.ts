import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { listFolder } from '../../../base/files/files.js';
import * as is from '../../../base/options/kinds.js';
import { assertWithin } from '../../../base/options/library-arguments.js';
import { needed, type OptionsOf } from '../../../base/options/option.js';
import { meanOf } from '../../../base/statistics.js';
import type { OpenOptions } from '../../../engines/runtime/back-end.js';
import { ExitCode, TrtforgeError } from '../../../errors.js';
import { inPhase, type WorkContext } from '../../../events.js';
import { float32Values } from '../../../formats/tensor/tensor.js';
import { taskIdentity } from '../../../quality/tasks/task.js';
import { Findings } from '../findings.js';
import { embeddingOptions, imageRequestOptions } from '../options.js';
import { type Candidate, withCandidate } from '../run/candidate.js';
import { type ImageFile, type ImageRun, preprocessingFor, runImages } from '../run/images.js';
import type { EmbeddingsResult } from './result.js';

export const embeddingsOptions = {
  candidate: needed(is.text),
  reference: needed(is.text, {
    flags: '--against <model>',
    describe: 'the reference: usually the FP32 model with the same weights',
    required: '--against MODEL',
  }),
  ...imageRequestOptions,
  ...embeddingOptions,
};

export interface EmbeddingsRequest extends OptionsOf<typeof embeddingsOptions> {}

const TASK = { id: 'embeddings', revision: 2 } as const;
/** Below it two networks do not agree at all: rounding never does that. */
const UNRELATED = 0.5;
/** Of a length from 1, for a vector that the network normalised. */
const UNIT = 0.01;
/** Images that the result names as the worst. */
const MOST_WORST = 5;

/**
 * Runs two networks over the same images and compares their embeddings. Errors: TF_EVAL_DATA (no image, all that cannot be read), TF_EVAL_HEAD (an output that is not one vector,
 * vectors of different length, of zeros or without numbers), TF_SESSION_BINDING, and what opening and running throw.
 */
export async function evaluateEmbeddings(
  request: EmbeddingsRequest,
  work: WorkContext = {},
): Promise<EmbeddingsResult> {
  assertWithin(embeddingsOptions, request);
  const images = embeddedImages(request);
  const run = (role: 'reference' | 'candidate', open: OpenOptions) =>
    inPhase(`run ${role}`, work.emit, () => embed(request[role], open, images, request, work));
  // Options of engines are the candidate's; the reference is a model as a rule, which has none of them.
  const reference = await run('reference', {});
  const candidate = await run('candidate', request.open);
  assertSameForm(reference, candidate);
  const { cosines, cosine, distance, norms } = compareVectors(reference.vectors, candidate.vectors);
  const reason = failureOf(request, cosine, distance);
  const dataDigest = createHash('sha256')
    .update(images.map(({ id }) => `${id}\n`).join(''))
    .update(reference.run.firstInput.sha256)
    .digest('hex');
  const settings = {
    preprocess: request.preprocess,
    size: candidate.size,
    images: reference.run.imagesDigest,
    reference: reference.network.sha256,
  };
  const { minMeanCosine, minCosine, maxMeanL2 } = request;
  return {
    schema: 'trtforge.eval-embeddings/1',
    n_samples: images.length,
    cosine_similarity: cosine,
    l2_distance: distance,
    norms,
    timing: timingOf(reference.run, candidate.run),
    validation: { passed: reason === null, failure_reason: reason },
    dimensions: dimensionsOf(reference),
    worst: furthestApart(images, cosines),
    limits: { minMeanCosine, minCosine, maxMeanL2 },
    dataDigest,
    comparabilityKey: taskIdentity(TASK, settings, images.length, dataDigest).comparabilityKey,
    metrics: [
      { name: 'meanCosine', value: cosine.mean, unit: 'cosine', higherIsBetter: true },
      { name: 'minCosine', value: cosine.min, unit: 'cosine', higherIsBetter: true },
      { name: 'meanL2', value: distance.mean, unit: 'distance', higherIsBetter: false },
    ],
    reference: reference.network,
    candidate: candidate.network,
    preprocess: request.preprocess,
    runs: { reference: reference.run, candidate: candidate.run },
    warnings: normWarnings(norms.reference, norms.candidate),
    exitCode: reason === null ? ExitCode.pass : ExitCode.failed,
  };
}

/** The images of the folder, in the order of their names. Throws TF_EVAL_DATA where there is none. */
function embeddedImages({
  imagesDir,
  maxImages,
}: Pick<EmbeddingsRequest, 'imagesDir' | 'maxImages'>): readonly ImageFile[] {
  const names = listFolder(imagesDir).filter((name) => /\.(?:jpe?g|png|webp)$/i.test(name));
  if (names.length === 0)
    throw new TrtforgeError('TF_EVAL_DATA', `${imagesDir} has no JPEG, PNG or WebP image.`);
  return names
    .sort()
    .slice(0, maxImages)
    .map((name) => ({ id: name, path: join(imagesDir, name) }));
}

/** A network, and the vectors that it makes of the images, in their order. */
interface EmbeddedImages {
  readonly network: Candidate;
  readonly run: ImageRun;
  readonly vectors: readonly Float32Array[];
  /** Width and height of its input in pixels, `112x112`. */
  readonly size: string;
}

/** Runs one network over all images. Throws TF_EVAL_DATA, TF_EVAL_HEAD, TF_SESSION_BINDING, and what opening and running throw. */
async function embed(
  file: string,
  open: OpenOptions,
  images: readonly ImageFile[],
  request: EmbeddingsRequest,
  work: WorkContext,
): Promise<EmbeddedImages> {
  const { preprocess, imgsz } = request;
  const { candidate, result } = await withCandidate(file, open, { ...work, preprocess }, async (session) => {
    const preprocessing = preprocessingFor(session, preprocess, imgsz);
    const vectors: Float32Array[] = [];
    const run = await runImages(
      session,
      images,
      { ...request, preprocessing, findings: new Findings(null) },
      work,
      ({ image }, outputs) => {
        vectors.push(vectorOf(outputs, image, file));
      },
    );
    return { run, vectors, size: `${preprocessing.width}x${preprocessing.height}` };
  });
  return { network: candidate, ...result };
}

const dimensionsOf = ({ vectors }: EmbeddedImages): number => vectors[0]!.length;

/** Throws TF_EVAL_HEAD for networks that differ in the size of their images or in the length of their vectors. */
function assertSameForm(reference: EmbeddedImages, candidate: EmbeddedImages): void {
  if (reference.size === candidate.size && dimensionsOf(reference) === dimensionsOf(candidate)) return;
  const formOf = (side: EmbeddedImages) => `of ${dimensionsOf(side)} from ${side.size}`;
  throw new TrtforgeError(
    'TF_EVAL_HEAD',
    `${reference.network.file} makes vectors ${formOf(reference)}, ${candidate.network.file} ${formOf(candidate)}.`,
    { remedy: 'Compare networks with the same input and output.' },
  );
}

function vectorOf(
  outputs: ReadonlyMap<string, Parameters<typeof float32Values>[0]>,
  { id }: ImageFile,
  file: string,
): Float32Array {
  const [entry, ...others] = [...outputs];
  if (entry === undefined || others.length > 0 || entry[1].shape.filter((size) => size !== 1).length !== 1)
    throw new TrtforgeError('TF_EVAL_HEAD', `${file} does not have one output with one vector.`, {
      details: { outputs: [...outputs].map(([name, { shape }]) => ({ name, shape })) },
    });
  const vector = Float32Array.from(float32Values(entry[1], entry[0]));
  const length = lengthOf(vector);
  if (length > 0 && Number.isFinite(length)) return vector;
  throw new TrtforgeError(
    'TF_EVAL_HEAD',
    `${file} makes ${length === 0 ? 'a vector of zeros' : 'values that are NaN or infinite'} of ${id}: it cannot be compared.`,
    { remedy: 'Look for overflow with `trtforge verify`, and at the preparation of images (--preprocess).' },
  );
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at]! * b[at]!;
  return sum;
}

const lengthOf = (vector: Float32Array): number => Math.sqrt(dot(vector, vector));

const spreadOf = (values: readonly number[]) => {
  const mean = meanOf(values);
  return {
    mean,
    std: Math.sqrt(meanOf(values.map((value) => (value - mean) ** 2))),
    min: values.reduce((a, b) => Math.min(a, b)),
    max: values.reduce((a, b) => Math.max(a, b)),
  };
};

type Spread = ReturnType<typeof spreadOf>;

const isUnit = ({ min, max }: Spread): boolean => Math.abs(min - 1) < UNIT && Math.abs(max - 1) < UNIT;

/** Of the lengths of vectors: a warning where one network alone makes them 1. */
function normWarnings(reference: Spread, candidate: Spread): string[] {
  if (isUnit(reference) === isUnit(candidate)) return [];
  const lengths = `lengths ${reference.mean.toPrecision(3)} and ${candidate.mean.toPrecision(3)}`;
  return [
    `One network normalises its embeddings and the other does not: ${lengths}. Distances are of vectors made length 1.`,
  ];
}

/** Vectors of the same images, image by image; distances are of vectors made length 1. */
function compareVectors(reference: readonly Float32Array[], candidate: readonly Float32Array[]) {
  const lengths = { reference: reference.map(lengthOf), candidate: candidate.map(lengthOf) };
  const cosines = reference.map((vector, at) =>
    Math.min(1, dot(vector, candidate[at]!) / (lengths.reference[at]! * lengths.candidate[at]!)),
  );
  const distances = cosines.map((cosine) => Math.sqrt(Math.max(0, 2 * (1 - cosine))));
  return {
    cosines,
    cosine: spreadOf(cosines),
    distance: spreadOf(distances),
    norms: { reference: spreadOf(lengths.reference), candidate: spreadOf(lengths.candidate) },
  };
}

/** Medians of single runs in milliseconds; null where every time was skipped. */
function timingOf(reference: ImageRun, candidate: ImageRun): EmbeddingsResult['timing'] {
  const referenceMs = reference.latency?.median_ms ?? null;
  const candidateMs = candidate.latency?.median_ms ?? null;
  const speedup = referenceMs === null || candidateMs === null ? null : referenceMs / candidateMs;
  return { reference_ms: referenceMs, candidate_ms: candidateMs, speedup };
}

/** The images with the lowest cosines, the lowest first. */
const furthestApart = (images: readonly ImageFile[], cosines: readonly number[]): EmbeddingsResult['worst'] =>
  images
    .map(({ id }, at) => ({ image: String(id), cosine: cosines[at]! }))
    .sort((a, b) => a.cosine - b.cosine)
    .slice(0, MOST_WORST);

function failureOf(
  { minMeanCosine, minCosine, maxMeanL2 }: EmbeddingsRequest,
  cosine: Spread,
  distance: Spread,
): string | null {
  const over: string[] = [];
  if (cosine.mean < minMeanCosine)
    over.push(`mean cosine ${cosine.mean.toFixed(6)} is below ${minMeanCosine}`);
  if (cosine.min < minCosine) over.push(`lowest cosine ${cosine.min.toFixed(6)} is below ${minCosine}`);
  if (distance.mean > maxMeanL2) over.push(`mean L2 ${distance.mean.toFixed(6)} is above ${maxMeanL2}`);
  if (over.length === 0) return null;
  const unrelated = 'rounding does not cause that: compare weights (`sha256`) and preparation (--preprocess)';
  return cosine.mean < UNRELATED ? `${over.join('; ')}; ${unrelated}` : over.join('; ');
}
