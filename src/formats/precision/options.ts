import { TrtforgeError } from '../../errors.js';

/** What a model is converted to, in the words of the command line and the recipe. */
export type ConvertedPrecision = 'fp16' | 'bf16';

/** The 16-bit type of it. */
export type LowType = 'float16' | 'bfloat16';

/** What the model's own inputs and outputs become: stay as they are (casts go inside), or are converted too. */
type IoTypes = 'keep' | 'convert';

/** Smallest and largest value of a tensor over all calibration samples; infinities and NaN count as values beyond every range. */
export interface ValueRange {
  readonly min: number;
  readonly max: number;
}

/** How to convert. Everything is resolved: names are compiled, defaults filled in. */
export interface ConversionOptions {
  readonly precision: LowType;
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

/** The largest finite value of each type. */
export const largestFinite: Readonly<Record<LowType, number>> = {
  float16: 65504,
  bfloat16: 3.3895313892515355e38,
};

/** Options before defaults: only the precision must be said. */
export type GivenOptions = Partial<Omit<ConversionOptions, 'precision'>> & {
  readonly precision: ConvertedPrecision;
};

const lowTypes: Readonly<Record<ConvertedPrecision, LowType>> = { fp16: 'float16', bf16: 'bfloat16' };

/** Fills in what was not said. Throws TF_USAGE for a precision that no type of the compiler kept out. The default of `dataMax` leaves a factor of 64 between calibration and FP16's largest value for data never seen. */
export function resolveOptions(given: GivenOptions): ConversionOptions {
  const precision: LowType | undefined = lowTypes[given.precision];
  if (precision === undefined)
    throw new TrtforgeError('TF_USAGE', `«${given.precision}» is no precision to convert to.`, {
      remedy: `Give ${Object.keys(lowTypes).join(' or ')}.`,
    });
  const largest = largestFinite[precision];
  return {
    precision,
    ioTypes: given.ioTypes ?? 'keep',
    keepNodes: given.keepNodes ?? [],
    keepOps: given.keepOps ?? new Set(),
    convertOps: given.convertOps ?? new Set(),
    initMax: given.initMax ?? largest,
    dataMax: given.dataMax ?? (precision === 'float16' ? 1024 : largest),
    maxReductionDepth: given.maxReductionDepth,
    ranges: given.ranges,
  };
}
