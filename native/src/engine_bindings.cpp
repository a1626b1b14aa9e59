#include "engine_bindings.hpp"

#include <cstring>

#include "guarded.hpp"
#include "handles.hpp"
#include "job.hpp"

namespace trtforge {

namespace {

using js::Reader;
using js::Writer;

napi_value undefined(napi_env env) {
  napi_value value;
  js::check(env, napi_get_undefined(env, &value));
  return value;
}


OpenRequest openRequest(napi_env env, const Reader& from) {
  OpenRequest request;
  request.inferenceLibrary = from["inferenceLibrary"].text();
  request.pluginLibrary = from["pluginLibrary"].textOrEmpty();
  request.planPath = from["planPath"].text();
  request.pluginPaths = from["pluginPaths"].texts();
  request.device = static_cast<int>(from["device"].integer());
  request.allowHostCode = from["allowHostCode"].boolean();
  const Reader budget = from["weightBudget"];
  napi_valuetype type;
  js::check(env, napi_typeof(env, budget.value(), &type));
  if (type == napi_number) {
    request.budget = OpenRequest::Budget::kBytes;
    request.budgetBytes = budget.integer();
  } else if (type == napi_string) {
    request.budget = OpenRequest::Budget::kAutomatic;
  }
  return request;
}

napi_value tensorValue(napi_env env, const EngineTensor& tensor) {
  const auto range = [env](const ProfileRange& one) {
    return Writer(env).set("min", js::array(env, one.min)).set("opt", js::array(env, one.opt)).set("max", js::array(env, one.max)).value();
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

napi_value factsValue(napi_env env, const EngineFacts& facts) {
  const auto memory = Writer(env)
                          .set("freeBefore", static_cast<std::int64_t>(facts.before.free))
                          .set("freeAfter", static_cast<std::int64_t>(facts.after.free))
                          .set("total", static_cast<std::int64_t>(facts.after.total))
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
      .set("tensors", js::array(env, facts.tensors, [env](const EngineTensor& tensor) { return tensorValue(env, tensor); }))
      .set("libraryVersion", facts.libraryVersion)
      .set("loadMs", facts.loadMs)
      .set("gpuMemory", memory)
      .value();
}

napi_value openEngineExport(napi_env env, napi_callback_info info) {
  const auto [request, onEvent] = argumentsOf<2>(env, info);
  const Reader from(env, request);
  const auto open = [request = openRequest(env, from)](Listener& listener) -> Answer {
    auto handle = std::make_shared<EngineHandle>();
    handle->engine = Engine::open(request, listener);
    return [handle](napi_env env) {
      return Writer(env).set("facts", factsValue(env, handle->engine->facts())).set("handle", handleValue(env, handle)).value();
    };
  };
  return startTask(env, "trtforge:openEngine", open, onEvent, from["verbose"].boolean());
}

napi_value engineLayersExport(napi_env env, napi_callback_info info) {
  const auto [handle] = argumentsOf<1>(env, info);
  return startTask(env, "trtforge:layers", [engine = engineOf(env, handle)](Listener& listener) -> Answer {
    return [text = engine->layers(listener)](napi_env env) {
      napi_value value;
      js::check(env, napi_create_string_utf8(env, text.data(), text.size(), &value));
      return value;
    };
  });
}

napi_value engineCloseExport(napi_env env, napi_callback_info info) {
  const auto [value] = argumentsOf<1>(env, info);
  auto& handle = handleOf<EngineHandle>(env, value);
  std::vector<std::shared_ptr<Context>> contexts;
  for (const auto& known : handle.contexts)
    if (const auto context = known.lock())
      if (auto open = context->detach()) contexts.push_back(std::move(open));
  handle.contexts.clear();
  const auto engine = std::make_shared<std::shared_ptr<Engine>>(std::move(handle.engine));
  return startTask(env, "trtforge:closeEngine", [contexts, engine](Listener&) -> Answer {
    for (const auto& context : contexts) context->close();
    engine->reset();
    return undefined;
  });
}

napi_value createContextExport(napi_env env, napi_callback_info info) {
  const auto [value, request] = argumentsOf<2>(env, info);
  const Reader from(env, request);
  const auto create = [owner = sharedHandleOf<EngineHandle>(env, value), engine = engineOf(env, value), profile = static_cast<int>(from["profile"].integer()),
                       profiling = from["profiling"].boolean()](Listener&) -> Answer {
    auto context = Context::create(engine, profile, profiling);
    return [owner, context](napi_env env) {
      if (owner->engine == nullptr) {
        context->close();
        throw Failure("TF_SESSION_CLOSED", "The engine was closed while a context was made.");
      }
      auto handle = std::make_shared<ContextHandle>();
      handle->env = env;
      handle->context = context;
      watchEnvironment(*handle);
      owner->contexts.push_back(handle);
      return handleValue(env, handle);
    };
  };
  return startTask(env, "trtforge:createContext", create);
}

napi_value layerTimesExport(napi_env env, napi_callback_info info) {
  const auto [handle] = argumentsOf<1>(env, info);
  Context& context = handleOf<ContextHandle>(env, handle).open();
  if (context.layerTimes() == nullptr) throw Failure("TF_SESSION_INPUT", "The context was made without profiling, so it has no times of layers.");
  std::lock_guard<std::mutex> lock(context.mutex);
  return js::array(env, context.layerTimes()->table(), [env](const LayerTime& layer) {
    return Writer(env).set("name", layer.name).set("ms", layer.ms).set("runs", layer.runs).value();
  });
}

napi_value contextCloseExport(napi_env env, napi_callback_info info) {
  const auto [handle] = argumentsOf<1>(env, info);
  return startTask(env, "trtforge:closeContext", [context = handleOf<ContextHandle>(env, handle).detach()](Listener&) -> Answer {
    if (context != nullptr) context->close();
    return undefined;
  });
}

napi_value allocateExport(napi_env env, napi_callback_info info) {
  const auto [value, bytes] = argumentsOf<2>(env, info);
  const auto engine = engineOf(env, value);
  const std::int64_t wanted = Reader(env, bytes).integer();
  if (wanted < 0) throw Failure("TF_SESSION_INPUT", "Device memory of " + std::to_string(wanted) + " bytes cannot be.");
  auto handle = std::make_shared<MemoryHandle>();
  handle->device = &engine->device();
  handle->block = std::make_shared<cuda::DeviceBlock>(engine->device(), static_cast<std::size_t>(wanted), "tensors kept on the GPU");
  if (wanted > 0) cuda::check(engine->device().api().memorySet8(handle->block->address(), 0, static_cast<std::size_t>(wanted)), "Clearing GPU memory");
  // Contexts' streams do not wait for the default one, where it is cleared.
  cuda::check(engine->device().api().streamSynchronize(nullptr), "Clearing GPU memory");
  return handleValue(env, handle);
}

// Checks that a part lies inside, and gives its address.
cuda::Address part(const cuda::DeviceBlock& block, std::int64_t offset, std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(block.bytes());
  if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset)
    throw Failure("TF_SESSION_INPUT", "Bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) + " are not all in device memory of " + std::to_string(size) + " bytes.");
  return block.address() + static_cast<cuda::Address>(offset);
}

napi_value memoryWriteExport(napi_env env, napi_callback_info info) {
  const auto [value, data, offset] = argumentsOf<3>(env, info);
  const auto& handle = handleOf<MemoryHandle>(env, value);
  const js::Bytes bytes = js::bytesOf(env, data);
  const auto block = handle.open();
  const cuda::Address to = part(*block, Reader(env, offset).integer(), static_cast<std::int64_t>(bytes.size));
  // The thread that owns the bytes may free them once JavaScript goes on.
  const auto* first = static_cast<const char*>(bytes.data);
  const auto copy = std::make_shared<const std::vector<char>>(first, first + bytes.size);
  return startTask(env, "trtforge:write", [device = handle.device, block, to, copy](Listener&) -> Answer {
    device->makeCurrent();
    const cuda::Stream stream(*device);
    stream.copyToDevice(to, copy->data(), copy->size());
    stream.synchronize();
    return undefined;
  });
}

napi_value memoryReadExport(napi_env env, napi_callback_info info) {
  const auto [value, offset, count] = argumentsOf<3>(env, info);
  const auto& handle = handleOf<MemoryHandle>(env, value);
  const std::int64_t bytes = Reader(env, count).integer();
  const auto block = handle.open();
  const cuda::Address from = part(*block, Reader(env, offset).integer(), bytes);
  return startTask(env, "trtforge:read", [device = handle.device, block, from, bytes](Listener&) -> Answer {
    const auto read = std::make_shared<std::vector<char>>(static_cast<std::size_t>(bytes));
    device->makeCurrent();
    const cuda::Stream stream(*device);
    stream.copyToHost(read->data(), from, read->size());
    stream.synchronize();
    return [read](napi_env env) { return js::arrayBuffer(env, read->data(), read->size()); };
  });
}

napi_value memoryCloseExport(napi_env env, napi_callback_info info) {
  const auto [handle] = argumentsOf<1>(env, info);
  handleOf<MemoryHandle>(env, handle).block.reset();
  return nullptr;
}

}  // namespace

void addEngineExports(const AddExport& add) {
  add("openEngine", guarded<openEngineExport>);
  add("engineLayers", guarded<engineLayersExport>);
  add("engineClose", guarded<engineCloseExport>);
  add("engineAllocate", guarded<allocateExport>);
  add("createContext", guarded<createContextExport>);
  add("contextLayerTimes", guarded<layerTimesExport>);
  add("contextClose", guarded<contextCloseExport>);
  add("memoryWrite", guarded<memoryWriteExport>);
  add("memoryRead", guarded<memoryReadExport>);
  add("memoryClose", guarded<memoryCloseExport>);
}

}  // namespace trtforge
