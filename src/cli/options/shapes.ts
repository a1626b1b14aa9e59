import { option } from '../option.js';
import { type NamedShape, parseShapes } from '../values.js';

/** Which shapes inputs have; `shapesOf` reads them. */
export const shapesOption = (describe: string) =>
  option({ flags: '--shapes <shapes>', group: 'Inputs', describe, parse: parseShapes, repeat: true });

/** For commands that run a model at one shape of each input. */
export const openShapesOption = shapesOption('shapes of inputs with open dimensions, as x:1x3x224x224');

/** Shapes by input. */
export const shapesOf = (
  shapes: readonly (readonly NamedShape[])[],
): ReadonlyMap<string, readonly number[]> => new Map(shapes.flat().map(({ name, dims }) => [name, dims]));
