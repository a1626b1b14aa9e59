import { TrtforgeError } from '../../errors.js';
import type { Format } from './formats/format.js';
import { type FormatId, formatIds, formatNamed } from './formats/index.js';

/** What the model's own inputs and outputs become: stay as they are (casts go inside), or are converted too. */
type IoTypes = 'keep' | 'convert';

/** Smallest and largest value of a tensor over all calibration samples; infinities and NaN count as values beyond every range. */
export interface ValueRange {
  readonly min: number;
  readonly max: number;
}

/** How to convert. Everything is resolved: names are compiled, defaults filled in. */
export interface ConversionOptions {
  /** What nodes are converted to where no rule keeps them. */
  readonly format: Format;
  readonly ioTypes: IoTypes;
  /** Nodes whose name matches stay FP32. */
  readonly keepNodes: readonly RegExp[];
  /** Operators that stay FP32, as `Type` or `domain::Type`. */
  readonly keepOps: ReadonlySet<string>;
  /** Operators converted although they stay FP32 by default. */
  readonly convertOps: ReadonlySet<string>;
  /** A weight with a larger magnitude keeps its readers FP32. */
  readonly initMax: number;
  /** An activation that went beyond this magnitude during calibration keeps the nodes around it FP32. */
  readonly dataMax: number;
  /** Products and sums over more terms than this stay FP32; undefined for no limit. */
  readonly maxReductionDepth: number | undefined;
  /** Ranges of activations by name, where a calibration was run. */
  readonly ranges: ReadonlyMap<string, ValueRange> | undefined;
}

/** Options before defaults: only the precision is required. */
export type GivenOptions = Partial<Omit<ConversionOptions, 'format'>> & { readonly precision: FormatId };

/** Fills in the format's defaults. Throws TF_USAGE for a precision that is no format. */
export function resolveOptions(given: GivenOptions): ConversionOptions {
  const format = formatNamed(given.precision);
  if (format === undefined)
    throw new TrtforgeError('TF_USAGE', `\`${given.precision}\` is not a precision to convert to.`, {
      remedy: `Use ${formatIds.join(' or ')}.`,
    });
  return {
    format,
    ioTypes: given.ioTypes ?? 'keep',
    keepNodes: given.keepNodes ?? [],
    keepOps: given.keepOps ?? new Set(),
    convertOps: given.convertOps ?? new Set(),
    initMax: given.initMax ?? format.maxFinite,
    dataMax: given.dataMax ?? format.dataMax,
    maxReductionDepth: given.maxReductionDepth,
    ranges: given.ranges,
  };
}
