import type { z } from 'zod';
import * as is from '../../base/options/kinds.js';
import {
  allBut,
  defaultsOf,
  needed,
  type OptionsOf,
  optional,
  withDefaults,
} from '../../base/options/option.js';
import { pattern, splitAtCommas } from '../../base/options/readers.js';
import { TrtforgeError } from '../../errors.js';
import { preparationOptions } from '../images/preprocess.js';
import type { Calibrate, ObserveRanges, ValueRange } from './calibrate/ranges.js';
import type { FloatFormat, QuantizedFormat } from './formats/format.js';
import {
  defaultFormat,
  type FormatId,
  floatFormatNamed,
  floatFormats,
  formatIds,
  quantizedFormatNamed,
  type RestId,
  restIds,
} from './formats/index.js';
import { type PluginTypes, parsePluginTypes, pluginTypesText } from './plugin-types.js';
import type { CalibrationFacts } from './result.js';

/**
 * The revision of the conversion's behaviour, part of the identity of every converted engine: engines that an older converter made are not found again.
 * Goes up by one whenever the converter writes another model for the same model and options; a test compares digests of what it writes.
 */
export const CONVERSION_REVISION = 5;

/** The types of the model's own inputs and outputs: they stay as they are (casts go inside), or are converted too. */
type IoTypes = 'keep' | 'convert';
const ioTypes = ['keep', 'convert'] as const satisfies readonly IoTypes[];

/** An input as a model declares it. */
interface DeclaredInput {
  readonly name: string;
  readonly dtype: string | null;
  readonly shape: readonly (number | string | null)[] | null;
}

/** The sources of samples. */
export const sampleFiles =
  'npz, npy, NAME=@FILE.npy, images, WAV, a recorded stream, a folder or a list (.txt) of them';

/** Samples by which a conversion is judged. */
export const judgingSampleOptions = {
  files: needed(is.list<string>(), {
    flags: '--inputs <file>',
    group: 'Inputs',
    describe: `samples to compare on (default: drawn): ${sampleFiles}; inputs that they lack are drawn`,
    repeat: true,
  }),
  ...preparationOptions,
  /** The samples that the ranges were not made of; default all. */
  part: optional(is.words('held-out')),
};

export interface JudgingSamples extends OptionsOf<typeof judgingSampleOptions> {}

