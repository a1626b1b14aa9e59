// Engines that a plan describes: small networks that are really computed, on the stand-in GPU. A plan is the header of a real one (32 bytes), then lines:
//   standin-network
//   kind affine | copy | state | nonzero | shape
//   dtype N          of `copy`: nvinfer1::DataType; the others are float32
//   inner N          elements of a row
//   rows N           a fixed number of rows in place of open ones
//   profile A B C    rows: least, usual, most; a line per profile
//   memory N, streamable N, hostcode 1, layers JSON
// affine: y = 2x + 1. copy: y = x. state: y = 2 * state_out, state_out = state + x. nonzero: y = the places in x that are not 0 (int64; int32 on 8.6).
// shape: y = x, given again and again, of the shape s says; t = 2s; s and t lie on the host.
// A graph replayed after its context was changed or deleted gives 0xEE in every byte, for that is what the library does not promise.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "objects.hpp"

namespace standin {

constexpr int kHeaderBytes = 32;
constexpr int kFloat = 0, kIndex = kGeneration == 0 ? 3 : 8;
constexpr int kBits[] = {32, 16, 8, 32, 8, 8, 8, 16, 64, 4, 4, 8};

struct NetTensor {
  std::string name;
  int dtype;
  bool input, host;
  std::vector<std::int64_t> shape;
};

struct Network {
  std::string kind = "affine", layers = "{\"Layers\": [\"affine\"], \"Bindings\": [\"x\", \"y\"]}";
  int dtype = kFloat;
  std::int64_t inner = 64, rows = -1, memory = 4096, streamable = 0, hostcode = 0;
  std::vector<std::vector<std::int64_t>> profiles;
  std::vector<NetTensor> tensors;

