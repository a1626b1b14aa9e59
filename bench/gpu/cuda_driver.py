"""The CUDA driver by ctypes, as the Python programs of this folder need it."""
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
u64, vp = ctypes.c_uint64, ctypes.c_void_p


def check(status, what):
    if status != 0:
        raise RuntimeError(f"{what} failed with CUDA error {status}")


def begin():
    check(cuda.cuInit(0), "cuInit")
    device, context = ctypes.c_int(), vp()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
