#include "build.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "config.hpp"
#include "cuda.hpp"
#include "engine.hpp"
#include "files.hpp"
#include "gpus.hpp"
#include "network.hpp"
#include "nvtx.hpp"
#include "plugins.hpp"
#include "profiles.hpp"
#include "timing_cache.hpp"

namespace trtforge {

namespace {

Owned createBuilder(const InferenceLibrary& library, Listener& listener) {
  const auto create = library.shared().symbol<void* (*)(void*, std::int32_t)>("createInferBuilder_INTERNAL");
  Owned builder(library, create(loggerFor(library), library.code()));
  if (!builder)
    throw listener.failure("TF_BUILDER_UNAVAILABLE", library.name() + " cannot create a builder on this machine.");
  return builder;
}

Owned require(Owned object, Listener& listener, const char* what) {
  if (!object) throw listener.failure("TF_BUILD_FAILED", std::string("The library could not create a ") + what + ".");
  return object;
}

std::vector<TensorFacts> factsOf(const std::vector<NetworkTensor>& tensors) { return {tensors.begin(), tensors.end()}; }

// With less free than this a builder's own kernels and libraries do not load, and it names other causes ("invalid
// resource handle" of Cask was seen).
constexpr std::size_t kRoomToBuild = std::size_t{1} << 30;

// Kernels that needed too much memory are left out in warnings, also of builds that go well; tensorrt-rtx builds
// without a GPU.
Failure noPlan(const InferenceLibrary& library, const BuildRequest& request, Listener& listener) {
  const std::string failed = library.name() + " could not build " + request.modelPath;
  if (library.rtx()) return listener.failure("TF_BUILD_FAILED", failed + ".");
  std::size_t free = 0, total = 0;
  const cuda::Device& gpu = cuda::Device::at(0);
  gpu.makeCurrentQuietly();
  const bool known = gpu.api().memoryInfo(&free, &total) == cuda::kSuccess;
  if (!(known && free < kRoomToBuild) && !ranOutOfMemory(listener, true))
    return listener.failure("TF_BUILD_FAILED", failed + ".");
  Failure failure = listener.failure("TF_GPU_MEMORY", failed + ": the GPU ran out of memory.");
  if (known) failure.numbers = {{"freeBytes", static_cast<double>(free)}, {"totalBytes", static_cast<double>(total)}};
  return failure;
}

// Sets a progress monitor for as long as the build takes.
class Progress {
 public:
  Progress(const InferenceLibrary& library, const Facade& config, Listener& listener) : config_(config) {
    if (!library.has(Slot::IBuilderConfig_setProgressMonitor_1)) return;
    monitor_ = newProgressMonitor(listener);
    config_.call(Slot::IBuilderConfig_setProgressMonitor_1, static_cast<void*>(monitor_));
  }
  ~Progress() {
    if (monitor_ == nullptr) return;
    config_.call(Slot::IBuilderConfig_setProgressMonitor_1, static_cast<void*>(nullptr));
    deleteProgressMonitor(monitor_);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  const Facade& config_;
  ProgressMonitor* monitor_ = nullptr;
};

}  // namespace

const InferenceLibrary& inferenceLibrary(const std::string& path) {
  static std::mutex mutex;
  static auto* libraries = new std::map<std::string, std::unique_ptr<InferenceLibrary>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto& library = (*libraries)[path];
  if (library == nullptr) library = std::make_unique<InferenceLibrary>(path);
  return *library;
}

BuildResult build(const BuildRequest& request, Listener& listener) {
  const Listening listening(listener);
  nvtx::attach(listener);
  const nvtx::Range range(("build " + request.modelPath).c_str());
  const auto started = std::chrono::steady_clock::now();
  const InferenceLibrary& library = inferenceLibrary(request.inferenceLibrary);
  library.requireTable();
  if (!library.rtx()) {
    requireGpu(library.name());
    // On a GPU without room for a CUDA context the library's builder ends the process, so the context is made before.
    // The library builds on the GPU that is current, which may be another one that this thread worked on.
    cuda::Device::at(0).makeCurrent();
  }
  initialiseStandardPlugins(library, request.pluginLibrary, listener);

  // Destroyed in the reverse order of these lines: what the library hands out goes before what it came from.
  Owned builder = createBuilder(library, listener);
  const Plugins plugins(library, builder, Slot::IBuilder_getPluginRegistry_0, request.pluginPaths, listener);
  const Owned network = require(Owned(library, builder.call(Slot::IBuilder_createNetworkV2_1, request.networkFlags)),
                                listener, "network");
  Parser parser(library, request.parserLibrary, network, listener);
  listener.throwIfCancelled();
  parser.parse(request.modelPath, request.parserFlags, listener);

  const std::vector<NetworkTensor> inputs = networkInputs(library, network);
  const std::vector<NetworkTensor> outputs = networkOutputs(library, network);
  // An empty file is a valid message without a graph, and the parser accepts it.
  if (outputs.empty())
    throw Failure("TF_MODEL_REJECTED", request.modelPath + " has no graph with an output: it is empty or not a model.");
  checkProfiles(request.profiles, inputs);
  const Owned config =
      require(Owned(library, builder.call(Slot::IBuilder_createBuilderConfig_0)), listener, "builder configuration");
  applySettings(library, config, request.settings, listener);
  setComputeCapabilities(config, request.computeCapabilities, listener);
  addProfiles(library, builder, config, profilesToBuild(library, request.profiles, inputs, outputs), listener);
  TimingCache timingCache(library, config, request, listener);
  const Progress progress(library, config, listener);
  listener.throwIfCancelled();

  const Owned plan(library, builder.call(Slot::IBuilder_buildSerializedNetwork_2, network.get(), config.get()));
  listener.throwIfCancelled();
  if (!plan) throw noPlan(library, request, listener);

  const nvtx::Range writing("write plan");
  BuildResult result;
  const auto size = plan.call(Slot::IHostMemory_size_0);
  writeFile(request.planPath, plan.call(Slot::IHostMemory_data_0), size);
  timingCache.report(result, listener);
  timingCache.save(library, config, request);
  if (request.keepBuilder) builder.release();
  result.buildMs = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  result.bytes = static_cast<std::int64_t>(size);
  result.libraryVersion = library.version();
  result.layers = network.call(Slot::INetworkDefinition_getNbLayers_0);
  result.inputs = factsOf(inputs);
  result.outputs = factsOf(outputs);
  return result;
}

}  // namespace trtforge
