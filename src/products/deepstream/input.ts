import { type SizeRange, sizedProfile } from '../../engines/profiles/sizes.js';
import { TrtforgeError } from '../../errors.js';
import { imageLayout } from '../../formats/onnx/image-layout.js';
import type { ModelFacts, ValueFacts } from '../../formats/onnx/model-facts.js';
import type { StreamsRequest } from './options.js';

/** One input with everything but the batch decided. */
export interface StreamsInput {
  readonly name: string;
  /** `batch` where the batch stands. */
  readonly shape: readonly (number | 'batch')[];
}

/** The input of a model that takes a batch of images. */
export interface StreamsInputs {
  readonly image: string;
  readonly layout: 'NCHW' | 'NHWC' | 'other';
  readonly channels: number | null;
  readonly height: number | null;
  readonly width: number | null;
  /** All inputs, the image input first. */
  readonly inputs: readonly StreamsInput[];
  readonly notes: readonly string[];
}

/** An open channel dimension is taken as colour, as DeepStream's scripts do. */
const COLOUR = 3;

/**
 * Finds the image input, its batch dimension, height and width. The first dimension must be open in every input that has one open; height and
 * width come from the model, or from the options where it leaves them open. Throws TF_PROFILE_INVALID naming the input and TF_PROFILE_MISSING
 * where height or width must be passed.
 */
export function streamsInputs(
  { file, inputs: declared }: Pick<ModelFacts, 'file' | 'inputs'>,
  requested: StreamsRequest['input'],
): StreamsInputs {
  const inputs = sizedInputs(declared, new Map(Object.entries(requested.dims ?? {})));
  const image = imageInput(file, inputs, requested.input);
  const { layout, shape, notes } = imageShape(file, image, requested);
  const others = inputs
    .filter((input) => input !== image)
    .map((input) => otherInput(file, input, image.name));
  const [channels, height, width] =
    layout === 'NCHW'
      ? [shape[1], shape[2], shape[3]]
      : layout === 'NHWC'
        ? [shape[3], shape[1], shape[2]]
        : [null, null, null];
  return {
    image: image.name,
    layout,
    channels: asNumber(channels),
    height: asNumber(height),
    width: asNumber(width),
    inputs: [{ name: image.name, shape }, ...others],
    notes:
      others.length === 0
        ? notes
        : [
            ...notes,
            `Inputs besides "${image.name}" follow the batch: ${others.map(({ name }) => name).join(', ')}.`,
          ],
  };
}

/** The inputs with these sizes. Throws TF_PROFILE_INVALID for a name that no dimension has, a range, and the batch, which is what is measured. */
function sizedInputs(
  inputs: readonly ValueFacts[],
  dims: ReadonlyMap<string, SizeRange>,
): readonly ValueFacts[] {
  sizedProfile(inputs, { dims });
  for (const [name, { min, max }] of dims) {
    if (inputs.some(({ shape }) => shape?.[0] === name))
      throw new TrtforgeError('TF_PROFILE_INVALID', `"${name}" is the batch, whose sizes are measured.`, {
        remedy: `Remove --dim ${name}; --max-batch and --max-batch-limit set the largest batch.`,
      });
    if (min !== max)
      throw new TrtforgeError('TF_PROFILE_INVALID', `"${name}" has one size in all engines, not a range.`, {
        remedy: `Pass the size that the streams have: --dim ${name}=${max}`,
      });
  }
  const sizeOf = (dim: number | string | null) =>
    typeof dim === 'string' ? (dims.get(dim)?.opt ?? dim) : dim;
  return inputs.map((input) => ({ ...input, shape: input.shape?.map(sizeOf) ?? null }));
}

/** Shapes of all inputs at one batch. */
export const shapesAt = (
  { inputs }: StreamsInputs,
  batch: number,
): readonly { readonly name: string; readonly dims: readonly number[] }[] =>
  inputs.map(({ name, shape }) => ({ name, dims: shape.map((dim) => (dim === 'batch' ? batch : dim)) }));

const asNumber = (dim: number | 'batch' | null | undefined): number | null =>
  typeof dim === 'number' ? dim : null;

function imageInput(file: string, inputs: readonly ValueFacts[], name: string | undefined): ValueFacts {
  if (name !== undefined) {
    const named = inputs.find((input) => input.name === name);
    if (named !== undefined) return named;
    throw new TrtforgeError('TF_PROFILE_INVALID', `${file} has no input "${name}".`, {
      remedy: `Its inputs are ${inputs.map((input) => input.name).join(', ')}.`,
    });
  }
  const pictures = inputs.filter(({ shape }) => shape?.length === 4);
  const only = inputs.length === 1 ? inputs[0] : pictures.length === 1 ? pictures[0] : undefined;
  if (only !== undefined) return only;
  throw new TrtforgeError(
    'TF_PROFILE_INVALID',
    `${file} has ${inputs.length} inputs${inputs.length === 0 ? '' : ` (${inputs.map((input) => input.name).join(', ')})`}, and ${pictures.length === 0 ? 'none' : 'more than one'} of them looks like a batch of images.`,
    { remedy: 'Name the one that takes the images: --input NAME.' },
  );
}

