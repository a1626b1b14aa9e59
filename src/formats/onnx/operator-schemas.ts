// Derived by scripts/derive-operators.py from the operator schemas of onnx 1.23.2; do not edit.

export const typeSets: readonly string[] = [
  'float16 float32 float64',
  'float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8',
  'bfloat16 float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8',
  'bfloat16 float16 float32 float64',
  'float16 float32 float64 int32 int64 uint32 uint64',
  'bfloat16 float16 float32 float64 int32 int64 uint32 uint64',
  'int64',
  'bool',
  'bfloat16 bool float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int2 int32 int4 int64 int8 uint16 uint2 uint32 uint4 uint64 uint8',
  'uint16 uint32 uint64 uint8',
  'int16 int32 int64 int8 uint16 uint32 uint64 uint8',
  'int32 int64',
  'bool float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8',
  'bool float16 float32 float64 int16 int32 int64 int8 string uint16 uint32 uint64 uint8',
  'bfloat16 bool float16 float32 float64 int16 int32 int64 int8 string uint16 uint32 uint64 uint8',
  'bfloat16 bool float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int64 int8 string uint16 uint32 uint64 uint8',
  'bfloat16 bool float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int32 int4 int64 int8 string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int2 int32 int4 int64 int8 string uint16 uint2 uint32 uint4 uint64 uint8',
  'bfloat16 bool float16 float32 float4_e2m1fn float64 float6e2m3 float6e3m2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int2 int32 int4 int64 int8 string uint16 uint2 uint32 uint4 uint64 uint8',
  'bfloat16 float16 float32',
  'float32',
  'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 string uint16 uint32 uint64 uint8',
  'bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 string uint16 uint32 uint64 uint8',
  'seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8)',
  'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int64 int8 string uint16 uint32 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int32 int4 int64 int8 string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int2 int32 int4 int64 int8 string uint16 uint2 uint32 uint4 uint64 uint8',
  'bfloat16 bool float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int64 int8 uint16 uint32 uint64 uint8',
  'bfloat16 bool float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int32 int4 int64 int8 uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int2 int32 int4 int64 int8 uint16 uint2 uint32 uint4 uint64 uint8',
  'int8 uint8',
  'int32',
  'float32 float64 int32 int64 uint32 uint64',
  'int32 int8 uint8',
  'float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int32 int8 uint8',
  'float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int8 uint16 uint4 uint8',
  'float4_e2m1fn float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int8 uint16 uint4 uint8',
  'bfloat16 float16 float32 float8_e8m0fnu',
  'float4_e2m1fn float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int2 int32 int4 int8 uint16 uint2 uint4 uint8',
  'float4_e2m1fn float6e2m3 float6e3m2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int2 int32 int4 int8 uint16 uint2 uint4 uint8',
  'bfloat16 float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz',
  'uint8',
  'bool int32 int64',
  'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int64 int8 optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int32 int4 int64 int8 optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int2 int32 int4 int64 int8 optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint2 uint32 uint4 uint64 uint8',
  'bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 optional(bfloat16) optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bfloat16)) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8) seq(bfloat16) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int64 int8 optional(bfloat16) optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(float8_e4m3fn) optional(float8_e4m3fnuz) optional(float8_e5m2) optional(float8_e5m2fnuz) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bfloat16)) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8) seq(bfloat16) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(float8_e4m3fn) seq(float8_e4m3fnuz) seq(float8_e5m2) seq(float8_e5m2fnuz) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 optional(bfloat16) optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(float8_e4m3fn) optional(float8_e4m3fnuz) optional(float8_e5m2) optional(float8_e5m2fnuz) optional(int16) optional(int32) optional(int4) optional(int64) optional(int8) optional(seq(bfloat16)) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint4) optional(uint64) optional(uint8) seq(bfloat16) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(float8_e4m3fn) seq(float8_e4m3fnuz) seq(float8_e5m2) seq(float8_e5m2fnuz) seq(int16) seq(int32) seq(int4) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint4) seq(uint64) seq(uint8) string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int32 int4 int64 int8 optional(bfloat16) optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float4_e2m1fn) optional(float64) optional(float8_e4m3fn) optional(float8_e4m3fnuz) optional(float8_e5m2) optional(float8_e5m2fnuz) optional(int16) optional(int32) optional(int4) optional(int64) optional(int8) optional(seq(bfloat16)) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint4) optional(uint64) optional(uint8) seq(bfloat16) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float4_e2m1fn) seq(float64) seq(float8_e4m3fn) seq(float8_e4m3fnuz) seq(float8_e5m2) seq(float8_e5m2fnuz) seq(int16) seq(int32) seq(int4) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint4) seq(uint64) seq(uint8) string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int32 int4 int64 int8 optional(bfloat16) optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float4_e2m1fn) optional(float64) optional(float8_e4m3fn) optional(float8_e4m3fnuz) optional(float8_e5m2) optional(float8_e5m2fnuz) optional(float8_e8m0fnu) optional(int16) optional(int32) optional(int4) optional(int64) optional(int8) optional(seq(bfloat16)) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint4) optional(uint64) optional(uint8) seq(bfloat16) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float4_e2m1fn) seq(float64) seq(float8_e4m3fn) seq(float8_e4m3fnuz) seq(float8_e5m2) seq(float8_e5m2fnuz) seq(float8_e8m0fnu) seq(int16) seq(int32) seq(int4) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint4) seq(uint64) seq(uint8) string uint16 uint32 uint4 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int2 int32 int4 int64 int8 optional(bfloat16) optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float4_e2m1fn) optional(float64) optional(float8_e4m3fn) optional(float8_e4m3fnuz) optional(float8_e5m2) optional(float8_e5m2fnuz) optional(float8_e8m0fnu) optional(int16) optional(int2) optional(int32) optional(int4) optional(int64) optional(int8) optional(seq(bfloat16)) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint2) optional(uint32) optional(uint4) optional(uint64) optional(uint8) seq(bfloat16) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float4_e2m1fn) seq(float64) seq(float8_e4m3fn) seq(float8_e4m3fnuz) seq(float8_e5m2) seq(float8_e5m2fnuz) seq(float8_e8m0fnu) seq(int16) seq(int2) seq(int32) seq(int4) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint2) seq(uint32) seq(uint4) seq(uint64) seq(uint8) string uint16 uint2 uint32 uint4 uint64 uint8',
  'float32 float64',
  'bfloat16 float32',
  'float16 float32 float64 int8 uint8',
  'bfloat16 float16 float32 float64 int8 uint8',
  'float16 float32 float64 int16 int32 int64 int8',
  'bfloat16 float16 float32 float64 int16 int32 int64 int8',
  'optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8)',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float6e2m3 float6e3m2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int2 int32 int4 int64 int8 seq(bfloat16) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float4_e2m1fn) seq(float64) seq(float6e2m3) seq(float6e3m2) seq(float8_e4m3fn) seq(float8_e4m3fnuz) seq(float8_e5m2) seq(float8_e5m2fnuz) seq(float8_e8m0fnu) seq(int16) seq(int2) seq(int32) seq(int4) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint2) seq(uint32) seq(uint4) seq(uint64) seq(uint8) string uint16 uint2 uint32 uint4 uint64 uint8',
  'optional(bfloat16) optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float4_e2m1fn) optional(float64) optional(float6e2m3) optional(float6e3m2) optional(float8_e4m3fn) optional(float8_e4m3fnuz) optional(float8_e5m2) optional(float8_e5m2fnuz) optional(float8_e8m0fnu) optional(int16) optional(int2) optional(int32) optional(int4) optional(int64) optional(int8) optional(seq(bfloat16)) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float4_e2m1fn)) optional(seq(float64)) optional(seq(float6e2m3)) optional(seq(float6e3m2)) optional(seq(float8_e4m3fn)) optional(seq(float8_e4m3fnuz)) optional(seq(float8_e5m2)) optional(seq(float8_e5m2fnuz)) optional(seq(float8_e8m0fnu)) optional(seq(int16)) optional(seq(int2)) optional(seq(int32)) optional(seq(int4)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint2)) optional(seq(uint32)) optional(seq(uint4)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint2) optional(uint32) optional(uint4) optional(uint64) optional(uint8)',
  'bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float64) optional(int16) optional(int32) optional(int64) optional(int8) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float64)) optional(seq(int16)) optional(seq(int32)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint32)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint32) optional(uint64) optional(uint8) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8) string uint16 uint32 uint64 uint8',
  'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float6e2m3 float6e3m2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int16 int2 int32 int4 int64 int8 optional(bfloat16) optional(bool) optional(complex128) optional(complex64) optional(float16) optional(float32) optional(float4_e2m1fn) optional(float64) optional(float6e2m3) optional(float6e3m2) optional(float8_e4m3fn) optional(float8_e4m3fnuz) optional(float8_e5m2) optional(float8_e5m2fnuz) optional(float8_e8m0fnu) optional(int16) optional(int2) optional(int32) optional(int4) optional(int64) optional(int8) optional(seq(bfloat16)) optional(seq(bool)) optional(seq(complex128)) optional(seq(complex64)) optional(seq(float16)) optional(seq(float32)) optional(seq(float4_e2m1fn)) optional(seq(float64)) optional(seq(float6e2m3)) optional(seq(float6e3m2)) optional(seq(float8_e4m3fn)) optional(seq(float8_e4m3fnuz)) optional(seq(float8_e5m2)) optional(seq(float8_e5m2fnuz)) optional(seq(float8_e8m0fnu)) optional(seq(int16)) optional(seq(int2)) optional(seq(int32)) optional(seq(int4)) optional(seq(int64)) optional(seq(int8)) optional(seq(string)) optional(seq(uint16)) optional(seq(uint2)) optional(seq(uint32)) optional(seq(uint4)) optional(seq(uint64)) optional(seq(uint8)) optional(string) optional(uint16) optional(uint2) optional(uint32) optional(uint4) optional(uint64) optional(uint8) seq(bfloat16) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float4_e2m1fn) seq(float64) seq(float6e2m3) seq(float6e3m2) seq(float8_e4m3fn) seq(float8_e4m3fnuz) seq(float8_e5m2) seq(float8_e5m2fnuz) seq(float8_e8m0fnu) seq(int16) seq(int2) seq(int32) seq(int4) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint2) seq(uint32) seq(uint4) seq(uint64) seq(uint8) string uint16 uint2 uint32 uint4 uint64 uint8',
  'float16 float32 float64 int32 int64',
  'bfloat16 float16 float32 float64 int32 int64',
  'float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int8 uint8',
  'float32 int32',
  'bfloat16 float16 float32 int32',
  'float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int4 int8 uint16 uint4 uint8',
  'float4_e2m1fn float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int4 int8 uint16 uint4 uint8',
  'bfloat16 float16 float32 float8_e8m0fnu int32',
  'float4_e2m1fn float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int2 int4 int8 uint16 uint2 uint4 uint8',
  'float4_e2m1fn float6e2m3 float6e3m2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int16 int2 int4 int8 uint16 uint2 uint4 uint8',
  'float32 float64 int16 int32 int64',
  'bfloat16 float16 float32 float64 int16 int32 int64',
  'float16 float32 float64 int32 int64 int8 uint32 uint64 uint8',
  'bfloat16 float16 float32 float64 int32 int64 int8 uint32 uint64 uint8',
  'bfloat16 bool float16 float32 float64 int32 int64 int8 uint32 uint64 uint8',
  'string',
  'seq(bfloat16) seq(bool) seq(complex128) seq(complex64) seq(float16) seq(float32) seq(float64) seq(int16) seq(int32) seq(int64) seq(int8) seq(string) seq(uint16) seq(uint32) seq(uint64) seq(uint8)',
  'int32 int64 string',
  'bool float16 float32 float64 int32 int64',
  'float32 float64 int32 int64 string',
  'float32 float64 int32 int64',
  'map(int64,float32) map(int64,string)',
  'float32 int64 string',
  'int64 string',
  'map(int64,float32) map(int64,float64) map(int64,string) map(string,float32) map(string,float64) map(string,int64)',
  'float32 float64 int64 string',
  'float32 float64 int16 int32 int64 string',
  'seq(map(int64,float32)) seq(map(string,float32))',
];

