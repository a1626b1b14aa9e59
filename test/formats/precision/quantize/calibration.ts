import { openOrtSession } from '../../../../src/engines/runtime/onnxruntime/ort-session.js';
import { calibrateTensors } from '../../../../src/formats/precision/calibrate/calibrate.js';
import type { Calibrate } from '../../../../src/formats/precision/calibrate/ranges.js';
import type { Calibration } from '../../../../src/formats/precision/options.js';
import { type Feeds, observedBy } from '../judge.js';

/** A calibration on samples in memory. */
export const calibrationOn = (samples: readonly Feeds[], name: 'max' | 'mse' = 'max'): Calibration =>
  calibrationBy((model, tensors, { channels, signal }) =>
    calibrateTensors(
      model,
      tensors,
      () => samples.map((feeds) => new Map(Object.entries(feeds))),
      ({ path, weightsFolder }) => openOrtSession(path, { weightsFolder, givenModel: model }),
      { method: { name }, channels, signal },
    ),
  );

export const calibrationBy = (calibrate: Calibrate): Calibration => ({
  ...observedBy(async () => new Map()),
  calibrate,
});
