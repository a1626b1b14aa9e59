import type { PreparedBuild } from '../../engines/builder/prepare.js';
import { convertOptions } from '../../engines/identity/conversion.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { convertModel } from '../../formats/precision/convert.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { signalOf, type WorkContext } from './work-context.js';

/** Converts a model as its recipe says, to `BASE.PRECISION.onnx`. Throws what `convertModel` throws. */
export async function typedModel(
  { modelPath, calibration, identity: { recipe } }: PreparedBuild,
  base: string,
  context: WorkContext,
): Promise<{ readonly path: string; readonly ms: number }> {
  const { conversion } = recipe;
  const precision = formatNamed(recipe.precision)?.id;
  if (conversion === null || precision === undefined)
    throw new TrtforgeError('TF_INTERNAL', `${modelPath} is built as it is; there is nothing to convert.`);
  const path = `${base}.${precision}.onnx`;
  const { ms } = await inPhase('convert', context.emit, () =>
    convertModel(modelPath, path, convertOptions(precision, conversion, calibration), {
      emit: context.emit,
      ...signalOf(context),
    }),
  );
  return { path, ms };
}
