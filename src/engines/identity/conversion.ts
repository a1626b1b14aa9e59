import { sha256 } from '../../base/files/digest.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import {
  CONVERSION_REVISION,
  type ConversionOptions,
  resolveConversion,
} from '../../formats/precision/options.js';
import { openNpz } from '../../formats/tensor/npz.js';
import { canonicalJson } from './canonical-json.js';
import type { ConversionRecipe } from './recipe.js';

/** What of a conversion is part of the identity: its options with every default, as plain data. Reads the calibration's samples; throws what `openNpz` throws. */
export function conversionRecipe(precision: FormatId, options: ConversionOptions = {}): ConversionRecipe {
  const resolved = resolveConversion(precision, options);
  return {
    converter: `trtforge rules ${CONVERSION_REVISION}`,
    ioTypes: resolved.ioTypes,
    keepNodes: resolved.keepNodes.map(String).sort(),
    keepOps: [...resolved.keepOps].sort(),
    convertOps: [...resolved.convertOps].sort(),
    initMax: resolved.initMax,
    dataMax: resolved.dataMax,
    maxReductionDepth: resolved.maxReductionDepth ?? null,
    calibration: options.calibration === undefined ? null : digestSamples(options.calibration.samples),
  };
}

/** Digest of what samples hold, wherever their files are and in whatever order they are passed: ranges do not depend on it. */
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