  const NetTensor* find(const std::string& name) const {
    for (const NetTensor& tensor : tensors)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
};

inline Network networkOf(const std::string& text) {
  Network network;
  std::istringstream lines(text);
  std::string line, word;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    words >> word;
    if (word == "kind") words >> network.kind;
    if (word == "dtype") words >> network.dtype;
    if (word == "inner") words >> network.inner;
    if (word == "rows") words >> network.rows;
    if (word == "memory") words >> network.memory;
    if (word == "streamable") words >> network.streamable;
    if (word == "hostcode") words >> network.hostcode;
    if (word == "layers") network.layers = line.substr(7);
    if (word != "profile") continue;
    std::vector<std::int64_t> rows(3);
    words >> rows[0] >> rows[1] >> rows[2];
    network.profiles.push_back(rows);
  }
  if (network.profiles.empty()) network.profiles.push_back(network.rows < 0 ? std::vector<std::int64_t>{1, 8, 64} : std::vector<std::int64_t>(3, network.rows));
  const std::vector<std::int64_t> rowed = {network.rows, network.inner};
  const std::string& kind = network.kind;
  if (kind == "nonzero") network.tensors = {{"x", kFloat, true, false, {network.rows}}, {"y", kIndex, false, false, {-1}}};
  else if (kind == "shape")
    network.tensors = {{"x", kFloat, true, false, rowed}, {"s", kIndex, true, true, {2}}, {"y", kFloat, false, false, {-1, -1}}, {"t", kIndex, false, true, {2}}};
  else if (kind == "state")
    network.tensors = {{"x", kFloat, true, false, rowed}, {"state", kFloat, true, false, rowed}, {"y", kFloat, false, false, rowed}, {"state_out", kFloat, false, false, rowed}};
  else network.tensors = {{"x", network.dtype, true, false, rowed}, {"y", network.dtype, false, false, rowed}};
  return network;
}

struct NetEngine : Worker {
  NetEngine(void** table, Network network) : Worker{table, "ICudaEngine", nullptr, "", 0}, network(std::move(network)) {}
  Network network;
  std::int64_t budget = 0;
  std::map<int, int> profileUsers;  // 8.6: one context each
  std::vector<std::int64_t> values[2][3];
};

struct NetContext : Worker {
  NetContext(void** table, NetEngine* engine) : Worker{table, "IExecutionContext", nullptr, "", 0}, engine(engine), version(new std::atomic<std::int64_t>(0)) {}
  NetEngine* engine;
  // Never freed: graphs look at it after the context is gone.
  std::atomic<std::int64_t>* version;
  int profile = 0;
  bool holdsProfile = false;
  std::map<std::string, std::vector<std::int64_t>> shapes;
  std::map<std::string, void*> addresses;
  std::map<std::string, void*> allocators;
  void* memory = nullptr;
  std::int64_t memoryBytes = -1;
  void* profiler = nullptr;
  bool emits = true;
};

inline std::mutex netMutex;

inline NetEngine& engineOf(Worker* self) { return *static_cast<NetEngine*>(self); }
inline NetContext& contextOf(Worker* self) { return *static_cast<NetContext*>(self); }

inline Dims dimsOf(const std::vector<std::int64_t>& shape) {
  Dims dims = {};
  dims.count = static_cast<std::int32_t>(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) dims.values[i] = static_cast<decltype(dims.values[0] + 0)>(shape[i]);
  return dims;
}

inline std::int64_t volume(const std::vector<std::int64_t>& shape) {
  std::int64_t all = 1;
  for (const std::int64_t size : shape) all = size < 0 || all < 0 ? -1 : all * size;
  return all;
}

inline std::size_t tensorBytes(const NetTensor& tensor, std::int64_t elements) { return static_cast<std::size_t>((elements * kBits[tensor.dtype] + 7) / 8); }

// --- objects

template <class Object>
void destroyNet(Public* object) {
  record(std::string("destroy ") + object->worker->name);
  delete static_cast<Object*>(object->worker);
  delete object;
}

template <>
inline void destroyNet<NetContext>(Public* object) {
  record("destroy IExecutionContext");
  auto* context = static_cast<NetContext*>(object->worker);
  *context->version = -1;
  {
    std::lock_guard<std::mutex> lock(netMutex);
    if (context->holdsProfile) --context->engine->profileUsers[context->profile];
  }
  delete context;
  delete object;
}

template <class Object>
Public* publish(Object* object) {
  static Table destructors = Table().put(1, reinterpret_cast<void*>(&destroyNet<Object>));
  record(std::string("create ") + object->name);
  return new Public{destructors.slots(), object};
}

// --- contexts

inline bool netSetProfile(Worker* self, std::int32_t profile, void*) {
  NetContext& context = contextOf(self);
  if (profile < 0 || profile >= static_cast<std::int32_t>(context.engine->network.profiles.size())) return false;
  std::lock_guard<std::mutex> lock(netMutex);
  if (kGeneration == 0 && context.engine->network.rows < 0) {
    if (context.engine->profileUsers[profile] > 0) {
      say(theLogger, 1, "IExecutionContext::setOptimizationProfileAsync: Error Code 3: Profile " + std::to_string(profile) + " has been chosen for another context.");
      return false;
    }
    ++context.engine->profileUsers[profile];
    context.holdsProfile = true;
  }
  context.profile = profile;
  return true;
}

inline bool netSetShape(Worker* self, const char* name, const Dims* shape) {
  NetContext& context = contextOf(self);
  const Network& network = context.engine->network;
  const NetTensor* tensor = network.find(name);
  std::vector<std::int64_t> given;
  for (int i = 0; i < shape->count; ++i) given.push_back(shape->values[i]);
  const auto& rows = network.profiles[static_cast<std::size_t>(context.profile)];
  bool fits = tensor != nullptr && tensor->input && given.size() == tensor->shape.size();
  for (std::size_t i = 0; fits && i < given.size(); ++i) fits = tensor->shape[i] < 0 ? given[i] >= rows[0] && given[i] <= rows[2] : given[i] == tensor->shape[i];
  if (!fits) {
    say(theLogger, 1, std::string("IExecutionContext::setInputShape: Error Code 3: API Usage Error (Set dimension ") + shown(*shape) + " for tensor " + name + " does not satisfy any optimization profiles.)");
    return false;
  }
  if (context.shapes[name] != given) ++*context.version;
  context.shapes[name] = given;
  return true;
}

inline std::vector<std::int64_t> hostValues(const NetContext& context) {
  const auto s = context.addresses.find("s");
  if (s == context.addresses.end() || s->second == nullptr) return {-1, -1};
  if (kIndex == 3) return {static_cast<const std::int32_t*>(s->second)[0], static_cast<const std::int32_t*>(s->second)[1]};
  return {static_cast<const std::int64_t*>(s->second)[0], static_cast<const std::int64_t*>(s->second)[1]};
}

inline std::vector<std::int64_t> shapeIn(const NetContext& context, const NetTensor& tensor) {
  const Network& network = context.engine->network;
  if (tensor.input) {
    const auto set = context.shapes.find(tensor.name);
    return set == context.shapes.end() ? tensor.shape : set->second;
  }
  if (network.kind == "nonzero") return {-1};
  if (network.kind == "shape") return tensor.host ? std::vector<std::int64_t>{2} : hostValues(context);
  return shapeIn(context, network.tensors[0]);
}

inline Dims netShape(Worker* self, const char* name) {
  const NetTensor* tensor = contextOf(self).engine->network.find(name);
  return dimsOf(tensor == nullptr ? std::vector<std::int64_t>() : shapeIn(contextOf(self), *tensor));
}

inline std::int32_t netInferShapes(Worker* self, std::int32_t, const char** missing) {
  const NetContext& context = contextOf(self);
  for (const NetTensor& tensor : context.engine->network.tensors)
    if (tensor.input && (volume(shapeIn(context, tensor)) < 0 || (tensor.host && context.addresses.count(tensor.name) == 0))) {
      *missing = tensor.name.c_str();
      return 1;
    }
  return 0;
}

inline std::int64_t netMaxOutput(Worker* self, const char* name) {
  const NetContext& context = contextOf(self);
  const NetTensor& tensor = *context.engine->network.find(name);
  return static_cast<std::int64_t>(tensorBytes(tensor, volume(shapeIn(context, context.engine->network.tensors[0]))));
}

inline bool netSetAddress(Worker* self, const char* name, void* memory) {
  NetContext& context = contextOf(self);
  const NetTensor* tensor = context.engine->network.find(name);
  if (tensor == nullptr || (!tensor->host && reinterpret_cast<std::uintptr_t>(memory) % 256 != 0)) {
    say(theLogger, 1, std::string("IExecutionContext::setTensorAddress: Error Code 3: address of ") + name + " is not aligned, or no tensor has this name");
    return false;
  }
  if (context.addresses[name] != memory) ++*context.version;
  context.addresses[name] = memory;
  return true;
}

inline bool netSetAllocator(Worker* self, const char* name, void* allocator) {
  contextOf(self).allocators[name] = allocator;
  return true;
}
inline void netSetProfiler(Worker* self, void* profiler) { contextOf(self).profiler = profiler; }
inline void netSetEmits(Worker* self, bool emits) { contextOf(self).emits = emits; }
inline void netSetMemory(Worker* self, void* memory) { contextOf(self).memory = memory; }
inline void netSetMemory2(Worker* self, void* memory, std::int64_t bytes) {
  contextOf(self).memory = memory;
  contextOf(self).memoryBytes = bytes;
}

// --- computing

struct NetKernel {
  char kind;
  const void* in[2];
  void* out[2];
  std::size_t bytes[2];  // of the outputs
  std::int64_t elements;
  const std::atomic<std::int64_t>* version;
  std::int64_t captured;

