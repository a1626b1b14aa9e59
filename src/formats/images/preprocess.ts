import * as is from '../../base/options/kinds.js';
import { optional } from '../../base/options/option.js';
import type { Tensor } from '../tensor/tensor.js';
import type { Image } from './image.js';
import { resizeAntialiased, resizeBilinear, roundHalfEven } from './resize.js';

/** The preparation of an image as the input of a network: part of what makes two scores comparable. */
export interface Preprocessing {
  /** For help texts. */
  readonly summary: string;
  readonly width: number;
  readonly height: number;
  /** `letterbox`: whole, proportions kept, padded; `stretch`: whole, proportions lost; `crop`: the shorter side to `shorterSide`, then the middle. */
  readonly fit: 'letterbox' | 'stretch' | 'crop';
  /** Value of the padding, 0 to 255. */
  readonly pad: number;
  /** A letterbox pads right and below alone, not on both sides. */
  readonly corner?: boolean;
  /** Only with `crop`. */
  readonly shorterSide?: number;
  /** A level is the mean of all pixels under it, as Pillow shrinks; else of the nearest four, as OpenCV. */
  readonly antialias?: boolean;
  readonly channels: 'rgb' | 'bgr';
  /** A value is (level / 255 - mean) / std, by channel in the order of `channels`. */
  readonly mean: readonly [number, number, number];
  readonly std: readonly [number, number, number];
}

const plain = { mean: [0, 0, 0], std: [1, 1, 1], channels: 'rgb', pad: 114 } as const;

/** Known ways, by the value of `--preprocess`; sizes are for models whose input leaves them open. */
export const preprocessings: Readonly<Record<string, Preprocessing>> = {
  /** Ultralytics' predict and auto-quantize-model's evaluators: letterbox on 114, divided by 255. */
  yolo: { ...plain, summary: 'letterbox on 114, divided by 255', fit: 'letterbox', width: 640, height: 640 },
  /** RT-DETR: stretched, divided by 255. */
  'rt-detr': { ...plain, summary: 'stretched, divided by 255', fit: 'stretch', width: 640, height: 640 },
  /** torchvision's classification of PIL images: shorter side 256, the middle 224, ImageNet's mean and deviation. */
  imagenet: {
    ...plain,
    summary: "torchvision's: shorter side 256, the middle 224, ImageNet's mean and deviation",
    antialias: true,
    fit: 'crop',
    width: 224,
    height: 224,
    shorterSide: 256,
    mean: [0.485, 0.456, 0.406],
    std: [0.229, 0.224, 0.225],
  },
  /** InsightFace's ArcFace on aligned faces: (level - 127.5) / 127.5. */
  arcface: {
    ...plain,
    summary: 'stretched, (level - 127.5) / 127.5',
    fit: 'stretch',
    width: 112,
    height: 112,
    mean: [0.5, 0.5, 0.5],
    std: [0.5, 0.5, 0.5],
  },
};

/** Options to prepare samples that are images as inputs. */
export const preparationOptions = {
  preprocess: optional(is.word<string>(), {
    flags: '--preprocess <name>',
    group: 'Inputs',
    describe: 'how images among the samples are prepared, as in evaluations',
    choices: Object.keys(preprocessings),
  }),
  imgsz: optional(is.whole(16, 8192), {
    flags: '--imgsz <pixels>',
    group: 'Inputs',
    describe: 'width and height of images where the model leaves them open (default: that of --preprocess)',
  }),
};

/** Where the image lies on the canvas: canvas = image * scale + offset. */
export interface Placement {
  readonly scaleX: number;
  readonly scaleY: number;
  readonly left: number;
  readonly top: number;
}

export interface NetworkInput {
  /** float32 `[1, 3, height, width]`. */
  readonly tensor: Tensor;
  readonly placement: Placement;
}

/** Resizes, places and normalises one image. A letterbox rounds half to even and puts the odd pixel of padding right and below, as Ultralytics does. */
export function preprocess(image: Image, how: Preprocessing): NetworkInput {
  const { width, height, fit } = how;
  const resize = how.antialias === true ? resizeAntialiased : resizeBilinear;
  if (fit === 'stretch') {
    const resized = resize(image, width, height);
    const placement = { scaleX: width / image.width, scaleY: height / image.height, left: 0, top: 0 };
    return { tensor: canvasTensor(resized, how, 0, 0), placement };
  }
  const shorter = Math.min(image.width, image.height);
  const target = how.shorterSide ?? Math.min(width, height);
  const scale = fit === 'letterbox' ? Math.min(width / image.width, height / image.height) : target / shorter;
  // torchvision cuts the longer side off where a letterbox rounds it.
  const sized = (side: number) =>
    fit === 'letterbox' ? roundHalfEven(side * scale) : Math.floor((target * side) / shorter);
  const resized = resize(image, Math.max(1, sized(image.width)), Math.max(1, sized(image.height)));
  const offset = (space: number) =>
    fit === 'letterbox' ? (how.corner === true ? 0 : Math.floor(space / 2)) : -roundHalfEven(-space / 2);
  const [left, top] = [offset(width - resized.width), offset(height - resized.height)];
  return {
    tensor: canvasTensor(resized, how, left, top),
    placement: { scaleX: scale, scaleY: scale, left, top },
  };
}

/** The image on a padded canvas, by channel; what lies outside (negative offsets) is cut away. */
function canvasTensor(image: Image, how: Preprocessing, left: number, top: number): Tensor {
  const { width, height, pad } = how;
  const plane = width * height;
  const values = new Float32Array(3 * plane);
  for (let channel = 0; channel < 3; channel++) {
    const table = levels(how.mean[channel]!, how.std[channel]!);
    const from = how.channels === 'rgb' ? channel : 2 - channel;
    values.fill(table[pad]!, channel * plane, (channel + 1) * plane);
    const [firstX, lastX] = [Math.max(0, left), Math.min(width, left + image.width)];
    for (let y = Math.max(0, top); y < Math.min(height, top + image.height); y++) {
      let source = 3 * ((y - top) * image.width + firstX - left) + from;
      let to = channel * plane + y * width + firstX;
      for (let x = firstX; x < lastX; x++, source += 3) values[to++] = table[image.rgb[source]!]!;
    }
  }
  return { dtype: 'float32', shape: [1, 3, height, width], bytes: new Uint8Array(values.buffer) };
}

/** The same picture `[1, height, width, 3]`, for networks that take NHWC. */
export function channelsLast({ dtype, shape, bytes }: Tensor): Tensor {
  const [, channels = 0, height = 0, width = 0] = shape;
  const planes = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  const values = new Float32Array(planes.length);
  for (let channel = 0, from = 0; channel < channels; channel++)
    for (let to = channel; to < values.length; to += channels) values[to] = planes[from++]!;
  return { dtype, shape: [1, height, width, channels], bytes: new Uint8Array(values.buffer) };
}

/** The value of each level: float32 arithmetic in the order in which numpy does it. */
function levels(mean: number, std: number): Float32Array {
  const { fround } = Math;
  return Float32Array.from({ length: 256 }, (_, level) =>
    fround(fround(fround(level / 255) - fround(mean)) / fround(std)),
  );
}
