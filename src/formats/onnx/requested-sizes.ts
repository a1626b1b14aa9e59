import { TrtforgeError } from '../../errors.js';
import { isPlaceholder } from './open-dimensions.js';

interface DeclaredInput {
  readonly name: string;
  readonly shape: readonly (number | string | null)[] | null;
}

/** The sizes that requested shapes give the symbols of the inputs. Throws TF_SHAPE_INVALID when a shape does not fit, or names no input. */
export function requestedSizes(
  inputs: readonly DeclaredInput[],
  asked: ReadonlyMap<string, readonly number[]>,
): Map<string, number> {
  for (const name of asked.keys()) {
    if (!inputs.some((input) => input.name === name)) {
      throw new TrtforgeError('TF_SHAPE_INVALID', `There is no input "${name}", whose shape is passed.`, {
        remedy: `The inputs are ${inputs.map((input) => input.name).join(', ')}.`,
      });
    }
  }
  const sizes = new Map<string, number>();
  for (const input of inputs) takeSymbols(input, asked.get(input.name), sizes);
  return sizes;
}

function takeSymbols(
  input: DeclaredInput,
  shape: readonly number[] | undefined,
  sizes: Map<string, number>,
): void {
  if (shape === undefined || input.shape === null) return;
  const declared = input.shape;
  const mismatch = (why: string) =>
    new TrtforgeError(
      'TF_SHAPE_INVALID',
      `The shape [${shape}] does not fit the input "${input.name}": ${why}.`,
    );
  if (shape.length !== declared.length) throw mismatch(`it has ${declared.length} dimensions`);
  declared.forEach((dim, axis) => {
    const size = shape[axis] ?? 0;
    if (typeof dim === 'number' && dim !== size) throw mismatch(`dimension ${axis} is ${dim}`);
    if (typeof dim !== 'string' || isPlaceholder(dim)) return;
    const known = sizes.get(dim) ?? size;
    if (known !== size) throw mismatch(`${dim} is ${known} elsewhere`);
    sizes.set(dim, size);
  });
}
