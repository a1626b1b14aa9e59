import { bf16 } from './bf16.js';
import { fp16 } from './fp16.js';

/** Every format, in the order in which option choices and schemas list them. A new one is a file and a word here. */
export const formats = [fp16, bf16] as const;

export type FormatId = (typeof formats)[number]['id'];

export const formatIds: readonly FormatId[] = formats.map(({ id }) => id);

/** The format of a recipe's or an option's precision; undefined for `as-is`, `fp32` and everything else. */
export const formatNamed = (precision: string | null | undefined): (typeof formats)[number] | undefined =>
  formats.find(({ id }) => id === precision);

/** The format that a command uses when none is requested. */
export const defaultFormat = fp16;
