/** Doubles from 2^52 on are whole numbers: adding this and taking it away rounds to nearest, ties to even, as the processor does. */
const WHOLE = 2 ** 52 + 2 ** 51;

/** Exact for magnitudes below 2^51; NaN stays NaN. */
export const roundHalfToEven = (value: number): number => value + WHOLE - WHOLE;
