import type { Profile } from '../../engines/identity/profile.js';
import type { ProfileRange } from '../../engines/identity/recipe.js';
import { TrtforgeError } from '../../errors.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';

/**
 * The ranges of values inside a model where its inputs have those of a profile: it runs on the sample cropped to the least shapes, and repeated to the largest.
 * `values` are those of the sample itself, its optimum. null where shapes follow from values, and where it does not run so or ranges do not ascend.
 */
export async function rangesAt(
  profile: Profile,
  sample: NamedTensors,
  values: NamedTensors,
  run: (inputs: NamedTensors) => Promise<NamedTensors>,
): Promise<ReadonlyMap<string, ProfileRange> | null> {
  if (Object.values(profile).some((range) => range.values)) return null;
  const valuesAt = (end: 'min' | 'max') =>
    run(
      new Map(
        [...sample].map(([name, tensor]) => [name, resized(tensor, profile[name]?.[end] ?? tensor.shape)]),
      ),
    );
  try {
    const [least, most] = [await valuesAt('min'), await valuesAt('max')];
    const ranges = new Map<string, ProfileRange>();
    for (const [name, { shape: opt }] of values) {
      const [min = [], max = []] = [least.get(name)?.shape, most.get(name)?.shape];
      if (min.length !== opt.length || max.length !== opt.length) return null;
      if (!opt.every((size, axis) => min[axis]! <= size && size <= max[axis]!)) return null;
      ranges.set(name, { min: [...min], opt: [...opt], max: [...max], values: false });
    }
    return ranges;
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return null;
  }
}

/** The first elements of a tensor, repeated where it has too few, in another shape. */
function resized({ dtype, shape, bytes }: Tensor, dims: readonly number[]): Tensor {
  const width = bytes.length / Math.max(1, elementCount(shape));
  const length = elementCount(dims) * width;
  const filled = new Uint8Array(length);
  for (let at = 0; at < length && bytes.length > 0; at += bytes.length)
    filled.set(bytes.subarray(0, Math.min(bytes.length, length - at)), at);
  return { dtype, shape: dims, bytes: filled };
}

/** Shapes with a symbol for each open dimension; dimensions of the same range have the same. */
export const openShape = ({ min, opt, max }: ProfileRange): readonly (number | string)[] =>
  opt.map((size, axis) => (min[axis] === max[axis] ? size : `d${min[axis]}_${size}_${max[axis]}`));
