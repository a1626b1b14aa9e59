import { shellQuote } from '../../base/text/shell-line.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { type OpenDimension, openDimensions } from '../../formats/onnx/open-dimensions.js';
import type { ValueUses } from '../../formats/onnx/value-uses.js';
import { ends, isOpen, type Suggestion, shapeValues } from './profile.js';
import { type ProfileSizes, sizeOfAxis } from './sizes.js';

/** The completion of a request: by `sizes` where some are set. */
export function suggestion(inputs: readonly ValueFacts[], uses: ValueUses, sizes?: ProfileSizes): Suggestion {
  const byName = new Map(inputs.map((input) => [input.name, input]));
  const open = openDimensions(inputs, uses);
  const [batch] = open;
  const isBatchAlone = open.every(({ isBatch, range }) => isBatch && `${range}` === `${batch?.range}`);
  if (
    sizes === undefined &&
    batch !== undefined &&
    isBatchAlone &&
    !inputs.some((input) => shapeValues(input, uses))
  )
    return { profile: suggestProfile(inputs, uses), dims: [`--batch ${batch.range.join('/')}`] };
  const unset = open.filter(({ places }) =>
    places.some(({ input, axis }) => sizes && sizeOfAxis(sizes, byName.get(input)!, axis) === undefined),
  );
  const isNamed = unset.length > 0 && unset.every(({ symbol }) => symbol !== null);
  return {
    profile: suggestProfile(inputs, uses, sizes),
    dims: isNamed
      ? unset.map(
          ({ symbol, range }) =>
            `--dim ${shellQuote(`${symbol}=${[...new Set(range)].length === 1 ? range[0] : range.join('/')}`)}`,
        )
      : null,
  };
}

/**
 * A profile that suits most models: ranges by what each open dimension counts, those that `sizes` sets as they are, and with `uses` values for inputs
 * that decide shapes. null where no input needs one.
 */
export function suggestProfile(
  inputs: readonly ValueFacts[],
  uses?: ValueUses,
  sizes: ProfileSizes = { dims: new Map() },
): string | null {
  // TensorRT takes axes of one name for one dimension, whatever the name.
  const key = ({ name, shape }: ValueFacts, axis: number) => shape?.[axis] ?? ` ${axis} of ${name}`;
  const byName = new Map(inputs.map((input) => [input.name, input]));
  const ranges = new Map<string | number, OpenDimension['range']>();
  for (const { places, range } of openDimensions(inputs, uses))
    for (const { input, axis } of places) {
      const of = key(byName.get(input)!, axis);
      const set = sizeOfAxis(sizes, byName.get(input)!, axis);
      ranges.set(of, common(set === undefined ? range : [set.min, set.opt, set.max], ranges.get(of)));
    }
  const parts = inputs.flatMap((input) => {
    const { name, shape } = input;
    const quoted = /[,:=']/.test(name) ? `'${name}'` : name;
    const sizes = (end: number) =>
      shape?.map((size, axis) => (typeof size === 'number' ? size : ranges.get(key(input, axis))?.[end]));
    if (isOpen(input)) return [`${quoted}:${ends.map((_, end) => sizes(end)?.join('x')).join('/')}`];
    const ones = Array.from({ length: uses === undefined ? 0 : shapeValues(input, uses) }, () => 1).join('x');
    return ones === '' ? [] : [`${quoted}=${ones}/${ones}/${ones}`];
  });
  return parts.length === 0 ? null : parts.join(',');
}

/** The overlap of both ranges, or where they have none the largest size that one of them ends at. */
function common(a: OpenDimension['range'], b: OpenDimension['range'] = a): OpenDimension['range'] {
  const max = Math.min(a[2], b[2]);
  return [Math.min(max, Math.max(a[0], b[0])), Math.min(max, Math.max(a[1], b[1])), max];
}
