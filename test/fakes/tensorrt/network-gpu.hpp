// What the engines of networks.hpp have on their GPU: the one that was current when they were loaded.
#pragma once
#include "objects.hpp"

namespace fake {

// Weights: a little memory that every kernel of the engine touches.
class Weights {
 public:
  Weights() { made_ = cuda<int (*)(unsigned long long*, std::size_t)>("cuMemAlloc_v2")(&address_, kBytes); }
  ~Weights() {
    if (made_ == 0) cuda<int (*)(unsigned long long)>("cuMemFree_v2")(address_);
  }
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  // The CUDA error, 0 where there is none.
  int made() const { return made_; }
  const void* get() const { return reinterpret_cast<const void*>(address_); }

 private:
  static constexpr std::size_t kBytes = 256;
  unsigned long long address_ = 0;
  int made_ = 0;
};

// -1 where none is current.
inline int currentDevice() {
  int device = -1;
  return cuda<int (*)(int*)>("cuCtxGetDevice")(&device) == 0 ? device : -1;
}

// An event of an execution context, which it records whenever it enqueues. Whoever uses the context must be on its GPU; one that goes elsewhere is left behind.
class Mark {
 public:
  Mark() : device_(currentDevice()) { made_ = cuda<int (*)(void**, unsigned)>("cuEventCreate")(&event_, 2); }
  ~Mark() {
    if (made_ == 0 && here()) cuda<int (*)(void*)>("cuEventDestroy_v2")(event_);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  int made() const { return made_; }
  bool here() const { return currentDevice() == device_; }
  int record(void* stream) const { return cuda<int (*)(void*, void*)>("cuEventRecord")(event_, stream); }

 private:
  int device_;
  void* event_ = nullptr;
  int made_ = 0;
};

inline std::string cudaText(int code) {
  const char* text = "";
  cuda<int (*)(int, const char**)>("cuGetErrorString")(code, &text);
  return std::string("Cuda Runtime (") + text + ")";
}

inline bool touches(void* stream, const void* memory) { return cuda<bool (*)(void*, const void*)>("fakeTouches")(stream, memory); }

// `astray`: it touches what is not on the stream's GPU, and damages the context in place of computing. The CUDA error, or 0.
inline int launch(void* stream, double us, void (*kernel)(void*), const void* argument, std::size_t bytes, bool astray) {
  return cuda<int (*)(void*, double, void (*)(void*), const void*, std::size_t, bool)>("fakeLaunchCopy")(stream, us, kernel, argument, bytes, astray);
}

// The name of the GPU that is current, or of the first that is shown where nobody chose, as TensorRT does. Empty where there is none.
inline std::string workingGpu() {
  char name[64] = "";
  int device = 0;
  const auto current = cuda<int (*)(int*)>("cuCtxGetDevice");
  if (current == nullptr) return name;
  if (current(&device) != 0) device = 0;
  cuda<int (*)(char*, int, int)>("cuDeviceGetName")(name, sizeof name, device);
  return name;
}

}  // namespace fake
