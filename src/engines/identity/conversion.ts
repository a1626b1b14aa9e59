import type { FormatId } from '../../formats/precision/formats/index.js';
import {
  type Calibration,
  CONVERSION_REVISION,
  type ConversionOptions,
  resolveConversion,
} from '../../formats/precision/options.js';
import { parsePluginTypes, pluginTypesText } from '../../formats/precision/plugin-types.js';
import type { ConversionRecipe } from './recipe.js';

/** A conversion's part of the identity: its options with defaults, as plain data. Reads the calibration's samples; throws what reading throws. */
export function conversionRecipe(precision: FormatId, options: ConversionOptions = {}): ConversionRecipe {
  const resolved = resolveConversion(precision, options);
  const { quantization } = resolved;
  const method = quantization?.format.activations === true ? (options.calibration?.method ?? null) : null;
  return {
    // Ranges behind plug-ins were not seen once: engines of that time are not found again.
    converter: `trtforge rules ${CONVERSION_REVISION}${resolved.pluginTypes.size === 0 ? '' : '.1'}`,
    ioTypes: resolved.ioTypes,
    keepNodes: resolved.keepNodes.map(String).sort(),
    keepOps: [...resolved.keepOps].sort(),
    convertOps: [...resolved.convertOps].sort(),
    initMax: resolved.initMax,
    dataMax: resolved.dataMax,
    maxReductionDepth: resolved.maxReductionDepth ?? null,
    calibration: options.calibration?.digest() ?? null,
    ...(resolved.pluginTypes.size === 0
      ? {}
      : { pluginTypes: [...pluginTypesText(resolved.pluginTypes)].sort() }),
    ...(quantization === undefined
      ? {}
      : {
          quantization: {
            rest: quantization.rest,
            method,
            ...(resolved.unquantizedNodes.length === 0
              ? {}
              : { unquantizedNodes: resolved.unquantizedNodes.map(String).sort() }),
          },
        }),
  };
}

/** The options of a recorded conversion; its calibration is recorded as a digest only. */
export function conversionOptionsOf(recipe: ConversionRecipe, calibration?: Calibration): ConversionOptions {
  const { ioTypes, keepNodes, keepOps, convertOps, initMax, dataMax, maxReductionDepth } = recipe;
  return {
    ioTypes,
    keepNodes: keepNodes.map(asPattern),
    keepOps: new Set(keepOps),
    convertOps: new Set(convertOps),
    initMax,
    dataMax,
    maxReductionDepth: maxReductionDepth ?? undefined,
    pluginTypes: new Map(recipe.pluginTypes?.map(parsePluginTypes)),
    rest: recipe.quantization?.rest,
    unquantizedNodes: recipe.quantization?.unquantizedNodes?.map(asPattern),
    calibration,
  };
}

/** `/^encoder/i` as a regular expression writes itself. */
function asPattern(text: string): RegExp {
  const end = text.lastIndexOf('/');
  return new RegExp(text.slice(1, end), text.slice(end + 1));
}
