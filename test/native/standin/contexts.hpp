// Execution contexts of the stand-in engines: y = 2x + 1, where x is float of shape [-1, 64].
// STANDIN_ENGINE: `plain` has x and y alone; `data` has y of as many rows as x has that begin with a positive number.
// STANDIN_COMPUTE_US is how long an inference takes; STANDIN_CAPTURE=refused waits for its stream while that captures; STANDIN_ENQUEUE=N fails from the Nth
// enqueue on; STANDIN_CONTEXT=missing makes none; STANDIN_LAYERS is `name:ms` of each layer, separated by commas.
#pragma once
#include <dlfcn.h>

#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "objects.hpp"

namespace standin {

inline bool engineIs(const char* what) { return std::strcmp(wish("STANDIN_ENGINE"), what) == 0; }

// A function of the stand-in libcuda.
template <class Function>
Function cuda(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, name));
}

struct ContextState {
  std::int32_t profile = 0;
  std::int64_t rows = -1;
  std::map<std::string, void*> addresses;
  void* allocator = nullptr;
  void* profiler = nullptr;
  bool emits = true;
  int enqueued = 0;
};

inline std::map<Worker*, ContextState> contextStates;
inline std::mutex contextsMutex;
inline ContextState& stateOf(Worker* context) {
  std::lock_guard<std::mutex> lock(contextsMutex);
  return contextStates[context];
}

inline bool contextSetProfile(Worker* self, std::int32_t profile, void*) {
  if (profile < 0 || profile > 1) return false;
  stateOf(self).profile = profile;
  return true;
}

// Rows as the profiles of the stand-in engines have them.
inline bool contextSetShape(Worker* self, const char* name, const Dims* shape) {
  ContextState& state = stateOf(self);
  const std::int64_t least = 100 * state.profile + 1;
  if (shape->count != 2 || shape->values[1] != 64 || shape->values[0] < least || shape->values[0] > least + 2) {
    say(theLogger, 1, std::string("IExecutionContext::setInputShape: Error Code 3: shape ") + shown(*shape) + " of " + name + " is out of the profile's range");
    return false;
  }
  state.rows = shape->values[0];
  return true;
}

inline Dims contextShape(Worker* self, const char* name) {
  Dims shape = {};
  shape.count = 2;
  const std::int64_t rows = *name == 'y' && engineIs("data") ? -1 : stateOf(self).rows;
  shape.values[0] = static_cast<decltype(shape.values[0] + 0)>(rows);
  shape.values[1] = 64;
  return shape;
}

inline std::int32_t contextInferShapes(Worker* self, std::int32_t, const char** missing) {
  if (stateOf(self).rows >= 0) return 0;
  *missing = "x";
  return 1;
}

inline std::int64_t contextMaxOutput(Worker* self, const char*) { return stateOf(self).rows * 64 * 4; }
inline bool contextSetAddress(Worker* self, const char* name, void* memory) {
  stateOf(self).addresses[name] = memory;
  return true;
}
inline bool contextSetAllocator(Worker* self, const char*, void* allocator) {
  stateOf(self).allocator = allocator;
  return true;
}
inline void contextSetProfiler(Worker* self, void* profiler) { stateOf(self).profiler = profiler; }
inline void contextSetEmits(Worker* self, bool emits) { stateOf(self).emits = emits; }
inline void contextSetMemory(Worker*, void*) {}
inline void contextSetMemory2(Worker*, void*, std::int64_t) {}

inline bool reportLayers(const ContextState& state) {
  if (state.profiler == nullptr) return false;
  std::string rest = wish("STANDIN_LAYERS");
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    const std::size_t colon = rest.find(':');
    call<void>(state.profiler, Slot::IProfiler_reportLayerTime_2, rest.substr(0, colon).c_str(), static_cast<float>(std::atof(rest.c_str() + colon + 1)));
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return true;
}
inline bool contextReport(Worker* self) { return reportLayers(stateOf(self)); }

struct Kernel {
  const float* x;
  float* y;
  std::int64_t rows;
  bool chosen;

  static void run(void* argument) {
    const Kernel& kernel = *static_cast<Kernel*>(argument);
    float* to = kernel.y;
    for (std::int64_t row = 0; row < kernel.rows; ++row) {
      const float* from = kernel.x + row * 64;
      if (kernel.chosen && !(*from > 0)) continue;
      for (int i = 0; i < 64; ++i) *to++ = 2 * from[i] + 1;
    }
  }
};

