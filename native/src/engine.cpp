#include "engine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "block_pool.hpp"
#include "build.hpp"
#include "dims.hpp"
#include "nvtx.hpp"

namespace trtforge {

namespace {

constexpr std::int32_t kInput = 1;      // TensorIOMode
constexpr std::int32_t kHost = 1;       // TensorLocation
constexpr std::int32_t kJson = 1;       // LayerInformationFormat
constexpr std::int32_t kSelectors = 3;  // OptProfileSelector: min, opt, max

// Reads what an engine states of its tensors, with the functions of its generation.
class TensorReader {
 public:
  TensorReader(const InferenceLibrary& library, const Facade& engine, std::int32_t profiles)
      : engine_(engine), library_(library), profiles_(profiles), wide_(library.generation() != Generation::k8) {}

  EngineTensor read(const char* name) const {
    EngineTensor tensor;
    tensor.name = name;
    tensor.dtype = engine_.call(Slot::ICudaEngine_getTensorDataType_1, name);
    tensor.input = engine_.call(Slot::ICudaEngine_getTensorIOMode_1, name) == kInput;
    tensor.host = engine_.call(Slot::ICudaEngine_getTensorLocation_1, name) == kHost;
    tensor.shapeTensor = engine_.call(Slot::ICudaEngine_isShapeInferenceIO_1, name);
    tensor.format = engine_.call(Slot::ICudaEngine_getTensorFormat_1, name);
    tensor.shape =
        wide_ ? knownShape(tensor, engine_.call(declaredIn<Generation::k10>(Slot::ICudaEngine_getTensorShape_1), name))
              : knownShape(tensor, engine_.call(declaredIn<Generation::k8>(Slot::ICudaEngine_getTensorShape_1), name));
    for (std::int32_t profile = 0; tensor.input && profile < profiles_; ++profile) {
      const auto numbers = [&](std::int32_t selector) {
        return tensor.shapeTensor ? values(tensor, profile, selector) : shape(name, profile, selector);
      };
      tensor.profiles.push_back({numbers(0), numbers(1), numbers(kSelectors - 1)});
    }
    return tensor;
  }

 private:
  std::vector<std::int64_t> shape(const char* name, std::int32_t profile, std::int32_t selector) const {
    if (wide_)
      return engine_.call(declaredIn<Generation::k10>(Slot::ICudaEngine_getProfileShape_3), name, profile, selector)
          .toVector();
    return engine_.call(declaredIn<Generation::k8>(Slot::ICudaEngine_getProfileShape_3), name, profile, selector)
        .toVector();
  }
  template <class Shape>
  std::vector<std::int64_t> knownShape(const EngineTensor& tensor, const Shape& dims) const {
    if (dims.count >= 0 || !tensor.input) return dims.toVector();
    throw Failure("TF_PLAN_LOAD_FAILED", library_.name() + " does not know the shape of the input " + tensor.name +
                                             " of the engine" +
                                             ": 8.6 builds such engines, and cannot run them, of models whose outputs "
                                             "depend on the data where no profile was set.");
  }
  template <class Number>
  static std::vector<std::int64_t> list(const Number* values, std::int64_t count) {
    return values == nullptr || count < 0 ? std::vector<std::int64_t>()
                                          : std::vector<std::int64_t>(values, values + count);
  }
  // A shape tensor has no open dimension, or one whose size its profile fixes.
  std::vector<std::int64_t> values(const EngineTensor& tensor, std::int32_t profile, std::int32_t selector) const {
    const char* name = tensor.name.c_str();
    const std::int64_t fixed = volumeOf(tensor.shape);
    const std::int64_t count = fixed >= 0 ? fixed : volumeOf(shape(name, profile, selector));
    if (!wide_) {
      const auto binding = engine_.call(Slot::ICudaEngine_getBindingIndex_1, name);
      return list(engine_.call(Slot::ICudaEngine_getProfileShapeValues_3, binding, profile, selector), count);
    }
    if (library_.has(Slot::ICudaEngine_getProfileTensorValuesV2_3))
      return list(engine_.call(Slot::ICudaEngine_getProfileTensorValuesV2_3, name, profile, selector), count);
    return list(engine_.call(Slot::ICudaEngine_getProfileTensorValues_3, name, profile, selector), count);
  }

