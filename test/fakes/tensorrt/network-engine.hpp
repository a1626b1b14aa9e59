// The engines of networks.hpp: what their plans say of tensors, profiles and memory.
#pragma once
#include <memory>

#include "network-runs.hpp"
#include "refit.hpp"

namespace fake {

inline const NetTensor& netTensor(Worker* self, const char* name) { return *engineOf(self).network.find(name); }
inline const char* netName(Worker* self) { return engineOf(self).network.kind.c_str(); }
inline std::int32_t netLayers(Worker*) { return 2; }
inline std::int32_t netProfiles(Worker* self) { return static_cast<std::int32_t>(engineOf(self).network.profiles.size()); }
inline std::int32_t netAuxStreams(Worker* self) { return static_cast<std::int32_t>(engineOf(self).network.auxstreams); }
inline bool netRefittable(Worker* self) { return engineOf(self).network.refit != 0; }
inline std::int64_t netMemory(Worker* self) { return engineOf(self).network.memory; }
inline std::size_t netMemorySize(Worker* self) { return static_cast<std::size_t>(netMemory(self)); }
inline std::int64_t netProfileMemory(Worker* self, std::int32_t) { return netMemory(self); }
inline std::int32_t netCount(Worker* self) { return static_cast<std::int32_t>(engineOf(self).network.tensors.size()); }
inline const char* netTensorName(Worker* self, std::int32_t index) { return engineOf(self).network.tensors[static_cast<std::size_t>(index)].name.c_str(); }
inline std::int32_t netType(Worker* self, const char* name) { return netTensor(self, name).dtype; }
inline std::int32_t netMode(Worker* self, const char* name) { return netTensor(self, name).input ? 1 : 2; }
inline std::int32_t netLocation(Worker* self, const char* name) { return netTensor(self, name).host ? 1 : 0; }
inline bool netIsShape(Worker* self, const char* name) { return netTensor(self, name).host; }
inline std::int32_t netFormat(Worker*, const char*) { return 0; }
// FAKE_LOAD=forgets: as 8.6 does of engines built without a profile though an output's shape depends on the data.
inline Dims netEngineShape(Worker* self, const char* name) {
  Dims shape = dimsOf(netTensor(self, name).shape);
  if (netTensor(self, name).input && std::strcmp(setting("FAKE_LOAD"), "forgets") == 0) shape.count = -1;
  return shape;
}
inline Dims netProfileShape(Worker* self, const char* name, std::int32_t profile, std::int32_t selector) {
  std::vector<std::int64_t> shape = netTensor(self, name).shape;
  for (std::int64_t& size : shape)
    if (size < 0) size = engineOf(self).network.profiles[static_cast<std::size_t>(profile)][static_cast<std::size_t>(selector)];
  return dimsOf(shape);
}

// Values of s: rows and 64, as the profile's rows go.
template <class Number>
const Number* netValues(NetEngine& engine, std::int32_t profile, std::int32_t selector) {
  static std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Number>> kept;
  std::lock_guard<std::mutex> lock(netMutex);
  const std::int64_t rows = engine.network.profiles[static_cast<std::size_t>(profile)][static_cast<std::size_t>(selector)];
  auto& values = kept[{rows, engine.network.inner}];
  values = {static_cast<Number>(rows), static_cast<Number>(engine.network.inner)};
  return values.data();
}
inline std::int32_t netBindingIndex(Worker* self, const char* name) { return static_cast<std::int32_t>(engineOf(self).network.find(name) - engineOf(self).network.tensors.data()); }
inline const std::int32_t* netShapeValues(Worker* self, std::int32_t, std::int32_t profile, std::int32_t selector) { return netValues<std::int32_t>(engineOf(self), profile, selector); }
inline const std::int32_t* netTensorValues(Worker* self, const char*, std::int32_t profile, std::int32_t selector) { return netValues<std::int32_t>(engineOf(self), profile, selector); }
inline const std::int64_t* netTensorValues2(Worker* self, const char*, std::int32_t profile, std::int32_t selector) { return netValues<std::int64_t>(engineOf(self), profile, selector); }

inline std::int64_t netStreamable(Worker* self) { return engineOf(self).network.streamable; }
inline std::int64_t netAutomaticBudget(Worker* self) { return engineOf(self).network.streamable / 2; }
inline bool netSetBudget(Worker* self, std::int64_t budget) {
  record("setWeightStreamingBudgetV2 " + std::to_string(budget));
  engineOf(self).budget = budget;
  return true;
}

inline const char* netInformation(Worker* self, std::int32_t format) { return format == 1 ? self->content.c_str() : "not JSON"; }
inline Table netInspectorTable = Table().put(Slot::IEngineInspector_getEngineInformation_1, netInformation);
inline Public* netInspector(Worker* self) {
  Public* inspector = make("IEngineInspector", netInspectorTable);
  inspector->worker->content = engineOf(self).network.layers;
  return inspector;
}

inline Public* netContext(Worker* self) {
  const std::string requested = setting("FAKE_CONTEXT");
  if (requested == "missing") say(theLogger, 1, "ICudaEngine::createExecutionContext: Error Code 4: the context could not be made");
  if (requested == "memory") say(theLogger, 1, "ICudaEngine::createExecutionContext: Error Code 2: OutOfMemory (no further information)");
  if (requested == "missing" || requested == "memory") return nullptr;
  auto context = std::make_unique<NetContext>(netContextTable.slots(), static_cast<NetEngine*>(self));
  if (context->mark.made() == 0) return publish(context.release());
  say(theLogger, 1, "ICudaEngine::createExecutionContext: Error Code 1: " + cudaText(context->mark.made()));
  return nullptr;
}
inline Public* netContext1(Worker* self, std::int32_t strategy) {
  record("createExecutionContext " + std::to_string(strategy));
  return netContext(self);
}

// --- other weights
#if FAKE_GENERATION != 0
inline std::int32_t givenNames(const std::map<std::string, double>& weights, const std::map<std::string, double>& without, std::int32_t size, const char** names) {
  std::int32_t count = 0;
  for (const auto& [name, value] : weights) {
    if (without.count(name) != 0) continue;
    if (count < size) names[count] = name.c_str();
    ++count;
  }
  return count;
}
inline NetEngine& refitted(Worker* self) { return *static_cast<NetEngine*>(self->parent); }
inline std::int32_t refitAll(Worker* self, std::int32_t size, const char** names) { return givenNames(refitted(self).network.weights, {}, size, names); }
// FAKE_REFIT=missing: a weight that the parser does not know is asked for. fails: the weights are not taken. half: taken, and then another value.
inline std::int32_t refitMissing(Worker* self, std::int32_t size, const char** names) {
  if (std::strcmp(setting("FAKE_REFIT"), "missing") == 0) return givenNames({{"unnamed", 0}}, {}, size, names);
  return givenNames(refitted(self).network.weights, static_cast<Refitter*>(self)->given, size, names);
}
inline bool refitEngine(Worker* self) {
  record("refitCudaEngine");
  if (std::strcmp(setting("FAKE_REFIT"), "fails") == 0) return say(theLogger, 1, "IRefitter::refitCudaEngine: Error Code 4: the weights were not taken"), false;
  for (const auto& [name, value] : static_cast<Refitter*>(self)->given) refitted(self).network.weights[name] = std::strcmp(setting("FAKE_REFIT"), "half") == 0 ? value / 2 : value;
  return true;
}
inline void destroyRefitter(Public* object) {
  record("destroy IRefitter");
  delete static_cast<Refitter*>(object->worker);
  delete object;
}
inline Table refitterTable = Table().put(Slot::IRefitter_getAllWeights_2, refitAll).put(Slot::IRefitter_getMissingWeights_2, refitMissing).put(Slot::IRefitter_refitCudaEngine_0, refitEngine);
inline Public* netRefitter(Worker* self, void*) {
  static Table destructors = Table().put(1, reinterpret_cast<void*>(&destroyRefitter));
  record("create IRefitter");
  return new Public{destructors.slots(), new Refitter{{refitterTable.slots(), "IRefitter", self, "", 0}, engineOf(self).network.weights, {}}};
}

inline bool serializationFlags(Worker* self, std::uint32_t flags) {
  record("ISerializationConfig setFlags " + std::to_string(flags));
  self->number = flags;
  return true;
}
inline Table serializationTable = Table().put(Slot::ISerializationConfig_setFlags_1, serializationFlags);
inline Public* netSerialization(Worker*) { return make("ISerializationConfig", serializationTable); }
// The plan it was loaded from, with the weights that it has now.
Public* memoryOf(std::string content);
// Seen with TensorRT 10.6: a plan with the lean runtime needs that library, which many installations lack.
inline Public* netSerialize(Worker* self, Public* config) {
  constexpr std::int64_t kExcludeLeanRuntime = 1 << 1;
  if ((config->worker->number & kExcludeLeanRuntime) == 0) return say(theLogger, 1, "ICudaEngine::serializeWithConfig: Error Code 6: API Usage Error (Unable to load library: libnvinfer_lean.so.10)"), nullptr;
  const NetEngine& engine = engineOf(self);
  std::istringstream lines(engine.content.substr(kHeaderBytes));
  std::string body, line;
  while (std::getline(lines, line))
    if (line.rfind("weight ", 0) != 0) body += line + "\n";
  for (const auto& [name, value] : engine.network.weights) body += "weight " + name + " " + std::to_string(value) + "\n";
  std::string plan = engine.content.substr(0, kHeaderBytes) + body;
  const std::uint64_t size = plan.size();
  std::memcpy(plan.data() + 16, &size, sizeof size);
  return memoryOf(std::move(plan));
}
#endif

inline Table netEngineTable = Table()
                                  .put(Slot::ICudaEngine_getName_0, netName)
                                  .put(Slot::ICudaEngine_getNbLayers_0, netLayers)
                                  .put(Slot::ICudaEngine_getNbOptimizationProfiles_0, netProfiles)
                                  .put(Slot::ICudaEngine_getNbAuxStreams_0, netAuxStreams)
                                  .put(Slot::ICudaEngine_isRefittable_0, netRefittable)
                                  .put(Slot::ICudaEngine_getDeviceMemorySize_0, netMemorySize)
                                  .put(Slot::ICudaEngine_getDeviceMemorySizeV2_0, netMemory)
                                  .put(Slot::ICudaEngine_getDeviceMemorySizeForProfileV2_1, netProfileMemory)
                                  .put(Slot::ICudaEngine_getNbIOTensors_0, netCount)
                                  .put(Slot::ICudaEngine_getIOTensorName_1, netTensorName)
                                  .put(Slot::ICudaEngine_getTensorDataType_1, netType)
                                  .put(Slot::ICudaEngine_getTensorIOMode_1, netMode)
                                  .put(Slot::ICudaEngine_getTensorLocation_1, netLocation)
                                  .put(Slot::ICudaEngine_isShapeInferenceIO_1, netIsShape)
                                  .put(Slot::ICudaEngine_getTensorFormat_1, netFormat)
                                  .put(Slot::ICudaEngine_getTensorShape_1, netEngineShape)
                                  .put(Slot::ICudaEngine_getProfileShape_3, netProfileShape)
                                  .put(Slot::ICudaEngine_getBindingIndex_1, netBindingIndex)
                                  .put(Slot::ICudaEngine_getProfileShapeValues_3, netShapeValues)
                                  .put(Slot::ICudaEngine_getProfileTensorValues_3, netTensorValues)
                                  .put(Slot::ICudaEngine_getProfileTensorValuesV2_3, netTensorValues2)
                                  .put(Slot::ICudaEngine_getStreamableWeightsSize_0, netStreamable)
                                  .put(Slot::ICudaEngine_getWeightStreamingAutomaticBudget_0, netAutomaticBudget)
                                  .put(Slot::ICudaEngine_setWeightStreamingBudgetV2_1, netSetBudget)
                                  .put(Slot::ICudaEngine_createEngineInspector_0, netInspector)
#if FAKE_GENERATION != 0
                                  .put(Slot::ICudaEngine_createRefitter_1, netRefitter)
                                  .put(Slot::ICudaEngine_createSerializationConfig_0, netSerialization)
                                  .put(Slot::ICudaEngine_serializeWithConfig_1, netSerialize)
#endif
                                  .put(Slot::ICudaEngine_createExecutionContextWithoutDeviceMemory_0, netContext)
                                  .put(Slot::ICudaEngine_createExecutionContext_1, netContext1);

// Whether the bytes are the plan of a network; `engine` then is what the library gives for it, null where it refuses.
inline bool loadNetwork(const void* bytes, std::size_t size, bool hostCodeAllowed, Public*& engine) {
  const std::string plan(static_cast<const char*>(bytes), size);
  constexpr char kMark[] = "fake-network\n";
  if (size < kHeaderBytes + sizeof kMark || plan.compare(kHeaderBytes, sizeof kMark - 1, kMark) != 0) return false;
  engine = nullptr;
  const Network network = networkOf(plan.substr(kHeaderBytes));
  if (std::strcmp(setting("FAKE_LOAD"), "memory") == 0)
    say(theLogger, 1, "IRuntime::deserializeCudaEngine: Error Code 2: Requested amount of GPU memory (1073741824 bytes) could not be allocated.");
  else if (std::strcmp(setting("FAKE_LOAD"), "fails") == 0)
    say(theLogger, 1, "IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed.)");
  else if (network.hostcode != 0 && !hostCodeAllowed)
    say(theLogger, 1, "IRuntime::deserializeCudaEngine: Error Code 3: Usage Error (Cannot deserialize engine with lean runtime since IRuntime::getEngineHostCodeAllowed() is false.)");
  else {
    auto loaded = std::make_unique<NetEngine>(netEngineTable.slots(), plan);
    if (loaded->weights.made() == 0) engine = publish(loaded.release());
    else say(theLogger, 1, "IRuntime::deserializeCudaEngine: Error Code 1: " + cudaText(loaded->weights.made()));
  }
  return true;
}

}  // namespace fake
