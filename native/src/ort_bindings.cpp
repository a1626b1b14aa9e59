// ONNX Runtime as JavaScript reaches it: functions over handles. Types of both sides:
// src/addon/onnx-runtime.ts.
#include <dlfcn.h>

#include <cstring>

#include "completions.hpp"
#include "engine_bindings.hpp"
#include "handles.hpp"
#include "job.hpp"
#include "ort_session.hpp"
#include "values.hpp"

namespace trtforge {

namespace {

using js::Reader;
using js::Writer;

void closeSession(void* session) { static_cast<ort::Session*>(session)->close(); }

struct OrtSessionHandle {
  OrtSessionHandle(Napi::Env env, std::shared_ptr<ort::Session> opened) : env(env), session(std::move(opened)) {
    // Hooks run last one first: the thread must be over before the function that settles its runs goes.
    (void)Completions::of(env);
    napi_add_env_cleanup_hook(env, closeSession, session.get());
  }
  ~OrtSessionHandle() { (void)detach(); }
  const std::shared_ptr<ort::Session>& open() const {
    if (session == nullptr) throw Failure("TF_SESSION_CLOSED", "The session is closed.");
    return session;
  }
  std::shared_ptr<ort::Session> detach() {
    if (session != nullptr) napi_remove_env_cleanup_hook(env, closeSession, session.get());
    return std::move(session);
  }

  const Napi::Env env;
  std::shared_ptr<ort::Session> session;
};

struct OrtBindingHandle {
  std::shared_ptr<ort::Binding> binding;
  // Memory of the inputs.
  std::vector<Napi::ObjectReference> views;
};

class OrtRun : public Completion {
 public:
  OrtRun(Napi::Env env, std::shared_ptr<OrtBindingHandle> handle)
      : Completion(env), binding(handle->binding), handle_(std::move(handle)) {}

  void run() {
    try {
      binding->run();
    } catch (const Failure& caught) {
      failure = caught;
    } catch (const std::exception& caught) {
      failure = Failure("TF_INTERNAL", caught.what());
    }
  }

  const std::shared_ptr<ort::Binding> binding;

