"""One call after another through NVIDIA's Python API of TensorRT, as a peer of trtforge's sessions.

Reads requests, a line of JSON each: {"plan", "shapes": {input: dims}, "host": "pinned" | "ordinary", "calls"}. Answers {"us": median microseconds of a call}.
A call is one launch of a CUDA graph (inputs copied to the GPU, the network, outputs copied back) and the wait for it. `pinned`: inputs are
written into and outputs read from page-locked buffers, so nothing is copied on the host. `ordinary`: numpy arrays are copied into
those buffers before the launch, and out of them after it, as a caller with arrays of its own has to.

{"plan", "loads"} loads the plan as often as that. Answers {"readMs", "deserializeMs"}: medians of reading the file and of deserialize_cuda_engine.
"""
import ctypes
import json
import sys
import time

try:
    import tensorrt as trt
except ImportError:
    import tensorrt_bindings as trt
import numpy as np

from cuda_driver import begin, check, cuda, u64, vp

SIGNATURES = {
    "cuMemAlloc_v2": [ctypes.POINTER(u64), ctypes.c_size_t],
    "cuMemFree_v2": [u64],
    "cuMemHostAlloc": [ctypes.POINTER(vp), ctypes.c_size_t, ctypes.c_uint],
    "cuMemFreeHost": [vp],
    "cuStreamCreate": [ctypes.POINTER(vp), ctypes.c_uint],
    "cuStreamDestroy_v2": [vp],
    "cuStreamSynchronize": [vp],
    "cuStreamBeginCapture_v2": [vp, ctypes.c_int],
    "cuStreamEndCapture": [vp, ctypes.POINTER(vp)],
    "cuGraphInstantiateWithFlags": [ctypes.POINTER(vp), vp, ctypes.c_ulonglong],
    "cuGraphLaunch": [vp, vp],
    "cuGraphExecDestroy": [vp],
    "cuGraphDestroy": [vp],
    "cuMemcpyHtoDAsync_v2": [u64, vp, ctypes.c_size_t, vp],
    "cuMemcpyDtoHAsync_v2": [vp, u64, ctypes.c_size_t, vp],
}
for name, types in SIGNATURES.items():
    getattr(cuda, name).argtypes = types
