#include "engine_bindings.hpp"

#include <cstring>

#include "handles.hpp"
#include "job.hpp"
#include "refit.hpp"
#include "values.hpp"

namespace trtforge {

namespace {

using js::Reader;
using js::Writer;

Napi::Value undefined(Napi::Env env) { return env.Undefined(); }

OpenRequest openRequest(const Reader& from) {
  OpenRequest request;
  request.inferenceLibrary = from["inferenceLibrary"].text();
  request.pluginLibrary = from["pluginLibrary"].textOrEmpty();
  request.planPath = from["planPath"].text();
  request.label = from["label"].text();
  request.pluginPaths = from["pluginPaths"].texts();
  request.device = static_cast<int>(from["device"].integer());
  request.allowHostCode = from["allowHostCode"].boolean();
  const Reader budget = from["weightBudget"];
  if (budget.value().IsNumber()) {
    request.budget = OpenRequest::Budget::kBytes;
    request.budgetBytes = budget.integer();
  } else if (budget.value().IsString()) {
    request.budget = OpenRequest::Budget::kAutomatic;
  }
  return request;
}

Napi::Value tensorValue(Napi::Env env, const EngineTensor& tensor) {
  const auto range = [env](const ProfileRange& one) {
    return Writer(env)
        .set("min", js::array(env, one.min))
        .set("opt", js::array(env, one.opt))
        .set("max", js::array(env, one.max))
        .value();
  };
  return Writer(env)
      .set("name", tensor.name)
      .set("dtype", tensor.dtype)
      .set("mode", tensor.input ? "input" : "output")
      .set("location", tensor.host ? "host" : "device")
      .set("shapeTensor", tensor.shapeTensor)
      .set("shape", js::array(env, tensor.shape))
      .set("format", tensor.format)
      .set("profiles", js::array(env, tensor.profiles, range))
      .value();
}

Napi::Value factsValue(Napi::Env env, const EngineFacts& facts) {
  const auto memory = Writer(env)
                          .set("freeBefore", static_cast<std::int64_t>(facts.before.free))
                          .set("freeAfter", static_cast<std::int64_t>(facts.after.free))
                          .set("total", static_cast<std::int64_t>(facts.after.total))
                          .value();
  const LoadCost& cost = facts.loadCost;
  const auto host = Writer(env)
                        .set("peakBytes", cost.peakBytes)
                        .set("anonymousBytes", cost.anonymousBytes)
                        .set("mappedBytes", cost.mappedBytes)
                        .value();
  return Writer(env)
      .set("name", facts.name)
      .set("layers", facts.layers)
      .set("profiles", facts.profiles)
      .set("auxStreams", facts.auxStreams)
      .set("deviceMemoryBytes", facts.deviceMemoryBytes)
      .set("deviceMemoryBytesPerProfile", js::array(env, facts.deviceMemoryBytesPerProfile))
      .set("streamableWeightsBytes", facts.streamableWeightsBytes)
      .set("weightBudgetBytes", facts.weightBudgetBytes)
      .set("refittable", facts.refittable)
      .set("tensors",
           js::array(env, facts.tensors, [env](const EngineTensor& tensor) { return tensorValue(env, tensor); }))
      .set("libraryVersion", facts.libraryVersion)
      .set("loadMs", facts.loadMs)
      .set("readMs", cost.readMs)
      .set("deserializeMs", cost.deserializeMs)
      .set("hostMemory", host)
      .set("gpuMemory", memory)
      .value();
}

Napi::Value openEngineExport(const Napi::CallbackInfo& info) {
  const Reader from(info[0]);
  const Napi::Function onEvent = Reader(info[1]).function();
  const auto open = [request = openRequest(from)](Listener& listener) -> Answer {
    auto handle = std::make_shared<EngineHandle>();
    handle->engine = Engine::open(request, listener);
    return [handle](Napi::Env env) {
      return Writer(env)
          .set("facts", factsValue(env, handle->engine->facts()))
          .set("handle", handleValue(env, handle))
          .value();
    };
  };
  return startTask(info.Env(), "trtforge:openEngine", open, onEvent, from["verbose"].boolean());
}

Napi::Value engineLayersExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  return startTask(info.Env(), "trtforge:layers", [engine = engineOf(handle)](Listener& listener) -> Answer {
    return [text = engine->layers(listener)](Napi::Env env) { return Napi::String::New(env, text); };
  });
}

Napi::Value engineRefitExport(const Napi::CallbackInfo& info) {
  const Napi::Value value = info[0];
  const Reader from(info[1]);
  auto& handle = *handleOf<EngineHandle>(value);
  std::vector<std::shared_ptr<Context>> contexts;
  for (const auto& known : handle.contexts)
    if (const auto context = known.lock(); context != nullptr && context->context != nullptr)
      contexts.push_back(context->context);
  const RefitRequest request{from["parserLibrary"].text(), from["modelPath"].text(), from["changed"].texts()};
  return startTask(
      info.Env(), "trtforge:refit",
      [engine = engineOf(value), contexts, request](Listener& listener) -> Answer {
        std::vector<std::unique_lock<std::mutex>> held;
        for (const auto& context : contexts) held.emplace_back(context->mutex);
        // Also after a failure: the engine may have some of the weights.
        const auto rebind = [&] {
          for (const auto& context : contexts) context->rebind();
        };
        try {
          refit(*engine, request, listener);
        } catch (const Failure&) {
          rebind();
          throw;
        }
        rebind();
        return undefined;
      },
      Reader(info[2]).function());
}

Napi::Value engineSerializeExport(const Napi::CallbackInfo& info) {
  const Napi::Value value = info[0];
  const auto write = [engine = engineOf(value), path = Reader(info[1]).text(),
                      flags = static_cast<std::uint32_t>(Reader(info[2]).integer())](Listener& listener) -> Answer {
    return [bytes = serialize(*engine, path, flags, listener)](Napi::Env env) {
      return Napi::Number::New(env, static_cast<double>(bytes));
    };
  };
  return startTask(info.Env(), "trtforge:serialize", write);
}

Napi::Value engineCloseExport(const Napi::CallbackInfo& info) {
  const Napi::Value value = info[0];
  auto& handle = *handleOf<EngineHandle>(value);
  std::vector<std::shared_ptr<Context>> contexts;
  for (const auto& known : handle.contexts)
    if (const auto context = known.lock())
      if (auto open = context->detach()) contexts.push_back(std::move(open));
  handle.contexts.clear();
  const auto engine = std::make_shared<std::shared_ptr<Engine>>(std::move(handle.engine));
  return startTask(info.Env(), "trtforge:closeEngine", [contexts, engine](Listener&) -> Answer {
    for (const auto& context : contexts) context->close();
    engine->reset();
    return undefined;
  });
}

Napi::Value createContextExport(const Napi::CallbackInfo& info) {
  const Napi::Value value = info[0];
  const Napi::Value request = info[1];
  const Reader from(request);
  const Napi::Value shared = from["activations"].value();
  const auto activations = from["activations"].isNull() ? nullptr : handleOf<MemoryHandle>(shared)->open();
  const auto create = [owner = handleOf<EngineHandle>(value), engine = engineOf(value),
                       profile = static_cast<int>(from["profile"].integer()), profiling = from["profiling"].boolean(),
                       activations](Listener&) -> Answer {
    auto context = Context::create(engine, profile, profiling, activations);
    return [owner, context](Napi::Env env) {
      if (owner->engine == nullptr) {
        context->close();
        throw Failure("TF_SESSION_CLOSED", "The engine was closed while a context was made.");
      }
      auto handle = std::make_shared<ContextHandle>(env, context);
      owner->contexts.push_back(handle);
      return handleValue(env, handle);
    };
  };
  return startTask(info.Env(), "trtforge:createContext", create);
}

Napi::Value layerTimesExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  Context& context = handleOf<ContextHandle>(handle)->open();
  if (context.layerTimes() == nullptr)
    throw Failure("TF_SESSION_INPUT", "The context was made without profiling, so it has no times of layers.");
  std::lock_guard<std::mutex> lock(context.mutex);
  const Napi::Env env = info.Env();
  return js::array(env, context.layerTimes()->table(), [env](const LayerTime& layer) {
    return Writer(env).set("name", layer.name).set("ms", layer.ms).set("runs", layer.runs).value();
  });
}

