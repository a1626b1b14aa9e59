import { TrtforgeError } from '../errors.js';
import type { Binding } from '../runtime/session.js';

/** Sizes for dimensions that a model leaves open, by what their symbol (or the input) is called. */
const sizesByName: readonly (readonly [RegExp, number])[] = [
  [/batch|^n$|^b$|^bs$/i, 1],
  [/height|width|^h$|^w$/i, 224],
  [/time|frame|^t$/i, 128],
  [/seq|len|token|^l$|^s$/i, 16],
];
const OTHER_SIZE = 8;

export interface ResolvedShapes {
  /** Input name to dimensions, every one a number. */
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  /** Symbol to number; the same symbol has the same size everywhere. */
  readonly sizes: ReadonlyMap<string, number>;
}

/**
 * Gives every input a shape: as asked for, else as declared, with symbols set by the shapes asked for and the rest by their names (batch 1, sequences 16,
 * audio frames 128, images 224). Throws TF_SHAPE_INVALID when a shape asked for does not fit, or an input has no rank and no shape was asked for.
 */
export function resolveShapes(
  inputs: readonly Binding[],
  asked: ReadonlyMap<string, readonly number[]>,
): ResolvedShapes {
  for (const name of asked.keys()) {
    if (!inputs.some((input) => input.name === name)) {
      throw new TrtforgeError('TF_SHAPE_INVALID', `There is no input «${name}» to give a shape.`, {
        remedy: `The inputs are ${inputs.map((input) => input.name).join(', ')}.`,
      });
    }
  }
  const sizes = new Map<string, number>();
  for (const input of inputs) takeSymbols(input, asked.get(input.name), sizes);
  const shapes = new Map(
    inputs.map((input) => [input.name, asked.get(input.name) ?? declaredShape(input, sizes)] as const),
  );
  return { shapes, sizes };
}

function takeSymbols(input: Binding, shape: readonly number[] | undefined, sizes: Map<string, number>): void {
  if (shape === undefined || input.shape === null) return;
  const declared = input.shape;
  const refuse = (why: string) =>
    new TrtforgeError(
      'TF_SHAPE_INVALID',
      `The shape [${shape}] does not fit the input «${input.name}»: ${why}.`,
    );
  if (shape.length !== declared.length) throw refuse(`it has ${declared.length} dimensions`);
  declared.forEach((dim, axis) => {
    const size = shape[axis] ?? 0;
    if (typeof dim === 'number' && dim !== size) throw refuse(`dimension ${axis} is ${dim}`);
    if (typeof dim !== 'string') return;
    const known = sizes.get(dim) ?? size;
    if (known !== size) throw refuse(`${dim} is ${known} elsewhere`);
    sizes.set(dim, size);
  });
}

function declaredShape(input: Binding, sizes: Map<string, number>): readonly number[] {
  if (input.shape === null) {
    throw new TrtforgeError('TF_SHAPE_INVALID', `The input ${input.name} has no declared rank.`, {
      remedy: `Give its shape: --shapes ${input.name}:1x8.`,
    });
  }
  return input.shape.map((dim, axis) => {
    if (typeof dim === 'number') return dim;
    const size = (dim === null ? undefined : sizes.get(dim)) ?? sizeByName(dim, axis);
    if (dim !== null) sizes.set(dim, size);
    return size;
  });
}

function sizeByName(symbol: string | null, axis: number): number {
  const known = symbol === null ? undefined : sizesByName.find(([pattern]) => pattern.test(symbol))?.[1];
  return known ?? (axis === 0 ? 1 : OTHER_SIZE);
}
