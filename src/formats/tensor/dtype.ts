/**
 * Element types, by the name numpy uses, plus the ones numpy lacks as ml_dtypes names them. The ONNX and TensorRT numbers of each stand beside it:
 * ONNX `TensorProto.DataType`, TensorRT `nvinfer1::DataType` (null where TensorRT has none).
 */
interface DtypeFacts {
  readonly bits: number;
  readonly kind: 'float' | 'int' | 'uint' | 'bool' | 'string' | 'complex';
  readonly onnx: number;
  readonly tensorrt: number | null;
}

export const dtypes = {
  float32: { bits: 32, kind: 'float', onnx: 1, tensorrt: 0 },
  uint8: { bits: 8, kind: 'uint', onnx: 2, tensorrt: 5 },
  int8: { bits: 8, kind: 'int', onnx: 3, tensorrt: 2 },
  uint16: { bits: 16, kind: 'uint', onnx: 4, tensorrt: null },
  int16: { bits: 16, kind: 'int', onnx: 5, tensorrt: null },
  int32: { bits: 32, kind: 'int', onnx: 6, tensorrt: 3 },
  int64: { bits: 64, kind: 'int', onnx: 7, tensorrt: 8 },
  string: { bits: 0, kind: 'string', onnx: 8, tensorrt: null },
  bool: { bits: 8, kind: 'bool', onnx: 9, tensorrt: 4 },
  float16: { bits: 16, kind: 'float', onnx: 10, tensorrt: 1 },
  float64: { bits: 64, kind: 'float', onnx: 11, tensorrt: null },
  uint32: { bits: 32, kind: 'uint', onnx: 12, tensorrt: null },
  uint64: { bits: 64, kind: 'uint', onnx: 13, tensorrt: null },
  complex64: { bits: 64, kind: 'complex', onnx: 14, tensorrt: null },
  complex128: { bits: 128, kind: 'complex', onnx: 15, tensorrt: null },
  bfloat16: { bits: 16, kind: 'float', onnx: 16, tensorrt: 7 },
  float8_e4m3fn: { bits: 8, kind: 'float', onnx: 17, tensorrt: 6 },
  float8_e4m3fnuz: { bits: 8, kind: 'float', onnx: 18, tensorrt: null },
  float8_e5m2: { bits: 8, kind: 'float', onnx: 19, tensorrt: null },
  float8_e5m2fnuz: { bits: 8, kind: 'float', onnx: 20, tensorrt: null },
  uint4: { bits: 4, kind: 'uint', onnx: 21, tensorrt: null },
  int4: { bits: 4, kind: 'int', onnx: 22, tensorrt: 9 },
  float4_e2m1fn: { bits: 4, kind: 'float', onnx: 23, tensorrt: 10 },
  float8_e8m0fnu: { bits: 8, kind: 'float', onnx: 24, tensorrt: 11 },
  uint2: { bits: 2, kind: 'uint', onnx: 25, tensorrt: null },
  int2: { bits: 2, kind: 'int', onnx: 26, tensorrt: null },
} as const satisfies Record<string, DtypeFacts>;

export type Dtype = keyof typeof dtypes;

const byOnnxNumber = new Map<number, Dtype>();
const byTensorrtNumber = new Map<number, Dtype>();
for (const [name, facts] of Object.entries(dtypes) as [Dtype, DtypeFacts][]) {
  byOnnxNumber.set(facts.onnx, name);
  if (facts.tensorrt !== null) byTensorrtNumber.set(facts.tensorrt, name);
}

/** The dtype of an ONNX `TensorProto.DataType` number; undefined for UNDEFINED (0) and numbers that ONNX does not define. */
export const dtypeFromOnnx = (number: number): Dtype | undefined => byOnnxNumber.get(number);

/** The dtype of a TensorRT `nvinfer1::DataType` number. */
export const dtypeFromTensorrt = (number: number): Dtype | undefined => byTensorrtNumber.get(number);

/** Bytes that `elements` values take when packed as ONNX packs them (two int4 a byte, the last byte filled up): 15 int4 values are 8 bytes. */
export const packedBytes = (dtype: Dtype, elements: number): number =>
  Math.ceil((dtypes[dtype].bits * elements) / 8);

/** Product of the dimensions; 1 for a scalar. */
export const elementCount = (shape: readonly number[]): number =>
  shape.reduce((product, dimension) => product * dimension, 1);

const labels: Readonly<Record<string, string>> = {
  float32: 'FP32',
  float16: 'FP16',
  bfloat16: 'BF16',
  int8: 'INT8',
  float8_e4m3fn: 'FP8',
  int4: 'INT4',
  float4_e2m1fn: 'FP4',
};

/** A type as people name precisions, `FP16`; other types as they are. */
export const typeLabel = (dtype: string): string => (Object.hasOwn(labels, dtype) ? labels[dtype]! : dtype);
