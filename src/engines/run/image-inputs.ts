import { availableParallelism } from 'node:os';
import { TrtforgeError } from '../../errors.js';
import { readImage } from '../../formats/images/image.js';
import {
  type Placement,
  type Preprocessing,
  preprocess,
  preprocessings,
} from '../../formats/images/preprocess.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { float32Values, floatTensor } from '../../formats/tensor/values.js';
import type { Binding } from '../runtime/session.js';

/** The one image input of a network. */
interface ImageInput {
  readonly name: string;
  readonly dtype: Dtype;
  /** null where the model leaves it open. */
  readonly width: number | null;
  readonly height: number | null;
}

/** Finds the input that takes images. Throws TF_SESSION_BINDING where there is not exactly one of shape [1, 3, height, width] of floats. */
function imageInput(inputs: readonly Binding[]): ImageInput {
  const reject = (why: string) =>
    new TrtforgeError('TF_SESSION_BINDING', `The network cannot be run on images: ${why}.`, {
      remedy: 'Images are for networks with one float input [1, 3, height, width].',
      details: { inputs },
    });
  const [input, ...others] = inputs;
  if (input === undefined || others.length > 0) throw reject(`it has ${inputs.length} inputs`);
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

/** How images are prepared for a network with these inputs, at its own size or, where it leaves that open, at `imgsz` pixels. */
export function preprocessingOf(inputs: readonly Binding[], name: string, imgsz: number): Preprocessing {
  const input = imageInput(inputs);
  const size = { width: input.width ?? imgsz, height: input.height ?? imgsz };
  const how = preprocessings[name]!;
  // The shorter side keeps its ratio to the cut, 256 to 224.
  return how.fit === 'crop'
    ? { ...how, ...size, shorterSide: Math.round((Math.min(size.width, size.height) * 8) / 7) }
    : { ...how, ...size };
}

/** An image as a network takes it. */
export interface PreparedImage {
  /** In float32, whatever the input is. */
  readonly tensor: Tensor;
  readonly inputs: NamedTensors;
  /** Of the image, in pixels. */
  readonly width: number;
  readonly height: number;
  readonly placement: Placement;
  /** Preparing without decoding. */
  readonly ms: number;
}

/** Images in their order; the next ones are decoded while one is used. Iterating throws what reading an image throws. */
export async function* preparedImages(
  inputs: readonly Binding[],
  paths: readonly string[],
  preprocessing: Preprocessing,
): AsyncIterable<PreparedImage> {
  const input = imageInput(inputs);
  const start = (path: string) => {
    const preparing = prepare(path, input, preprocessing);
    // A later image's failure is reported when its turn comes, not as an unhandled rejection before.
    preparing.catch(() => {});
    return preparing;
  };
  const ahead = paths.slice(0, 2 * availableParallelism()).map(start);
  for (let index = 0; index < paths.length; index++) {
    const prepared = await ahead.shift()!;
    const next = paths[index + 1 + ahead.length];
    if (next !== undefined) ahead.push(start(next));
    yield prepared;
  }
}

async function prepare(
  path: string,
  input: ImageInput,
  preprocessing: Preprocessing,
): Promise<PreparedImage> {
  const image = await readImage(path);
  const started = performance.now();
  const { tensor, placement } = preprocess(image, preprocessing);
  const ms = performance.now() - started;
  const fed =
    input.dtype === 'float32'
      ? tensor
      : floatTensor(input.dtype as 'float16', tensor.shape, float32Values(tensor));
  const { width, height } = image;
  return { tensor, inputs: new Map([[input.name, fed]]), width, height, placement, ms };
}
