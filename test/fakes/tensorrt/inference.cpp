// A fake for libnvinfer (or libtensorrt_rtx): it builds nothing, records what it is asked, and fails, aborts or listens as the test settings.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "network-engine.hpp"
#include "objects.hpp"

namespace fake {

// --- host memory
static const void* memoryData(Worker* self) { return self->content.data(); }
static std::size_t memorySize(Worker* self) { return self->content.size(); }
static Table memoryTable = Table().put(Slot::IHostMemory_data_0, memoryData).put(Slot::IHostMemory_size_0, memorySize);
Public* memoryOf(std::string content) {
  Public* memory = make("IHostMemory", memoryTable);
  memory->worker->content = std::move(content);
  return memory;
}

namespace {

void* theMonitor = nullptr;

// --- timing cache: a header, which is no text, and a line for each entry. FAKE_TIMING_HEADER: that of another GPU.
std::string cacheHeader() { return std::string("CACHE") + setting("FAKE_TIMING_HEADER") + std::string("\0\n", 2); }
bool isCache(const std::string& content) { return content.rfind(cacheHeader(), 0) == 0; }
std::set<std::string> cacheEntries(const std::string& content) {
  std::istringstream lines(content);
  std::set<std::string> entries;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) entries.insert(line);
  return entries;
}
void setEntries(Worker* cache, const std::set<std::string>& entries) {
  cache->content = cacheHeader();
  for (const std::string& entry : entries) cache->content += entry + "\n";
}
Public* cacheSerialize(Worker* self) { return memoryOf(self->content.empty() ? cacheHeader() : self->content); }
bool cacheCombine(Worker* self, const void* other, bool) {
  const std::string& added = static_cast<const Public*>(other)->worker->content;
  record("combine " + added);
  if (!isCache(self->content) || !isCache(added)) return false;
  std::set<std::string> entries = cacheEntries(self->content);
  entries.merge(cacheEntries(added));
  setEntries(self, entries);
  return true;
}
Table cacheTable = Table().put(Slot::ITimingCache_serialize_0, cacheSerialize).put(Slot::ITimingCache_combine_2, cacheCombine);

// --- tensors and network
extern Worker tensorWorkers[3];
const char* tensorName(Worker* self) { return self->content.c_str(); }
bool tensorIsShape(Worker* self) { return self->number == 1; }
// FAKE_MODEL: `shape` adds a shape tensor, `found` has an input of fixed shape and an output whose shape depends on the data.
// FAKE_PLAN: a file of the plan that is built, whose tensors the network has.
std::string wantedPlan() {
  std::ifstream file(setting("FAKE_PLAN"), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}
Network planned;
bool dependsOnData() { return std::strcmp(setting("FAKE_MODEL"), "found") == 0; }
std::int32_t tensorType(Worker* self) {
  if (const NetTensor* tensor = planned.find(self->content)) return tensor->dtype;
  return self->number == 1 ? 8 : 0;
}
Dims tensorDims(Worker* self) {
  if (const NetTensor* tensor = planned.find(self->content)) return dimsOf(tensor->shape);
  Dims shape = {};
  if (dependsOnData()) {
    shape.count = self == &tensorWorkers[2] ? 1 : 2;
    shape.values[0] = self == &tensorWorkers[2] ? -1 : 8;
    shape.values[1] = 64;
    return shape;
  }
  shape.count = self->number == 1 ? 1 : 2;
  shape.values[0] = self->number == 1 ? 2 : -1;
  shape.values[1] = 64;
  return shape;
}
Table tensorTable = Table()
                        .put(Slot::ITensor_getName_0, tensorName)
                        .put(Slot::ITensor_getType_0, tensorType)
                        .put(Slot::ITensor_getDimensions_0, tensorDims)
                        .put(Slot::ITensor_isShapeTensor_0, tensorIsShape);
Worker tensorWorkers[3] = {
    {tensorTable.slots(), "ITensor", nullptr, "x", 0},
    {tensorTable.slots(), "ITensor", nullptr, "s", 1},
    {tensorTable.slots(), "ITensor", nullptr, "y", 0},
};
Public tensors[] = {{nullptr, &tensorWorkers[0]}, {nullptr, &tensorWorkers[1]}, {nullptr, &tensorWorkers[2]}};

bool withShapeTensor() { return std::strcmp(setting("FAKE_MODEL"), "shape") == 0; }
std::int32_t networkLayers(Worker*) { return 3; }
// Inputs, then outputs.
std::deque<Worker> plannedWorkers[2];
std::deque<Public> plannedTensors[2];
void planTensors(const std::string& wanted) {
  planned = wanted.empty() ? Network() : networkOf(wanted.substr(kHeaderBytes));
  for (int side = 0; side < 2; ++side) {
    plannedWorkers[side].clear();
    plannedTensors[side].clear();
  }
  for (const NetTensor& tensor : planned.tensors) {
    const int side = tensor.input ? 0 : 1;
    plannedWorkers[side].push_back({tensorTable.slots(), "ITensor", nullptr, tensor.name, 0});
    plannedTensors[side].push_back({nullptr, &plannedWorkers[side].back()});
  }
}
std::int32_t countOf(int side, std::int32_t otherwise) { return planned.tensors.empty() ? otherwise : static_cast<std::int32_t>(plannedTensors[side].size()); }
Public* tensorOf(int side, std::int32_t index, Public* otherwise) { return planned.tensors.empty() ? otherwise : &plannedTensors[side][static_cast<std::size_t>(index)]; }
std::int32_t networkInputs(Worker*) { return countOf(0, withShapeTensor() ? 2 : 1); }
std::int32_t networkOutputs(Worker*) { return countOf(1, 1); }
Public* networkInput(Worker*, std::int32_t index) { return tensorOf(0, index, &tensors[index]); }
Public* networkOutput(Worker*, std::int32_t index) { return tensorOf(1, index, &tensors[2]); }
Table networkTable = Table()
                         .put(Slot::INetworkDefinition_getNbLayers_0, networkLayers)
                         .put(Slot::INetworkDefinition_getNbInputs_0, networkInputs)
                         .put(Slot::INetworkDefinition_getNbOutputs_0, networkOutputs)
                         .put(Slot::INetworkDefinition_getInput_1, networkInput)
                         .put(Slot::INetworkDefinition_getOutput_1, networkOutput);

// --- profiles
bool setDimensions(Worker*, const char* input, std::int32_t selector, DimsArgument argument) {
  record(std::string("setDimensions ") + input + " " + std::to_string(selector) + " " + shown(dims(argument)));
  return true;
}
template <class Number>
bool setValues(const char* function, const char* input, std::int32_t selector, const Number* values, std::int32_t count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += " " + std::to_string(values[i]);
  record(std::string(function) + " " + input + " " + std::to_string(selector) + text);
  return true;
}
bool setValues32(Worker*, const char* input, std::int32_t selector, const std::int32_t* values, std::int32_t count) {
  return setValues("setShapeValues", input, selector, values, count);
}
bool setValues64(Worker*, const char* input, std::int32_t selector, const std::int64_t* values, std::int32_t count) {
  return setValues("setShapeValuesV2", input, selector, values, count);
}
bool profileValid(Worker*) { return true; }
Table profileTable = Table()
                         .put(Slot::IOptimizationProfile_setDimensions_3, setDimensions)
                         .put(Slot::IOptimizationProfile_setShapeValues_4, setValues32)
                         .put(Slot::IOptimizationProfile_setShapeValuesV2_4, setValues64)
                         .put(Slot::IOptimizationProfile_isValid_0, profileValid);
Worker profileWorker = {profileTable.slots(), "IOptimizationProfile", nullptr, "", 0};
Public profile = {nullptr, &profileWorker};

// --- configuration
void note(const char* function, std::int64_t value) { record(std::string(function) + " " + std::to_string(value)); }
#define SETTER(name, type) \
  bool name(Worker*, type value) { note(#name, static_cast<std::int64_t>(value)); return true; }
SETTER(clearFlag, std::int32_t)
SETTER(setMaxAuxStreams, std::int32_t)
SETTER(setAvgTimingIterations, std::int32_t)
SETTER(setTilingOptimizationLevel, std::int32_t)
SETTER(setMaxNbTactics, std::int32_t)
SETTER(setL2LimitForTiling, std::int64_t)
SETTER(setProfilingVerbosity, std::int32_t)
SETTER(setHardwareCompatibilityLevel, std::int32_t)
SETTER(setRuntimePlatform, std::int32_t)
SETTER(setEngineCapability, std::int32_t)
SETTER(setTacticSources, std::uint32_t)
SETTER(setNbComputeCapabilities, std::int32_t)
#undef SETTER
bool setBuilderOptimizationLevel(Worker* self, std::int32_t value) {
  self->number = value;
  note("setBuilderOptimizationLevel", value);
  return true;
}
void setFlag(Worker*, std::int32_t value) {
  note("setFlag", value);
  if (std::strcmp(setting("FAKE_REFUSES"), "flags") == 0) say(theLogger, 2, "this flag is not supported on this device");
}
void setMemoryPoolLimit(Worker*, std::int32_t pool, std::size_t bytes) { record("setMemoryPoolLimit " + std::to_string(pool) + " " + std::to_string(bytes)); }
void setPreviewFeature(Worker*, std::int32_t feature, bool on) { record("setPreviewFeature " + std::to_string(feature) + (on ? " on" : " off")); }
bool setComputeCapability(Worker*, std::int32_t capability, std::int32_t index) {
  record("setComputeCapability " + std::to_string(capability) + " " + std::to_string(index));
  return capability != 90;
}
std::int32_t addProfile(Worker*, Public* added) { return added == &profile ? 0 : -1; }
void setMonitor(Worker*, void* monitor) {
  record(monitor == nullptr ? "setProgressMonitor null" : "setProgressMonitor");
  theMonitor = monitor;
}
Public* createCache(Worker*, const void* bytes, std::size_t size) {
  Public* cache = make("ITimingCache", cacheTable);
  std::string content(static_cast<const char*>(bytes), size);
  // 8.6 prints this of its compiler's part alone; 11 makes an empty one of what it cannot read.
  if (kGeneration == 0 && size > 0) say(theLogger, 1, "4: The timing cache will not be used!");
  if (kGeneration >= 2 && size > 0 && !isCache(content) && content != "REFUSED") {
    say(theLogger, 2, "The timing cache will not be used!");
    content.clear();
  }
  cache->worker->content = content;
  return cache;
}
bool setCache(Worker* self, Public* cache, bool ignoreMismatch) {
  record(std::string("setTimingCache ") + (ignoreMismatch ? "ignoring mismatch " : "") + cache->worker->content);
  self->parent = reinterpret_cast<Worker*>(cache);
  return cache->worker->content != "REFUSED";
}
Public* getCache(Worker* self) { return reinterpret_cast<Public*>(self->parent); }
Table configTable = Table()
                        .put(Slot::IBuilderConfig_setFlag_1, setFlag)
                        .put(Slot::IBuilderConfig_clearFlag_1, clearFlag)
                        .put(Slot::IBuilderConfig_setMemoryPoolLimit_2, setMemoryPoolLimit)
                        .put(Slot::IBuilderConfig_setBuilderOptimizationLevel_1, setBuilderOptimizationLevel)
                        .put(Slot::IBuilderConfig_setMaxAuxStreams_1, setMaxAuxStreams)
                        .put(Slot::IBuilderConfig_setAvgTimingIterations_1, setAvgTimingIterations)
                        .put(Slot::IBuilderConfig_setTilingOptimizationLevel_1, setTilingOptimizationLevel)
                        .put(Slot::IBuilderConfig_setMaxNbTactics_1, setMaxNbTactics)
                        .put(Slot::IBuilderConfig_setL2LimitForTiling_1, setL2LimitForTiling)
                        .put(Slot::IBuilderConfig_setProfilingVerbosity_1, setProfilingVerbosity)
                        .put(Slot::IBuilderConfig_setHardwareCompatibilityLevel_1, setHardwareCompatibilityLevel)
                        .put(Slot::IBuilderConfig_setRuntimePlatform_1, setRuntimePlatform)
                        .put(Slot::IBuilderConfig_setEngineCapability_1, setEngineCapability)
                        .put(Slot::IBuilderConfig_setTacticSources_1, setTacticSources)
                        .put(Slot::IBuilderConfig_setPreviewFeature_2, setPreviewFeature)
                        .put(Slot::IBuilderConfig_setNbComputeCapabilities_1, setNbComputeCapabilities)
                        .put(Slot::IBuilderConfig_setComputeCapability_2, setComputeCapability)
                        .put(Slot::IBuilderConfig_addOptimizationProfile_1, addProfile)
                        .put(Slot::IBuilderConfig_setProgressMonitor_1, setMonitor)
                        .put(Slot::IBuilderConfig_createTimingCache_2, createCache)
                        .put(Slot::IBuilderConfig_setTimingCache_2, setCache)
                        .put(Slot::IBuilderConfig_getTimingCache_0, getCache);

// --- plug-ins
void* loadPlugins(void*, const char* path) {
  record(std::string("loadLibrary ") + path);
  return std::strstr(path, "missing") == nullptr ? theLogger : nullptr;
}
void unloadPlugins(void*, void*) { record("deregisterLibrary"); }
Table registryTable = Table().put(Slot::IPluginRegistry_loadLibrary_1, loadPlugins).put(Slot::IPluginRegistry_deregisterLibrary_1, unloadPlugins);
void** registry = registryTable.slots();
void* getRegistry(Worker*) { return &registry; }

// --- builder
Public* createNetwork(Worker*, std::uint32_t flags) {
  note("createNetworkV2", flags);
  planTensors(wantedPlan());
  return make("INetworkDefinition", networkTable);
}
Public* createConfig(Worker*) {
  for (int left = std::atoi(setting("FAKE_WARNINGS")); left > 0; --left) say(theLogger, 2, "a kernel was left out");
  return make("IBuilderConfig", configTable);
}
Public* createProfile(Worker*) { return &profile; }

bool reportProgress() {
  const bool waits = std::strcmp(setting("FAKE_BUILD"), "waits") == 0;
  if (theMonitor == nullptr) {
    if (waits) std::this_thread::sleep_for(std::chrono::hours(24));
    return true;
  }
  // 8.6 has no monitor to report to.
#if FAKE_GENERATION != 0
  call(theMonitor, Slot::IProgressMonitor_phaseStart_3, "Building engine", static_cast<const char*>(nullptr), 2);
  call(theMonitor, Slot::IProgressMonitor_phaseStart_3, "Timing tactics", "Building engine", 3);
  for (int tactic = 0; tactic < 1000; ++tactic) {
    call(theMonitor, Slot::IProgressMonitor_phaseStart_3, "Measuring a tactic", "Timing tactics", 1);
    call(theMonitor, Slot::IProgressMonitor_stepComplete_2, "Measuring a tactic", 0);
    call(theMonitor, Slot::IProgressMonitor_phaseFinish_1, "Measuring a tactic");
  }
  if (std::strcmp(setting("FAKE_BUILD"), "slowly") == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    call(theMonitor, Slot::IProgressMonitor_stepComplete_2, "Timing tactics", 1);
  }
  bool goOn = true;
  do {
    if (waits) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    goOn = call(theMonitor, Slot::IProgressMonitor_stepComplete_2, "Building engine", 0);
  } while (waits && goOn);
  if (std::strcmp(setting("FAKE_BUILD"), "leaves") == 0) return false;
  // TensorRT's threads end each other's phases.
  std::thread([] { call(theMonitor, Slot::IProgressMonitor_phaseFinish_1, "Timing tactics"); }).join();
  call(theMonitor, Slot::IProgressMonitor_phaseFinish_1, "Building engine");
  return goOn;
#else
  return true;
#endif
}

Public* buildNetwork(Worker*, Public* network, Public* config) {
  record(std::string("buildSerializedNetwork ") + network->worker->name + " " + config->worker->name);
  record("builds on " + workingGpu());
  const std::string requested = setting("FAKE_BUILD");
  // TensorRT logs from threads of its own.
  std::thread([] { for (int i = 0; i < 100; ++i) say(theLogger, 3, "a line from another thread"); }).join();
  if (Public* cache = getCache(config->worker)) {
    const std::string& content = cache->worker->content;
    if (!content.empty() && !isCache(content)) {
      say(theLogger, 2, "Detected invalid timing cache, setup a local cache instead");
    } else {
      say(theLogger, 3, "Global timing cache in use. Profiling results in this builder pass will be stored.");
      std::set<std::string> entries = cacheEntries(content);
      entries.insert("kernels of " + std::to_string(std::hash<std::string>()(wantedPlan())) + " at level " + std::to_string(config->worker->number));
      setEntries(cache->worker, entries);
    }
  }
  if (requested == "aborts") {
    std::fprintf(stderr, "terminate called after throwing an instance of 'nvinfer1::Fake'\n");
    std::abort();
  }
  if (requested == "fails") {
    say(theLogger, 1, "Error Code 10: Could not find any implementation for node {ForeignNode[a...b]}.");
    return nullptr;
  }
  if (requested == "memory") {
    say(theLogger, 2, "Requested amount of GPU memory (2833252352 bytes) could not be allocated. There may not be enough free memory for allocation to succeed.");
    say(theLogger, 1, "[defaultAllocator.cpp::allocate::31] Error Code 1: Cuda Runtime (out of memory)");
    return nullptr;
  }
  if (!reportProgress()) return nullptr;
  if (std::string wanted = wantedPlan(); !wanted.empty()) return memoryOf(std::move(wanted));
  std::string plan(kGeneration == 3 ? "vtrt" : "ftrt", 4);
  plan.resize(64, '\0');
  return memoryOf(plan);
}

Table builderTable = Table()
                         .put(Slot::IBuilder_createNetworkV2_1, createNetwork)
                         .put(Slot::IBuilder_createBuilderConfig_0, createConfig)
                         .put(Slot::IBuilder_createOptimizationProfile_0, createProfile)
                         .put(Slot::IBuilder_buildSerializedNetwork_2, buildNetwork)
                         .put(Slot::IBuilder_getPluginRegistry_0, getRegistry);

// --- runtime
// FAKE_LOADS=N: a load goes on when N are under way, or after a while.
void meetOthers() {
  static std::atomic<int> under{0};
  const int wanted = std::atoi(setting("FAKE_LOADS"));
  if (wanted == 0) return;
  ++under;
  for (int tries = 0; under < wanted && tries < 2000; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  record(std::to_string(under) + " loads at once");
}
// FAKE_LOAD=cuts: the file FAKE_LOADED loses its end.
void cutFile() {
  if (std::strcmp(setting("FAKE_LOAD"), "cuts") == 0 && truncate(setting("FAKE_LOADED"), kHeaderBytes) != 0) std::abort();
}
bool isMappedFile(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &from, &to) != 2) continue;
    const auto place = reinterpret_cast<unsigned long>(address);
    if (from <= place && place < to) return line.find('/') != std::string::npos;
  }
  return false;
}
Public* load(Worker* runtime, const void* bytes, std::size_t size) {
  note("deserializeCudaEngine", static_cast<std::int64_t>(size));
  record("loads on " + workingGpu());
  meetOthers();
  Public* network = nullptr;
  if (loadNetwork(bytes, size, runtime->number == 1, network)) return network;
  say(theLogger, 1, "Serialization assertion magicTagRead == kMAGIC_TAG failed. Magic tag does not match");
  return nullptr;
}
Public* loadMemory(Worker* self, const void* bytes, std::size_t size) {
  record(isMappedFile(bytes) ? "reads a mapped file" : "reads memory");
  Public* network = load(self, bytes, size);
  cutFile();
  return network;
}
Public* load2(Worker* self, const void* bytes, std::size_t size) { return loadMemory(self, bytes, size); }
Public* load3(Worker* self, const void* bytes, std::size_t size, void*) { return loadMemory(self, bytes, size); }
void allowHostCode(Worker* self, bool allowed) { self->number = allowed ? 1 : 0; }
Table runtimeTable = Table()
                         .put(Slot::IRuntime_deserializeCudaEngine_2, load2)
                         .put(Slot::IRuntime_deserializeCudaEngine_3, load3)
                         .put(Slot::IRuntime_setEngineHostCodeAllowed_1, allowHostCode)
                         .put(Slot::IRuntime_getPluginRegistry_0, getRegistry);

}  // namespace

extern "C" {

std::int32_t getInferLibVersion() { return FAKE_VERSION; }

void* createInferBuilder_INTERNAL(void* logger, std::int32_t version) {
  theLogger = logger;
  note("createInferBuilder", version);
  say(logger, 3, "fake builder");
  // TensorRT-RTX builds on the CPU.
  if (FAKE_GENERATION != 3 && std::strcmp(setting("FAKE_GPU"), "full") == 0) {
    say(logger, 1, "CUDA initialization failure with error: 2");
    std::abort();
  }
  if (std::strcmp(setting("FAKE_BUILDER"), "missing") == 0) {
    say(logger, 1, "Unable to load library: libnvinfer_builder_resource_sm90.so");
    return nullptr;
  }
  return make("IBuilder", builderTable);
}

void* createInferRuntime_INTERNAL(void* logger, std::int32_t) {
  theLogger = logger;
  return make("IRuntime", runtimeTable);
}

}

}  // namespace fake
