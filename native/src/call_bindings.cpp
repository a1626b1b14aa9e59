#include <algorithm>
#include <atomic>
#include <optional>

#include "completions.hpp"
#include "copy_threads.hpp"
#include "engine_bindings.hpp"
#include "guarded.hpp"
#include "handles.hpp"
#include "job.hpp"

namespace trtforge {

// A run on the context's own thread, and its promise.
class RunJob : public Completion {
 public:
  RunJob(napi_env env, napi_value* promise, std::shared_ptr<CallHandle> handle, std::uint32_t id)
      : Completion(env, promise), call(handle->call), handle_(std::move(handle)), id_(id) {}

  // The call stays open until the run is over.
  void enlist() { handle_->runs[id_] = this; }

  void run() {
    try {
      if (begun.has_value()) return call->finish(*begun, outputs);
      if (cancelled) throw Failure("TF_CANCELLED", "The run was cancelled before it began.");
      call->run(inputs, outputs);
    } catch (const Failure& caught) {
      failure = caught;
    } catch (const std::exception& caught) {
      failure = Failure("TF_INTERNAL", caught.what());
    }
  }

  // On the event loop: reads the inputs for the last time, since the thread that owns them may free them once JavaScript goes on.
  void take(std::vector<HostView> from) {
    if (from.empty()) return;
    if (call->context()->worker().idle()) begun = call->tryBegin(from, outputs);
    if (begun.has_value()) return;
    for (HostView& view : from) {
      CallHandle::Copy copy = blockOf(call->slots()[static_cast<std::size_t>(view.slot)].bytes);
      copyTogether(copy.data.get(), static_cast<const char*>(view.data), copy.bytes);
      view.data = copy.data.get();
      copies.push_back(std::move(copy));
    }
    inputs = std::move(from);
  }

  const std::shared_ptr<Call> call;
  // Memory that nobody frees before the run is over.
  std::vector<HostView> inputs, outputs;
  std::vector<CallHandle::Copy> copies;
  std::optional<Call::Begun> begun;
  std::atomic<bool> cancelled{false};

 private:
  // Kept by an open call, and no more than a few.
  static constexpr std::size_t kSpare = 4;

  CallHandle::Copy blockOf(std::size_t bytes) {
    auto& spare = handle_->spare;
    const auto found = std::find_if(spare.begin(), spare.end(), [bytes](const CallHandle::Copy& copy) { return copy.bytes == bytes; });
    if (found == spare.end()) return {std::unique_ptr<char[]>(new char[bytes]), bytes};
    CallHandle::Copy copy = std::move(*found);
    spare.erase(found);
    return copy;
  }

  void settled() override {
    for (CallHandle::Copy& copy : copies)
      if (handle_->call != nullptr && handle_->spare.size() < kSpare) handle_->spare.push_back(std::move(copy));
    handle_->runs.erase(id_);
    if (!handle_->runs.empty() || handle_->closing == nullptr) return;
    handle_->closing->close();
    handle_->closing.reset();
  }

