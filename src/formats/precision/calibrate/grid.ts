import { isByteFloat, smallFloatTable } from '../../tensor/low-precision.js';

/** Types whose ranges are calibrated. */
export type QuantizedDtype = 'int8' | 'float8_e4m3fn';

/** The magnitudes that a type represents, ascending, as parts of its largest: 0, 1/127 … 1 for INT8 (-128 is not used), 0, 2^-9/448 … 1 for FP8 E4M3. */
export function magnitudesOf(dtype: QuantizedDtype): Float64Array {
  if (!isByteFloat(dtype)) return Float64Array.from({ length: 128 }, (_, code) => code / 127);
  const values = Float64Array.from(smallFloatTable(dtype)).filter((value) => Number.isFinite(value));
  const magnitudes = [...new Set(values.map(Math.abs))].sort((a, b) => a - b);
  const largest = magnitudes.at(-1)!;
  return Float64Array.from(magnitudes, (value) => value / largest);
}
