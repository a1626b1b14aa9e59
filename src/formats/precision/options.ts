import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import type { Calibrate } from './calibrate/ranges.js';
import type { CalibrationFacts } from './conversion.js';
import type { FloatFormat, QuantizedFormat } from './formats/format.js';
import {
  defaultFormat,
  type FormatId,
  floatFormatNamed,
  formatIds,
  quantizedFormatNamed,
  type RestId,
} from './formats/index.js';
import type { PluginTypes } from './plugin-types.js';

/**
 * The revision of the conversion's behaviour, part of the identity of every converted engine: engines that an older converter made are not found again.
 * Goes up by one whenever the converter writes another model for the same model and options; a test compares digests of what it writes.
 */
export const CONVERSION_REVISION = 5;

/** What the model's own inputs and outputs become: stay as they are (casts go inside), or are converted too. */
type IoTypes = 'keep' | 'convert';

/** Smallest and largest value of a tensor over all calibration samples; infinities and NaN count as values beyond every range. */
export interface ValueRange {
  readonly min: number;
  readonly max: number;
}

/** Runs a model on samples of its inputs and returns the ranges of its activations by name. */
export type ObserveRanges = (
  model: string,
  context: { readonly emit: EventListener; readonly signal?: AbortSignal },
) => Promise<ReadonlyMap<string, ValueRange>>;

/** An input as a model declares it. */
interface DeclaredInput {
  readonly name: string;
  readonly dtype: string | null;
  readonly shape: readonly (number | string | null)[] | null;
}

/** Samples by which a conversion is judged. */
export interface JudgingSamples {
  readonly files: readonly string[];
  readonly preprocess?: string;
  readonly imgsz?: number;
  /** The samples that the ranges were not made of; default all. */
  readonly part?: 'held-out';
}

/** Samples to run the FP32 model on, and what runs it: only when the model is converted, not when its engine is found. */
export interface Calibration {
  /** SHA-256 over what decides the ranges, samples and how they are prepared, or a table: part of the identity. Reads them. */
  readonly digest: () => string;
  /** How ranges are chosen for formats that quantize: `max`, `percentile:99.99`, `entropy`, `mse`; `unknown` where a table has them. */
  readonly method: string;
  /** How its images were prepared, by the name of `--preprocess`; undefined where that was not stated. */
  readonly preprocess?: string | undefined;
  /** The range of every activation, for `dataMax`. */
  readonly observe: ObserveRanges;
  /** Ranges of tensors by the method, for formats that quantize. */
  readonly calibrate: Calibrate;
  /** Samples that judge what was converted; undefined where ranges are those of a file alone. */
  readonly judging?: JudgingSamples;
  /** For the result, after the ranges were asked for. */
  readonly facts?: () => CalibrationFacts;
  /** The same for one model of several: with the samples whose tensors are its inputs, and a cache of its own; undefined where it has neither. Reads names only. */
  readonly forComponent?: (name: string, inputs: readonly DeclaredInput[]) => Calibration | undefined;
}

/** How to convert, as a user passes it; everything has a default. */
export interface ConversionOptions {
  /** Default `keep`. */
  readonly ioTypes?: IoTypes;
  /** Nodes whose name matches stay FP32. */
  readonly keepNodes?: readonly RegExp[];
  /** Nodes whose name matches get no codes where the precision is a quantized one: they become what `rest` states. */
  readonly unquantizedNodes?: readonly RegExp[];
  /** Operators that stay FP32, as `Type` or `domain::Type`. */
  readonly keepOps?: ReadonlySet<string>;
  /** Operators converted although they stay FP32 by default. */
  readonly convertOps?: ReadonlySet<string>;
  /** Types of operators that ONNX does not define; others of them stay FP32. */
  readonly pluginTypes?: PluginTypes;
  /** A weight with a larger magnitude keeps its readers FP32; default: the format's largest value. */
  readonly initMax?: number;
  /** An activation that went beyond this magnitude during calibration keeps the nodes around it FP32; default: the format's. */
  readonly dataMax?: number;
  /** Products and sums over more terms than this stay FP32; undefined for no limit. */
  readonly maxReductionDepth?: number;
  readonly calibration?: Calibration;
  /** What everything but the pairs becomes where the precision is a quantized one; default: FP16. */
  readonly rest?: RestId;
  /** Whether a model of which no node gets the precision is written all the same, with a warning; default: an error. */
  readonly allowUnconverted?: boolean;
}

/** What a measurement asks for: the activations keep their values where the precision is a quantized one. */
export interface WeightsOnly {
  readonly weightsOnly?: boolean;
}

/** What rules and passes take: the format in place of its name, defaults filled in, ranges in place of the calibration. */
export interface ResolvedConversion {
  /** What nodes are converted to where no rule keeps them. */
  readonly format: FloatFormat;
  readonly ioTypes: IoTypes;
  readonly keepNodes: readonly RegExp[];
  readonly unquantizedNodes: readonly RegExp[];
  readonly keepOps: ReadonlySet<string>;
  readonly convertOps: ReadonlySet<string>;
  readonly pluginTypes: PluginTypes;
  readonly initMax: number;
  readonly dataMax: number;
  readonly maxReductionDepth: number | undefined;
  /** Ranges of activations by name, where a calibration was run. */
  readonly ranges: ReadonlyMap<string, ValueRange> | undefined;
  /** What is quantized to and what the rest becomes, where the precision is a quantized one. `format` is the floating-point format of the rest. */
  readonly quantization: ResolvedQuantization | undefined;
  readonly allowUnconverted: boolean;
}

interface ResolvedQuantization {
  readonly format: QuantizedFormat;
  readonly rest: RestId;
}

/** Fills in the format's defaults. Throws TF_USAGE for a precision that is no format, and for activations to be quantized without a calibration. */
export function resolveConversion(
  precision: FormatId,
  options: ConversionOptions & WeightsOnly,
  ranges?: ResolvedConversion['ranges'],
): ResolvedConversion {
  const named = quantizedFormatNamed(precision);
  const quantized = options.weightsOnly && named ? { ...named, activations: false } : named;
  const rest = options.rest ?? defaultFormat.id;
  if (quantized?.activations === true && options.calibration === undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      `${quantized.label} needs the ranges of activations, and there is no calibration.`,
      {
        remedy:
          'Pass samples of the inputs: --calibration samples.npz, or a folder of images with --preprocess, and --imgsz where the model leaves their size open.',
      },
    );
  const format =
    quantized === undefined ? floatFormatNamed(precision) : (floatFormatNamed(rest) ?? defaultFormat);
  if (format === undefined)
    throw new TrtforgeError('TF_USAGE', `\`${precision}\` is not a precision to convert to.`, {
      remedy: `Use ${formatIds.join(' or ')}; \`as-is\` builds the graph's own types, such as FP32.`,
    });
  return {
    format,
    ioTypes: options.ioTypes ?? 'keep',
    keepNodes: options.keepNodes ?? [],
    unquantizedNodes: options.unquantizedNodes ?? [],
    keepOps: options.keepOps ?? new Set(),
    convertOps: options.convertOps ?? new Set(),
    pluginTypes: options.pluginTypes ?? new Map(),
    initMax: options.initMax ?? format.maxFinite,
    dataMax: options.dataMax ?? format.dataMax,
    maxReductionDepth: options.maxReductionDepth,
    ranges,
    quantization: quantized && { format: quantized, rest },
    allowUnconverted: options.allowUnconverted ?? false,
  };
}
