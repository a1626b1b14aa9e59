"""TensorRT's implicit INT8, calibrated through its own interface: MODEL.onnx PLAN SAMPLES.npz entropy|minmax. Rows of the arrays are samples of batch 1; FP16 is allowed beside INT8.

Prints {"seconds", "bytes"}. Implicit quantization is what TensorRT 8 and 10 have; 11 and TensorRT-RTX removed it.
"""
import ctypes
import json
import os
import sys
import time

try:
    import tensorrt as trt
except ImportError:
    import tensorrt_bindings as trt
import numpy as np

from cuda_driver import begin, check, cuda, u64, vp

cuda.cuMemAlloc_v2.argtypes = [ctypes.POINTER(u64), ctypes.c_size_t]
cuda.cuMemcpyHtoD_v2.argtypes = [u64, vp, ctypes.c_size_t]


def calibrator(base, path):
    """A calibrator of either algorithm that is fed the rows of an npz."""

    class Rows(base):
        def __init__(self):
            base.__init__(self)
            with np.load(path) as arrays:
                self.arrays = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
            self.count = len(next(iter(self.arrays.values())))
            self.row = 0
            self.device = {}
            for name, values in self.arrays.items():
                self.device[name] = u64()
                check(cuda.cuMemAlloc_v2(ctypes.byref(self.device[name]), values[:1].nbytes), "cuMemAlloc")

        def get_batch_size(self):
            return 1

        def get_batch(self, names):
            if self.row == self.count:
                return None
            for name in names:
                sample = self.arrays[name][self.row : self.row + 1]
                check(cuda.cuMemcpyHtoD_v2(self.device[name], sample.ctypes.data, sample.nbytes), "copy to the GPU")
            self.row += 1
            return [self.device[name].value for name in names]

        def read_calibration_cache(self):
            return None

        def write_calibration_cache(self, cache):
            pass

    return Rows()


def main():
    model, plan, samples, algorithm = sys.argv[1:]
    base = {"entropy": trt.IInt8EntropyCalibrator2, "minmax": trt.IInt8MinMaxCalibrator}[algorithm]
    begin()
    logger = trt.Logger(trt.Logger.ERROR)
    trt.init_libnvinfer_plugins(logger, "")
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(model):
        raise RuntimeError("; ".join(str(parser.get_error(at)) for at in range(parser.num_errors)))
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    config.set_flag(trt.BuilderFlag.FP16)
    rows = calibrator(base, samples)
    profile = builder.create_optimization_profile()
    for name, values in rows.arrays.items():
        profile.set_shape(name, *[(1, *values.shape[1:])] * 3)
    config.add_optimization_profile(profile)
    config.set_calibration_profile(profile)
    config.int8_calibrator = rows
    started = time.perf_counter()
    serialized = builder.build_serialized_network(network, config)
    if serialized is None:
        raise RuntimeError("the build failed")
    with open(plan, "wb") as file:
        file.write(serialized)
    print(json.dumps({"seconds": time.perf_counter() - started, "bytes": os.path.getsize(plan)}))


main()
