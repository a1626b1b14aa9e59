import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { viewModel } from '../../formats/onnx/model.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { isPlaceholder } from '../../formats/onnx/open-dimensions.js';
import { usesOf } from '../../formats/precision/normalise.js';
import { type Dtype, dtypes, elementCount } from '../../formats/tensor/dtype.js';
import { numbersOf } from '../../formats/tensor/tensor.js';
import { type CalibrationSample, ofSample } from '../calibration/sample-source.js';
import { readModelContent } from '../identity/model-content.js';
import { checkConvertible } from '../run/input-dtype.js';
import { checkDims, rejectUnknown } from '../runtime/check-inputs.js';
import type { Binding } from '../runtime/session.js';
import { isOpen, type ProfileRequest, shapeValues } from './profile.js';

/** The inputs of a model, for profiles. */
export interface ProfileInputs {
  readonly inputs: readonly Binding[];
  /** Inputs whose values decide shapes: their range is that of the values. */
  readonly valued: ReadonlySet<string>;
}

/** Whether a profile has to have an input. */
export const needsRange = ({ valued }: ProfileInputs, input: Binding): boolean =>
  isOpen(input) || valued.has(input.name);

/** One optimization profile that a file shows. */
export interface DerivedProfile {
  /** For messages: `clips/`, `encoder.contract.json, profile "A"`. */
  readonly from: string;
  /** Empty where no input needs a range. */
  readonly profile: ProfileRequest;
  /** Number of samples that it includes; null where the file states the profile itself. */
  readonly samples: number | null;
}

/** A kind of file, besides samples, that profiles are read from. */
export interface ProfileSource {
  /** By the path alone. */
  takes(path: string): boolean;
  read(path: string, inputs: ProfileInputs): readonly DerivedProfile[];
}

/** Throws what `readModelContent` throws. Placeholders of exporters are no names here: `resolveProfiles` rejects their different sizes with a remedy. */
export async function profileInputs(path: string, work: WorkContext): Promise<ProfileInputs> {
  const { inputs } = await readModelContent(path, work);
  const bindings = inputs.flatMap(({ name, dtype, shape }): Binding[] =>
    dtype !== null && dtype in dtypes
      ? [
          {
            name,
            dtype: dtype as Dtype,
            shape:
              shape?.map((size) => (typeof size === 'string' && isPlaceholder(size) ? null : size)) ?? null,
          },
        ]
      : [],
  );
  return { inputs: bindings, valued: valuedInputs(path, inputs) };
}

function valuedInputs(path: string, inputs: readonly ValueFacts[]): ReadonlySet<string> {
  const integers = inputs.filter(({ dtype, shape }) => shape !== null && /^int(?:32|64)$/.test(dtype ?? ''));
  if (integers.length === 0) return new Set();
  return viewModel(path, (model) => {
    const uses = usesOf(model);
    return new Set(integers.filter((input) => shapeValues(input, uses) > 0).map(({ name }) => name));
  });
}

/**
 * The profile that includes every sample: of each dimension (or value of a shape tensor) the least and the largest size. The optimum is the most common
 * sample, since sizes of different samples may not go together; where several are equally common, the one of median size. Inputs without dynamic dimensions
 * may be missing. Throws TF_SESSION_INPUT for names, dtypes and dimensions that do not fit, with the sample; TF_PROFILE_MISSING without a sample;
 * TF_CANCELLED, and what reading the samples throws.
 */
export async function profileOfSamples(
  from: string,
  samples: AsyncIterable<CalibrationSample> | Iterable<CalibrationSample>,
  model: ProfileInputs,
  signal: AbortSignal,
): Promise<DerivedProfile> {
  const seen = new Map<string, { readonly sizes: Sizes; count: number }>();
  let count = 0;
  for await (const { origin, inputs } of samples) {
    throwIfCancelled(signal, 'reading the samples');
    count++;
    const sizes = ofSample(origin, () => sizesOf(inputs, model));
    const key = JSON.stringify(sizes);
    const known = seen.get(key) ?? { sizes, count: 0 };
    known.count++;
    seen.set(key, known);
  }
  const kinds = [...seen.values()];
  const [first] = kinds;
  if (first === undefined) throw new TrtforgeError('TF_PROFILE_MISSING', `${from} has no sample.`);
  const optimum = mostCommon(kinds);
  const profile: ProfileRequest = new Map(
    first.sizes.map(([name, axes], input) => {
      const end = (choose: (a: number, b: number) => number) =>
        axes.map((_, axis) =>
          kinds.map(({ sizes }) => sizes[input]![1][axis]!).reduce((a, b) => choose(a, b)),
        );
      const opt = [...optimum[input]![1]];
      return [name, { min: end(Math.min), opt, max: end(Math.max), values: model.valued.has(name) }];
    }),
  );
  return { from, profile, samples: count };
}

/** Of each input that needs a range, in the model's order, its dimensions or the values of a shape tensor. */
type Sizes = readonly (readonly [name: string, sizes: readonly number[]])[];

function mostCommon(kinds: readonly { readonly sizes: Sizes; readonly count: number }[]): Sizes {
  const most = kinds.reduce((max, { count }) => Math.max(max, count), 0);
  const elements = (sizes: Sizes) => sizes.reduce((sum, [, dims]) => sum + elementCount(dims), 0);
  const common = kinds
    .flatMap(({ sizes, count }) => (count === most ? [{ sizes, size: elements(sizes) }] : []))
    .sort((a, b) => a.size - b.size);
  return common[(common.length - 1) >> 1]!.sizes;
}

function sizesOf(tensors: CalibrationSample['inputs'], model: ProfileInputs): Sizes {
  const { inputs, valued } = model;
  rejectUnknown(inputs, tensors.keys());
  const symbols = new Map<string, number>();
  return inputs.flatMap((input) => {
    const { name } = input;
    const tensor = tensors.get(name);
    if (tensor === undefined) {
      if (!needsRange(model, input)) return [];
      throw new TrtforgeError('TF_SESSION_INPUT', `There is no tensor for the input "${name}".`, {
        remedy: 'Pass samples with a tensor for every input that has dynamic dimensions or decides shapes.',
      });
    }
    checkConvertible(input, tensor.dtype, `the tensor ${name}`);
    checkDims(input, tensor.shape, symbols);
    if (!needsRange(model, input)) return [];
    return [[name, valued.has(name) ? Array.from(numbersOf(tensor)) : tensor.shape] as const];
  });
}
