import { TrtforgeError } from '../../errors.js';
import { type Preprocessing, preprocessings } from '../../formats/images/preprocess.js';
import { imageLayout } from '../../formats/onnx/image-layout.js';
import type { Binding } from '../runtime/session.js';
import { startImageThreads } from './image-pool.js';
import type { ImageInput, PreparedImage } from './prepared-image.js';

/** Finds the input that takes images. Throws TF_SESSION_BINDING where there is not exactly one of floats of shape [1, 3, height, width] or [1, height, width, 3]. */
function imageInput(inputs: readonly Binding[]): ImageInput {
  const reject = (why: string) =>
    new TrtforgeError('TF_SESSION_BINDING', `The network cannot be run on images: ${why}.`, {
      remedy: 'Images are for networks with one float input [1, 3, height, width] or [1, height, width, 3].',
      details: { inputs },
    });
  const [input, ...others] = inputs;
  if (input === undefined || others.length > 0) throw reject(`it has ${inputs.length} inputs`);
  const { shape } = input;
  const axes = imageLayout(shape);
  if (shape === null || axes === null) throw reject(`${input.name} does not have 4 dimensions`);
  const batch = shape[0];
  const channels = shape[axes.channels];
  if (typeof batch === 'number' && batch > 1) throw reject(`its batch is fixed at ${batch}`);
  if (typeof channels === 'number' && channels !== 3) throw reject(`${input.name} has ${channels} channels`);
  if (input.dtype !== 'float32' && input.dtype !== 'float16' && input.dtype !== 'bfloat16')
    throw reject(`${input.name} is ${input.dtype}`);
  const size = (dim: Exclude<Binding['shape'], null>[number] | undefined) =>
    typeof dim === 'number' && dim > 0 ? dim : null;
  return {
    name: input.name,
    dtype: input.dtype,
    layout: axes.layout,
    height: size(shape[axes.height]),
    width: size(shape[axes.width]),
  };
}

/** The preparation of images for a network with these inputs, at its own size or, where it leaves that open, at `imgsz` pixels. */
export function preprocessingOf(inputs: readonly Binding[], name: string, imgsz: number): Preprocessing {
  const input = imageInput(inputs);
  const size = { width: input.width ?? imgsz, height: input.height ?? imgsz };
  const how = preprocessings[name]!;
  // The shorter side keeps its ratio to the cut, 256 to 224.
  return how.fit === 'crop'
    ? { ...how, ...size, shorterSide: Math.round((Math.min(size.width, size.height) * 8) / 7) }
    : { ...how, ...size };
}

/** Errors of a file that cannot be read as an image. */
const unreadableCodes = new Set<string>(['TF_IMAGE_INVALID', 'TF_FILE_UNREADABLE', 'TF_FILE_NOT_FOUND']);

export const isUnreadable = (error: unknown): error is TrtforgeError =>
  error instanceof TrtforgeError && unreadableCodes.has(error.code);

/**
 * Images with their places, in order; the next ones are prepared on other threads while one is used. Iterating throws what reading an image throws, unless
 * `unreadable` takes it: then that image is left out.
 */
export async function* preparedImages(
  inputs: readonly Binding[],
  paths: readonly string[],
  preprocessing: Preprocessing,
  unreadable?: (index: number, error: TrtforgeError) => void,
): AsyncIterable<PreparedImage & { readonly index: number }> {
  const input = imageInput(inputs);
  if (paths.length === 0) return;
  const threads = await startImageThreads(input, preprocessing, paths.length);
  const orUndefined = (index: number) => (error: unknown) => {
    if (unreadable === undefined || !isUnreadable(error)) throw error;
    unreadable(index, error);
    return undefined;
  };
  try {
    const ahead = paths.slice(0, 2 * threads.count).map(threads.prepare);
    for (let index = 0; index < paths.length; index++) {
      const prepared = await ahead.shift()!.catch(orUndefined(index));
      const next = paths[index + 1 + ahead.length];
      if (next !== undefined) ahead.push(threads.prepare(next));
      if (prepared !== undefined) yield { ...prepared, index };
    }
  } finally {
    await threads.close();
  }
}
