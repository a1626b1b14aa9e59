import { sha256 } from '../../base/files/digest.js';
import { type EventListener, inPhase } from '../../events.js';
import type { ConvertOptions } from '../../formats/precision/convert.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import { type GivenOptions, resolveOptions, type ValueRange } from '../../formats/precision/options.js';
import { CONVERSION_REVISION } from '../../formats/precision/revision.js';
import { openNpz } from '../../formats/tensor/npz.js';
import { canonicalJson } from './canonical-json.js';
import type { ConversionRecipe } from './recipe.js';

type Ranges = ReadonlyMap<string, ValueRange>;

/** Runs a model on samples of its inputs (paths of npz files) and gives the ranges of its activations. */
export type ObserveRanges = (
  model: string,
  samples: readonly string[],
  context: { readonly emit: EventListener; readonly signal?: AbortSignal | undefined },
) => Promise<Ranges>;

/** Samples to run the FP32 model on, and what runs it: only when the model is converted, not when its engine is found. */
export interface Calibration {
  readonly samples: readonly string[];
  readonly observe: ObserveRanges;
}

export type ConversionWishes = Omit<GivenOptions, 'precision' | 'ranges'> & {
  readonly calibration?: Calibration | undefined;
};

/** Conversion options, resolved, as plain data for the recipe. Reads the calibration's samples; throws what `openNpz` throws. */
export function conversionRecipe(precision: FormatId, wishes: ConversionWishes = {}): ConversionRecipe {
  const { calibration, ...given } = wishes;
  const options = resolveOptions({ ...given, precision });
  return {
    converter: `trtforge rules ${CONVERSION_REVISION}`,
    ioTypes: options.ioTypes,
    keepNodes: options.keepNodes.map(String).sort(),
    keepOps: [...options.keepOps].sort(),
    convertOps: [...options.convertOps].sort(),
    initMax: options.initMax,
    dataMax: options.dataMax,
    maxReductionDepth: options.maxReductionDepth ?? null,
    calibration: calibration === undefined ? null : digestSamples(calibration.samples),
  };
}

/** The other way: what `convertModel` takes. `ranges` are those of the samples whose digest the recipe holds. */
export function conversionOptions(
  precision: FormatId,
  recipe: ConversionRecipe,
  ranges: Ranges | undefined,
): ConvertOptions {
  return {
    precision,
    ioTypes: recipe.ioTypes,
    keepNodes: recipe.keepNodes.map(regularExpression),
    keepOps: new Set(recipe.keepOps),
    convertOps: new Set(recipe.convertOps),
    initMax: recipe.initMax,
    dataMax: recipe.dataMax,
    maxReductionDepth: recipe.maxReductionDepth ?? undefined,
    ranges,
  };
}

/** Reads `/source/flags`, the text of a RegExp. */
function regularExpression(text: string): RegExp {
  const end = text.lastIndexOf('/');
  return new RegExp(text.slice(1, end), text.slice(end + 1));
}

/** The ranges that a conversion goes by; undefined without a calibration. */
export async function rangesFor(
  model: string,
  recipe: ConversionRecipe,
  calibration: Calibration | undefined,
  context: { readonly emit: EventListener; readonly signal?: AbortSignal | undefined },
): Promise<Ranges | undefined> {
  if (recipe.calibration === null || calibration === undefined) return undefined;
  return inPhase('calibrate', context.emit, () => calibration.observe(model, calibration.samples, context));
}

/** Digest of what samples hold, wherever their files are and in whatever order they are given: ranges do not depend on it. */
function digestSamples(paths: readonly string[]): string {
  const samples = paths.map((path) => {
    const file = openNpz(path);
    try {
      const tensors = file.names.map((name) => {
        const { dtype, shape, bytes } = file.read(name);
        return [name, { dtype, shape: [...shape], sha256: sha256(bytes) }] as const;
      });
      return sha256(canonicalJson(Object.fromEntries(tensors)));
    } finally {
      file.close();
    }
  });
  return sha256(canonicalJson(samples.sort()));
}
