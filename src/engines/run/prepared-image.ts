import { readImage } from '../../formats/images/image.js';
import {
  channelsLast,
  type Placement,
  type Preprocessing,
  preprocess,
} from '../../formats/images/preprocess.js';
import type { ImageLayout } from '../../formats/onnx/image-layout.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { float32Values, floatTensor, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';

/** The one image input of a network. */
export interface ImageInput {
  readonly name: string;
  readonly dtype: Dtype;
  readonly layout: ImageLayout['layout'];
  /** null where the model leaves it open. */
  readonly width: number | null;
  readonly height: number | null;
}

/** An image as a network takes it. */
export interface PreparedImage {
  /** In float32, whatever the input is. */
  readonly tensor: Tensor;
  readonly inputs: NamedTensors;
  /** Of the image, in pixels. */
  readonly width: number;
  readonly height: number;
  /** EXIF orientation by which it was turned; 1: not at all. */
  readonly orientation: number;
  /** SHA-256 of the file. */
  readonly sha256: string;
  readonly placement: Placement;
  /** Preparing without decoding. */
  readonly ms: number;
}

/** Throws what reading an image throws. */
export async function prepareImage(
  path: string,
  input: ImageInput,
  preprocessing: Preprocessing,
): Promise<PreparedImage> {
  const image = await readImage(path);
  const started = performance.now();
  const { tensor: planes, placement } = preprocess(image, preprocessing);
  const tensor = input.layout === 'NHWC' ? channelsLast(planes) : planes;
  const ms = performance.now() - started;
  const fed =
    input.dtype === 'float32'
      ? tensor
      : floatTensor(input.dtype as 'float16', tensor.shape, float32Values(tensor));
  const { width, height, orientation, sha256 } = image;
  const inputs = new Map([[input.name, fed]]);
  return { tensor, inputs, width, height, orientation, sha256, placement, ms };
}
