"""ONNX Runtime's static quantiser: MODEL OUT CALIBRATION.npz defaults|tensorrt. Rows of the arrays are samples."""

import os
import sys

import numpy
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process


class Rows(CalibrationDataReader):
    def __init__(self, path):
        with numpy.load(path) as arrays:
            self.arrays = dict(arrays)
        self.count = len(next(iter(self.arrays.values())))
        self.rewind()

    def get_next(self):
        return next(self.rows, None)

    def rewind(self):
        self.rows = ({name: values[row : row + 1] for name, values in self.arrays.items()} for row in range(self.count))


model, out, calibration, style = sys.argv[1:]
prepared = f"{out}.prepared"
quant_pre_process(model, prepared, skip_symbolic_shape=True)
samples = Rows(calibration)
# Otherwise the outputs of all samples are in memory at once. The ranges are the same. A divisor of the count ends with "No data is collected".
bounded = {"CalibMaxIntermediateOutputs": next(size for size in (8, 7, 5, 3) if samples.count % size > 0)}
if style == "defaults":
    quantize_static(prepared, out, samples, extra_options=bounded)
else:
    # TensorRT takes symmetric codes only, no INT32 biases, and wants no pair behind an operation.
    operations = ["Conv", "MatMul", "Gemm", "Add"]
    quantize_static(
        prepared,
        out,
        samples,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=operations,
        extra_options={
            **bounded,
            "ActivationSymmetric": True,
            "WeightSymmetric": True,
            "CalibTensorRangeSymmetric": True,
            "QuantizeBias": False,
            "AddQDQPairToWeight": True,
            "DedicatedQDQPair": False,
            "OpTypesToExcludeOutputQuantization": operations,
        },
    )
os.remove(prepared)