/** Per domain, one row per operator version: name;since;inputs;outputs;type variables (`-`: withdrawn). */
export const operatorRows: ReadonlyMap<string, string> = new Map([
  [
    '',
    `
Abs;1;T;T;T=0
Abs;6;T;T;T=1
Abs;13;T;T;T=2
Acos;7;T;T;T=0
Acos;22;T;T;T=3
Acosh;9;T;T;T=0
Acosh;22;T;T;T=3
Add;1;T,T;T;T=0
Add;6;T,T;T;T=4
Add;7;T,T;T;T=4
Add;13;T,T;T;T=5
Add;14;T,T;T;T=2
AffineGrid;20;T1,T2;T1;T1=3,T2=6
And;1;T,T;T1;T=7,T1=7
And;7;T,T;T1;T=7,T1=7
ArgMax;1;T;int64;T=1
ArgMax;11;T;int64;T=1
ArgMax;12;T;int64;T=1
ArgMax;13;T;int64;T=2
ArgMin;1;T;int64;T=1
ArgMin;11;T;int64;T=1
ArgMin;12;T;int64;T=1
ArgMin;13;T;int64;T=2
Asin;7;T;T;T=0
Asin;22;T;T;T=3
Asinh;9;T;T;T=0
Asinh;22;T;T;T=3
Atan;7;T;T;T=0
Atan;22;T;T;T=3
Atanh;9;T;T;T=0
Atanh;22;T;T;T=3
Attention;23;T1,T1,T2,U?,T1?,T2?;T1,T1?,T2?,T1?;T1=3,T2=3,U=8
Attention;24;T1,T1,T2,U?,T1?,T2?,int64?;T1,T1?,T2?,T1?;T1=3,T2=3,U=8
Attention;25;T1,T1,T2,U?,T1?,T2?,int64?;T1,T1?,T2?,T1?;T1=3,T2=3,U=8
AveragePool;1;T;T;T=0
AveragePool;7;T;T;T=0
AveragePool;10;T;T;T=0
AveragePool;11;T;T;T=0
AveragePool;19;T;T;T=0
AveragePool;22;T;T;T=3
BatchNormalization;1;T,T,T,T,T;T,T?,T?,T?,T?;T=0
BatchNormalization;6;T,T,T,T,T;T,T?,T?,T?,T?;T=0
BatchNormalization;7;T,T,T,T,T;T,T?,T?,T?,T?;T=0
BatchNormalization;9;T,T,T,T,T;T,T?,T?,T?,T?;T=0
BatchNormalization;14;T,T,T,U,U;T,U?,U?;T=3,U=3
BatchNormalization;15;T,T1,T1,T2,T2;T,T2?,T2?;T=3,T1=3,T2=3
Bernoulli;15;T1;T2;T1=0,T2=8
Bernoulli;22;T1;T2;T1=3,T2=8
BitCast;26;T1;T2;T1=9,T2=9
BitShift;11;T,T;T;T=10
BitShift;28;T,T;T;T=11
BitwiseAnd;18;T,T;T;T=11
BitwiseNot;18;T;T;T=11
BitwiseOr;18;T,T;T;T=11
BitwiseXor;18;T,T;T;T=11
BlackmanWindow;17;T1;T2;T1=12,T2=2
Cast;1;T1;T2;T1=13,T2=13
Cast;6;T1;T2;T1=13,T2=13
Cast;9;T1;T2;T1=14,T2=14
Cast;13;T1;T2;T1=15,T2=15
Cast;19;T1;T2;T1=16,T2=16
Cast;21;T1;T2;T1=17,T2=17
Cast;23;T1;T2;T1=18,T2=18
Cast;24;T1;T2;T1=19,T2=19
Cast;25;T1;T2;T1=20,T2=20
Cast;28;T1;T2;T1=21,T2=21
CastLike;15;T1,T2;T2;T1=15,T2=15
CastLike;19;T1,T2;T2;T1=16,T2=16
CastLike;21;T1,T2;T2;T1=17,T2=17
CastLike;23;T1,T2;T2;T1=18,T2=18
CastLike;24;T1,T2;T2;T1=19,T2=19
CastLike;25;T1,T2;T2;T1=20,T2=20
CausalConvWithState;27;T,T,T?,T?;T,T;T=22
Ceil;1;T;T;T=0
Ceil;6;T;T;T=0
Ceil;13;T;T;T=3
Celu;12;T;T;T=23
Celu;28;T;T;T=3
CenterCropPad;18;T,Tind;T;T=24,Tind=12
Clip;1;T;T;T=0
Clip;6;T;T;T=0
Clip;11;T,T?,T?;T;T=0
Clip;12;T,T?,T?;T;T=1
Clip;13;T,T?,T?;T;T=2
Col2Im;18;T,int64,int64;T;T=24
Compress;9;T,T1;T;T=25,T1=7
Compress;11;T,T1;T;T=25,T1=7
Compress;28;T,T1;T;T=24,T1=7
Concat;1;T*;T;T=0
Concat;4;T*;T;T=25
Concat;11;T*;T;T=25
Concat;13;T*;T;T=24
ConcatFromSequence;11;S;T;S=26,T=25
Constant;1;;T;T=0
Constant;9;;T;T=25
Constant;11;;T;T=25
Constant;12;;T;T=25
Constant;13;;T;T=24
Constant;19;;T;T=27
Constant;21;;T;T=28
Constant;23;;T;T=29
Constant;24;;T;T=30
Constant;25;;T;T=31
ConstantOfShape;9;T1;T2;T1=6,T2=13
ConstantOfShape;20;T1;T2;T1=6,T2=32
ConstantOfShape;21;T1;T2;T1=6,T2=33
ConstantOfShape;23;T1;T2;T1=6,T2=34
ConstantOfShape;24;T1;T2;T1=6,T2=35
ConstantOfShape;25;T1;T2;T1=6,T2=36
Conv;1;T,T,T?;T;T=0
Conv;11;T,T,T?;T;T=0
Conv;22;T,T,T?;T;T=3
ConvInteger;10;T1,T2,T1?,T2?;T3;T1=37,T2=37,T3=38
ConvTranspose;1;T,T,T?;T;T=0
ConvTranspose;11;T,T,T?;T;T=0
ConvTranspose;22;T,T,T?;T;T=3
Cos;7;T;T;T=0
Cos;22;T;T;T=3
Cosh;9;T;T;T=0
Cosh;22;T;T;T=3
CumProd;26;T,T2;T;T=5,T2=12
CumSum;11;T,T2;T;T=39,T2=12
CumSum;14;T,T2;T;T=5,T2=12
DFT;17;T1,T2?;T1;T1=3,T2=12
DFT;20;T1,T2?,int64?;T1;T1=3,T2=12
DeformConv;19;T,T,T,T?,T?;T;T=0
DeformConv;22;T,T,T,T?,T?;T;T=3
DepthToSpace;1;T;T;T=25
DepthToSpace;11;T;T;T=25
DepthToSpace;13;T;T;T=24
DepthToSpace;28;T;T;T=24
DequantizeLinear;10;T,float32,T?;float32;T=40
DequantizeLinear;13;T,float32,T?;float32;T=40
DequantizeLinear;19;T1,T2,T1?;T2;T1=41,T2=22
DequantizeLinear;21;T1,T2,T1?;T2;T1=42,T2=22
DequantizeLinear;23;T1,T2,T1?;T3;T1=43,T2=22,T3=22
DequantizeLinear;24;T1,T2,T1?;T3;T1=43,T2=44,T3=22
DequantizeLinear;25;T1,T2,T1?;T3;T1=45,T2=44,T3=22
DequantizeLinear;28;T1,T2,T1?;T3;T1=46,T2=44,T3=22
Det;11;T;T;T=0
Det;22;T;T;T=3
Div;1;T,T;T;T=0
Div;6;T,T;T;T=4
Div;7;T,T;T;T=4
Div;13;T,T;T;T=5
Div;14;T,T;T;T=2
Dropout;1;T;T,T?;T=0
Dropout;6;T;T,T?;T=0
Dropout;7;T;T,T?;T=0
Dropout;10;T;T,T1?;T=0,T1=7
Dropout;12;T,T1?,T2?;T,T2?;T=0,T1=0,T2=7
Dropout;13;T,T1?,T2?;T,T2?;T=3,T1=0,T2=7
Dropout;22;T,T1?,T2?;T,T2?;T=47,T1=47,T2=7
DynamicQuantizeLinear;11;T1;T2,float32,T2;T1=23,T2=48
Einsum;12;T*;T;T=1
Einsum;28;T*;T;T=2
Elu;1;T;T;T=0
Elu;6;T;T;T=0
Elu;22;T;T;T=3
Equal;1;T,T;T1;T=49,T1=7
Equal;7;T,T;T1;T=49,T1=7
Equal;11;T,T;T1;T=13,T1=7
Equal;13;T,T;T1;T=8,T1=7
Equal;19;T,T;T1;T=15,T1=7
Erf;9;T;T;T=1
Erf;13;T;T;T=3
Exp;1;T;T;T=0
Exp;6;T;T;T=0
Exp;13;T;T;T=3
Expand;8;T,int64;T;T=25
Expand;13;T,int64;T;T=24
EyeLike;9;T1;T2;T1=13,T2=13
EyeLike;22;T1;T2;T1=8,T2=8
Flatten;1;T;T;T=0
Flatten;9;T;T;T=25
Flatten;11;T;T;T=25
Flatten;13;T;T;T=24
Flatten;21;T;T;T=28
Flatten;23;T;T;T=29
Flatten;24;T;T;T=30
Flatten;25;T;T;T=31
Floor;1;T;T;T=0
Floor;6;T;T;T=0
Floor;13;T;T;T=3
GRU;1;T,T,T,T?,T1?,T?;T?,T;T=0,T1=38
GRU;3;T,T,T,T?,T1?,T?;T?,T?;T=0,T1=38
GRU;7;T,T,T,T?,T1?,T?;T?,T?;T=0,T1=38
GRU;14;T,T,T,T?,T1?,T?;T?,T?;T=0,T1=38
GRU;22;T,T,T,T?,T1?,T?;T?,T?;T=3,T1=38
Gather;1;T,Tind;T;T=25,Tind=12
Gather;11;T,Tind;T;T=25,Tind=12
Gather;13;T,Tind;T;T=24,Tind=12
GatherElements;11;T,Tind;T;T=25,Tind=12
GatherElements;13;T,Tind;T;T=24,Tind=12
GatherND;11;T,int64;T;T=25
GatherND;12;T,int64;T;T=25
GatherND;13;T,int64;T;T=24
Gelu;20;T;T;T=3
Gemm;1;T,T,T;T;T=0
Gemm;6;T,T,T;T;T=0
Gemm;7;T,T,T;T;T=0
Gemm;9;T,T,T;T;T=4
Gemm;11;T,T,T?;T;T=4
Gemm;13;T,T,T?;T;T=5
GlobalAveragePool;1;T;T;T=0
GlobalAveragePool;22;T;T;T=3
GlobalLpPool;1;T;T;T=0
GlobalLpPool;2;T;T;T=0
GlobalLpPool;22;T;T;T=3
GlobalMaxPool;1;T;T;T=0
GlobalMaxPool;22;T;T;T=3
Greater;1;T,T;T1;T=0,T1=7
Greater;7;T,T;T1;T=0,T1=7
Greater;9;T,T;T1;T=1,T1=7
Greater;13;T,T;T1;T=2,T1=7
GreaterOrEqual;12;T,T;T1;T=1,T1=7
GreaterOrEqual;16;T,T;T1;T=2,T1=7
GridSample;16;T1,T2;T1;T1=25,T2=0
GridSample;20;T1,T2;T1;T1=25,T2=0
GridSample;22;T1,T2;T1;T1=24,T2=3
GroupNormalization;18;-
GroupNormalization;21;T,T,T;T;T=3
HammingWindow;17;T1;T2;T1=12,T2=2
HannWindow;17;T1;T2;T1=12,T2=2
HardSigmoid;1;T;T;T=0
HardSigmoid;6;T;T;T=0
HardSigmoid;22;T;T;T=3
HardSwish;14;T;T;T=0
HardSwish;22;T;T;T=3
Hardmax;1;T;T;T=0
Hardmax;11;T;T;T=0
Hardmax;13;T;T;T=3
Identity;1;T;T;T=25
Identity;13;T;T;T=24
Identity;14;V;V;V=50
Identity;16;V;V;V=51
Identity;19;V;V;V=52
Identity;21;V;V;V=53
Identity;23;V;V;V=54
Identity;24;V;V;V=55
Identity;25;V;V;V=56
If;1;B;V**;V=25,B=7
If;11;B;V**;V=25,B=7
If;13;B;V**;V=57,B=7
If;16;B;V**;V=58,B=7
If;19;B;V**;V=59,B=7
If;21;B;V**;V=60,B=7
If;23;B;V**;V=61,B=7
If;24;B;V**;V=62,B=7
If;25;B;V**;V=63,B=7
ImageDecoder;20;T1;T2;T1=48,T2=48
InstanceNormalization;1;T,T,T;T;T=0
InstanceNormalization;6;T,T,T;T;T=0
InstanceNormalization;22;T,T,T;T;T=3
IsInf;10;T1;T2;T1=64,T2=7
IsInf;20;T1;T2;T1=47,T2=7
IsNaN;9;T1;T2;T1=0,T2=7
IsNaN;13;T1;T2;T1=3,T2=7
IsNaN;20;T1;T2;T1=47,T2=7
LRN;1;T;T;T=0
LRN;13;T;T;T=3
LSTM;1;T,T,T,T?,T1?,T?,T?,T?;T?,T?,T?;T=0,T1=38
LSTM;7;T,T,T,T?,T1?,T?,T?,T?;T?,T?,T?;T=0,T1=38
LSTM;14;T,T,T,T?,T1?,T?,T?,T?;T?,T?,T?;T=0,T1=38
LSTM;22;T,T,T,T?,T1?,T?,T?,T?;T?,T?,T?;T=3,T1=38
LayerNormalization;17;T,T,T?;T,U?,U?;T=3,U=65
LeakyRelu;1;T;T;T=0
LeakyRelu;6;T;T;T=0
LeakyRelu;16;T;T;T=3
Less;1;T,T;T1;T=0,T1=7
Less;7;T,T;T1;T=0,T1=7
Less;9;T,T;T1;T=1,T1=7
Less;13;T,T;T1;T=2,T1=7
LessOrEqual;12;T,T;T1;T=1,T1=7
LessOrEqual;16;T,T;T1;T=2,T1=7
LinearAttention;27;T,T,T,S?,T?,T?;T,S;T=22,S=22
Log;1;T;T;T=0
Log;6;T;T;T=0
Log;13;T;T;T=3
LogSoftmax;1;T;T;T=0
LogSoftmax;11;T;T;T=0
LogSoftmax;13;T;T;T=3
Loop;1;I?,B?,V**;V**;V=25,I=6,B=7
Loop;11;I?,B?,V**;V**;V=25,I=6,B=7
Loop;13;I?,B?,V**;V**;V=57,I=6,B=7
Loop;16;I?,B?,V**;V**;V=58,I=6,B=7
Loop;19;I?,B?,V**;V**;V=59,I=6,B=7
Loop;21;I?,B?,V**;V**;V=60,I=6,B=7
Loop;23;I?,B?,V**;V**;V=61,I=6,B=7
Loop;24;I?,B?,V**;V**;V=62,I=6,B=7
Loop;25;I?,B?,V**;V**;V=63,I=6,B=7
LpNormalization;1;T;T;T=0
LpNormalization;22;T;T;T=3
LpPool;1;T;T;T=0
LpPool;2;T;T;T=0
LpPool;11;T;T;T=0
LpPool;18;T;T;T=0
LpPool;22;T;T;T=3
MatMul;1;T,T;T;T=0
MatMul;9;T,T;T;T=4
MatMul;13;T,T;T;T=5
MatMulInteger;10;T1,T2,T1?,T2?;T3;T1=37,T2=37,T3=38
Max;1;T*;T;T=0
Max;6;T*;T;T=0
Max;8;T*;T;T=0
Max;12;T*;T;T=1
Max;13;T*;T;T=2
MaxPool;1;T;T;T=0
MaxPool;8;T;T,I?;T=0,I=6
MaxPool;10;T;T,I?;T=0,I=6
MaxPool;11;T;T,I?;T=0,I=6
MaxPool;12;T;T,I?;T=66,I=6
MaxPool;22;T;T,I?;T=67,I=6
MaxRoiPool;1;T,T;T;T=0
MaxRoiPool;22;T,T;T;T=3
MaxUnpool;9;T1,T2,T2?;T1;T1=0,T2=6
MaxUnpool;11;T1,T2,T2?;T1;T1=0,T2=6
MaxUnpool;22;T1,T2,T2?;T1;T1=3,T2=6
Mean;1;T*;T;T=0
Mean;6;T*;T;T=0
Mean;8;T*;T;T=0
Mean;13;T*;T;T=3
MeanVarianceNormalization;9;T;T;T=0
MeanVarianceNormalization;13;T;T;T=3
MelWeightMatrix;17;T1,T1,T1,T2,T2;T3;T1=12,T2=3,T3=2
Min;1;T*;T;T=0
Min;6;T*;T;T=0
Min;8;T*;T;T=0
Min;12;T*;T;T=1
Min;13;T*;T;T=2
Mish;18;T;T;T=0
Mish;22;T;T;T=3
Mod;10;T,T;T;T=1
Mod;13;T,T;T;T=2
Mod;28;T,T;T;T=2
Mul;1;T,T;T;T=0
Mul;6;T,T;T;T=4
Mul;7;T,T;T;T=4
Mul;13;T,T;T;T=5
Mul;14;T,T;T;T=2
Multinomial;7;T1;T2;T1=0,T2=12
Multinomial;22;T1;T2;T1=3,T2=12
Neg;1;T;T;T=0
Neg;6;T;T;T=68
Neg;13;T;T;T=69
NegativeLogLikelihoodLoss;12;T,Tind,T?;T;T=0,Tind=12
NegativeLogLikelihoodLoss;13;T,Tind,T?;T;T=0,Tind=12
NegativeLogLikelihoodLoss;22;T,Tind,T?;T;T=3,Tind=12
NonMaxSuppression;10;float32,float32,int64?,float32?,float32?;int64;
NonMaxSuppression;11;float32,float32,int64?,float32?,float32?;int64;
NonZero;9;T;int64;T=25
NonZero;13;T;int64;T=24
Not;1;T;T;T=7
OneHot;9;T1,T2,T3;T3;T1=1,T2=1,T3=25
OneHot;11;T1,T2,T3;T3;T1=1,T2=1,T3=25
OneHot;28;T1,T2,T3;T3;T1=1,T2=1,T3=24
Optional;15;V?;O;V=57,O=70
Optional;28;V?;O;V=71,O=72
OptionalGetElement;15;O;V;O=70,V=57
OptionalGetElement;18;O;V;O=73,V=57
OptionalGetElement;28;O;V;O=74,V=71
OptionalHasElement;15;O;B;O=70,B=7
OptionalHasElement;18;O?;B;O=73,B=7
OptionalHasElement;28;O?;B;O=74,B=7
Or;1;T,T;T1;T=7,T1=7
Or;7;T,T;T1;T=7,T1=7
PRelu;1;T,T;T;T=0
PRelu;6;T,T;T;T=0
PRelu;7;T,T;T;T=0
PRelu;9;T,T;T;T=4
PRelu;16;T,T;T;T=5
Pad;1;T;T;T=0
Pad;2;T;T;T=0
Pad;11;T,int64,T?;T;T=1
Pad;13;T,int64,T?;T;T=24
Pad;18;T,int64,T?,Tind?;T;T=24,Tind=12
Pad;19;T,int64,T?,Tind?;T;T=24,Tind=12
Pad;21;T,int64,T?,Tind?;T;T=28,Tind=12
Pad;23;T,int64,T?,Tind?;T;T=29,Tind=12
Pad;24;T,int64,T?,Tind?;T;T=30,Tind=12
Pad;25;T,int64,T?,Tind?;T;T=31,Tind=12
Pow;1;T,T;T;T=0
Pow;7;T,T;T;T=0
Pow;12;T,T1;T;T=75,T1=1
Pow;13;T,T1;T;T=76,T1=1
Pow;15;T,T1;T;T=76,T1=2
QLinearConv;10;T1,float32,T1,T2,float32,T2,float32,T3,T4?;T3;T1=37,T2=37,T3=37,T4=38
QLinearMatMul;10;T1,float32,T1,T2,float32,T2,float32,T3;T3;T1=37,T2=37,T3=37
QLinearMatMul;21;T1,TS,T1,T2,TS,T2,TS,T3;T3;TS=22,T1=77,T2=77,T3=77
QuantizeLinear;10;T1,float32,T2?;T2;T1=78,T2=37
QuantizeLinear;13;T1,float32,T2?;T2;T1=78,T2=37
QuantizeLinear;19;T1,T1,T2?;T2;T1=79,T2=77
QuantizeLinear;21;T1,T1,T2?;T2;T1=79,T2=80
QuantizeLinear;23;T1,T2,T3?;T3;T1=79,T2=79,T3=81
QuantizeLinear;24;T1,T2,T3?;T3;T1=79,T2=82,T3=81
QuantizeLinear;25;T1,T2,T3?;T3;T1=79,T2=82,T3=83
QuantizeLinear;28;T1,T2,T3?;T3;T1=79,T2=82,T3=84
RMSNormalization;23;T,V;V;T=3,V=3
RNN;1;T,T,T,T?,T1?,T?;T?,T?;T=0,T1=38
RNN;7;T,T,T,T?,T1?,T?;T?,T?;T=0,T1=38
RNN;14;T,T,T,T?,T1?,T?;T?,T?;T=0,T1=38
RNN;22;T,T,T,T?,T1?,T?;T?,T?;T=3,T1=38
RandomNormal;1;;T;T=0
RandomNormal;22;;T;T=3
RandomNormalLike;1;T1;T2;T1=25,T2=0
RandomNormalLike;22;T1;T2;T1=24,T2=3
RandomUniform;1;;T;T=0
RandomUniform;22;;T;T=3
RandomUniformLike;1;T1;T2;T1=25,T2=0
RandomUniformLike;22;T1;T2;T1=24,T2=3
Range;11;T,T,T;T;T=85
Range;27;T,T,T;T;T=86
Reciprocal;1;T;T;T=0
Reciprocal;6;T;T;T=0
Reciprocal;13;T;T;T=3
ReduceL1;1;T;T;T=4
ReduceL1;11;T;T;T=4
ReduceL1;13;T;T;T=5
ReduceL1;18;T,int64?;T;T=5
ReduceL2;1;T;T;T=4
ReduceL2;11;T;T;T=4
ReduceL2;13;T;T;T=5
ReduceL2;18;T,int64?;T;T=5
ReduceLogSum;1;T;T;T=4
ReduceLogSum;11;T;T;T=4
ReduceLogSum;13;T;T;T=5
ReduceLogSum;18;T,int64?;T;T=5
ReduceLogSum;28;T,int64?;T;T=3
ReduceLogSumExp;1;T;T;T=4
ReduceLogSumExp;11;T;T;T=4
ReduceLogSumExp;13;T;T;T=5
ReduceLogSumExp;18;T,int64?;T;T=5
ReduceLogSumExp;28;T,int64?;T;T=3
ReduceMax;1;T;T;T=4
ReduceMax;11;T;T;T=4
ReduceMax;12;T;T;T=87
ReduceMax;13;T;T;T=88
ReduceMax;18;T,int64?;T;T=88
ReduceMax;20;T,int64?;T;T=89
ReduceMean;1;T;T;T=4
ReduceMean;11;T;T;T=4
ReduceMean;13;T;T;T=5
ReduceMean;18;T,int64?;T;T=5
ReduceMin;1;T;T;T=4
ReduceMin;11;T;T;T=4
ReduceMin;12;T;T;T=87
ReduceMin;13;T;T;T=88
ReduceMin;18;T,int64?;T;T=88
ReduceMin;20;T,int64?;T;T=89
ReduceProd;1;T;T;T=4
ReduceProd;11;T;T;T=4
ReduceProd;13;T;T;T=5
ReduceProd;18;T,int64?;T;T=5
ReduceSum;1;T;T;T=4
ReduceSum;11;T;T;T=4
ReduceSum;13;T,int64?;T;T=5
ReduceSumSquare;1;T;T;T=4
ReduceSumSquare;11;T;T;T=4
ReduceSumSquare;13;T;T;T=5
ReduceSumSquare;18;T,int64?;T;T=5
RegexFullMatch;20;T1;T2;T1=90,T2=7
Relu;1;T;T;T=0
Relu;6;T;T;T=0
Relu;13;T;T;T=3
Relu;14;T;T;T=69
Reshape;1;T;T;T=0
Reshape;5;T,int64;T;T=25
Reshape;13;T,int64;T;T=24
Reshape;14;T,int64;T;T=24
Reshape;19;T,int64;T;T=27
Reshape;21;T,int64;T;T=28
Reshape;23;T,int64;T;T=29
Reshape;24;T,int64;T;T=30
Reshape;25;T,int64;T;T=31
Resize;10;T,float32;T;T=25
Resize;11;T1,T2,float32,int64?;T1;T1=25,T2=0
Resize;13;T1,T2?,float32?,int64?;T1;T1=24,T2=0
Resize;18;T1,T2?,float32?,int64?;T1;T1=24,T2=0
Resize;19;T1,T2?,float32?,int64?;T1;T1=24,T2=0
ReverseSequence;10;T,int64;T;T=25
ReverseSequence;28;T,int64;T;T=24
RoiAlign;10;T1,T1,T2;T1;T1=0,T2=6
RoiAlign;16;T1,T1,T2;T1;T1=0,T2=6
RoiAlign;22;T1,T1,T2;T1;T1=3,T2=6
RotaryEmbedding;23;T,T,T,M?;T;T=22,M=6
Round;11;T;T;T=0
Round;22;T;T;T=3
STFT;17;T1,T2,T1?,T2?;T1;T1=3,T2=12
Scan;8;I?,V**;V**;I=6,V=25
Scan;9;V**;V**;V=25
Scan;11;V**;V**;V=25
Scan;16;V**;V**;V=24
Scan;19;V**;V**;V=27
Scan;21;V**;V**;V=28
Scan;23;V**;V**;V=29
Scan;24;V**;V**;V=30
Scan;25;V**;V**;V=31
Scatter;9;T,Tind,T;T;T=25,Tind=12
Scatter;11;-
ScatterElements;11;T,Tind,T;T;T=25,Tind=12
ScatterElements;13;T,Tind,T;T;T=24,Tind=12
ScatterElements;16;T,Tind,T;T;T=24,Tind=12
ScatterElements;18;T,Tind,T;T;T=24,Tind=12
ScatterND;11;T,int64,T;T;T=25
ScatterND;13;T,int64,T;T;T=24
ScatterND;16;T,int64,T;T;T=24
ScatterND;18;T,int64,T;T;T=24
Selu;1;T;T;T=0
Selu;6;T;T;T=0
Selu;22;T;T;T=3
SequenceAt;11;S,I;T;S=26,T=25,I=12
SequenceConstruct;11;T*;S;T=25,S=26
SequenceEmpty;11;;S;S=26
SequenceErase;11;S,I?;S;S=26,I=12
SequenceInsert;11;S,T,I?;S;T=25,S=26,I=12
SequenceLength;11;S;I;S=26,I=6
SequenceMap;17;S,V**;S**;S=26,V=57
Shape;1;T;T1;T=25,T1=6
Shape;13;T;T1;T=24,T1=6
Shape;15;T;T1;T=24,T1=6
Shape;19;T;T1;T=27,T1=6
Shape;21;T;T1;T=28,T1=6
Shape;23;T;T1;T=29,T1=6
Shape;24;T;T1;T=30,T1=6
Shape;25;T;T1;T=31,T1=6
Shrink;9;T;T;T=1
Sigmoid;1;T;T;T=0
Sigmoid;6;T;T;T=0
Sigmoid;13;T;T;T=3
Sign;9;T;T;T=1
Sign;13;T;T;T=2
Sin;7;T;T;T=0
Sin;22;T;T;T=3
Sinh;9;T;T;T=0
Sinh;22;T;T;T=3
Size;1;T;T1;T=25,T1=6
Size;13;T;T1;T=24,T1=6
Size;19;T;T1;T=27,T1=6
Size;21;T;T1;T=28,T1=6
Size;23;T;T1;T=29,T1=6
Size;24;T;T1;T=30,T1=6
Size;25;T;T1;T=31,T1=6
Slice;1;T;T;T=25
Slice;10;T,Tind,Tind,Tind?,Tind?;T;T=25,Tind=12
Slice;11;T,Tind,Tind,Tind?,Tind?;T;T=25,Tind=12
Slice;13;T,Tind,Tind,Tind?,Tind?;T;T=24,Tind=12
Softmax;1;T;T;T=0
Softmax;11;T;T;T=0
Softmax;13;T;T;T=3
SoftmaxCrossEntropyLoss;12;T,Tind,T?;T,T?;T=0,Tind=12
SoftmaxCrossEntropyLoss;13;T,Tind,T?;T,T?;T=3,Tind=12
Softplus;1;T;T;T=0
Softplus;22;T;T;T=3
Softsign;1;T;T;T=0
Softsign;22;T;T;T=3
SpaceToDepth;1;T;T;T=25
SpaceToDepth;13;T;T;T=24
SpaceToDepth;28;T;T;T=24
Split;1;T,T?;T*;T=0
Split;2;T;T*;T=25
Split;11;T;T*;T=25
Split;13;T,int64?;T*;T=24
Split;18;T,int64?;T*;T=24
SplitToSequence;11;T,I?;S;T=25,I=12,S=26
SplitToSequence;24;T,I?;S;T=24,I=12,S=91
Sqrt;1;T;T;T=0
Sqrt;6;T;T;T=0
Sqrt;13;T;T;T=3
Squeeze;1;T;T;T=25
Squeeze;11;T;T;T=25
Squeeze;13;T,int64?;T;T=24
Squeeze;21;T,int64?;T;T=28
Squeeze;23;T,int64?;T;T=29
Squeeze;24;T,int64?;T;T=30
Squeeze;25;T,int64?;T;T=31
StringConcat;20;T,T;T;T=90
StringNormalizer;10;string;string;
StringSplit;20;T1;T2,T3;T1=90,T2=90,T3=6
Sub;1;T,T;T;T=0
Sub;6;T,T;T;T=4
Sub;7;T,T;T;T=4
Sub;13;T,T;T;T=5
Sub;14;T,T;T;T=2
Sum;1;T*;T;T=0
Sum;6;T*;T;T=0
Sum;8;T*;T;T=0
Sum;13;T*;T;T=3
SwiGLU;28;T,T;T;T=3
Swish;24;T;T;T=3
Tan;7;T;T;T=0
Tan;22;T;T;T=3
Tanh;1;T;T;T=0
Tanh;6;T;T;T=0
Tanh;13;T;T;T=3
TensorScatter;24;T,T,int64?;T;T=30
TfIdfVectorizer;9;T;T1;T=92,T1=23
ThresholdedRelu;10;T;T;T=0
ThresholdedRelu;22;T;T;T=3
Tile;1;T,T,T;T;T=0,T1=6
Tile;6;T,T1;T;T=25,T1=6
Tile;13;T,T1;T;T=24,T1=6
TopK;1;T;T,I;T=0,I=6
TopK;10;T,int64;T,I;T=0,I=6
TopK;11;T,int64;T,I;T=1,I=6
TopK;24;T,int64;T,I;T=2,I=6
Transpose;1;T;T;T=25
Transpose;13;T;T;T=24
Transpose;21;T;T;T=28
Transpose;23;T;T;T=29
Transpose;24;T;T;T=30
Transpose;25;T;T;T=31
Trilu;14;T,int64?;T;T=24
Unique;11;T;T,int64?,int64?,int64?;T=25
Unique;28;T;T,int64?,int64?,int64?;T=24
Unsqueeze;1;T;T;T=25
Unsqueeze;11;T;T;T=25
Unsqueeze;13;T,int64;T;T=24
Unsqueeze;21;T,int64;T;T=28
Unsqueeze;23;T,int64;T;T=29
Unsqueeze;24;T,int64;T;T=30
Unsqueeze;25;T,int64;T;T=31
Upsample;1;T;T;T=93
Upsample;7;T;T;T=25
Upsample;9;T,float32;T;T=25
Upsample;10;-
Where;9;B,T,T;T;B=7,T=25
Where;16;B,T,T;T;B=7,T=24
Xor;1;T,T;T1;T=7,T1=7
Xor;7;T,T;T1;T=7,T1=7
`,
  ],
  [
    'ai.onnx.ml',
    `
ArrayFeatureExtractor;1;T,int64;T;T=94
Binarizer;1;T;T;T=95
CastMap;1;T1;T2;T1=96,T2=97
CategoryMapper;1;T1;T2;T1=98,T2=98
DictVectorizer;1;T1;T2;T1=99,T2=100
FeatureVectorizer;1;T1*;float32;T1=95
Imputer;1;T;T;T=95
LabelEncoder;1;T1;T2;T1=98,T2=98
LabelEncoder;2;T1;T2;T1=97,T2=97
LabelEncoder;4;T1;T2;T1=101,T2=101
LinearClassifier;1;T1;T2,float32;T1=95,T2=98
LinearRegressor;1;T;float32;T=95
Normalizer;1;T;float32;T=95
OneHotEncoder;1;T;float32;T=94
SVMClassifier;1;T1;T2,float32;T1=95,T2=98
SVMRegressor;1;T;float32;T=95
Scaler;1;T;float32;T=95
TreeEnsemble;5;T;T;T=0
TreeEnsembleClassifier;1;T1;T2,float32;T1=95,T2=98
TreeEnsembleClassifier;3;T1;T2,float32;T1=95,T2=98
TreeEnsembleClassifier;5;-
TreeEnsembleRegressor;1;T;float32;T=95
TreeEnsembleRegressor;3;T;float32;T=95
TreeEnsembleRegressor;5;-
ZipMap;1;float32;T;T=102
`,
  ],
]);
