import { type Dtype, elementCount, packedBytes } from '../../formats/tensor/dtype.js';

/** The inspector's names of element types: the long words inside a format's sentence, the compiler's own short ones, and enum names. */
const WORDS: Readonly<Record<string, Dtype>> = {
  fp32: 'float32',
  float: 'float32',
  float32: 'float32',
  fp16: 'float16',
  half: 'float16',
  float16: 'float16',
  bf16: 'bfloat16',
  bfloat16: 'bfloat16',
  fp8: 'float8_e4m3fn',
  float8: 'float8_e4m3fn',
  fp4: 'float4_e2m1fn',
  e8m0: 'float8_e8m0fnu',
  int8: 'int8',
  int32: 'int32',
  int64: 'int64',
  int4: 'int4',
  uint8: 'uint8',
  bool: 'bool',
};

const WIDTHS: Readonly<Record<string, number>> = {
  two: 2,
  four: 4,
  eight: 8,
  sixteen: 16,
  'thirty-two': 32,
};

/** `Channel major FP16 format where channel % 8 == 0` is float16; null where the text names no type (`N/A due to dynamic shapes`). */
export function dtypeOfFormat(format: string): Dtype | null {
  for (const [word] of format.toLowerCase().matchAll(/\b[a-z]+\d*[a-z]*\d*\b/g)) {
    const dtype = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (dtype !== undefined) return dtype;
  }
  return null;
}

/** Bytes of a tensor in a layout: the channels are filled up to the layout's multiple. Null where a dimension is open or the type unknown. */
export function bytesInFormat(
  shape: readonly (number | null)[] | null,
  format: string | null,
  dtype: Dtype | null,
): number | null {
  if (shape === null || dtype === null) return null;
  const fixed = shape.filter((dimension) => dimension !== null);
  if (fixed.length !== shape.length) return null;
  const multiple = channelMultiple(format ?? '');
  const channel = fixed.length - (format?.includes('3 spatial dimensions') === true ? 4 : 3);
  const padded = fixed.map((dimension, index) =>
    index === channel ? Math.ceil(dimension / multiple) * multiple : dimension,
  );
  const bytes = packedBytes(dtype, elementCount(padded));
  return Number.isSafeInteger(bytes) ? bytes : null;
}

function channelMultiple(format: string): number {
  const modulo = /channel % (\d{1,4}) ==/i.exec(format)?.[1];
  if (modulo !== undefined) return Math.max(Number(modulo), 1);
  const wide = /^(\S{1,12}) wide channel/i.exec(format)?.[1]?.toLowerCase() ?? '';
  return (Object.hasOwn(WIDTHS, wide) ? WIDTHS[wide] : undefined) ?? 1;
}
