import { inputHeader } from '../../engines/run/check-sources.js';
import { readInput } from '../../engines/run/run-inputs.js';
import type { EngineBinding } from '../../engines/runtime/tensorrt/engine-interface.js';
import { TrtforgeError } from '../../errors.js';
import { numbersOf } from '../../formats/tensor/values.js';
import type { BenchRequest, ShapeRequest } from './request.js';

/**
 * The shapes asked for, and those of the files given for other inputs, from their headers; of a shape tensor its values. Batches are for all inputs alike, so a file of
 * another batch is refused where it is read. Throws TF_USAGE for values of a shape tensor beside batches, and what reading a file throws.
 */
export function withFileShapes(
  bindings: readonly EngineBinding[],
  { shapes, inputs: { files } }: Pick<BenchRequest, 'shapes' | 'inputs'>,
): ShapeRequest {
  const given = files.flatMap((file) => bindings.find(({ name }) => name === file.name) ?? []);
  if (shapes.kind === 'batches') {
    const values = given.find(({ hostValues }) => hostValues);
    if (values === undefined) return shapes;
    throw new TrtforgeError(
      'TF_USAGE',
      `A list of batches takes the values of ${values.name}, which decide shapes, from the profile; they are given by a file as well.`,
      { remedy: 'Give --shapes in place of --batch, or leave the file out.' },
    );
  }
  const asked = new Map(shapes.kind === 'shapes' ? shapes.shapes : []);
  for (const { name, path } of files) {
    const binding = given.find((each) => each.name === name);
    if (binding === undefined || asked.has(name)) continue;
    asked.set(
      name,
      binding.hostValues
        ? Array.from(numbersOf(readInput(binding, path)))
        : inputHeader(name, path, binding.dtype).shape,
    );
  }
  return asked.size === 0 ? shapes : { kind: 'shapes', shapes: asked };
}
