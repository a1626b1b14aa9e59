// What the networks of networks.hpp compute, and what enqueueV3 checks before it does.
#pragma once
#include <algorithm>
#include <thread>

#include "networks.hpp"

namespace fake {

// Of `means`: an output and the input that it is made of, each by its elements.
template <class Number>
void means(const void* in, std::int64_t elements, void* out, std::int64_t parts) {
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t from = part * elements / parts;
    const std::int64_t to = std::max(from + 1, (part + 1) * elements / parts);
    double sum = 0;
    for (std::int64_t i = from; i < to; ++i) sum += static_cast<double>(static_cast<const Number*>(in)[i]);
    static_cast<Number*>(out)[part] = static_cast<Number>(sum / static_cast<double>(to - from));
  }
}

struct Mean {
  const void* in;
  std::int64_t elements;
  void* out;
  std::int64_t parts;
  int dtype;
};

struct NetKernel {
  char kind;
  const void* in[8];
  void* out[8];
  std::size_t bytes[8];  // of the outputs
  std::int64_t elements;
  const std::atomic<std::int64_t>* version;
  std::int64_t captured;
  // Of `affine`, as they are when it is enqueued or captured.
  float two, one;
  Mean made[8];

  static void run(void* argument) {
    const NetKernel& kernel = *static_cast<const NetKernel*>(argument);
    if (*kernel.version != kernel.captured) {
      for (int i = 0; i < 8; ++i)
        if (kernel.out[i] != nullptr) std::memset(kernel.out[i], 0xEE, kernel.bytes[i]);
      return;
    }
    for (const Mean& mean : kernel.made) {
      if (mean.dtype == kFloat) means<float>(mean.in, mean.elements, mean.out, mean.parts);
      else if (kBits[mean.dtype] == 64) means<std::int64_t>(mean.in, mean.elements, mean.out, mean.parts);
      else means<std::int32_t>(mean.in, mean.elements, mean.out, mean.parts);
    }
    const auto* x = static_cast<const float*>(kernel.in[0]);
    auto* y = static_cast<float*>(kernel.out[0]);
    if (kernel.kind == 'c') std::memcpy(y, x, kernel.bytes[0]);
    for (std::int64_t i = 0; kernel.kind == 'a' && i < kernel.elements; ++i) y[i] = kernel.two * x[i] + kernel.one;
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

// Whether something that its kernels touch is not on the stream's GPU; shape tensors are on the host.
inline bool astray(const NetContext& context, void* stream) {
  if (!touches(stream, context.engine->weights.get()) || !touches(stream, context.memory)) return true;
  for (const NetTensor& tensor : context.engine->network.tensors) {
    const auto address = context.addresses.find(tensor.name);
    if (!tensor.host && address != context.addresses.end() && address->second != nullptr && !touches(stream, address->second)) return true;
  }
  return false;
}

template <class Index>
bool computeNonzero(NetContext& context, void* stream) {
  const Network& network = context.engine->network;
  if (cuda<int (*)(void*)>("cuStreamSynchronize")(stream) != 0) return refuse("Cuda Runtime (operation not permitted when stream is capturing)");
  // It copies what it found by way of the host.
  if (astray(context, stream)) return refuse(cudaText(700));
  const auto* x = static_cast<const float*>(context.addresses["x"]);
  std::vector<Index> found;
  for (std::int64_t i = 0; i < volume(shapeIn(context, network.tensors[0])); ++i)
    if (x[i] != 0) found.push_back(static_cast<Index>(i));
  void* memory = context.addresses["y"];
  if (void* allocator = context.allocators["y"]) {
    const std::uint64_t bytes = std::max<std::size_t>(1, found.size() * sizeof(Index));
#if FAKE_GENERATION == 0
    memory = call(allocator, Slot::IOutputAllocator_reallocateOutput_4, "y", memory, bytes, std::uint64_t{256});
#else
    memory = call(allocator, Slot::IOutputAllocator_reallocateOutputAsync_5, "y", memory, bytes, std::uint64_t{256}, stream);
#endif
    if (memory == nullptr) return refuse("Internal Error (the allocator gave no memory)");
    if (!touches(stream, memory)) return refuse(cudaText(700));
    const Dims shape = dimsOf({static_cast<std::int64_t>(found.size())});
    call(allocator, Slot::IOutputAllocator_notifyShape_2, "y", &shape);
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
  // FAKE_LAYERS: `name:ms` of each layer, separated by commas.
  const std::string requested = setting("FAKE_LAYERS");
  std::string rest = requested.empty() ? "first:0.25,second:0.5" : requested;
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    const std::size_t colon = rest.find(':');
    call(context.profiler, Slot::IProfiler_reportLayerTime_2, rest.substr(0, colon).c_str(), static_cast<float>(std::atof(rest.c_str() + colon + 1)));
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return true;
}

inline bool mayEnqueue(const NetContext& context, void* stream) {
  static std::atomic<int> enqueued{0};
  const int failsFrom = std::atoi(setting("FAKE_ENQUEUE"));
  if (std::strcmp(setting("FAKE_RUN"), "aborts") == 0) std::abort();
  if (failsFrom > 0 && ++enqueued >= failsFrom) {
    // Another context's line on another thread at the same time.
    std::thread([] { say(theLogger, 1, "Error Code 1: Cuda Runtime (out of memory)"); }).join();
    return refuse("Cuda Runtime (an illegal memory access was encountered)");
  }
  if (stream == nullptr) return refuse("the default stream was given");
  const Network& network = context.engine->network;
  if (context.memory == nullptr || (context.memoryBytes >= 0 && context.memoryBytes < network.memory)) return refuse("the context has no device memory, or too little");
  for (const NetTensor& tensor : network.tensors) {
    const auto address = context.addresses.find(tensor.name);
    const auto allocator = context.allocators.find(tensor.name);
    const bool has = (address != context.addresses.end() && address->second != nullptr) || (allocator != context.allocators.end() && allocator->second != nullptr);
    if (!has) return refuse("no address is set for " + tensor.name);
  }
  const bool waits = std::strcmp(setting("FAKE_CAPTURE"), "refused") == 0 || (kGeneration != 0 && context.engine->budget < network.streamable);
  if (waits && cuda<int (*)(void*)>("cuStreamSynchronize")(stream) != 0) return refuse("Cuda Runtime (operation not permitted when stream is capturing)");
  return true;
}

inline Mean meanOf(NetContext& context, const NetTensor& output) {
  for (const NetTensor& tensor : context.engine->network.tensors)
    if (tensor.input && tensor.dtype == output.dtype)
      return {context.addresses[tensor.name], volume(shapeIn(context, tensor)), context.addresses[output.name], volume(shapeIn(context, output)), output.dtype};
  return {};
}

inline bool netEnqueue(Worker* self, void* stream) {
  NetContext& context = contextOf(self);
  const Network& network = context.engine->network;
  if (!mayEnqueue(context, stream)) return false;
  if (const int code = context.mark.record(stream); code != 0) return refuse(cudaText(code));
  if (network.kind == "nonzero") {
    if (kIndex == 3 ? !computeNonzero<std::int32_t>(context, stream) : !computeNonzero<std::int64_t>(context, stream)) return false;
  } else {
    if (network.kind == "shape") computeShape(context);
    NetKernel kernel = {network.kind == "shape" ? 'r' : network.kind[0], {}, {}, {}, volume(shapeIn(context, network.tensors[0])), context.version, *context.version, static_cast<float>(context.engine->weight("two", 2)), static_cast<float>(context.engine->weight("one", 1)), {}};
    int ins = 0, outs = 0;
    double us = std::atof(setting("FAKE_COMPUTE_US"));
    for (const NetTensor& tensor : network.tensors) {
      if (tensor.host) continue;
      us += cuda<double (*)(const void*)>("fakeBusUs")(context.addresses[tensor.name]);
      if (tensor.input) kernel.in[ins++] = context.addresses[tensor.name];
      else {
        if (network.kind == "means") kernel.made[outs] = meanOf(context, tensor);
        kernel.bytes[outs] = tensorBytes(tensor, volume(shapeIn(context, tensor)));
        kernel.out[outs++] = context.addresses[tensor.name];
      }
    }
    if (const int code = launch(stream, us, NetKernel::run, &kernel, sizeof kernel, astray(context, stream)); code != 0) return refuse(cudaText(code));
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

}  // namespace fake
