import { TrtforgeError } from '../../../errors.js';
import { DEFAULT_PERCENTILE } from './methods.js';
import type { CalibrationMethod } from './ranges.js';

/** Rises when the same data, method and model give other ranges. */
export const CALIBRATION_REVISION = 2;

/** A method with what it needs. */
export type ChosenMethod =
  | { readonly name: Exclude<CalibrationMethod, 'percentile'> }
  | { readonly name: 'percentile'; readonly percentile: number };

/** The methods, with what each does, for help. */
export const calibrationMethods: Readonly<Record<CalibrationMethod, string>> = {
  max: 'the largest magnitude',
  percentile: `the magnitude that ${DEFAULT_PERCENTILE} % of the values are within, or percentile:99.9`,
  entropy: "TensorRT's entropy calibration",
  mse: 'the least mean squared error',
};

/** The closest to FP32 on trained and random models, or within 0.8 dB of it: docs/precision.md. */
export const DEFAULT_METHOD: CalibrationMethod = 'mse';

/** Reads `max`, `percentile`, `percentile:99.9`, `entropy` or `mse`. Throws TF_USAGE. */
export function parseMethod(text: string): ChosenMethod {
  const [name = '', share, ...more] = text.split(':');
  const percentile =
    share === undefined ? DEFAULT_PERCENTILE : share.trim() === '' ? Number.NaN : Number(share);
  if (more.length === 0 && Object.hasOwn(calibrationMethods, name)) {
    const known = name as CalibrationMethod;
    if (known === 'percentile' && percentile > 50 && percentile <= 100) return { name: known, percentile };
    if (known !== 'percentile' && share === undefined) return { name: known };
  }
  throw new TrtforgeError('TF_USAGE', `"${text}" is not a calibration method.`, {
    remedy: `Use ${Object.keys(calibrationMethods).join(', ')} or percentile:P with P from 50 to 100.`,
  });
}

/** The method as `parseMethod` reads it, with its default filled in; part of identities. */
export const methodText = (method: ChosenMethod): string =>
  method.name === 'percentile' ? `percentile:${method.percentile}` : method.name;