  static void run(void* argument) {
    const NetKernel& kernel = *static_cast<const NetKernel*>(argument);
    if (*kernel.version != kernel.captured) {
      for (int i = 0; i < 2; ++i)
        if (kernel.out[i] != nullptr) std::memset(kernel.out[i], 0xEE, kernel.bytes[i]);
      return;
    }
    const auto* x = static_cast<const float*>(kernel.in[0]);
    auto* y = static_cast<float*>(kernel.out[0]);
    if (kernel.kind == 'c') std::memcpy(y, x, kernel.bytes[0]);
    for (std::int64_t i = 0; kernel.kind == 'a' && i < kernel.elements; ++i) y[i] = 2 * x[i] + 1;
    for (std::int64_t i = 0; kernel.kind == 'r' && i < static_cast<std::int64_t>(kernel.bytes[0] / 4); ++i) y[i] = kernel.elements == 0 ? 0 : x[i % kernel.elements];
    for (std::int64_t i = 0; kernel.kind == 's' && i < kernel.elements; ++i) {
      const float sum = static_cast<const float*>(kernel.in[1])[i] + x[i];
      static_cast<float*>(kernel.out[1])[i] = sum;
      y[i] = 2 * sum;
    }
  }
};

inline bool refuse(const std::string& line) {
  say(theLogger, 1, "IExecutionContext::enqueueV3: Error Code 1: " + line);
  return false;
}

template <class Index>
bool computeNonzero(NetContext& context, void* stream) {
  const Network& network = context.engine->network;
  if (cuda<int (*)(void*)>("cuStreamSynchronize")(stream) != 0) return refuse("Cuda Runtime (operation not permitted when stream is capturing)");
  const auto* x = static_cast<const float*>(context.addresses["x"]);
  std::vector<Index> found;
  for (std::int64_t i = 0; i < volume(shapeIn(context, network.tensors[0])); ++i)
    if (x[i] != 0) found.push_back(static_cast<Index>(i));
  void* memory = context.addresses["y"];
  if (void* allocator = context.allocators["y"]) {
    const std::uint64_t bytes = std::max<std::size_t>(1, found.size() * sizeof(Index));
#if STANDIN_GENERATION == 0
    memory = call<void*>(allocator, Slot::IOutputAllocator_reallocateOutput_4, "y", memory, bytes, std::uint64_t{256});
#else
    memory = call<void*>(allocator, Slot::IOutputAllocator_reallocateOutputAsync_5, "y", memory, bytes, std::uint64_t{256}, stream);
#endif
    if (memory == nullptr) return refuse("Internal Error (the allocator gave no memory)");
    const Dims shape = dimsOf({static_cast<std::int64_t>(found.size())});
    call<void>(allocator, Slot::IOutputAllocator_notifyShape_2, "y", &shape);
  }
  std::memcpy(memory, found.data(), found.size() * sizeof(Index));
  return true;
}

inline bool computeShape(NetContext& context) {
  const std::vector<std::int64_t> values = hostValues(context);
  for (int i = 0; i < 2; ++i) {
    if (kIndex == 3) static_cast<std::int32_t*>(context.addresses["t"])[i] = static_cast<std::int32_t>(2 * values[i]);
    else static_cast<std::int64_t*>(context.addresses["t"])[i] = 2 * values[i];
  }
  return true;
}

inline bool netReport(Worker* self) {
  const NetContext& context = contextOf(self);
  if (context.profiler == nullptr) return false;
  // STANDIN_LAYERS: `name:ms` of each layer, separated by commas.
  const std::string wished = wish("STANDIN_LAYERS");
  std::string rest = wished.empty() ? "first:0.25,second:0.5" : wished;
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    const std::size_t colon = rest.find(':');
    call<void>(context.profiler, Slot::IProfiler_reportLayerTime_2, rest.substr(0, colon).c_str(), static_cast<float>(std::atof(rest.c_str() + colon + 1)));
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return true;
}

inline bool mayEnqueue(const NetContext& context, void* stream) {
  static std::atomic<int> enqueued{0};
  const int failsFrom = std::atoi(wish("STANDIN_ENQUEUE"));
  if (std::strcmp(wish("STANDIN_RUN"), "aborts") == 0) std::abort();
  if (failsFrom > 0 && ++enqueued >= failsFrom) return refuse("Cuda Runtime (an illegal memory access was encountered)");
  if (stream == nullptr) return refuse("the default stream was given");
  const Network& network = context.engine->network;
  if (context.memory == nullptr || (context.memoryBytes >= 0 && context.memoryBytes < network.memory)) return refuse("the context has no device memory, or too little");
  for (const NetTensor& tensor : network.tensors) {
    const auto address = context.addresses.find(tensor.name);
    const auto allocator = context.allocators.find(tensor.name);
    const bool has = (address != context.addresses.end() && address->second != nullptr) || (allocator != context.allocators.end() && allocator->second != nullptr);
    if (!has) return refuse("no address is set for " + tensor.name);
  }
  const bool waits = std::strcmp(wish("STANDIN_CAPTURE"), "refused") == 0 || (kGeneration != 0 && context.engine->budget < network.streamable);
  if (waits && cuda<int (*)(void*)>("cuStreamSynchronize")(stream) != 0) return refuse("Cuda Runtime (operation not permitted when stream is capturing)");
  return true;
}

inline bool netEnqueue(Worker* self, void* stream) {
  NetContext& context = contextOf(self);
  const Network& network = context.engine->network;
  if (!mayEnqueue(context, stream)) return false;
  if (network.kind == "nonzero") {
    if (kIndex == 3 ? !computeNonzero<std::int32_t>(context, stream) : !computeNonzero<std::int64_t>(context, stream)) return false;
  } else {
    if (network.kind == "shape") computeShape(context);
    NetKernel kernel = {network.kind == "shape" ? 'r' : network.kind[0], {}, {}, {}, volume(shapeIn(context, network.tensors[0])), context.version, *context.version};
    int ins = 0, outs = 0;
    for (const NetTensor& tensor : network.tensors) {
      if (tensor.host) continue;
      if (tensor.input) kernel.in[ins++] = context.addresses[tensor.name];
      else {
        kernel.bytes[outs] = tensorBytes(tensor, volume(shapeIn(context, tensor)));
        kernel.out[outs++] = context.addresses[tensor.name];
      }
    }
    cuda<int (*)(void*, double, void (*)(void*), const void*, std::size_t)>("standinLaunchCopy")(stream, std::atof(wish("STANDIN_COMPUTE_US")), NetKernel::run, &kernel, sizeof kernel);
  }
  if (context.profiler != nullptr && context.emits) netReport(self);
  return true;
}

inline Table netContextTable = Table()
                                   .put(Slot::IExecutionContext_setOptimizationProfileAsync_2, netSetProfile)
                                   .put(Slot::IExecutionContext_setInputShape_2, netSetShape)
                                   .put(Slot::IExecutionContext_getTensorShape_1, netShape)
                                   .put(Slot::IExecutionContext_inferShapes_2, netInferShapes)
                                   .put(Slot::IExecutionContext_getMaxOutputSize_1, netMaxOutput)
                                   .put(Slot::IExecutionContext_setTensorAddress_2, netSetAddress)
                                   .put(Slot::IExecutionContext_setOutputAllocator_2, netSetAllocator)
                                   .put(Slot::IExecutionContext_setProfiler_1, netSetProfiler)
                                   .put(Slot::IExecutionContext_setEnqueueEmitsProfile_1, netSetEmits)
                                   .put(Slot::IExecutionContext_reportToProfiler_0, netReport)
                                   .put(Slot::IExecutionContext_setDeviceMemory_1, netSetMemory)
                                   .put(Slot::IExecutionContext_setDeviceMemoryV2_2, netSetMemory2)
                                   .put(Slot::IExecutionContext_enqueueV3_1, netEnqueue);

}  // namespace standin
