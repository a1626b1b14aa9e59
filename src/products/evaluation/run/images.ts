import { z } from 'zod';
import { sha256 } from '../../../base/files/digest.js';
import { preparedImages, preprocessingOf } from '../../../engines/run/image-inputs.js';
import type { OpenedSession } from '../../../engines/runtime/back-end.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import type { Placement, Preprocessing } from '../../../formats/images/preprocess.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import type { Sample } from '../../../quality/tasks/task.js';
import type { Findings } from '../findings.js';
import type { ImageRequest } from '../options.js';
import { evaluate, latencySchema, memorySchema } from './evaluate.js';

export interface ImageFile {
  readonly id: number | string;
  readonly path: string;
}

/** Takes an image whose file cannot be read. `false`: the result is lost, so the others are only read, and not run. */
type TakeUnreadable = (image: ImageFile, error: TrtforgeError) => boolean;

interface ImageRunOptions extends Pick<ImageRequest, 'imagesDir' | 'warmupRuns' | 'skipLatency'> {
  readonly preprocessing: Preprocessing;
  /** Take the images that cannot be read. */
  readonly findings: Findings;
}

export const imageRunSchema = z.object({
  images: z.number(),
  preprocessing: z.record(z.string(), z.unknown()),
  /** SHA-256 over the SHA-256 of each file, in the order of the images. */
  imagesDigest: z.string(),
  /** SHA-256 of the float32 input tensor of the first image, so that two tools can be compared. */
  firstInput: z.object({ id: z.union([z.number(), z.string()]), sha256: z.string() }),
  latency: latencySchema,
  memory: memorySchema,
  /** From the first prepared image to the last detections or vectors: without loading the network, and without scoring. */
  imagesPerSecond: z.number(),
  /** Mean time to resize and normalise one image, after decoding; both happen beside the runs. */
  preprocessMs: z.number(),
});
export type ImageRun = z.infer<typeof imageRunSchema>;

/** The preparation of images for a network, at its own size or, where it leaves that open, at `imgsz` pixels. */
export const preprocessingFor = (session: OpenedSession, name: string, imgsz: number): Preprocessing =>
  preprocessingOf(session.inputs, name, imgsz);

/** An image as a sample: nothing is expected of it but what the caller knows by its index. */
export interface ImageSample extends Sample {
  readonly image: ImageFile;
  /** Of the image, in pixels. */
  readonly width: number;
  readonly height: number;
  /** EXIF orientation by which it was turned; 1: not at all. */
  readonly orientation: number;
  readonly placement: Placement;
}

/** The samples, and what is known of them once they were taken. */
export interface ImageSamples {
  readonly samples: AsyncIterable<ImageSample>;
  readonly total: number;
  facts(): Pick<ImageRun, 'preprocessing' | 'imagesDigest' | 'firstInput' | 'preprocessMs'>;
}

/**
 * Images as a network takes them, in their order; the next ones are decoded while one runs. Iterating throws what reading an image throws, unless
 * `unreadable` takes it.
 */
export function imageSamples(
  session: OpenedSession,
  images: readonly ImageFile[],
  preprocessing: Preprocessing,
  unreadable?: TakeUnreadable,
): ImageSamples {
  let firstInput: ImageRun['firstInput'] | undefined;
  let preprocessMs = 0;
  const digests: string[] = [];
  async function* samples(): AsyncIterable<ImageSample> {
    const paths = images.map(({ path }) => path);
    let isLost = false;
    const take =
      unreadable &&
      ((index: number, error: TrtforgeError) => {
        if (!unreadable(images[index]!, error)) isLost = true;
      });
    for await (const prepared of preparedImages(session.inputs, paths, preprocessing, take)) {
      if (isLost) continue;
      const { tensor, ms, sha256: digest, ...facts } = prepared;
      const image = images[prepared.index]!;
      firstInput ??= { id: image.id, sha256: sha256(tensor.bytes) };
      digests.push(digest);
      preprocessMs += ms;
      yield { image, ...facts, reference: new Map() };
    }
  }
  return {
    samples: samples(),
    total: images.length,
    facts: () => ({
      preprocessing: { ...preprocessing },
      imagesDigest: sha256(digests.join('\n')),
      firstInput: firstInput!,
      preprocessMs: preprocessMs / Math.max(1, digests.length),
    }),
  };
}

/**
 * Runs images one after another in their order; `take` has the samples of those that could be read. Throws what `evaluate` throws, and TF_EVAL_DATA with all
 * images that cannot be read where the findings do not allow them, or where no image is left.
 */
export async function runImages(
  session: OpenedSession,
  images: readonly ImageFile[],
  { preprocessing, findings, imagesDir, warmupRuns, skipLatency }: ImageRunOptions,
  context: WorkContext,
  take: (sample: ImageSample, outputs: NamedTensors) => void,
): Promise<ImageRun> {
  const unreadable: TakeUnreadable = ({ id }, error) => {
    findings.addUnreadableFile(id, error);
    return findings.allowsMissing;
  };
  const { samples, total, facts } = imageSamples(session, images, preprocessing, unreadable);
  const { run } = await evaluate({ take, result: () => undefined }, session, {
    ...{ samples, total, warmUpRuns: warmupRuns, skipLatency },
    ...context,
  });
  findings.throwErrors(imagesDir);
  if (run.samples === 0)
    throw new TrtforgeError('TF_EVAL_DATA', `${imagesDir} has no image that can be read.`, {
      remedy: 'Check --images.',
    });
  return {
    images: run.samples,
    latency: run.latency,
    memory: run.memory,
    imagesPerSecond: run.samplesPerSecond,
    ...facts(),
  };
}
