// The exports of the addon: requests in, plain data out. Types of both sides: src/tensorrt/addon/addon.ts.
#include <dlfcn.h>
#include <node_api.h>

#include "build.hpp"
#include "compare.hpp"
#include "gpu_state_bindings.hpp"
#include "engine_bindings.hpp"
#include "gpus.hpp"
#include "guarded.hpp"
#include "javascript.hpp"
#include "job.hpp"
#include "measure_bindings.hpp"

namespace trtforge {

namespace {

using js::Reader;
using js::Writer;

BuildRequest buildRequest(const Reader& from) {
  BuildRequest request;
  request.inferenceLibrary = from["inferenceLibrary"].text();
  request.parserLibrary = from["parserLibrary"].text();
  request.pluginLibrary = from["pluginLibrary"].textOrEmpty();
  request.modelPath = from["modelPath"].text();
  request.planPath = from["planPath"].text();
  request.networkFlags = static_cast<std::uint32_t>(from["networkFlags"].integer());
  request.parserFlags = static_cast<std::uint32_t>(from["parserFlags"].integer());
  for (const Reader& setting : from["settings"].elements())
    request.settings.push_back({setting["option"].text(), setting["call"].text(), setting["arguments"].integers()});
  for (const Reader& profile : from["profiles"].elements()) {
    auto& inputs = request.profiles.emplace_back();
    for (const Reader& input : profile.elements())
      inputs.push_back({input["input"].text(), input["values"].boolean(), input["min"].integers(), input["opt"].integers(), input["max"].integers()});
  }
  request.computeCapabilities = from["computeCapabilities"].integers();
  request.pluginPaths = from["pluginPaths"].texts();
  request.timingCachePath = from["timingCachePath"].textOrEmpty();
  request.timingCacheOutputPath = from["timingCacheOutputPath"].textOrEmpty();
  request.keepBuilder = from["keepBuilder"].boolean();
  return request;
}

napi_value tensorValue(napi_env env, const TensorFacts& tensor) {
  return Writer(env).set("name", tensor.name).set("dtype", tensor.dtype).set("shape", js::array(env, tensor.shape)).value();
}

class BuildWork : public Work {
 public:
  explicit BuildWork(BuildRequest request) : request_(std::move(request)) {}
  void run(Listener& listener) override { result_ = build(request_, listener); }
  napi_value answer(napi_env env) override {
    const auto tensors = [env](const std::vector<TensorFacts>& all) {
      return js::array(env, all, [env](const TensorFacts& tensor) { return tensorValue(env, tensor); });
    };
    return Writer(env)
        .set("buildMs", result_.buildMs)
        .set("bytes", result_.bytes)
        .set("libraryVersion", result_.libraryVersion)
        .set("layers", result_.layers)
        .set("inputs", tensors(result_.inputs))
        .set("outputs", tensors(result_.outputs))
        .set("timingCache", result_.timingCache)
        .value();
  }

 private:
  BuildRequest request_;
  BuildResult result_;
};

std::vector<napi_value> arguments(napi_env env, napi_callback_info info, std::size_t count) {
  std::vector<napi_value> values(count);
  js::check(env, napi_get_cb_info(env, info, &count, values.data(), nullptr, nullptr));
  return values;
}

napi_value buildExport(napi_env env, napi_callback_info info) {
  const auto values = arguments(env, info, 2);
  const Reader request(env, values[0]);
  return startJob(env, "trtforge:build", std::make_unique<BuildWork>(buildRequest(request)), values[1], request["verbose"].boolean());
}

napi_value probeExport(napi_env env, napi_callback_info info) {
  const InferenceLibrary& library = inferenceLibrary(Reader(env, arguments(env, info, 1)[0]).text());
  const Generation generation = library.generation();
  return Writer(env)
      .set("product", library.rtx() ? "tensorrt-rtx" : "tensorrt")
      .set("version", library.version())
      .set("code", library.code())
      .setOrNull("generation", generation == Generation::kUnknown ? "" : kGenerationNames[static_cast<int>(generation)])
      .value();
}

napi_value gpusExport(napi_env env, napi_callback_info) {
  const GpuList list = listGpus();
  const auto gpus = js::array(env, list.gpus, [env](const Gpu& gpu) {
    return Writer(env)
        .set("index", gpu.index)
        .set("name", gpu.name)
        .set("uuid", gpu.uuid)
        .set("computeCapability", gpu.computeCapability)
        .set("memoryBytes", gpu.memoryBytes)
        .set("multiprocessors", gpu.multiprocessors)
        .value();
  });
  return Writer(env)
      .set("gpus", gpus)
      .setOrNull("cudaVersion", list.cudaVersion)
      .setOrNull("driverVersion", list.driverVersion)
      .setOrNull("reason", list.reason)
      .value();
}

// Threads of this library may outlive the environment that loaded it, so its code stays mapped.
void stayLoaded() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&stayLoaded), &info) != 0) dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE);
}

napi_value initialise(napi_env env, napi_value exports) {
  stayLoaded();
  const auto add = [&](const char* name, napi_callback function) {
    napi_value value;
    js::check(env, napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value));
    js::check(env, napi_set_named_property(env, exports, name, value));
  };
  add("build", guarded<buildExport>);
  add("probe", guarded<probeExport>);
  add("gpus", guarded<gpusExport>);
  addEngineExports(add);
  addCallExports(add);
  add("gpuState", guarded<gpuStateExport>);
  add("measure", guarded<measureExport>);
  add("measurePairs", guarded<measurePairsExport>);
  return exports;
}

}  // namespace

}  // namespace trtforge

NAPI_MODULE_INIT() { return trtforge::initialise(env, exports); }