function imageShape(file: string, { name, shape }: ValueFacts, { height, width }: StreamsRequest['input']) {
  if (shape === null || shape.length === 0) {
    throw new TrtforgeError('TF_PROFILE_INVALID', `Input "${name}" of ${file} declares no dimensions.`);
  }
  const [first, ...rest] = shape;
  if (typeof first === 'number' && first > 0) throw fixedBatch(file, name, first);
  const axes = imageLayout(shape);
  if (axes === null) return plainShape(file, name, rest, { height, width });
  const { layout } = axes;
  const isLast = layout === 'NHWC';
  const [channel, high, wide] = [shape[axes.channels], shape[axes.height], shape[axes.width]];
  const notes: string[] = [];
  if (isLast)
    notes.push(`Input "${name}" is NHWC: height and width are its dimensions 1 and 2, not 2 and 3.`);
  const channels = fixed(channel) ?? COLOUR;
  if (fixed(channel) === undefined)
    notes.push(`Input "${name}" leaves its channels open; ${COLOUR} are assumed.`);
  const size = {
    height: sized(file, name, 'height', fixed(high), height),
    width: sized(file, name, 'width', fixed(wide), width),
  };
  const dims = isLast ? [size.height, size.width, channels] : [channels, size.height, size.width];
  return { layout, shape: ['batch' as const, ...dims], notes };
}

type Dim = NonNullable<ValueFacts['shape']>[number] | undefined;

/** A dimension that the model fixes; 0 and negative numbers are what some exporters write for open ones. */
const fixed = (dim: Dim): number | undefined => (typeof dim === 'number' && dim > 0 ? dim : undefined);

/** An input that is no picture: everything but the batch must be fixed. */
function plainShape(
  file: string,
  name: string,
  rest: readonly Dim[],
  { height, width }: Pick<StreamsRequest['input'], 'height' | 'width'>,
) {
  if (height !== undefined || width !== undefined) {
    throw new TrtforgeError(
      'TF_PROFILE_INVALID',
      `Input "${name}" of ${file} has ${rest.length + 1} dimensions, so it has no height and width to set.`,
      { remedy: 'Leave out --height and --width.' },
    );
  }
  const dims = rest.map((dim) => fixed(dim));
  if (dims.some((dim) => dim === undefined)) throw openBeyondBatch(file, name);
  const notes = [
    `Input "${name}" has ${rest.length + 1} dimensions, not the four of an image; its first is the batch.`,
  ];
  return {
    layout: 'other' as const,
    shape: ['batch' as const, ...dims.filter((dim) => dim !== undefined)],
    notes,
  };
}

function sized(
  file: string,
  name: string,
  what: 'height' | 'width',
  own: number | undefined,
  asked: number | undefined,
): number {
  if (own !== undefined && asked !== undefined && own !== asked) {
    throw new TrtforgeError(
      'TF_PROFILE_INVALID',
      `Input "${name}" of ${file} has the ${what} ${own}, not ${asked}.`,
      {
        remedy: `Leave out --${what}: the model fixes it.`,
      },
    );
  }
  const size = own ?? asked;
  if (size !== undefined) return size;
  throw new TrtforgeError('TF_PROFILE_MISSING', `Input "${name}" of ${file} leaves its ${what} open.`, {
    remedy: 'Pass the resolution that the model is used with: --height 640 --width 640',
  });
}

function otherInput(file: string, { name, shape }: ValueFacts, image: string): StreamsInput {
  const [first, ...rest] = shape ?? [];
  const dims = rest.map((dim) => fixed(dim));
  if (shape === null || dims.some((dim) => dim === undefined)) throw openBeyondBatch(file, name, image);
  const tail = dims.filter((dim) => dim !== undefined);
  if (shape.length === 0) return { name, shape: [] };
  return { name, shape: [fixed(first) ?? 'batch', ...tail] };
}

const openBeyondBatch = (file: string, name: string, image?: string) =>
  new TrtforgeError(
    'TF_PROFILE_INVALID',
    `Input "${name}" of ${file} leaves open more than its first dimension${image === undefined ? '' : `, and only "${image}" is a batch of images`}.`,
    { remedy: 'Export the model with these dimensions fixed.' },
  );

const fixedBatch = (file: string, name: string, batch: number) =>
  new TrtforgeError('TF_PROFILE_INVALID', `Input "${name}" of ${file} fixes its batch at ${batch}.`, {
    remedy: 'Export the model with an open batch dimension; one engine must serve batch 1 and the largest.',
  });
