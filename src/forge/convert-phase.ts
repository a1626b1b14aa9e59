import { conversionOptions, conversionRecipe } from '../engine/conversion.js';
import { convertModel } from '../precision/convert.js';
import { formatCount } from '../report/quantity.js';
import { precisionWord } from '../report/sentences.js';
import type { Forged, ForgePhase, Run } from './forged.js';
import { writeJson } from './run-root.js';

/** Writes the strongly typed model into the run root; the build takes it from there. */
export const convertPhase = ({ options, root }: Run): ForgePhase => ({
  name: 'convert',
  skip: (soFar) => {
    if (precisionOf(options) === null) return 'the model is built as it is';
    if (soFar.prepared !== undefined && soFar.prepared.identity.recipe.conversion === null)
      return 'the builder itself chooses precisions in a weakly typed network';
    return null;
  },
  run: async (soFar, { emit, signal }) => {
    const precision = precisionOf(options) ?? 'fp16';
    const output = root.typedModel(options.model, precision);
    const conversion = await convertModel(options.model, output, wanted(options, precision, soFar), {
      emit,
      ...(signal === undefined ? {} : { signal }),
    });
    writeJson(root.stepResult('convert'), conversion);
    const { converted, kept } = conversion.nodes;
    return {
      found: { conversion },
      detail: `${formatCount(converted)} of ${formatCount(converted + kept)} floating-point nodes to ${precisionWord(precision)}`,
    };
  },
});

const precisionOf = ({ precision }: Run['options']): 'fp16' | 'bf16' | null =>
  precision === 'fp16' || precision === 'bf16' ? precision : null;

/** The conversion that the identity holds, or without an engine to build the one that it would hold. */
function wanted(options: Run['options'], precision: 'fp16' | 'bf16', { prepared }: Partial<Forged>) {
  const recipe = prepared?.identity.recipe.conversion ?? conversionRecipe(precision, options.conversion);
  return conversionOptions(precision, recipe, options.conversion?.ranges);
}
