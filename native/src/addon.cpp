// The exports of the addon: requests in, plain data out. Types of both sides: src/addon/addon.ts.
#include <dlfcn.h>
#include <napi.h>

#include "build.hpp"
#include "compare.hpp"
#include "engine_bindings.hpp"
#include "files.hpp"
#include "gpus.hpp"
#include "job.hpp"
#include "rounding.hpp"
#include "values.hpp"

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
      inputs.push_back({input["input"].text(), input["values"].boolean(), input["min"].integers(),
                        input["opt"].integers(), input["max"].integers()});
  }
  request.computeCapabilities = from["computeCapabilities"].integers();
  request.pluginPaths = from["pluginPaths"].texts();
  request.timingCachePaths = from["timingCachePaths"].texts();
  request.timingCacheOutputPath = from["timingCacheOutputPath"].textOrEmpty();
  request.keepBuilder = from["keepBuilder"].boolean();
  return request;
}

Napi::Value tensorValue(Napi::Env env, const TensorFacts& tensor) {
  return Writer(env)
      .set("name", tensor.name)
      .set("dtype", tensor.dtype)
      .set("shape", js::array(env, tensor.shape))
      .value();
}

Napi::Value resultValue(Napi::Env env, const BuildResult& result) {
  const auto tensors = [env](const std::vector<TensorFacts>& all) {
    return js::array(env, all, [env](const TensorFacts& tensor) { return tensorValue(env, tensor); });
  };
  return Writer(env)
      .set("buildMs", result.buildMs)
      .set("bytes", result.bytes)
      .set("libraryVersion", result.libraryVersion)
      .set("layers", result.layers)
      .set("inputs", tensors(result.inputs))
      .set("outputs", tensors(result.outputs))
      .set("timingCache", result.timingCache)
      .set("timingCachesMerged", js::array(env, result.timingCachesMerged))
      .set("timingCachesRejected", js::array(env, result.timingCachesRejected))
      .value();
}

Napi::Value buildExport(const Napi::CallbackInfo& info) {
  const Reader from(info[0]);
  const auto work = [request = buildRequest(from)](Listener& listener) -> Answer {
    return [result = build(request, listener)](Napi::Env env) { return resultValue(env, result); };
  };
  return startTask(info.Env(), "trtforge:build", work, Reader(info[1]).function(), from["verbose"].boolean());
}

Napi::Value probeExport(const Napi::CallbackInfo& info) {
  const InferenceLibrary& library = inferenceLibrary(Reader(info[0]).text());
  const Generation generation = library.generation();
  return Writer(info.Env())
      .set("product", library.rtx() ? "tensorrt-rtx" : "tensorrt")
      .set("version", library.version())
      .set("code", library.code())
      .setOrNull("generation", generation == Generation::kUnknown ? "" : kGenerationNames[static_cast<int>(generation)])
      .value();
}

Napi::Value gpusExport(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
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

Napi::Value dropFromCacheExport(const Napi::CallbackInfo& info) {
  return startTask(info.Env(), "trtforge:dropFromCache", [path = Reader(info[0]).text()](Listener&) -> Answer {
    return [stayed = dropFromCache(path)](Napi::Env env) {
      return stayed.has_value() ? Napi::Number::New(env, static_cast<double>(*stayed)) : env.Null();
    };
  });
}

// Threads of this library may outlive the environment that loaded it, so its code stays mapped.
void stayLoaded() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&stayLoaded), &info) != 0) dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE);
}

Napi::Object initialise(Napi::Env, Napi::Object exports) {
  stayLoaded();
  js::add<buildExport>(exports, "build");
  js::add<probeExport>(exports, "probe");
  js::add<gpusExport>(exports, "gpus");
  js::add<dropFromCacheExport>(exports, "dropFromCache");
  addEngineExports(exports);
  addCallExports(exports);
  addMeasureExport(exports);
  addGpuStateExport(exports);
  addOrtExports(exports);
  addCompareExport(exports);
  addRoundingExport(exports);
  return exports;
}

}  // namespace

}  // namespace trtforge

NAPI_MODULE_INIT() { return Napi::RegisterModule(env, exports, trtforge::initialise); }
