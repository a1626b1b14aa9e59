import { TrtforgeError } from '../errors.js';
import type { Binding } from '../runtime/session.js';
import { resolveShapes } from '../verify/input-shapes.js';
import type { ShapeWish } from './request.js';

/** One thing to measure of a model: every input's shape. */
export interface ModelCase {
  readonly batch: number;
  readonly shapes: ReadonlyMap<string, readonly number[]>;
}

/**
 * What is to be measured of a model, which has no profiles: the shapes asked for, the rest by the names of its symbols. A batch goes into the first axis of
 * every input that leaves it open, and wherever the symbol of the first of them stands. Throws TF_SHAPE_INVALID for shapes that do not fit.
 */
export function modelCases(inputs: readonly Binding[], wish: ShapeWish): readonly ModelCase[] {
  if (wish.kind === 'batches') return wish.batches.map((batch) => batchCase(inputs, batch));
  return [caseOf(inputs, wish.kind === 'shapes' ? wish.shapes : new Map())];
}

function caseOf(inputs: readonly Binding[], asked: ReadonlyMap<string, readonly number[]>): ModelCase {
  const { shapes } = resolveShapes(inputs, asked);
  const first = inputs.find(({ name }) => (shapes.get(name)?.length ?? 0) > 0);
  return { batch: shapes.get(first?.name ?? '')?.[0] ?? 1, shapes };
}

function batchCase(inputs: readonly Binding[], batch: number): ModelCase {
  const usual = caseOf(inputs, new Map());
  const leader = inputs.find(({ shape }) => shape !== null && isOpen(shape[0]))?.shape?.[0];
  if (leader === undefined) {
    if (usual.batch === batch) return usual;
    throw new TrtforgeError(
      'TF_SHAPE_INVALID',
      `The model leaves no first axis open, so batch ${batch} cannot be measured.`,
      { remedy: `Leave the batch out: it is fixed at ${usual.batch}.` },
    );
  }
  const asked = inputs.flatMap(({ name, shape }) => {
    if (shape === null) return [];
    const holds = (dim: Dimension, axis: number) =>
      isOpen(dim) && (axis === 0 || (dim !== null && dim === leader));
    const sizes = usual.shapes.get(name) ?? [];
    return [[name, shape.map((dim, axis) => (holds(dim, axis) ? batch : (sizes[axis] ?? 1)))] as const];
  });
  return caseOf(inputs, new Map(asked));
}

type Dimension = NonNullable<Binding['shape']>[number];

const isOpen = (dimension: Dimension | undefined): boolean =>
  dimension !== undefined && typeof dimension !== 'number';
