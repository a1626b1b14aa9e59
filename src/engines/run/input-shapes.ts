import { TrtforgeError } from '../../errors.js';
import { type AxisPlace, openDimensions } from '../../formats/onnx/open-dimensions.js';
import { requestedSizes } from '../../formats/onnx/requested-sizes.js';
import type { ValueUses } from '../../formats/onnx/value-uses.js';
import type { Binding } from '../runtime/session.js';

export interface ResolvedShapes {
  /** Input name to dimensions, every one a number. */
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  /** Symbol to number; the same symbol has the same size everywhere. */
  readonly sizes: ReadonlyMap<string, number>;
  /** Input name to the axes with a guessed size; only inputs that have some. */
  readonly guessedAxes: ReadonlyMap<string, readonly number[]>;
}

/**
 * Chooses a shape for every input: as requested, else as declared, with open dimensions set by the requested shapes and the rest guessed (`openDimensions`);
 * `attempt` counts from 0 and chooses among the likely sizes, `batch` is that of an open one. Throws TF_SHAPE_INVALID when a requested shape does not fit, or an input has no rank and no
 * shape was requested.
 */
export function resolveShapes(
  inputs: readonly Binding[],
  asked: ReadonlyMap<string, readonly number[]>,
  uses?: ValueUses,
  attempt = 0,
  batch?: number,
): ResolvedShapes {
  const sizes = requestedSizes(inputs, asked);
  const guessedAxes = new Map<string, number[]>();
  const sizeAt = new Map<string, number>();
  const at = ({ input, axis }: AxisPlace) => `${axis} ${input}`;
  for (const { places, symbol, tries, isBatch } of openDimensions(inputs, uses)) {
    const known = places.flatMap(({ input, axis }) => asked.get(input)?.[axis] ?? [])[0];
    const likely = tries[Math.min(attempt, tries.length - 1)] ?? 1;
    const size = known ?? (isBatch ? batch : undefined) ?? likely;
    if (symbol !== null) sizes.set(symbol, size);
    for (const place of places) {
      sizeAt.set(at(place), size);
      if (known !== undefined) continue;
      const axes = guessedAxes.get(place.input) ?? [];
      guessedAxes.set(place.input, axes);
      axes.push(place.axis);
    }
  }
  const shapes = new Map(
    inputs.map(({ name, shape }) => {
      const given = asked.get(name);
      if (given === undefined && shape === null) throw rankUnknown(name);
      const guess = shape?.map((dim, axis) =>
        typeof dim === 'number' ? dim : (sizeAt.get(at({ input: name, axis })) ?? 1),
      );
      return [name, given ?? guess ?? []] as const;
    }),
  );
  return { shapes, sizes, guessedAxes };
}

const rankUnknown = (name: string) =>
  new TrtforgeError('TF_SHAPE_INVALID', `The input ${name} has no declared rank.`, {
    remedy: `Pass its shape: --shapes ${name}:1x8.`,
  });