  const Facade& engine_;
  const InferenceLibrary& library_;
  std::int32_t profiles_;
  bool wide_;
};

// TensorRT ends the whole process when the first bytes are not its own, so they are looked at first.
void checkHeader(const InputFile& plan, const OpenRequest& request, const InferenceLibrary& library) {
  const char* tag = library.rtx() ? "vtrt" : "ftrt";
  char header[28];
  if (plan.size() >= sizeof header) {
    plan.read(header, sizeof header, 0);
    if (std::memcmp(header, tag, std::strlen(tag)) == 0) return;
  }
  throw Failure("TF_PLAN_INVALID", request.planPath + " does not start like a plan of " +
                                       (library.rtx() ? "TensorRT-RTX" : "TensorRT") + " does.");
}

}  // namespace

bool ranOutOfMemory(Listener& listener, bool errorsAlone) {
  return listener.received(
      {"out of memory", "Out of memory", "OutOfMemory", "outOfMemory", "could not be allocated", "OUT_OF_MEMORY"},
      errorsAlone ? kError : kWarning);
}

Failure outOfMemory(const cuda::Device& device, Listener& listener, const std::string& what, std::size_t atLeast) {
  const std::vector<std::string> lines = listener.failure("TF_GPU_MEMORY", "").lines;
  std::size_t needed = atLeast;
  for (const std::string& line : lines) {
    // `Requested amount of GPU memory (1073741824 bytes) could not be allocated`
    const std::size_t bytes = line.find(" bytes)");
    const std::size_t bracket = bytes == std::string::npos ? bytes : line.rfind('(', bytes);
    if (bracket != std::string::npos)
      needed = std::max<std::size_t>(needed, std::strtoull(line.c_str() + bracket + 1, nullptr, 10));
  }
  Failure failure = device.outOfMemory(what, needed);
  failure.lines = lines;
  return failure;
}

Engine::Engine(const InferenceLibrary& library, const cuda::Device& device, std::string label)
    : library_(library), device_(device), label_(std::move(label)), pool_(std::make_unique<BlockPool>(device)) {}

Engine::~Engine() {
  // Whatever still lives when the process ends is left to the system: the driver may be gone.
  if (!cuda::ending()) {
    device_.makeCurrentQuietly();
    return;
  }
  object_.release();
  (void)plugins_.release();
  runtime_.release();
}

std::shared_ptr<Engine> Engine::open(const OpenRequest& request, Listener& listener) {
  const Listening listening(listener);
  nvtx::attach(listener);
  const nvtx::Range range(("load " + request.label).c_str());
  const auto started = std::chrono::steady_clock::now();
  // The GPU first: TensorRT ends the process where there is none.
  const cuda::Device& device = cuda::Device::at(request.device);
  const InferenceLibrary& library = inferenceLibrary(request.inferenceLibrary);
  library.requireTable();
  const std::shared_ptr<Engine> engine(new Engine(library, device, request.label));
  engine->facts_.before = device.memory();
  engine->load(request, listener);
  engine->facts_.after = device.memory();
  engine->readFacts();
  engine->facts_.loadMs = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  return engine;
}

void Engine::load(const OpenRequest& request, Listener& listener) {
  InputFile plan(request.planPath);
  checkHeader(plan, request, library_);
  initialiseStandardPlugins(library_, request.pluginLibrary, listener);
  device_.makeCurrent();
  const auto create = library_.shared().symbol<void* (*)(void*, std::int32_t)>("createInferRuntime_INTERNAL");
  runtime_ = Owned(library_, create(loggerFor(library_), library_.code()));
  if (!runtime_)
    throw listener.failure("TF_PLAN_LOAD_FAILED", library_.name() + " cannot create a runtime on this machine.");
  plugins_ =
      std::make_unique<Plugins>(library_, runtime_, Slot::IRuntime_getPluginRegistry_0, request.pluginPaths, listener);
  if (request.allowHostCode) runtime_.call(Slot::IRuntime_setEngineHostCodeAllowed_1, true);
  object_ = deserialize(plan, library_, runtime_, facts_.loadCost);
  if (!object_ && ranOutOfMemory(listener))
    throw outOfMemory(device_, listener, "engine " + request.planPath, plan.size());
  if (!object_)
    throw listener.failure("TF_PLAN_LOAD_FAILED",
                           request.planPath + " could not be loaded by " + library_.name() + ".");
  setWeightBudget(request, listener);
}

void Engine::setWeightBudget(const OpenRequest& request, Listener& listener) {
  if (library_.has(Slot::ICudaEngine_getStreamableWeightsSize_0))
    facts_.streamableWeightsBytes = object_.call(Slot::ICudaEngine_getStreamableWeightsSize_0);
  using Budget = OpenRequest::Budget;
  if (facts_.streamableWeightsBytes <= 0) {
    if (request.budget != Budget::kAll)
      throw Failure(
          "TF_OPTION_UNSUPPORTED",
          request.planPath + " was not built with weight streaming, so a budget for its weights has no effect.");
    return;
  }
  std::int64_t budget = request.budget == Budget::kBytes ? std::min(request.budgetBytes, facts_.streamableWeightsBytes)
                                                         : facts_.streamableWeightsBytes;
  bool set = false;
  if (library_.has(Slot::ICudaEngine_setWeightStreamingBudgetV2_1)) {
    if (request.budget == Budget::kAutomatic)
      budget = object_.call(Slot::ICudaEngine_getWeightStreamingAutomaticBudget_0);
    set = object_.call(Slot::ICudaEngine_setWeightStreamingBudgetV2_1, budget);
  } else {
    // 10.0: -1 lets the library choose, 0 turns streaming off.
    const std::int64_t old = request.budget == Budget::kAutomatic ? -1
                             : request.budget == Budget::kAll     ? 0
                                                                  : std::max<std::int64_t>(budget, 1);
    set = object_.call(Slot::ICudaEngine_setWeightStreamingBudget_1, old);
    if (set && request.budget == Budget::kAutomatic)
      budget = object_.call(Slot::ICudaEngine_getWeightStreamingBudget_0);
  }
  facts_.weightBudgetBytes = budget;
  streamsWeights_ = budget < facts_.streamableWeightsBytes;
  if (set) return;
  if (ranOutOfMemory(listener))
    throw outOfMemory(device_, listener, "weights of " + request.planPath, static_cast<std::size_t>(budget));
  throw listener.failure("TF_PLAN_LOAD_FAILED", "The library rejects a budget of " + std::to_string(budget) +
                                                    " bytes for the weights of " + request.planPath + ".");
}

void Engine::readFacts() {
  const char* name = object_.call(Slot::ICudaEngine_getName_0);
  facts_.name = name == nullptr ? "" : name;
  facts_.layers = object_.call(Slot::ICudaEngine_getNbLayers_0);
  facts_.profiles = object_.call(Slot::ICudaEngine_getNbOptimizationProfiles_0);
  facts_.auxStreams = object_.call(Slot::ICudaEngine_getNbAuxStreams_0);
  facts_.refittable = object_.call(Slot::ICudaEngine_isRefittable_0);
  facts_.libraryVersion = library_.version();
  const bool wide = library_.has(Slot::ICudaEngine_getDeviceMemorySizeV2_0);
  facts_.deviceMemoryBytes = wide ? object_.call(Slot::ICudaEngine_getDeviceMemorySizeV2_0)
                                  : static_cast<std::int64_t>(object_.call(Slot::ICudaEngine_getDeviceMemorySize_0));
  for (std::int32_t profile = 0; profile < facts_.profiles; ++profile)
    facts_.deviceMemoryBytesPerProfile.push_back(
        library_.has(Slot::ICudaEngine_getDeviceMemorySizeForProfileV2_1)
            ? object_.call(Slot::ICudaEngine_getDeviceMemorySizeForProfileV2_1, profile)
            : facts_.deviceMemoryBytes);
  const TensorReader reader(library_, object_, facts_.profiles);
  const auto count = object_.call(Slot::ICudaEngine_getNbIOTensors_0);
  for (std::int32_t i = 0; i < count; ++i)
    facts_.tensors.push_back(reader.read(object_.call(Slot::ICudaEngine_getIOTensorName_1, i)));
}

const EngineTensor* Engine::find(const std::string& name) const {
  for (const EngineTensor& tensor : facts_.tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

const EngineTensor& Engine::tensor(const std::string& name) const {
  if (const EngineTensor* found = find(name)) return *found;
  std::string names;
  for (const EngineTensor& tensor : facts_.tensors) names += (names.empty() ? "" : ", ") + tensor.name;
  throw Failure("TF_SESSION_INPUT", "The engine has no tensor " + name + "; it has " + names + ".");
}

std::string Engine::layers(Listener& listener) const {
  const Listening listening(listener);
  device_.makeCurrent();
  const Owned inspector(library_, object_.call(Slot::ICudaEngine_createEngineInspector_0));
  if (!inspector)
    throw listener.failure("TF_CONTEXT_FAILED", library_.name() + " could not make an inspector of the engine.");
  const char* text = inspector.call(Slot::IEngineInspector_getEngineInformation_1, kJson);
  if (text == nullptr)
    throw listener.failure("TF_CONTEXT_FAILED", library_.name() + " could not describe the engine's layers.");
  return text;
}

}  // namespace trtforge
