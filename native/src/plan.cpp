#include "plan.hpp"

#include "build.hpp"
#include "dims.hpp"
#include "files.hpp"
#include "gpus.hpp"
#include "plugins.hpp"

namespace trtforge {

namespace {

constexpr std::int32_t kInput = 1;  // TensorIOMode

std::vector<std::int64_t> tensorShape(const InferenceLibrary& library, const Facade& engine, const char* name) {
  if (library.generation() == Generation::k8) return engine.call<Dims32>(Slot::ICudaEngine_getTensorShape_1, name).toVector();
  return engine.call<Dims64>(Slot::ICudaEngine_getTensorShape_1, name).toVector();
}

std::vector<std::int64_t> profileShape(const InferenceLibrary& library, const Facade& engine, const char* name, std::int32_t profile, std::int32_t selector) {
  if (library.generation() == Generation::k8) return engine.call<Dims32>(Slot::ICudaEngine_getProfileShape_3, name, profile, selector).toVector();
  return engine.call<Dims64>(Slot::ICudaEngine_getProfileShape_3, name, profile, selector).toVector();
}

PlanTensor tensorFacts(const InferenceLibrary& library, const Facade& engine, const char* name, std::int32_t profiles) {
  PlanTensor tensor;
  tensor.name = name;
  tensor.dtype = engine.call<std::int32_t>(Slot::ICudaEngine_getTensorDataType_1, name);
  tensor.shape = tensorShape(library, engine, name);
  tensor.input = engine.call<std::int32_t>(Slot::ICudaEngine_getTensorIOMode_1, name) == kInput;
  tensor.shapeTensor = engine.call<bool>(Slot::ICudaEngine_isShapeInferenceIO_1, name);
  if (!tensor.input || tensor.shapeTensor) return tensor;
  for (std::int32_t profile = 0; profile < profiles; ++profile) {
    const auto shape = [&](std::int32_t selector) { return profileShape(library, engine, name, profile, selector); };
    tensor.profiles.push_back({shape(0), shape(1), shape(2)});
  }
  return tensor;
}

std::int64_t deviceMemoryBytes(const InferenceLibrary& library, const Facade& engine) {
  if (library.has(Slot::ICudaEngine_getDeviceMemorySizeV2_0)) return engine.call<std::int64_t>(Slot::ICudaEngine_getDeviceMemorySizeV2_0);
  return static_cast<std::int64_t>(engine.call<std::size_t>(Slot::ICudaEngine_getDeviceMemorySize_0));
}

Owned loadEngine(const InferenceLibrary& library, const Facade& runtime, const std::vector<char>& plan) {
  if (library.generation() == Generation::k8)
    return Owned(library, runtime.call<void*>(Slot::IRuntime_deserializeCudaEngine_3, plan.data(), plan.size(), static_cast<void*>(nullptr)));
  return Owned(library, runtime.call<void*>(Slot::IRuntime_deserializeCudaEngine_2, plan.data(), plan.size()));
}

}  // namespace

PlanFacts inspectPlan(const InspectRequest& request, Listener& listener) {
  const Listening listening(listener);
  const std::vector<char> plan = readFile(request.planPath);
  const InferenceLibrary& library = inferenceLibrary(request.inferenceLibrary);
  library.requireTable();
  if (!library.rtx()) requireGpu(library.name());
  initialiseStandardPlugins(library, request.pluginLibrary, listener);
  const auto create = library.shared().symbol<void* (*)(void*, std::int32_t)>("createInferRuntime_INTERNAL");
  const Owned runtime(library, create(loggerFor(library), library.code()));
  if (!runtime) throw listener.failure("TF_BUILDER_UNAVAILABLE", library.name() + " cannot create a runtime on this machine.");
  const Plugins plugins(library, runtime, Slot::IRuntime_getPluginRegistry_0, request.pluginPaths, listener);
  const Owned engine = loadEngine(library, runtime, plan);
  if (!engine) throw listener.failure("TF_PLAN_LOAD_FAILED", request.planPath + " could not be loaded by " + library.name() + ".");

  PlanFacts facts;
  const char* name = engine.call<const char*>(Slot::ICudaEngine_getName_0);
  facts.name = name == nullptr ? "" : name;
  facts.layers = engine.call<std::int32_t>(Slot::ICudaEngine_getNbLayers_0);
  facts.profiles = engine.call<std::int32_t>(Slot::ICudaEngine_getNbOptimizationProfiles_0);
  facts.auxStreams = engine.call<std::int32_t>(Slot::ICudaEngine_getNbAuxStreams_0);
  facts.deviceMemoryBytes = deviceMemoryBytes(library, engine);
  const std::int32_t count = engine.call<std::int32_t>(Slot::ICudaEngine_getNbIOTensors_0);
  for (std::int32_t i = 0; i < count; ++i)
    facts.tensors.push_back(tensorFacts(library, engine, engine.call<const char*>(Slot::ICudaEngine_getIOTensorName_1, i), facts.profiles));
  return facts;
}

}  // namespace trtforge
