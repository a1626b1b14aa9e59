import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { sha256 } from '../../../base/files/digest.js';
import type { OpenedSession, OpenOptions } from '../../../engines/runtime/back-end.js';
import type { Binding } from '../../../engines/runtime/session.js';
import { TrtforgeError } from '../../../errors.js';
import { readImage } from '../../../formats/images/image.js';
import {
  type Placement,
  type Preprocessing,
  preprocess,
  preprocessings,
} from '../../../formats/images/preprocess.js';
import type { Dtype } from '../../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { float32Values, floatTensor } from '../../../formats/tensor/values.js';
import type { Sample, TaskContext } from '../../../quality/tasks/task.js';
import { type EvaluateOptions, evaluate, latencySchema } from './evaluate.js';

export interface ImageFile {
  readonly id: number | string;
  readonly path: string;
}

/** What every evaluation over images takes. */
export interface ImageRequest {
  readonly imagesDir: string;
  /** How images are prepared, by its name. */
  readonly preprocess: string;
  /** Width and height of the input where the model leaves them open. */
  readonly imgsz: number;
  readonly warmupRuns: number;
  readonly skipLatency: number;
  readonly open: OpenOptions;
}

interface ImageRunOptions extends Pick<EvaluateOptions<Sample>, 'warmUpRuns' | 'skipLatency'> {
  readonly preprocessing: Preprocessing;
}

export const imageRunSchema = z.object({
  images: z.number(),
  preprocessing: z.record(z.string(), z.unknown()),
  /** SHA-256 of the float32 input tensor of the first image, so that two tools can be compared. */
  firstInput: z.object({ id: z.union([z.number(), z.string()]), sha256: z.string() }),
  latency: latencySchema,
  /** From the first image to the last result: decoding, preparing, running, scoring. */
  imagesPerSecond: z.number(),
  /** Mean processor time for preparing one image; images are decoded beside the runs. */
  preprocessMs: z.number(),
});
export type ImageRun = z.infer<typeof imageRunSchema>;

interface Prepared {
  readonly tensor: Tensor;
  readonly width: number;
  readonly height: number;
  readonly placement: Placement;
  readonly ms: number;
}

/** The one image input of a network. */
interface ImageInput {
  readonly name: string;
  readonly dtype: Dtype;
  /** null where the model leaves it open. */
  readonly width: number | null;
  readonly height: number | null;
}

/** Finds the input that takes images. Throws TF_SESSION_BINDING where there is not exactly one of shape [1, 3, height, width] of floats. */
function imageInput(session: OpenedSession): ImageInput {
  const reject = (why: string) =>
    new TrtforgeError('TF_SESSION_BINDING', `${session.backend} cannot be run on images: ${why}.`, {
      remedy: 'Evaluation takes networks with one float input [1, 3, height, width].',
      details: { inputs: session.inputs },
    });
  const [input, ...others] = session.inputs;
  if (input === undefined || others.length > 0) throw reject(`it has ${session.inputs.length} inputs`);
  const shape = input.shape;
  if (shape?.length !== 4) throw reject(`${input.name} does not have 4 dimensions`);
  const [batch, channels] = shape;
  if (typeof batch === 'number' && batch > 1) throw reject(`its batch is fixed at ${batch}`);
  if (typeof channels === 'number' && channels !== 3) throw reject(`${input.name} has ${channels} channels`);
  if (input.dtype !== 'float32' && input.dtype !== 'float16' && input.dtype !== 'bfloat16')
    throw reject(`${input.name} is ${input.dtype}`);
  const size = (dim: Exclude<Binding['shape'], null>[number] | undefined) =>
    typeof dim === 'number' && dim > 0 ? dim : null;
  return { name: input.name, dtype: input.dtype, height: size(shape[2]), width: size(shape[3]) };
}

/** How images are prepared for a network, at its own size or, where it leaves that open, at `imgsz` pixels. */
export function preprocessingFor(session: OpenedSession, name: string, imgsz: number): Preprocessing {
  const input = imageInput(session);
  const size = { width: input.width ?? imgsz, height: input.height ?? imgsz };
  const how = preprocessings[name]!;
  // The shorter side keeps its ratio to the cut, 256 to 224.
  return how.fit === 'crop'
    ? { ...how, ...size, shorterSide: Math.round((Math.min(size.width, size.height) * 8) / 7) }
    : { ...how, ...size };
}

/** An image as a sample: nothing is expected of it but what the caller knows by its index. */
export interface ImageSample extends Sample {
  readonly image: ImageFile;
  /** Of the image, in pixels. */
  readonly width: number;
  readonly height: number;
  readonly placement: Placement;
}

/** The samples, and what is known of them once they were taken. */
export interface ImageSamples {
  readonly samples: AsyncIterable<ImageSample>;
  readonly total: number;
  facts(): Pick<ImageRun, 'preprocessing' | 'firstInput' | 'preprocessMs'>;
}

/** Images as a network takes them, in their order; the next ones are decoded while one runs. Iterating throws what reading an image throws. */
export function imageSamples(
  session: OpenedSession,
  images: readonly ImageFile[],
  preprocessing: Preprocessing,
): ImageSamples {
  const input = imageInput(session);
  const prepare = async ({ path }: ImageFile): Promise<Prepared> => {
    const image = await readImage(path);
    const started = performance.now();
    const { tensor, placement } = preprocess(image, preprocessing);
    return { tensor, placement, width: image.width, height: image.height, ms: performance.now() - started };
  };
  let firstInput: ImageRun['firstInput'] | undefined;
  let preprocessMs = 0;
  async function* samples(): AsyncIterable<ImageSample> {
    const start = (image: ImageFile) => {
      const preparing = prepare(image);
      // A later image's failure is reported when its turn comes, not as an unhandled rejection before.
      preparing.catch(() => {});
      return preparing;
    };
    const ahead = images.slice(0, 2 * availableParallelism()).map(start);
    for (const [index, image] of images.entries()) {
      const { tensor, ms, ...facts } = await ahead.shift()!;
      const next = images[index + 1 + ahead.length];
      if (next !== undefined) ahead.push(start(next));
      firstInput ??= { id: image.id, sha256: sha256(tensor.bytes) };
      preprocessMs += ms;
      const fed =
        input.dtype === 'float32'
          ? tensor
          : floatTensor(input.dtype as 'float16', tensor.shape, float32Values(tensor));
      yield { index, image, ...facts, inputs: new Map([[input.name, fed]]), reference: new Map() };
    }
  }
  return {
    samples: samples(),
    total: images.length,
    facts: () => ({
      preprocessing: { ...preprocessing },
      firstInput: firstInput!,
      preprocessMs: preprocessMs / images.length,
    }),
  };
}

/** Runs images one after another in their order. Throws what `evaluate` throws. */
export async function runImages(
  session: OpenedSession,
  images: readonly ImageFile[],
  { preprocessing, ...pace }: ImageRunOptions,
  context: TaskContext,
  take: (sample: ImageSample, outputs: NamedTensors) => void,
): Promise<ImageRun> {
  const { samples, total, facts } = imageSamples(session, images, preprocessing);
  const { run } = await evaluate({ take, result: () => undefined }, session, {
    samples,
    total,
    ...pace,
    ...context,
  });
  return {
    images: run.samples,
    latency: run.latency,
    imagesPerSecond: run.samplesPerSecond,
    ...facts(),
  };
}
