#include "refit.hpp"

#include <algorithm>
#include <set>

#include "files.hpp"
#include "network.hpp"
#include "nvtx.hpp"

namespace trtforge {

namespace {

constexpr std::size_t kMostNamed = 10;

// The ONNX parser's own reader of weights.
class ParserRefitter {
 public:
  ParserRefitter(const InferenceLibrary& library, const std::string& path, const Facade& refitter, Listener& listener)
      : library_(library) {
    const SharedLibrary shared = SharedLibrary::open(path);
    const auto version = shared.symbol<int (*)()>("getNvOnnxParserVersion")();
    const auto create = shared.symbol<void* (*)(void*, void*, std::int32_t)>("createNvOnnxParserRefitter_INTERNAL");
    object_ = create(refitter.get(), loggerFor(library), version);
    if (object_ == nullptr)
      throw listener.failure("TF_REFIT_FAILED", path + " could not create a refitter of ONNX models.");
  }
  ~ParserRefitter() {
    if (object_ != nullptr) library_.call(object_, Slot::IParserRefitter_destroy_deleting_0);
  }
  ParserRefitter(const ParserRefitter&) = delete;
  ParserRefitter& operator=(const ParserRefitter&) = delete;

  void read(const std::string& modelPath, Listener& listener) const {
    if (library_.call(object_, Slot::IParserRefitter_refitFromFile_1, modelPath.c_str())) return;
    std::string sentence = "The ONNX parser of " + library_.name() + " could not refit the engine from " + modelPath;
    const int count = library_.call(object_, Slot::IParserRefitter_getNbErrors_0);
    for (int i = 0; i < count; ++i)
      if (void* error = library_.call(object_, Slot::IParserRefitter_getError_1, i))
        sentence += "\n" + sentenceFor(parserError(library_, error));
    throw listener.failure("TF_REFIT_FAILED", sentence);
  }

 private:
  const InferenceLibrary& library_;
  void* object_ = nullptr;
};

template <class Function>
std::vector<std::string> weightNames(const Facade& refitter, const Function& method) {
  const std::int32_t count = refitter.call(method, 0, static_cast<const char**>(nullptr));
  std::vector<const char*> names(static_cast<std::size_t>(std::max(0, count)), nullptr);
  if (!names.empty()) refitter.call(method, count, names.data());
  std::vector<std::string> all;
  for (const char* name : names) all.emplace_back(name == nullptr ? "" : name);
  return all;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() <= kMostNamed ? text : text + " and " + std::to_string(names.size() - kMostNamed) + " more";
}

}  // namespace

void refit(Engine& engine, const RefitRequest& request, Listener& listener) {
  const Listening listening(listener);
  const nvtx::Range range(("refit " + engine.label()).c_str());
  const InferenceLibrary& library = engine.library();
  if (!engine.facts().refittable)
    throw Failure("TF_ENGINE_NOT_REFITTABLE", library.name() + " states that the engine cannot be refitted.");
  engine.device().makeCurrent();
  const Owned refitter(library, engine.object().call(Slot::ICudaEngine_createRefitter_1, loggerFor(library)));
  if (!refitter) throw listener.failure("TF_REFIT_FAILED", library.name() + " could not create a refitter.");
  const std::vector<std::string> taken = weightNames(refitter, Slot::IRefitter_getAllWeights_2);
  const std::set<std::string> takes(taken.begin(), taken.end());
  std::vector<std::string> fixed;
  for (const std::string& name : request.changed)
    if (takes.count(name) == 0) fixed.push_back(name);
  if (!fixed.empty())
    throw Failure("TF_REFIT_MODEL_MISMATCH",
                  "Values of " + request.modelPath + " differ where the engine keeps its own: " + listed(fixed) + ".");
  const ParserRefitter reader(library, request.parserLibrary, refitter, listener);
  reader.read(request.modelPath, listener);
  const std::vector<std::string> missing = weightNames(refitter, Slot::IRefitter_getMissingWeights_2);
  if (!missing.empty())
    throw listener.failure("TF_REFIT_FAILED", "The engine needs weights that " + request.modelPath +
                                                  " does not have: " + listed(missing) + ".");
  engine.halfRefitted = true;
  if (refitter.call(Slot::IRefitter_refitCudaEngine_0)) {
    engine.halfRefitted = false;
    return;
  }
  if (ranOutOfMemory(listener)) throw outOfMemory(engine.device(), listener, "weights of " + request.modelPath, 0);
  throw listener.failure("TF_REFIT_FAILED",
                         library.name() + " does not take the weights of " + request.modelPath + ".");
}

std::int64_t serialize(const Engine& engine, const std::string& planPath, std::uint32_t flags, Listener& listener) {
  const Listening listening(listener);
  const InferenceLibrary& library = engine.library();
  engine.device().makeCurrent();
  const Owned config(library, engine.object().call(Slot::ICudaEngine_createSerializationConfig_0));
  if (!config || !config.call(Slot::ISerializationConfig_setFlags_1, flags))
    throw listener.failure("TF_REFIT_FAILED", library.name() + " cannot write the engine with its weights.");
  const Owned plan(library, engine.object().call(Slot::ICudaEngine_serializeWithConfig_1, config.get()));
  if (!plan) throw listener.failure("TF_REFIT_FAILED", library.name() + " could not write the refitted engine.");
  const auto size = plan.call(Slot::IHostMemory_size_0);
  writeFile(planPath, plan.call(Slot::IHostMemory_data_0), size);
  return static_cast<std::int64_t>(size);
}

}  // namespace trtforge