/** Samples to run the FP32 model on, and what runs it: only when the model is converted, not when its engine is found. */
export interface Calibration {
  /** SHA-256 over what decides the ranges, samples and how they are prepared, or a table: part of the identity. Reads them. */
  readonly digest: () => string;
  /** The method that chooses ranges for formats that quantize: `max`, `percentile:99.99`, `entropy`, `mse`; `unknown` where a table has them. */
  readonly method: string;
  /** The preparation of its images, by the name of `--preprocess`; undefined where that was not stated. */
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

const staysFp32 = { group: 'What stays FP32' } as const;
const operatorsOf = (texts: readonly string[]): ReadonlySet<string> => new Set(texts.flatMap(splitAtCommas));

/** Defaults of --data-max lower than the largest value. */
const dataLimits = floatFormats
  .filter(({ dataMax, maxFinite }) => dataMax < maxFinite)
  .map(({ id, dataMax }) => `${dataMax} for ${id}`)
  .join(', ');

/** The options of a conversion, as a user passes them; everything has a default. */
export const conversionOptions = {
  /** Nodes whose name matches stay FP32. */
  keepNodes: optional(is.list<RegExp>(), {
    flags: '--keep-nodes <regex>',
    ...staysFp32,
    describe: 'nodes whose name matches stay FP32',
    parse: pattern,
    repeat: true,
  }),
  /** Operators that stay FP32, as `Type` or `domain::Type`. */
  keepOps: optional(is.set<string>(), {
    flags: '--keep-ops <types>',
    ...staysFp32,
    describe: 'operators that stay FP32, separated by commas',
    repeat: true,
    make: operatorsOf,
  }),
  /** Operators converted although they stay FP32 by default. */
  convertOps: optional(is.set<string>(), {
    flags: '--convert-ops <types>',
    ...staysFp32,
    describe: 'operators converted although they stay FP32 by default',
    repeat: true,
    make: operatorsOf,
  }),
  /** Types of operators that ONNX does not define; others of them stay FP32. */
  pluginTypes: optional(is.map() as is.Kind<PluginTypes>, {
    flags: '--plugin-types <types>',
    ...staysFp32,
    describe:
      "types of a plug-in's inputs and outputs, OPERATOR:fp16 or OPERATOR:[fp16,int32]:[fp16]; others stay FP32",
    parse: parsePluginTypes,
    repeat: true,
    make: (read: readonly ReturnType<typeof parsePluginTypes>[]): PluginTypes => new Map(read),
    texts: pluginTypesText,
    advanced: true,
  }),
  /** A weight with a larger magnitude keeps its readers FP32; default: the format's largest value. */
  initMax: optional(is.decimal(0), {
    flags: '--init-max <number>',
    ...staysFp32,
    describe:
      'a weight with a larger magnitude keeps its nodes FP32 (default: the largest value of the type)',
  }),
  /** An activation that went beyond this magnitude during calibration keeps the nodes around it FP32; default: the format's. */
  dataMax: optional(is.decimal(0), {
    flags: '--data-max <number>',
    ...staysFp32,
    describe: `an activation beyond this in calibration keeps its nodes FP32 (default: ${dataLimits})`,
  }),
  /** Products and sums over more terms than this stay FP32; undefined for no limit. */
  maxReductionDepth: optional(is.whole(1), {
    flags: '--max-reduction-depth <terms>',
    ...staysFp32,
    describe: 'products and sums over more terms stay FP32 (default: no limit)',
  }),
  /** The type of everything but the pairs where the precision is a quantized one; default: FP16. */
  rest: optional(is.word<RestId>(), {
    flags: '--high-precision <type>',
    describe: 'what is around quantized nodes',
    choices: restIds,
    default: defaultFormat.id,
  }),
  /** Default `keep`. */
  ioTypes: optional(is.word<IoTypes>(), {
    flags: '--io-types <what>',
    describe: "the model's own inputs and outputs keep FP32, or convert",
    choices: ioTypes,
    default: 'keep',
  }),
  /** Nodes whose name matches get no codes where the precision is a quantized one: they become what `rest` states. */
  unquantizedNodes: optional(is.list<RegExp>(), {
    flags: '--high-precision-nodes <regex>',
    advanced: true,
    describe: 'nodes whose name matches are not quantized: they become what --high-precision states',
    parse: pattern,
    repeat: true,
  }),
  calibration: optional(is.object<Calibration>()),
  /** Whether a model of which no node gets the precision is written all the same, with a warning; default: an error. */
  allowUnconverted: optional(is.flag),
};

export interface ConversionOptions extends OptionsOf<typeof conversionOptions> {}

/** An option for measurements: the activations keep their values where the precision is a quantized one. */
export interface WeightsOnly {
  readonly weightsOnly?: boolean;
}

/** Options with a default that is the same for all formats. */
const usual = defaultsOf(
  allBut(conversionOptions, 'initMax', 'dataMax', 'rest', 'calibration', 'allowUnconverted'),
);

type Usual = typeof usual;

/** The input of rules and passes: the format in place of its name, defaults filled in, ranges in place of the calibration. */
export interface ResolvedConversion extends Usual {
  /** The format of nodes that no rule keeps. */
  readonly format: FloatFormat;
  readonly initMax: number;
  readonly dataMax: number;
  /** Ranges of activations by name, where a calibration was run. */
  readonly ranges: ReadonlyMap<string, ValueRange> | undefined;
  /** The quantized format and the type of the rest, where the precision is a quantized one. `format` is the floating-point format of the rest. */
  readonly quantization: ResolvedQuantization | undefined;
  readonly allowUnconverted: boolean;
}

interface ResolvedQuantization {
  readonly format: QuantizedFormat;
  readonly rest: RestId;
}

/** How the value of an option stands in the identity of an engine: as plain data, without an order where it has none. */
export interface Recorded<L, P = never> {
  /** Takes zod, which processes that only convert do not load. */
  readonly schema: (zod: typeof z) => z.ZodType;
  readonly write: (value: L) => unknown;
  readonly read: (plain: P) => unknown;
}

const asItIs = <P>(schema: (zod: typeof z) => z.ZodType<P>) => ({
  schema,
  write: (value: P) => value,
  read: (plain: P) => plain,
});

/** As regular expressions write themselves: `/^encoder/i`. */
export const patterns = {
  schema: ({ array, string }: typeof z) => array(string()),
  write: (regexes: readonly RegExp[]) => regexes.map(String).sort(),
  read: (texts: readonly string[]) =>
    texts.map((text) => {
      const end = text.lastIndexOf('/');
      return new RegExp(text.slice(1, end), text.slice(end + 1));
    }),
};

const names = {
  schema: ({ array, string }: typeof z) => array(string()),
  write: (set: ReadonlySet<string>) => [...set].sort(),
  read: (list: readonly string[]) => new Set(list),
};

/** All options that decide what is written; those of a quantization are recorded with it. */
type RecordedValues = Omit<Usual, 'unquantizedNodes'> &
  Pick<ResolvedConversion, 'initMax' | 'dataMax'> &
  Pick<ConversionOptions, 'calibration'>;

/**
 * How options stand in identities, with every default resolved. A new one is absent where it has its default, as `pluginTypes` is: engines that were built before
 * are found again.
 */
const recordedOptions = {
  ioTypes: asItIs((zod) => zod.enum(ioTypes)),
  keepNodes: patterns,
  keepOps: names,
  convertOps: names,
  initMax: asItIs(({ number }) => number().positive()),
  dataMax: asItIs(({ number }) => number().positive()),
  maxReductionDepth: {
    schema: ({ int }: typeof z) => int().positive().nullable(),
    write: (depth: number | undefined) => depth ?? null,
    read: (depth: number | null) => depth ?? undefined,
  },
  /** SHA-256 over the content of the calibration's samples; null without one. */
  calibration: {
    schema: ({ string }: typeof z) => string().nullable(),
    write: (calibration: Calibration | undefined) => calibration?.digest() ?? null,
    read: () => undefined,
  },
  /** `MyNorm:fp16`, `Nms:[fp32,fp32]:[fp32,int32]`, sorted; absent without any. */
  pluginTypes: {
    schema: ({ array, string }: typeof z) => array(string()).optional(),
    write: (types: PluginTypes) => (types.size === 0 ? undefined : [...pluginTypesText(types)].sort()),
    read: (texts: readonly string[] = []) => new Map(texts.map(parsePluginTypes)),
  },
} satisfies { [K in keyof RecordedValues]-?: Recorded<RecordedValues[K]> };

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
  const { maxFinite: initMax, dataMax } = format;
  const defaults = { ...usual, initMax, dataMax, allowUnconverted: false as boolean };
  return {
    ...withDefaults(defaults, options),
    format,
    ranges,
    quantization: quantized && { format: quantized, rest },
  };
}

