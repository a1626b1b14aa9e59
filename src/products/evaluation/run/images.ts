import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { sha256 } from '../../../base/files/digest.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { meanOf, quantile } from '../../../base/statistics.js';
import type { OpenedSession, OpenOptions } from '../../../engines/runtime/back-end.js';
import type { Binding } from '../../../engines/runtime/session.js';
import { TrtforgeError } from '../../../errors.js';
import type { EventListener } from '../../../events.js';
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

export interface ImageRunOptions {
  readonly preprocessing: Preprocessing;
  /** Untimed runs of the first image before the others. */
  readonly warmUpRuns: number;
  /** So many of the first times are not in the latency. */
  readonly skipLatency: number;
}

export const imageRunSchema = z.object({
  images: z.number(),
  preprocessing: z.record(z.string(), z.unknown()),
  /** SHA-256 of the float32 input tensor of the first image, so that two tools can be compared. */
  firstInput: z.object({ id: z.union([z.number(), z.string()]), sha256: z.string() }),
  /** Of runs alone, from host memory to host memory; null where every time was skipped. `throughput_fps` is 1000 / mean_ms. */
  latency: z
    .object({
      mean_ms: z.number(),
      median_ms: z.number(),
      p90_ms: z.number(),
      throughput_fps: z.number(),
      count: z.number(),
    })
    .nullable(),
  /** From the first image to the last result: decoding, preparing, running, scoring. */
  imagesPerSecond: z.number(),
  /** Mean processor time for preparing one image; images are decoded beside the runs. */
  preprocessMs: z.number(),
});
export type ImageRun = z.infer<typeof imageRunSchema>;

export interface ImageOutputs {
  readonly index: number;
  readonly image: ImageFile;
  readonly width: number;
  readonly height: number;
  readonly placement: Placement;
  readonly outputs: NamedTensors;
}

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

/**
 * Runs images one after another in their order, while the next ones are decoded. `take` is awaited before the next result. Throws what reading an image, a
 * run, or `take` throws, TF_CANCELLED.
 */
export async function runImages(
  session: OpenedSession,
  images: readonly ImageFile[],
  { preprocessing, warmUpRuns, skipLatency }: ImageRunOptions,
  { emit, signal }: { readonly emit: EventListener; readonly signal?: AbortSignal },
  take: (result: ImageOutputs) => Promise<void> | void,
): Promise<ImageRun> {
  const input = imageInput(session);
  const prepare = async ({ path }: ImageFile): Promise<Prepared> => {
    const image = await readImage(path);
    const started = performance.now();
    const { tensor, placement } = preprocess(image, preprocessing);
    return { tensor, placement, width: image.width, height: image.height, ms: performance.now() - started };
  };
  const run = async (tensor: Tensor) => {
    const fed =
      input.dtype === 'float32'
        ? tensor
        : floatTensor(input.dtype as 'float16', tensor.shape, float32Values(tensor));
    return session.runRepeatedly(new Map([[input.name, fed]]), { iterations: 1, signal });
  };
  const ahead = images.slice(0, 2 * availableParallelism()).map(prepare);
  // A later image's failure is reported when its turn comes, not as an unhandled rejection before.
  for (const each of ahead) each.catch(() => {});
  const times: number[] = [];
  let firstInput: ImageRun['firstInput'] | undefined;
  let preprocessMs = 0;
  let started = performance.now();
  for (const [index, image] of images.entries()) {
    throwIfCancelled(signal, 'running images');
    const { tensor, ms, ...facts } = await ahead[index]!;
    ahead[index] = undefined as never;
    const next = images[ahead.length];
    if (next !== undefined) {
      const preparing = prepare(next);
      preparing.catch(() => {});
      ahead.push(preparing);
    }
    if (firstInput === undefined) {
      firstInput = { id: image.id, sha256: sha256(tensor.bytes) };
      for (let warmUp = 0; warmUp < warmUpRuns; warmUp++) await run(tensor);
      started = performance.now();
    }
    const { outputs, ms: runMs } = await run(tensor);
    times.push(runMs[0]!);
    preprocessMs += ms;
    await take({ index, image, ...facts, outputs });
    emit({ type: 'progress', phase: 'run images', done: index + 1, total: images.length });
  }
  const seconds = (performance.now() - started) / 1000;
  return {
    images: images.length,
    preprocessing: { ...preprocessing },
    firstInput: firstInput!,
    latency: latencyOf(times.slice(skipLatency)),
    imagesPerSecond: images.length / seconds,
    preprocessMs: preprocessMs / images.length,
  };
}

function latencyOf(times: readonly number[]): ImageRun['latency'] {
  if (times.length === 0) return null;
  const sorted = Float64Array.from(times).sort();
  const mean = meanOf(sorted);
  return {
    mean_ms: mean,
    median_ms: quantile(sorted, 0.5),
    p90_ms: quantile(sorted, 0.9),
    throughput_fps: 1000 / mean,
    count: times.length,
  };
}