// The library waits for the GPU to know how many rows there are, and asks for as much memory.
inline bool chooseRows(ContextState& state, void* stream) {
  if (cuda<int (*)(void*)>("cuStreamSynchronize")(stream) != 0) return false;
  const float* x = static_cast<const float*>(state.addresses["x"]);
  Dims shape = {};
  shape.count = 2;
  shape.values[1] = 64;
  for (std::int64_t row = 0; row < state.rows; ++row) shape.values[0] += x[row * 64] > 0;
  const std::uint64_t bytes = static_cast<std::uint64_t>(shape.values[0]) * 64 * 4;
  if (state.allocator == nullptr) return true;
#if STANDIN_GENERATION == 0
  void* memory = call<void*>(state.allocator, Slot::IOutputAllocator_reallocateOutput_4, "y", static_cast<void*>(nullptr), bytes, std::uint64_t{256});
#else
  void* memory = call<void*>(state.allocator, Slot::IOutputAllocator_reallocateOutputAsync_5, "y", static_cast<void*>(nullptr), bytes, std::uint64_t{256}, stream);
#endif
  if (memory == nullptr) return false;
  state.addresses["y"] = memory;
  call<void>(state.allocator, Slot::IOutputAllocator_notifyShape_2, "y", &shape);
  return true;
}

// A graph keeps its kernels, so one of each kind lives as long as the process.
inline Kernel* kept(const Kernel& kernel) {
  static std::deque<Kernel> kernels;
  std::lock_guard<std::mutex> lock(contextsMutex);
  for (Kernel& known : kernels)
    if (known.x == kernel.x && known.y == kernel.y && known.rows == kernel.rows && known.chosen == kernel.chosen) return &known;
  return &kernels.emplace_back(kernel);
}

inline bool contextEnqueue(Worker* self, void* stream) {
  ContextState& state = stateOf(self);
  const int failsFrom = std::atoi(wish("STANDIN_ENQUEUE"));
  if (failsFrom > 0 && ++state.enqueued >= failsFrom) {
    say(theLogger, 1, "IExecutionContext::enqueueV3: Error Code 1: Cuda Runtime (an illegal memory access was encountered)");
    return false;
  }
  const bool waits = std::strcmp(wish("STANDIN_CAPTURE"), "refused") == 0;
  if ((waits && cuda<int (*)(void*)>("cuStreamSynchronize")(stream) != 0) || (engineIs("data") && !chooseRows(state, stream))) {
    say(theLogger, 1, "IExecutionContext::enqueueV3: Error Code 1: Cuda Runtime (operation not permitted when stream is capturing)");
    return false;
  }
  const Kernel kernel = {static_cast<const float*>(state.addresses["x"]), static_cast<float*>(state.addresses["y"]), state.rows, engineIs("data")};
  static const double us = std::atof(wish("STANDIN_COMPUTE_US"));
  cuda<int (*)(void*, double, void (*)(void*), void*)>("standinLaunch")(stream, us, Kernel::run, kept(kernel));
  if (state.emits) reportLayers(state);
  return true;
}

inline Table contextTable = Table()
                                .put(Slot::IExecutionContext_setOptimizationProfileAsync_2, contextSetProfile)
                                .put(Slot::IExecutionContext_setInputShape_2, contextSetShape)
                                .put(Slot::IExecutionContext_getTensorShape_1, contextShape)
                                .put(Slot::IExecutionContext_inferShapes_2, contextInferShapes)
                                .put(Slot::IExecutionContext_getMaxOutputSize_1, contextMaxOutput)
                                .put(Slot::IExecutionContext_setTensorAddress_2, contextSetAddress)
                                .put(Slot::IExecutionContext_setOutputAllocator_2, contextSetAllocator)
                                .put(Slot::IExecutionContext_setProfiler_1, contextSetProfiler)
                                .put(Slot::IExecutionContext_setEnqueueEmitsProfile_1, contextSetEmits)
                                .put(Slot::IExecutionContext_reportToProfiler_0, contextReport)
                                .put(Slot::IExecutionContext_setDeviceMemory_1, contextSetMemory)
                                .put(Slot::IExecutionContext_setDeviceMemoryV2_2, contextSetMemory2)
                                .put(Slot::IExecutionContext_enqueueV3_1, contextEnqueue);

inline Public* createContext() {
  if (std::strcmp(wish("STANDIN_CONTEXT"), "missing") == 0) {
    say(theLogger, 1, "ICudaEngine::createExecutionContext: Error Code 4: the context could not be made");
    return nullptr;
  }
  Public* context = make("IExecutionContext", contextTable);
  std::lock_guard<std::mutex> lock(contextsMutex);
  contextStates[context->worker] = {};
  return context;
}
inline Public* createContext0(Worker*) { return createContext(); }
inline Public* createContext1(Worker*, std::int32_t strategy) {
  record("createExecutionContext " + std::to_string(strategy));
  return createContext();
}

}  // namespace standin
