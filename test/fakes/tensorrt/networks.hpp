// Engines that a plan describes: small networks that are really computed, on the fake GPU. A plan is the header of a real one (32 bytes), then lines:
//   fake-network
//   kind affine | copy | state | nonzero | shape | means
//   input NAME DTYPE SIZES, output NAME DTYPE SIZES   of `means`: a line per tensor; -1 is a size that the profile's rows are for
//   dtype N          of `copy`: nvinfer1::DataType; the others are float32
//   inner N          elements of a row
//   rows N           a fixed number of rows in place of open ones
//   profile A B C    rows: least, usual, most; a line per profile
//   memory N, streamable N, auxstreams N, hostcode 1, refit 1, layers JSON
//   weight NAME VALUE   of an engine that can be refitted, a line each
// affine: y = 2x + 1, or `two` times x plus `one` by its weights. copy: y = x. state: y = 2 * state_out, state_out = state + x. nonzero: y = the places in x that are not 0 (int64; int32 on 8.6).
// shape: y = x, given again and again, of the shape s says; t = 2s; s and t lie on the host.
// means: each output divides the first input of its type into as many parts as it has elements, and gives their means; outputs take open sizes of input 0.
// A graph replayed after its context was changed or deleted gives 0xEE in every byte, for that is what the library does not promise.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "network-gpu.hpp"

namespace fake {

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
  std::int64_t inner = 64, rows = -1, memory = 4096, streamable = 0, auxstreams = 0, hostcode = 0, refit = 0;
  std::map<std::string, double> weights;
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
    if (word == "auxstreams") words >> network.auxstreams;
    if (word == "hostcode") words >> network.hostcode;
    if (word == "refit") words >> network.refit;
    if (word == "weight") {
      std::string name;
      words >> name;
      words >> network.weights[name];
    }
    if (word == "layers") network.layers = line.substr(7);
    if (word == "input" || word == "output") {
      NetTensor tensor = {"", kFloat, word == "input", false, {}};
      words >> tensor.name >> tensor.dtype;
      for (std::int64_t size; words >> size;) tensor.shape.push_back(size);
      network.tensors.push_back(tensor);
    }
    if (word != "profile") continue;
    std::vector<std::int64_t> rows(3);
    words >> rows[0] >> rows[1] >> rows[2];
    network.profiles.push_back(rows);
  }
  if (network.profiles.empty()) network.profiles.push_back(network.rows < 0 ? std::vector<std::int64_t>{1, 8, 64} : std::vector<std::int64_t>(3, network.rows));
  const std::vector<std::int64_t> rowed = {network.rows, network.inner};
  const std::string& kind = network.kind;
  if (kind == "means") return network;
  if (kind == "nonzero") network.tensors = {{"x", kFloat, true, false, {network.rows}}, {"y", kIndex, false, false, {-1}}};
  else if (kind == "shape")
    network.tensors = {{"x", kFloat, true, false, rowed}, {"s", kIndex, true, true, {2}}, {"y", kFloat, false, false, {-1, -1}}, {"t", kIndex, false, true, {2}}};
  else if (kind == "state")
    network.tensors = {{"x", kFloat, true, false, rowed}, {"state", kFloat, true, false, rowed}, {"y", kFloat, false, false, rowed}, {"state_out", kFloat, false, false, rowed}};
  else network.tensors = {{"x", network.dtype, true, false, rowed}, {"y", network.dtype, false, false, rowed}};
  return network;
}

struct NetEngine : Worker {
  NetEngine(void** table, std::string plan) : Worker{table, "ICudaEngine", nullptr, std::move(plan), 0}, network(networkOf(content.substr(kHeaderBytes))) {}
  Network network;
  double weight(const char* name, double otherwise) const {
    const auto found = network.weights.find(name);
    return found == network.weights.end() ? otherwise : found->second;
  }
  Weights weights;
  std::int64_t budget = 0;
  std::map<int, int> profileUsers;  // 8.6: one context each
  std::vector<std::int64_t> values[2][3];
};

struct NetContext : Worker {
  NetContext(void** table, NetEngine* engine) : Worker{table, "IExecutionContext", nullptr, "", 0}, engine(engine), version(new std::atomic<std::int64_t>(0)) {}
  NetEngine* engine;
  Mark mark;
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
      say(theLogger, 1, "3: [executionContext.cpp::setOptimizationProfileInternal::1362] Error Code 3: Internal Error (Profile " + std::to_string(profile) + " has been chosen by another IExecutionContext. Use another profileIndex or destroy the IExecutionContext that use this profile.)");
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
  if (!context.mark.here()) return say(theLogger, 1, "IExecutionContext::setInputShape: Error Code 1: " + cudaText(400)), false;
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
  if (network.kind == "means") {
    const NetTensor& first = network.tensors[0];
    const std::vector<std::int64_t> of = shapeIn(context, first);
    std::vector<std::int64_t> shape = tensor.shape;
    const auto open = std::find(first.shape.begin(), first.shape.end(), -1) - first.shape.begin();
    for (std::int64_t& size : shape)
      if (size < 0) size = of[static_cast<std::size_t>(open)];
    return shape;
  }
  if (network.kind == "shape") return tensor.host ? std::vector<std::int64_t>{2} : hostValues(context);
  return shapeIn(context, network.tensors[0]);
}

inline Dims netShape(Worker* self, const char* name) {
  const NetTensor* tensor = contextOf(self).engine->network.find(name);
  return dimsOf(tensor == nullptr ? std::vector<std::int64_t>() : shapeIn(contextOf(self), *tensor));
}

inline std::int32_t netInferShapes(Worker* self, std::int32_t, const char** missing) {
  const NetContext& context = contextOf(self);
  if (!context.mark.here()) return -1;
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

}  // namespace fake