  const std::shared_ptr<CallHandle> handle_;
  const std::uint32_t id_;
};

namespace {

using js::Reader;
using js::Writer;

std::vector<InputShape> shapesOf(const Reader& from) {
  std::vector<InputShape> shapes;
  for (const Reader& one : from.elements()) {
    InputShape shape;
    shape.name = one["name"].text();
    shape.shape = one["shape"].integers();
    if (!one["values"].isNull()) shape.values = one["values"].integers();
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

CallRequest callRequest(napi_env env, const Reader& from) {
  CallRequest request;
  request.shapes = shapesOf(from["shapes"]);
  request.graph = from["graph"].boolean();
  for (const Reader& one : from["bindings"].elements()) {
    BindingRequest binding;
    binding.name = one["name"].text();
    if (!one["memory"].isNull()) {
      binding.memory = handleOf<MemoryHandle>(env, one["memory"].value()).open();
      const std::int64_t offset = one["offset"].integer();
      if (offset < 0) throw Failure("TF_SESSION_INPUT", "The memory given for " + binding.name + " begins at a negative byte.");
      binding.offset = static_cast<std::size_t>(offset);
    }
    request.bindings.push_back(std::move(binding));
  }
  return request;
}

napi_value outputsValue(napi_env env, const std::vector<OutputShape>& outputs) {
  return js::array(env, outputs, [env](const OutputShape& output) {
    return Writer(env)
        .set("name", output.name)
        .set("shape", output.shape.has_value() ? js::array(env, *output.shape) : js::nullValue(env))
        .set("bytes", output.bytes)
        .value();
  });
}

napi_value contextOutputsExport(napi_env env, napi_callback_info info) {
  const auto [handle, shapes] = argumentsOf<2>(env, info);
  return outputsValue(env, handleOf<ContextHandle>(env, handle).open().outputsFor(shapesOf(Reader(env, shapes))));
}

// The call as JavaScript keeps it: `slots` in the order of their numbers.
napi_value preparedValue(napi_env env, const std::shared_ptr<CallHandle>& handle) {
  const Call& call = handle->open();
  const auto slot = [env](const Slotted& one) {
    return Writer(env).set("name", one.name).set("input", one.input).set("bytes", static_cast<std::int64_t>(one.bytes)).set("pinned", one.host != nullptr).set("dependsOnData", one.allocator != nullptr).value();
  };
  return Writer(env)
      .set("handle", handleValue(env, handle))
      .set("graph", call.hasGraph())
      .setOrNull("graphRefusal", call.graphRefusal())
      .set("outputs", outputsValue(env, call.outputs()))
      .set("slots", js::array(env, call.slots(), slot))
      .value();
}

napi_value prepareCallExport(napi_env env, napi_callback_info info) {
  const auto [value, request] = argumentsOf<2>(env, info);
  const auto owner = sharedHandleOf<ContextHandle>(env, value);
  (void)owner->open();
  return startTask(env, "trtforge:prepare", [owner, context = owner->context, request = callRequest(env, Reader(env, request))](Listener&) -> Answer {
    const auto call = Call::prepare(context, request);
    return [owner, call](napi_env env) {
      if (owner->context == nullptr) throw Failure("TF_SESSION_CLOSED", "The context was closed while a call was prepared.");
      auto handle = std::make_shared<CallHandle>();
      handle->env = env;
      handle->call = call;
      handle->buffers.resize(call->slots().size());
      owner->add(handle);
      return preparedValue(env, handle);
    };
  });
}

int slotNumber(const Call& call, std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(call.slots().size())) throw Failure("TF_INTERNAL", "There is no slot " + std::to_string(number) + ".");
  return static_cast<int>(number);
}

napi_value callBufferExport(napi_env env, napi_callback_info info) {
  const auto [value, number] = argumentsOf<2>(env, info);
  auto& handle = handleOf<CallHandle>(env, value);
  const auto slot = static_cast<std::size_t>(slotNumber(handle.open(), Reader(env, number).integer()));
  const Slotted& slotted = handle.open().slots()[slot];
  if (slotted.host == nullptr) throw Failure("TF_SESSION_INPUT", slotted.name + " has no pinned memory: it is bound to device memory, or its shape depends on the data.");
  CallHandle::Buffer& buffer = handle.buffers[slot];
  napi_value array = nullptr;
  if (buffer.reference != nullptr) {
    js::check(env, napi_get_reference_value(env, buffer.reference, &array));
    return array;
  }
  auto* memory = new std::shared_ptr<cuda::HostBlock>(slotted.host);
  const auto release = [](napi_env, void*, void* hint) { delete static_cast<std::shared_ptr<cuda::HostBlock>*>(hint); };
  if (napi_create_external_arraybuffer(env, slotted.host->get(), slotted.bytes, release, memory, &array) != napi_ok) {
    delete memory;
    throw Failure("TF_INTERNAL", "This JavaScript engine takes no memory from outside.");
  }
  js::check(env, napi_create_reference(env, array, 1, &buffer.reference));
  buffer.memory = memory;
  return array;
}

// A list of slot numbers and views in turns.
std::vector<HostView> viewsOf(napi_env env, const Call& call, napi_value list, bool inputs, std::vector<napi_value>* given) {
  std::uint32_t length = 0;
  js::check(env, napi_get_array_length(env, list, &length));
  std::vector<HostView> views;
  views.reserve(length / 2);
  for (std::uint32_t i = 0; i + 1 < length; i += 2) {
    napi_value number, view;
    js::check(env, napi_get_element(env, list, i, &number));
    js::check(env, napi_get_element(env, list, i + 1, &view));
    const int slot = slotNumber(call, Reader(env, number).integer());
    const Slotted& slotted = call.slots()[static_cast<std::size_t>(slot)];
    const js::Bytes bytes = js::bytesOf(env, view);
    if (slotted.host == nullptr || slotted.input != inputs) throw Failure("TF_SESSION_INPUT", slotted.name + " takes no bytes from, and gives none to, JavaScript's memory in this call.");
    if (bytes.size != slotted.bytes)
      throw Failure("TF_SESSION_INPUT", slotted.name + " has " + std::to_string(slotted.bytes) + " bytes, and " + std::to_string(bytes.size) + " were given.");
    if (given != nullptr) given->push_back(view);
    views.push_back({slot, bytes.data});
  }
  return views;
}

// Runs posted before are over first, so that runs stay in order.
Call& readyCall(napi_env env, napi_value handle) {
  Call& call = handleOf<CallHandle>(env, handle).open();
  Worker& worker = call.context()->worker();
  if (!worker.idle()) worker.drain();
  return call;
}

napi_value callLaunchExport(napi_env env, napi_callback_info info) {
  const auto [handle] = argumentsOf<1>(env, info);
  readyCall(env, handle).run({}, {});
  return nullptr;
}

napi_value callRunSyncExport(napi_env env, napi_callback_info info) {
  const auto [handle, inputs, outputs] = argumentsOf<3>(env, info);
  Call& call = readyCall(env, handle);
  call.run(viewsOf(env, call, inputs, true, nullptr), viewsOf(env, call, outputs, false, nullptr));
  return nullptr;
}

napi_value callRunExport(napi_env env, napi_callback_info info) {
  const auto [value, number, inputs, outputs] = argumentsOf<4>(env, info);
  const auto handle = sharedHandleOf<CallHandle>(env, value);
  const Call& call = handle->open();
  std::uint32_t id = 0;
  js::check(env, napi_get_value_uint32(env, number, &id));
  napi_value promise = nullptr;
  auto from = viewsOf(env, call, inputs, true, nullptr);
  std::vector<napi_value> views;
  auto to = viewsOf(env, call, outputs, false, &views);
  Completions& completions = Completions::of(env);
  auto run = std::make_unique<RunJob>(env, &promise, handle, id);
  run->outputs = std::move(to);
  for (napi_value view : views) run->keep(view);
  run->take(std::move(from));
  run->enlist();
  completions.begin();
  call.context()->worker().post([run = run.release(), &completions] {
    run->run();
    completions.end(run);
  });
  return promise;
}

napi_value callCancelExport(napi_env env, napi_callback_info info) {
  const auto [value, number] = argumentsOf<2>(env, info);
  std::uint32_t id = 0;
  js::check(env, napi_get_value_uint32(env, number, &id));
  auto& runs = handleOf<CallHandle>(env, value).runs;
  if (const auto run = runs.find(id); run != runs.end()) run->second->cancelled = true;
  return nullptr;
}

napi_value callLastShapesExport(napi_env env, napi_callback_info info) {
  const auto [handle] = argumentsOf<1>(env, info);
  const Call& call = readyCall(env, handle);
  std::vector<const Slotted*> known;
  for (const Slotted& slot : call.slots())
    if (slot.allocator != nullptr && slot.allocator->known()) known.push_back(&slot);
  return js::array(env, known, [env](const Slotted* slot) { return Writer(env).set("name", slot->name).set("shape", js::array(env, slot->allocator->shape())).value(); });
}

napi_value callReadOutputExport(napi_env env, napi_callback_info info) {
  const auto [handle, name] = argumentsOf<2>(env, info);
  const std::vector<char> bytes = readyCall(env, handle).readOutput(Reader(env, name).text());
  return js::arrayBuffer(env, bytes.data(), bytes.size());
}

napi_value callCloseExport(napi_env env, napi_callback_info info) {
  const auto [handle] = argumentsOf<1>(env, info);
  handleOf<CallHandle>(env, handle).close();
  return nullptr;
}

}  // namespace

void addCallExports(const AddExport& add) {
  add("contextOutputs", guarded<contextOutputsExport>);
  add("prepareCall", guarded<prepareCallExport>);
  add("callBuffer", guarded<callBufferExport>);
  add("callLaunch", guarded<callLaunchExport>);
  add("callRunSync", guarded<callRunSyncExport>);
  add("callRun", guarded<callRunExport>);
  add("callCancel", guarded<callCancelExport>);
  add("callLastShapes", guarded<callLastShapesExport>);
  add("callReadOutput", guarded<callReadOutputExport>);
  add("callClose", guarded<callCloseExport>);
}

}  // namespace trtforge
