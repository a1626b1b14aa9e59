import { formatCount } from '../base/text/quantity.js';
import { conversionOptions, conversionRecipe, rangesFor } from '../engines/identity/conversion.js';
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
    const wishes = options.conversion;
    const recipe = soFar.prepared?.identity.recipe.conversion ?? conversionRecipe(precision, wishes);
    const ranges = await rangesFor(options.model, recipe, wishes?.calibration, context);
    const conversion = await convertModel(
      options.model,
      output,
      conversionOptions(precision, recipe, ranges),
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
