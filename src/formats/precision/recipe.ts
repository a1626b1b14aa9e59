import type { z } from 'zod';
import { type FormatId, restIds } from './formats/index.js';
import {
  type Calibration,
  CONVERSION_REVISION,
  type ConversionOptions,
  patterns,
  type Recorded,
  recordedOptions,
  resolveConversion,
} from './options.js';

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
