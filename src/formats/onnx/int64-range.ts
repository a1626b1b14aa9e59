const INT32_MIN = -(2n ** 31n);
const INT32_MAX = 2n ** 31n - 1n;
/** Exporters write these for «to the end» (Slice) and «no limit»; clamping them changes nothing. */
const sentinels = new Set([2n ** 63n - 1n, -(2n ** 63n), 2n ** 63n - 2n, -(2n ** 63n) + 1n]);

/** What happens to int64 constants where TensorRT narrows them to int32 (before 10, and for shapes and indices in general). */
export function int64Finding(
  values: readonly bigint[],
): { readonly code: 'int64-clamped' | 'int64-sentinel'; readonly what: string } | undefined {
  const outside = values.filter((value) => value < INT32_MIN || value > INT32_MAX);
  const worst = outside.find((value) => !sentinels.has(value));
  if (worst !== undefined) {
    return {
      code: 'int64-clamped',
      what: `holds ${worst}, outside the range of int32; where TensorRT narrows it, it becomes ${worst < 0 ? INT32_MIN : INT32_MAX}`,
    };
  }
  if (outside.length === 0) return undefined;
  return {
    code: 'int64-sentinel',
    what: `holds ${outside[0]}, a mark for «without limit» that stays one when it is clamped to int32`,
  };
}