/** The pattern that matches one name. */
export const exactly = (name: string): RegExp =>
  new RegExp(`^${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`);

type Row = readonly [name: keyof typeof recordedOptions, recorded: Recorded<unknown, unknown>];
const rows = Object.entries(recordedOptions) as unknown as readonly Row[];
type Shapes = { [K in keyof typeof recordedOptions]: ReturnType<(typeof recordedOptions)[K]['schema']> };

/** The schema of a conversion's part of the identity: its options with defaults, as plain data. */
export const conversionRecipeSchema = (zod: typeof z) =>
  zod.strictObject({
    /** `trtforge rules 1` (`CONVERSION_REVISION`): another revision may write another model. */
    converter: zod.string(),
    ...(Object.fromEntries(rows.map(([name, { schema }]) => [name, schema(zod)])) as Shapes),
    /** Of a quantized precision: what everything else becomes, and how ranges are chosen (null where no activation is quantized). Absent otherwise. */
    quantization: zod
      .strictObject({
        rest: zod.enum(restIds),
        method: zod.string().nullable(),
        /** Nodes that get no codes; absent without any. */
        unquantizedNodes: patterns.schema(zod).optional(),
      })
      .optional(),
  });

type ConversionRecipe = z.infer<ReturnType<typeof conversionRecipeSchema>>;

/** The recipe of a conversion. Reads the calibration's samples; throws what reading throws. */
export function conversionRecipe(precision: FormatId, options: ConversionOptions = {}): ConversionRecipe {
  const { quantization, ...resolved } = resolveConversion(precision, options);
  const { calibration } = options;
  const values = { ...resolved, calibration };
  const recorded = Object.fromEntries(rows.map(([name, { write }]) => [name, write(values[name])]));
  return {
    // Ranges behind plug-ins were not seen once: engines of that time are not found again.
    converter: `trtforge rules ${CONVERSION_REVISION}${resolved.pluginTypes.size === 0 ? '' : '.1'}`,
    ...(recorded as Pick<ConversionRecipe, keyof typeof recordedOptions>),
    ...(quantization && {
      quantization: {
        rest: quantization.rest,
        method: quantization.format.activations === true ? (calibration?.method ?? null) : null,
        unquantizedNodes:
          resolved.unquantizedNodes.length === 0 ? undefined : patterns.write(resolved.unquantizedNodes),
      },
    }),
  };
}

/** The options of a recorded conversion; its calibration is recorded as a digest only. */
export function conversionOptionsOf(recipe: ConversionRecipe, calibration?: Calibration): ConversionOptions {
  const { rest, unquantizedNodes = [] } = recipe.quantization ?? {};
  return {
    ...Object.fromEntries(rows.map(([name, { read }]) => [name, read(recipe[name])])),
    rest,
    unquantizedNodes: patterns.read(unquantizedNodes),
    calibration,
  };
}