Napi::Value contextCloseExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  return startTask(info.Env(), "trtforge:closeContext",
                   [context = handleOf<ContextHandle>(handle)->detach()](Listener&) -> Answer {
                     if (context != nullptr) context->close();
                     return undefined;
                   });
}

Napi::Value allocateExport(const Napi::CallbackInfo& info) {
  const Napi::Value value = info[0];
  const Napi::Value bytes = info[1];
  const auto engine = engineOf(value);
  const std::int64_t wanted = Reader(bytes).integer();
  if (wanted < 0)
    throw Failure("TF_SESSION_INPUT", "Device memory of " + std::to_string(wanted) + " bytes is impossible.");
  auto handle = std::make_shared<MemoryHandle>();
  handle->device = &engine->device();
  handle->block = std::make_shared<cuda::DeviceBlock>(engine->device(), static_cast<std::size_t>(wanted),
                                                      "tensors kept on the GPU");
  if (wanted > 0)
    cuda::check(engine->device().api().memorySet8(handle->block->address(), 0, static_cast<std::size_t>(wanted)),
                "Clearing GPU memory");
  // Contexts' streams do not wait for the default one, where it is cleared.
  cuda::check(engine->device().api().streamSynchronize(nullptr), "Clearing GPU memory");
  return handleValue(info.Env(), handle);
}