 private:
  // Kept until the run is over, with the memory of its inputs.
  const std::shared_ptr<OrtBindingHandle> handle_;
};

ort::Settings settingsOf(const Reader& from) {
  ort::Settings settings;
  for (const Reader& entry : from.elements()) {
    const std::vector<std::string> texts = entry.texts();
    if (texts.size() != 2) throw Failure("TF_INTERNAL", "A setting is a key and a value.");
    settings.emplace_back(texts[0], texts[1]);
  }
  return settings;
}

ort::OpenRequest openRequest(const Reader& from) {
  ort::OpenRequest request;
  request.library = from["library"].text();
  request.modelPath = from["modelPath"].text();
  request.weightsFolder = from["weightsFolder"].textOrEmpty();
  request.threads = static_cast<int>(from["threads"].integer());
  for (const Reader& one : from["providers"].elements())
    request.providers.push_back({one["name"].text(), settingsOf(one["options"])});
  request.config = settingsOf(from["config"]);
  request.profilePrefix = from["profilePrefix"].textOrEmpty();
  request.device = static_cast<int>(from["device"].integer());
  return request;
}

Napi::Value placementValue(Napi::Env env, const std::vector<ort::PlacedNode>& nodes) {
  return js::array(env, nodes, [env](const ort::PlacedNode& node) {
    return Writer(env).set("provider", node.provider).set("name", node.name).set("operator", node.operatorType).value();
  });
}

Napi::Value ortOpenExport(const Napi::CallbackInfo& info) {
  return startTask(info.Env(), "trtforge:ortOpen", [request = openRequest(Reader(info[0]))](Listener&) -> Answer {
    auto session = ort::Session::open(request);
    return [session](Napi::Env env) {
      const ort::Library& library = session->library();
      return Writer(env)
          .set("version", library.version())
          .set("buildInfo", library.buildInfo())
          .set("placement", placementValue(env, session->placement()))
          .set("handle", handleValue(env, std::make_shared<OrtSessionHandle>(env, session)))
          .value();
    };
  });
}

Napi::Value ortProbeExport(const Napi::CallbackInfo& info) {
  const ort::Library& library = ort::Library::at(Reader(info[0]).text());
  return Writer(info.Env()).set("version", library.version()).set("buildInfo", library.buildInfo()).value();
}

// Why the loader does not load a library, by path or by name; null where it does.
Napi::Value loadErrorExport(const Napi::CallbackInfo& info) {
  if (dlopen(Reader(info[0]).text().c_str(), RTLD_LAZY | RTLD_GLOBAL) != nullptr) return info.Env().Null();
  const char* why = dlerror();
  return Napi::String::New(info.Env(), why == nullptr ? "the loader states no reason" : why);
}

Napi::Value ortBindExport(const Napi::CallbackInfo& info) {
  const Napi::Value owner = info[0];
  const Reader from(info[1]);
  auto handle = std::make_shared<OrtBindingHandle>();
  ort::BindRequest request;
  request.resident = from["resident"].boolean();
  for (const Reader& one : from["inputs"].elements()) {
    const Reader view = one["bytes"];
    const js::Bytes bytes = js::bytesOf(view.value());
    request.inputs.push_back({one["name"].text(), static_cast<std::int32_t>(one["type"].integer()),
                              one["shape"].integers(), bytes.data, bytes.size});
    handle->views.push_back(Napi::Persistent(view.value().As<Napi::Object>()));
  }
  for (const Reader& one : from["outputs"].elements())
    request.outputs.push_back({one["name"].text(), one["feeds"].textOrEmpty()});
  handle->binding = ort::Binding::make(handleOf<OrtSessionHandle>(owner)->open(), std::move(request));
  return handleValue(info.Env(), handle);
}

Napi::Value ortRunExport(const Napi::CallbackInfo& info) {
  Completions& completions = Completions::of(info.Env());
  auto run = std::make_unique<OrtRun>(info.Env(), handleOf<OrtBindingHandle>(info[0]));
  const Napi::Promise promise = run->promise();
  Worker& worker = run->binding->session()->worker();
  completions.begin();
  worker.post([run = run.release(), &completions] {
    run->run();
    completions.end(run);
  });
  return promise;
}

Napi::Value ortCancelExport(const Napi::CallbackInfo& info) {
  handleOf<OrtBindingHandle>(info[0])->binding->cancel();
  return info.Env().Undefined();
}

Napi::Value ortOutputsExport(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return js::array(env, handleOf<OrtBindingHandle>(info[0])->binding->outputs(),
                   [env](const ort::OutputTensor& tensor) {
                     auto data = Napi::ArrayBuffer::New(env, tensor.bytes);
                     if (tensor.bytes > 0) std::memcpy(data.Data(), tensor.data, tensor.bytes);
                     return Writer(env)
                         .set("name", tensor.name)
                         .set("type", tensor.type)
                         .set("shape", js::array(env, tensor.shape))
                         .set("data", data)
                         .value();
                   });
}

Napi::Value ortEndProfilingExport(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), handleOf<OrtSessionHandle>(info[0])->open()->endProfiling());
}

Napi::Value ortCloseExport(const Napi::CallbackInfo& info) {
  const auto session = handleOf<OrtSessionHandle>(info[0])->detach();
  if (session != nullptr) session->stop();
  return startTask(info.Env(), "trtforge:ortClose", [session](Listener&) -> Answer {
    if (session != nullptr) session->close();
    return [](Napi::Env env) { return env.Undefined(); };
  });
}

}  // namespace

void addOrtExports(Napi::Object& exports) {
  js::add<ortProbeExport>(exports, "ortProbe");
  js::add<loadErrorExport>(exports, "loadError");
  js::add<ortOpenExport>(exports, "ortOpen");
  js::add<ortBindExport>(exports, "ortBind");
  js::add<ortRunExport>(exports, "ortRun");
  js::add<ortCancelExport>(exports, "ortCancel");
  js::add<ortOutputsExport>(exports, "ortOutputs");
  js::add<ortEndProfilingExport>(exports, "ortEndProfiling");
  js::add<ortCloseExport>(exports, "ortClose");
}

}  // namespace trtforge
