import { existsSync } from 'node:fs';
import { digestModelFile } from '../../engines/identity/model-digest.js';
import { TrtforgeError } from '../../errors.js';
import {
  type CalibrationIdentity,
  readCalibration,
  writeCalibration,
} from '../../formats/precision/calibrate/cache.js';
import type { CalibratedRanges, TensorRange } from '../../formats/precision/calibrate/ranges.js';
import type { Calibration } from '../../formats/precision/options.js';

/** The same calibration, whose ranges of a model are observed once and kept in a file, so that each further conversion costs no run. */
export function rememberedRanges(calibration: Calibration, path: string): Calibration {
  let known: Map<string, TensorRange> | undefined;
  return {
    ...calibration,
    calibrate: async (model, tensors, context) => {
      const { digest, method } = calibration;
      const identity: CalibrationIdentity = {
        data: digest(),
        method,
        dtype: context.dtype ?? 'weights',
        model: await digestModelFile(model),
      };
      known ??= new Map(keptRanges(path, identity));
      const ranges = known;
      const missing = tensors.filter((name) => {
        const range = ranges.get(name);
        return range === undefined || (context.channels.has(name) && range.channels === undefined);
      });
      if (missing.length > 0) {
        for (const [name, range] of await calibration.calibrate(model, missing, context))
          ranges.set(name, range);
        writeCalibration(path, identity, ranges);
      }
      return new Map(tensors.flatMap((name) => (ranges.has(name) ? [[name, ranges.get(name)!]] : [])));
    },
  };
}

/** None where there is no file, or one of other data, another method or another model. */
function keptRanges(path: string, identity: CalibrationIdentity): CalibratedRanges {
  if (!existsSync(path)) return new Map();
  try {
    return readCalibration(path, identity).ranges;
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_CALIBRATION_INVALID') return new Map();
    throw error;
  }
}
