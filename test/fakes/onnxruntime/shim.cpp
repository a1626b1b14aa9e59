// A libonnxruntime.so for machines without a GPU: the real library (FAKE_ORT_REAL) with the CUDA and TensorRT providers played on the CPU, through its table of functions.
// FAKE_ORT_TAKES: operators that the provider takes, by comma; FAKE_ORT_LOG: a file that gets a line for every call played here;
// FAKE_ORT_WISH: no-device, other-device, no-memory, no-kernel, lost-library, bad-option; FAKE_ORT_VERSION: another version than the real one's.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ort_slots.h"

namespace {

using namespace trtforge::ort;

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}
bool wished(const char* wish) { return std::strcmp(setting("FAKE_ORT_WISH"), wish) == 0; }
void note(const std::string& line) {
  if (FILE* file = std::fopen(setting("FAKE_ORT_LOG"), "a")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

struct ApiBase {
  void* const* (*getApi)(std::uint32_t);
  const char* (*getVersionString)();
};

constexpr int kSlots = 430, kCreateStatus = 0;
void* real[kSlots];
void* shown[kSlots];

template <class Type, class... Given>
auto call(const Function<Type>& function, Given... given) {
  return reinterpret_cast<Type*>(real[function.index])(given...);
}
void* status(const char* text) { return reinterpret_cast<void* (*)(int, const char*)>(real[kCreateStatus])(1, text); }

void* update(const char* provider, const void* keys, const void* values, std::size_t count) {
  std::string line = provider;
  for (std::size_t i = 0; i < count; ++i) line += std::string(" ") + static_cast<const char* const*>(keys)[i] + "=" + static_cast<const char* const*>(values)[i];
  note(line);
  if (wished("lost-library"))
    return status("provider_bridge_ort.cc:1988 [ONNXRuntimeError] : 1 : FAIL : Failed to load library /x/libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open shared object file: No such file or directory\n");
  if (wished("other-device")) return status("cuda_execution_provider_info.cc:62 Failed to parse provider option \"device_id\": Invalid device ID: 9, must be between 0 (inclusive) and 1 (exclusive).");
  if (wished("hidden-device")) return status("cuda_execution_provider_info.cc:62 Failed to parse provider option \"device_id\": CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; hostname=vm ; line=69");
  return wished("bad-option") ? status("provider_options_utils.h:146 Failed to parse provider option") : nullptr;
}
void* updateCuda(const void*, const void* keys, const void* values, std::size_t count) { return update("cuda", keys, values, count); }
void* updateTensorrt(const void*, const void* keys, const void* values, std::size_t count) { return update("tensorrt", keys, values, count); }
void* append(const void*, const void*) { return nullptr; }

void* createMemory(const char* name, std::int32_t allocator, std::int32_t device, std::int32_t type, const void* out) {
  note("memory " + std::string(name) + " " + std::to_string(device));
  return call(Slot::CreateCpuMemoryInfo, allocator, type, out);
}
void* bindOutput(const void* binding, const char* name, const void* memory) {
  note("output " + std::string(name));
  return call(Slot::BindOutputToDevice, binding, name, memory);
}
void* configEntry(const void* options, const char* key, const char* value) {
  note("config " + std::string(key) + "=" + value);
  return call(Slot::AddSessionConfigEntry, options, key, value);
}
void* createSession(const void* environment, const char* path, const void* options, const void* out) {
  const char *override = std::getenv("NVIDIA_TF32_OVERRIDE"), *telemetry = std::getenv("ORT_DISABLE_TELEMETRY");
  note(std::string("environment tf32=") + (override == nullptr ? "unset" : override) + " telemetry-off=" + (telemetry == nullptr ? "unset" : telemetry));
  if (wished("no-device")) return status("/x/cuda_call.cc:154 std::conditional_t<THRW, void, common::Status> = void] CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; hostname=here ; file=x.cc");
  if (wished("no-kernel")) return status("Exception during initialization: /x/transformer_memcpy.cc:253 IsNodeCompatibleWithProvider(const onnxruntime::Node&) const !node_provider_type.empty() was false. Provider type for MaxPool node with name 'pool' is not set.");
  if (wished("no-memory")) return status("/x/cuda_call.cc:154 CUDA failure 2: out of memory ; GPU=0 ; hostname=here ; file=x.cc");
  if (wished("not-built")) {
    std::fprintf(stderr, "\x1b[1;31m2026-11-23 23:30:51.183 [E:onnxruntime:trtforge, tensorrt_execution_provider.h:98 log] [2026-11-23 23:30:51   ERROR] IBuilder::buildSerializedNetwork: Error Code 4: API Usage Error (no kernel)\x1b[m\n");
    return status("Non-zero status code returned while running TRTKernel_1 node. Status Message: TensorRT EP failed to create engine from network.");
  }
  return call(Slot::CreateSession, environment, path, options, out);
}

// The real library makes a subgraph of each node.
void* providerOf(const void* subgraph, const void* out) {
  const void* const* nodes = nullptr;
  std::size_t count = 0;
  call(Slot::EpAssignedSubgraph_GetNodes, subgraph, &nodes, &count);
  const char* type = "";
  call(Slot::EpAssignedNode_GetOperatorType, nodes[0], &type);
  const std::string takes = std::string(",") + setting("FAKE_ORT_TAKES") + ",";
  const bool taken = takes.find(std::string(",") + type + ",") != std::string::npos;
  const bool tensorrt = wished("tensorrt");
  *static_cast<const char**>(const_cast<void*>(out)) = !taken ? "CPUExecutionProvider" : tensorrt ? "TensorrtExecutionProvider" : "CUDAExecutionProvider";
  return nullptr;
}

template <class Type>
void play(const Function<Type>& function, Type* played) {
  shown[function.index] = reinterpret_cast<void*>(played);
}

const ApiBase* realBase() {
  static void* library = dlopen(setting("FAKE_ORT_REAL"), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<const ApiBase* (*)()>(dlsym(library, "OrtGetApiBase"))();
}

const char* version() {
  const char* other = setting("FAKE_ORT_VERSION");
  return *other == 0 ? realBase()->getVersionString() : other;
}

void* const* getApi(std::uint32_t number) {
  note("api " + std::to_string(number));
  std::memcpy(real, realBase()->getApi(number), sizeof(void*) * 425);
  std::memcpy(shown, real, sizeof real);
  play(Slot::UpdateCUDAProviderOptions, updateCuda);
  play(Slot::UpdateTensorRTProviderOptions, updateTensorrt);
  play(Slot::SessionOptionsAppendExecutionProvider_CUDA_V2, append);
  play(Slot::SessionOptionsAppendExecutionProvider_TensorRT_V2, append);
  play(Slot::CreateMemoryInfo, createMemory);
  play(Slot::BindOutputToDevice, bindOutput);
  play(Slot::AddSessionConfigEntry, configEntry);
  play(Slot::CreateSession, createSession);
  play(Slot::EpAssignedSubgraph_GetEpName, providerOf);
  return shown;
}

const ApiBase base{getApi, version};

}  // namespace

extern "C" const ApiBase* OrtGetApiBase() { return &base; }
