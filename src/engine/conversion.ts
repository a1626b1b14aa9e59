import type { ConvertOptions } from '../precision/convert.js';
import {
  type ConvertedPrecision,
  type GivenOptions,
  resolveOptions,
  type ValueRange,
} from '../precision/options.js';
import { sha256 } from '../system/digest.js';
import { packageVersion } from '../version.js';
import { canonicalJson } from './canonical-json.js';
import type { ConversionRecipe } from './recipe.js';

export type ConversionWishes = Omit<GivenOptions, 'precision'>;
type Ranges = ReadonlyMap<string, ValueRange>;

/** Conversion options, resolved, as plain data for the recipe. */
export function conversionRecipe(
  precision: ConvertedPrecision,
  wishes: ConversionWishes = {},
): ConversionRecipe {
  const options = resolveOptions({ ...wishes, precision });
  return {
    converter: `trtforge ${packageVersion()}`,
    ioTypes: options.ioTypes,
    keepNodes: options.keepNodes.map(String).sort(),
    keepOps: [...options.keepOps].sort(),
    convertOps: [...options.convertOps].sort(),
    initMax: options.initMax,
    dataMax: options.dataMax,
    maxReductionDepth: options.maxReductionDepth ?? null,
    calibration: options.ranges === undefined ? null : digestRanges(options.ranges),
  };
}

/** The other way: what `convertModel` takes. `ranges` are those whose digest the recipe holds. */
export function conversionOptions(
  precision: ConvertedPrecision,
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

/** Ranges may be infinite, which JSON cannot say, so their numbers go in as text. */
function digestRanges(ranges: Ranges): string {
  return sha256(
    canonicalJson(
      Object.fromEntries([...ranges].map(([name, { min, max }]) => [name, [`${min}`, `${max}`]])),
    ),
  );
}