STREAM_NON_BLOCKING = 1
CAPTURE_THREAD_LOCAL = 1
# bfloat16 and smaller floats have no numpy type; bytes serve, since only their number matters here.
NUMPY = {"FLOAT": np.float32, "HALF": np.float16, "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_, "INT8": np.int8, "UINT8": np.uint8}


class Prepared:
    """An engine with its buffers at given shapes, and a graph of copies and network."""

    def __init__(self, plan, shapes):
        with open(plan, "rb") as file:
            self.runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
            self.engine = self.runtime.deserialize_cuda_engine(file.read())
        self.context = self.engine.create_execution_context()
        self.stream = vp()
        check(cuda.cuStreamCreate(ctypes.byref(self.stream), STREAM_NON_BLOCKING), "cuStreamCreate")
        for name, dims in shapes.items():
            self.context.set_input_shape(name, dims)
        self.inputs, self.outputs = [], []
        random = np.random.default_rng(1)
        for index in range(self.engine.num_io_tensors):
            self.bind(self.engine.get_tensor_name(index), random)
        self.enqueue()
        check(cuda.cuStreamSynchronize(self.stream), "the first run")
        graph, self.graph = vp(), vp()
        check(cuda.cuStreamBeginCapture_v2(self.stream, CAPTURE_THREAD_LOCAL), "capture")
        self.enqueue()
        check(cuda.cuStreamEndCapture(self.stream, ctypes.byref(graph)), "capture")
        check(cuda.cuGraphInstantiateWithFlags(ctypes.byref(self.graph), graph, 0), "cuGraphInstantiate")
        check(cuda.cuGraphDestroy(graph), "cuGraphDestroy")

    def bind(self, name, random):
        dtype = NUMPY[str(self.engine.get_tensor_dtype(name)).split(".")[-1]]
        dims = tuple(self.context.get_tensor_shape(name))
        size = int(np.prod(dims, dtype=np.int64)) * np.dtype(dtype).itemsize
        device, host = u64(), vp()
        check(cuda.cuMemAlloc_v2(ctypes.byref(device), size), "cuMemAlloc")
        check(cuda.cuMemHostAlloc(ctypes.byref(host), size, 0), "cuMemHostAlloc")
        pinned = np.frombuffer((ctypes.c_byte * size).from_address(host.value), dtype=dtype).reshape(dims)
        is_input = self.engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
        if is_input:
            pinned[...] = random.integers(0, 2, dims) if np.issubdtype(dtype, np.integer) else random.random(dims)
        self.context.set_tensor_address(name, device.value)
        (self.inputs if is_input else self.outputs).append((device, host, size, pinned, np.array(pinned)))

    def enqueue(self):
        for device, host, size, _, _ in self.inputs:
            check(cuda.cuMemcpyHtoDAsync_v2(device, host, size, self.stream), "copy to the GPU")
        if not self.context.execute_async_v3(self.stream.value):
            raise RuntimeError("execute_async_v3 refused")
        for device, host, size, _, _ in self.outputs:
            check(cuda.cuMemcpyDtoHAsync_v2(host, device, size, self.stream), "copy from the GPU")

    def measure(self, ordinary, calls):
        launch, wait = cuda.cuGraphLaunch, cuda.cuStreamSynchronize
        graph, stream, copy = self.graph, self.stream, np.copyto
        inputs = [(pinned, array) for _, _, _, pinned, array in self.inputs] if ordinary else []
        outputs = [(array, pinned) for _, _, _, pinned, array in self.outputs] if ordinary else []
        times = []
        for number in range(calls + calls // 10 + 1):
            started = time.perf_counter_ns()
            for pinned, array in inputs:
                copy(pinned, array)
            launched = launch(graph, stream)
            waited = wait(stream)
            for array, pinned in outputs:
                copy(array, pinned)
            times.append(time.perf_counter_ns() - started)
            if launched != 0 or waited != 0:
                raise RuntimeError(f"a call failed with CUDA error {launched or waited}")
        return float(np.median(times[calls // 10 + 1 :])) / 1000

    def close(self):
        check(cuda.cuGraphExecDestroy(self.graph), "cuGraphExecDestroy")
        for device, host, _, _, _ in self.inputs + self.outputs:
            check(cuda.cuMemFree_v2(device), "cuMemFree")
            check(cuda.cuMemFreeHost(host), "cuMemFreeHost")
        check(cuda.cuStreamDestroy_v2(self.stream), "cuStreamDestroy")


def load(plan, count):
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    times = []
    for _ in range(count):
        started = time.perf_counter_ns()
        with open(plan, "rb") as file:
            content = file.read()
        read = time.perf_counter_ns()
        engine = runtime.deserialize_cuda_engine(content)
        loaded = time.perf_counter_ns()
        if engine is None:
            raise RuntimeError("the plan was not loaded")
        times.append((read - started, loaded - read))
        del engine, content
    read, deserialize = np.median(times, axis=0) / 1e6
    return {"readMs": float(read), "deserializeMs": float(deserialize)}


def main():
    begin()
    print(json.dumps({"version": f"{trt.__version__} on Python {sys.version.split()[0]}"}), flush=True)
    key, prepared = None, None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if "loads" in request:
                print(json.dumps(load(request["plan"], request["loads"])), flush=True)
                continue
            wanted = (request["plan"], json.dumps(request["shapes"]))
            if wanted != key:
                if prepared is not None:
                    prepared.close()
                key, prepared = None, None
                prepared = Prepared(request["plan"], request["shapes"])
                key = wanted
            answer = {"us": prepared.measure(request["host"] == "ordinary", request["calls"])}
        except Exception as error:  # whatever it is, the caller is told and the next request is answered
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
