import { readWhole } from '../../base/files/byte-source.js';
import { sha256 } from '../../base/files/digest.js';
import { TrtforgeError } from '../../errors.js';

/** Pixels by row, red, green and blue of each, 8 bits. */
export interface Image {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
}

/** An image with what is known of its file. */
export interface ReadImage extends Image {
  /** SHA-256 of the file. */
  readonly sha256: string;
  /** EXIF orientation by which the pixels were turned: 1 is as they are stored, 5 to 8 exchange width and height. */
  readonly orientation: number;
}

const LARGEST_IMAGE_FILE = 2 ** 28;
/** 8192 x 8192; sharp's own bound, four times as many, lets a lossless WebP take 2.2 GB. */
const MOST_PIXELS = 2 ** 26;

type Sharp = typeof import('sharp').default;
let loading: Promise<Sharp> | undefined;

/** The decoder, loaded when the first image is read. Throws TF_DECODER_MISSING. */
export const loadSharp = (): Promise<Sharp> =>
  (loading ??= import('sharp').then(
    ({ default: sharp }) => {
      // Images are decoded beside one another, so each takes one thread.
      sharp.concurrency(1);
      return sharp;
    },
    (cause) => {
      loading = undefined;
      throw new TrtforgeError(
        'TF_DECODER_MISSING',
        'Images cannot be read: the package sharp is not installed.',
        { remedy: 'Install it: npm install sharp.', cause },
      );
    },
  ));

/** The bytes of an image's file. Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, and TF_IMAGE_INVALID for more than 256 MiB. */
export const readImageFile = (path: string): Buffer =>
  readWhole(path, LARGEST_IMAGE_FILE, 'TF_IMAGE_INVALID');

/**
 * Reads a JPEG, PNG or WebP file as OpenCV reads it: the same pixels as libjpeg-turbo's, turned by its EXIF orientation, alpha and colour profile ignored,
 * 16 bits cut to 8. Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_IMAGE_INVALID for what is damaged, cut short, CMYK (whose conversion no two decoders
 * agree on), of more than 67,108,864 pixels or no image, and TF_DECODER_MISSING without sharp.
 */
export async function readImage(path: string): Promise<ReadImage> {
  const bytes = readImageFile(path);
  const { pipeline, orientation } = await readHeader(path, bytes);
  const { data, info } = await pipeline
    .autoOrient()
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true })
    .catch(throwDamaged(path));
  const rgb = rgbOf(data, info.channels);
  return { width: info.width, height: info.height, rgb, orientation, sha256: sha256(bytes) };
}

/** Throws what `readImage` throws by the header of a file: a tenth of the time, but damaged pixels are not found. */
export async function assertImageHeader(path: string, bytes: Uint8Array): Promise<void> {
  await readHeader(path, bytes);
}

/** A picture in small as JPEG, its longer side `side` pixels at most, turned as `readImage` turns it. Throws what that throws. */
export async function thumbnail(
  path: string,
  bytes: Uint8Array,
  { side, quality }: { readonly side: number; readonly quality: number },
): Promise<Buffer> {
  const { pipeline } = await readHeader(path, bytes);
  return pipeline
    .autoOrient()
    .removeAlpha()
    .resize(side, side, { fit: 'inside', withoutEnlargement: true })
    .jpeg({ quality })
    .toBuffer()
    .catch(throwDamaged(path));
}

/** A picture with an SVG of its size drawn over it, as JPEG, turned as `readImage` turns it. Throws what that throws. */
export async function drawnOver(path: string, svg: string): Promise<Buffer> {
  const { pipeline } = await readHeader(path, readImageFile(path));
  return pipeline
    .autoOrient()
    .removeAlpha()
    .composite([{ input: Buffer.from(svg) }])
    .jpeg({ quality: 92 })
    .toBuffer()
    .catch(throwDamaged(path));
}

async function readHeader(path: string, bytes: Uint8Array) {
  const sharp = await loadSharp();
  // An empty file throws before there is anything to await.
  const open = async () => {
    const pipeline = sharp(bytes, { ignoreIcc: true, limitInputPixels: MOST_PIXELS });
    return { pipeline, ...(await pipeline.metadata()) };
  };
  const { pipeline, space, format, orientation = 1 } = await open().catch(throwDamaged(path));
  if (!['jpeg', 'png', 'webp'].includes(format))
    throw invalid(path, `it is ${format}`, 'Convert it to JPEG, PNG or WebP.');
  if (space === 'cmyk')
    throw invalid(path, 'its colours are CMYK', 'Convert it to RGB with the tool of your choice.');
  return { pipeline, orientation };
}

const throwDamaged = (path: string) => (cause: unknown) => {
  throw invalid(path, cause instanceof Error ? cause.message : String(cause), undefined, cause);
};

const invalid = (path: string, why: string, remedy?: string, cause?: unknown) =>
  new TrtforgeError('TF_IMAGE_INVALID', `${path} cannot be used as an image: ${why}.`, { remedy, cause });

/** Grey values stand for all three colours. */
function rgbOf(data: Uint8Array, channels: number): Uint8Array {
  if (channels === 3) return data;
  const rgb = new Uint8Array(3 * (data.length / channels));
  for (let from = 0, to = 0; from < data.length; from += channels) {
    const grey = data[from]!;
    rgb[to++] = grey;
    rgb[to++] = grey;
    rgb[to++] = grey;
  }
  return rgb;
}
