import { openOrtSession } from '../../../../src/engines/runtime/onnxruntime/ort-session.js';
import { observeRanges } from '../../../../src/formats/precision/calibrate/observe-ranges.js';
import type { Calibrate } from '../../../../src/formats/precision/calibrate/ranges.js';
import type { Calibration } from '../../../../src/formats/precision/options.js';
import { type Feeds, observedBy } from '../judge.js';

/** A calibration by `max` on samples in memory. */
export function calibrationOn(samples: readonly Feeds[]): Calibration {
  const observe: Calibration['observe'] = (model) =>
    observeRanges(
      model,
      () => samples.map((feeds) => new Map(Object.entries(feeds))),
      (path) => openOrtSession(path, { givenModel: model }),
    );
  return calibrationBy(async (model, tensors, context) => {
    const ranges = await observe(model, context);
    return new Map(
      tensors.map((name) => {
        const { min, max } = ranges.get(name)!;
        return [name, { min, max, amax: Math.max(-min, max) }];
      }),
    );
  });
}

export const calibrationBy = (calibrate: Calibrate): Calibration => ({
  ...observedBy(async () => new Map()),
  calibrate,
});
