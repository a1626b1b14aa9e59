import { ignoreEvents } from '../../events.js';
import { convertModel } from '../../formats/precision/convert.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../formats/precision/options.js';
import { exactly } from '../../formats/precision/requested.js';
import type { Freedom } from '../../quality/known-answer/candidate-engines.js';
import { writeMarked } from './marked-model.js';

/** The conversion that makes candidates. */
export interface Conversion {
  /** The model that is converted; its nodes have names of their own. */
  readonly model: string;
  /** null: it is built as it is. */
  readonly precision: FormatId | null;
  readonly options: ConversionOptions;
}

/** The change of a candidate. */
export interface Change extends Freedom {
  /** Nodes that stay FP32, by name. */
  readonly keep?: readonly string[];
  /** Nodes that get no codes, by name. */
  readonly unquantized?: readonly string[];
  /** Tensors that become outputs too: no kernel can leave them out. */
  readonly outputs?: readonly string[];
}

/** The options of a conversion with a change. */
export const changedOptions = (
  options: ConversionOptions,
  { keep = [], unquantized = [] }: Change,
): ConversionOptions => ({
  ...options,
  keepNodes: [...(options.keepNodes ?? []), ...keep.map(exactly)],
  unquantizedNodes: [...(options.unquantizedNodes ?? []), ...anyOf(unquantized)],
});

/** One pattern for all names, which a command line takes once. */
function anyOf(names: readonly string[]): readonly RegExp[] {
  if (names.length < 2) return names.map(exactly);
  const sources = names.map((name) => exactly(name).source.slice(1, -1));
  return [new RegExp(`^(?:${sources.join('|')})$`)];
}

/** Writes the model that a change makes. Throws what converting, opening and writing a model throw. */
export async function writeChange(
  { model, precision, options }: Conversion,
  change: Change,
  path: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (precision !== null)
    await convertModel(
      model,
      path,
      { ...changedOptions(options, change), precision, allowUnconverted: true },
      { emit: ignoreEvents, signal },
    );
  const { outputs = [] } = change;
  if (precision === null || outputs.length > 0)
    await writeMarked(precision === null ? model : path, path, outputs, 'kept', signal);
}