// Checks that a part lies inside, and returns its address.
cuda::Address part(const cuda::DeviceBlock& block, std::int64_t offset, std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(block.bytes());
  if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset)
    throw Failure("TF_SESSION_INPUT", "Bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                                          " are not all in device memory of " + std::to_string(size) + " bytes.");
  return block.address() + static_cast<cuda::Address>(offset);
}

Napi::Value memoryWriteExport(const Napi::CallbackInfo& info) {
  const Napi::Value value = info[0];
  const Napi::Value data = info[1];
  const Napi::Value offset = info[2];
  const auto& handle = *handleOf<MemoryHandle>(value);
  const js::Bytes bytes = js::bytesOf(data);
  const auto block = handle.open();
  const cuda::Address to = part(*block, Reader(offset).integer(), static_cast<std::int64_t>(bytes.size));
  // The thread that owns the bytes may free them once JavaScript goes on.
  const auto* first = static_cast<const char*>(bytes.data);
  const auto copy = std::make_shared<const std::vector<char>>(first, first + bytes.size);
  return startTask(info.Env(), "trtforge:write", [device = handle.device, block, to, copy](Listener&) -> Answer {
    device->makeCurrent();
    const cuda::Stream stream(*device);
    stream.copyToDevice(to, copy->data(), copy->size());
    stream.synchronize();
    return undefined;
  });
}

Napi::Value memoryReadExport(const Napi::CallbackInfo& info) {
  const Napi::Value value = info[0];
  const Napi::Value offset = info[1];
  const Napi::Value count = info[2];
  const auto& handle = *handleOf<MemoryHandle>(value);
  const std::int64_t bytes = Reader(count).integer();
  const auto block = handle.open();
  const cuda::Address from = part(*block, Reader(offset).integer(), bytes);
  return startTask(info.Env(), "trtforge:read", [device = handle.device, block, from, bytes](Listener&) -> Answer {
    const auto read = std::make_shared<std::vector<char>>(static_cast<std::size_t>(bytes));
    device->makeCurrent();
    const cuda::Stream stream(*device);
    stream.copyToHost(read->data(), from, read->size());
    stream.synchronize();
    return [read](Napi::Env env) { return js::arrayBuffer(env, *read); };
  });
}

Napi::Value memoryCloseExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  handleOf<MemoryHandle>(handle)->block.reset();
  return info.Env().Undefined();
}

}  // namespace

void addEngineExports(Napi::Object& exports) {
  js::add<openEngineExport>(exports, "openEngine");
  js::add<engineLayersExport>(exports, "engineLayers");
  js::add<engineRefitExport>(exports, "engineRefit");
  js::add<engineSerializeExport>(exports, "engineSerialize");
  js::add<engineCloseExport>(exports, "engineClose");
  js::add<allocateExport>(exports, "engineAllocate");
  js::add<createContextExport>(exports, "createContext");
  js::add<layerTimesExport>(exports, "contextLayerTimes");
  js::add<contextCloseExport>(exports, "contextClose");
  js::add<memoryWriteExport>(exports, "memoryWrite");
  js::add<memoryReadExport>(exports, "memoryRead");
  js::add<memoryCloseExport>(exports, "memoryClose");
}

}  // namespace trtforge
