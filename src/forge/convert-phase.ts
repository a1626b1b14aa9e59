import { formatCount } from '../base/text/quantity.js';
import { conversionRecipe, convertOptions } from '../engines/identity/conversion.js';
import { convertModel } from '../formats/precision/convert.js';
import { defaultFormat, formatNamed } from '../formats/precision/formats/index.js';
import { writeJson } from './run-root.js';
import type { ForgePhase, Run } from './run-state.js';

/** Writes the strongly typed model into the run root; the build takes it from there. */
export const convertPhase = ({ options, root }: Run): ForgePhase => ({
  name: 'convert',
  skip: (soFar) => {
    if (formatNamed(options.precision) === undefined) return 'the model is built as it is';
    if (soFar.prepared !== undefined && soFar.prepared.identity.recipe.conversion === null)
      return 'the builder itself chooses precisions in a weakly typed network';
    return null;
  },
  run: async (soFar, { emit, signal }) => {
    const { id: precision, label } = formatNamed(options.precision) ?? defaultFormat;
    const output = root.typedModel(options.model, precision);
    const context = { emit, ...(signal === undefined ? {} : { signal }) };
    const recipe =
      soFar.prepared?.identity.recipe.conversion ?? conversionRecipe(precision, options.conversion);
    const conversion = await convertModel(
      options.model,
      output,
      convertOptions(precision, recipe, options.conversion?.calibration),
      context,
    );
    writeJson(root.stepResult('convert'), conversion);
    const { converted, kept } = conversion.nodes;
    return {
      found: { conversion },
      detail: `${formatCount(converted)} of ${formatCount(converted + kept)} floating-point nodes to ${label}`,
    };
  },
});
