import { bf16 } from './bf16.js';
import { fp8 } from './fp8.js';
import { fp16 } from './fp16.js';
import { int4 } from './int4.js';
import { int8 } from './int8.js';
import { nvfp4 } from './nvfp4.js';

/** Floating-point types that values take. A new one is a file and a word here. */
export const floatFormats = [fp16, bf16] as const;

/** Codes between Q/DQ pairs. A new one is a file and a word here. */
export const quantizedFormats = [int8, fp8, int4, nvfp4] as const;

/** Every format, in the order in which option choices and schemas list them. */
export const formats = [...floatFormats, ...quantizedFormats] as const;

export type FormatId = (typeof formats)[number]['id'];
export type FloatFormatId = (typeof floatFormats)[number]['id'];

export const formatIds: readonly FormatId[] = formats.map(({ id }) => id);

/** The format of a recipe's or an option's precision; undefined for `as-is`, `fp32` and everything else. */
export const formatNamed = (precision: string | null | undefined): (typeof formats)[number] | undefined =>
  formats.find(({ id }) => id === precision);

export const floatFormatNamed = (
  precision: string | null | undefined,
): (typeof floatFormats)[number] | undefined => floatFormats.find(({ id }) => id === precision);

export const quantizedFormatNamed = (
  precision: string | null | undefined,
): (typeof quantizedFormats)[number] | undefined => quantizedFormats.find(({ id }) => id === precision);

/** The format that a command uses when none is requested. */
export const defaultFormat = fp16;

/** The same among those that quantize. */
export const defaultQuantizedFormat = int8;

/** The types around the pairs of a quantized model: a floating-point format, or FP32 as it was. */
export const restIds = [...floatFormats.map(({ id }) => id), 'fp32'] as readonly (FloatFormatId | 'fp32')[];
export type RestId = (typeof restIds)[number];
