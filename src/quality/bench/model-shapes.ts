import { resolveShapes } from '../../engines/run/inputs.js';
import type { Binding } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import { type AxisPlace, openDimensions } from '../../formats/onnx/open-dimensions.js';
import type { ValueUses } from '../../formats/onnx/values.js';
import type { ShapeRequest } from './request.js';

/** One thing to measure of a model: every input's shape. */
export interface ModelCase {
  readonly batch: number;
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  /** Input name to the axes whose size was guessed. */
  readonly guessedAxes: ReadonlyMap<string, readonly number[]>;
}

/** The basis of guesses: the graph's use of the inputs, and the number of guesses before. */
export interface Guess {
  readonly uses?: ValueUses;
  readonly attempt?: number;
}

/**
 * The cases to measure of a model, which has no profiles: the requested shapes, the rest by the names of its symbols. A batch goes into the first
 * axis of every input that leaves it open, and wherever the symbol of the first of them stands. Throws TF_SHAPE_INVALID for shapes that do not fit.
 */
export function modelCases(
  inputs: readonly Binding[],
  request: ShapeRequest,
  guess: Guess = {},
): readonly ModelCase[] {
  if (request.kind === 'batches') return request.batches.map((batch) => batchCase(inputs, batch, guess));
  return [caseOf(inputs, request.kind === 'shapes' ? request.shapes : new Map(), guess)];
}

function caseOf(
  inputs: readonly Binding[],
  asked: ReadonlyMap<string, readonly number[]>,
  { uses, attempt }: Guess,
): ModelCase {
  const { shapes, guessedAxes } = resolveShapes(inputs, asked, uses, attempt);
  const first = inputs.find(({ name }) => (shapes.get(name)?.length ?? 0) > 0);
  return { batch: shapes.get(first?.name ?? '')?.[0] ?? 1, shapes, guessedAxes };
}

function batchCase(inputs: readonly Binding[], batch: number, guess: Guess): ModelCase {
  const usual = caseOf(inputs, new Map(), guess);
  if (!inputs.some(({ shape }) => shape?.[0] !== undefined && typeof shape[0] !== 'number')) {
    if (usual.batch === batch) return usual;
    throw new TrtforgeError(
      'TF_SHAPE_INVALID',
      `The model leaves no first axis open, so batch ${batch} cannot be measured.`,
      { remedy: `Leave the batch out: it is fixed at ${usual.batch}.` },
    );
  }
  const batchAxes = new Set(
    openDimensions(inputs, guess.uses)
      .filter(({ places }) => places.some(({ axis }) => axis === 0))
      .flatMap(({ places }) => places.map(placeKey)),
  );
  const isBatch = (input: string, axis: number) => batchAxes.has(placeKey({ input, axis }));
  const asked = [...usual.shapes].map(
    ([name, shape]) => [name, shape.map((size, axis) => (isBatch(name, axis) ? batch : size))] as const,
  );
  const guessedAxes = [...usual.guessedAxes].flatMap(([name, axes]) => {
    const left = axes.filter((axis) => !isBatch(name, axis));
    return left.length === 0 ? [] : [[name, left] as const];
  });
  return { ...caseOf(inputs, new Map(asked), guess), guessedAxes: new Map(guessedAxes) };
}

const placeKey = ({ input, axis }: AxisPlace): string => `${axis} ${input}`;
