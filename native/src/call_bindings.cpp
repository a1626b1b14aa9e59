#include <algorithm>
#include <atomic>
#include <optional>

#include "completions.hpp"
#include "copy_threads.hpp"
#include "engine_bindings.hpp"
#include "handles.hpp"
#include "job.hpp"
#include "values.hpp"

namespace trtforge {

// A run on the context's own thread, and its promise.
class RunJob : public Completion {
 public:
  RunJob(Napi::Env env, std::shared_ptr<CallHandle> handle, std::uint32_t id)
      : Completion(env), call(handle->call), handle_(std::move(handle)), id_(id) {}

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

  // On the event loop: reads the inputs for the last time, since the thread that owns them may free them once
  // JavaScript goes on.
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
    const auto found =
        std::find_if(spare.begin(), spare.end(), [bytes](const CallHandle::Copy& copy) { return copy.bytes == bytes; });
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

CallRequest callRequest(const Reader& from) {
  CallRequest request;
  request.shapes = shapesOf(from["shapes"]);
  request.graph = from["graph"].boolean();
  const std::string small = from["smallTensors"].text();
  request.small = small == "copied"   ? SmallTensors::kCopied
                  : small == "mapped" ? SmallTensors::kMapped
                                      : SmallTensors::kMeasured;
  for (const Reader& one : from["bindings"].elements()) {
    BindingRequest binding;
    binding.name = one["name"].text();
    if (!one["memory"].isNull()) {
      binding.memory = handleOf<MemoryHandle>(one["memory"].value())->open();
      const std::int64_t offset = one["offset"].integer();
      if (offset < 0)
        throw Failure("TF_SESSION_INPUT", "The memory passed for " + binding.name + " begins at a negative byte.");
      binding.offset = static_cast<std::size_t>(offset);
    }
    request.bindings.push_back(std::move(binding));
  }
  return request;
}

Napi::Value outputsValue(Napi::Env env, const std::vector<OutputShape>& outputs) {
  return js::array(env, outputs, [env](const OutputShape& output) {
    return Writer(env)
        .set("name", output.name)
        .set("shape", output.shape.has_value() ? Napi::Value(js::array(env, *output.shape)) : env.Null())
        .set("bytes", output.bytes)
        .value();
  });
}

Napi::Value contextOutputsExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  const Napi::Value shapes = info[1];
  return outputsValue(info.Env(), handleOf<ContextHandle>(handle)->open().outputsFor(shapesOf(Reader(shapes))));
}

// The call as JavaScript keeps it: `slots` in the order of their numbers.
Napi::Value preparedValue(Napi::Env env, const std::shared_ptr<CallHandle>& handle) {
  const Call& call = handle->open();
  const auto slot = [env](const Slotted& one) {
    return Writer(env)
        .set("name", one.name)
        .set("input", one.input)
        .set("bytes", static_cast<std::int64_t>(one.bytes))
        .set("pinned", one.host != nullptr)
        .set("dependsOnData", one.allocator != nullptr)
        .value();
  };
  return Writer(env)
      .set("handle", handleValue(env, handle))
      .set("graph", call.hasGraph())
      .setOrNull("graphRefusal", call.graphRefusal())
      .set("smallTensors", call.mapsSmall() ? "mapped" : "copied")
      .set("outputs", outputsValue(env, call.outputs()))
      .set("slots", js::array(env, call.slots(), slot))
      .value();
}

Napi::Value prepareCallExport(const Napi::CallbackInfo& info) {
  const Napi::Value value = info[0];
  const Napi::Value request = info[1];
  const auto owner = handleOf<ContextHandle>(value);
  (void)owner->open();
  return startTask(info.Env(), "trtforge:prepare",
                   [owner, context = owner->context, request = callRequest(Reader(request))](Listener&) -> Answer {
                     const auto call = Call::prepare(context, request);
                     return [owner, call](Napi::Env env) {
                       if (owner->context == nullptr)
                         throw Failure("TF_SESSION_CLOSED", "The context was closed while a call was prepared.");
                       auto handle = std::make_shared<CallHandle>();
                       handle->call = call;
                       handle->buffers.resize(call->slots().size());
                       owner->add(handle);
                       return preparedValue(env, handle);
                     };
                   });
}

int slotNumber(const Call& call, std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(call.slots().size()))
    throw Failure("TF_INTERNAL", "There is no slot " + std::to_string(number) + ".");
  return static_cast<int>(number);
}

Napi::Value callBufferExport(const Napi::CallbackInfo& info) {
  const Napi::Value value = info[0];
  const Napi::Value number = info[1];
  auto& handle = *handleOf<CallHandle>(value);
  const auto slot = static_cast<std::size_t>(slotNumber(handle.open(), Reader(number).integer()));
  const Slotted& slotted = handle.open().slots()[slot];
  if (slotted.host == nullptr)
    throw Failure(
        "TF_SESSION_INPUT",
        slotted.name + " has no pinned memory: it is bound to device memory, or its shape depends on the data.");
  CallHandle::Buffer& buffer = handle.buffers[slot];
  if (!buffer.array.IsEmpty()) return buffer.array.Value();
  using Memory = std::shared_ptr<cuda::HostBlock>;
  auto memory = std::make_unique<Memory>(slotted.host);
  const auto array = Napi::ArrayBuffer::New(
      info.Env(), slotted.host->get(), slotted.bytes, [](Napi::Env, void*, Memory* held) { delete held; },
      memory.get());
  buffer.memory = memory.release();
  buffer.array = Napi::Reference<Napi::ArrayBuffer>::New(array, 1);
  return array;
}

// A list of slot numbers and views in turns.
std::vector<HostView> viewsOf(const Call& call, const Napi::Value& list, bool inputs, RunJob* run = nullptr) {
  const std::vector<Reader> items = Reader(list).elements();
  std::vector<HostView> views;
  views.reserve(items.size() / 2);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const int slot = slotNumber(call, items[i].integer());
    const Slotted& slotted = call.slots()[static_cast<std::size_t>(slot)];
    const js::Bytes bytes = js::bytesOf(items[i + 1].value());
    if (slotted.host == nullptr || slotted.input != inputs)
      throw Failure("TF_SESSION_INPUT",
                    slotted.name + " reads no bytes from, and writes none to, JavaScript's memory in this call.");
    if (bytes.size != slotted.bytes)
      throw Failure("TF_SESSION_INPUT", slotted.name + " has " + std::to_string(slotted.bytes) + " bytes, and " +
                                            std::to_string(bytes.size) + " were passed.");
    if (run != nullptr) run->keep(items[i + 1].value());
    views.push_back({slot, bytes.data});
  }
  return views;
}

// Runs posted before are over first, so that runs stay in order.
Call& readyCall(const Napi::Value& handle) {
  Call& call = handleOf<CallHandle>(handle)->open();
  Worker& worker = call.context()->worker();
  if (!worker.idle()) worker.drain();
  return call;
}

Napi::Value callLaunchExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  readyCall(handle).run({}, {});
  return info.Env().Undefined();
}

Napi::Value callRunSyncExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  const Napi::Value inputs = info[1];
  const Napi::Value outputs = info[2];
  Call& call = readyCall(handle);
  call.run(viewsOf(call, inputs, true), viewsOf(call, outputs, false));
  return info.Env().Undefined();
}

std::uint32_t runNumber(const Napi::Value& value) { return static_cast<std::uint32_t>(Reader(value).integer()); }

Napi::Value callRunExport(const Napi::CallbackInfo& info) {
  const auto handle = handleOf<CallHandle>(info[0]);
  const Call& call = handle->open();
  const std::uint32_t id = runNumber(info[1]);
  auto from = viewsOf(call, info[2], true);
  Completions& completions = Completions::of(info.Env());
  auto run = std::make_unique<RunJob>(info.Env(), handle, id);
  run->outputs = viewsOf(call, info[3], false, run.get());
  run->take(std::move(from));
  run->enlist();
  completions.begin();
  const Napi::Promise promise = run->promise();
  call.context()->worker().post([run = run.release(), &completions] {
    run->run();
    completions.end(run);
  });
  return promise;
}

Napi::Value callCancelExport(const Napi::CallbackInfo& info) {
  auto& runs = handleOf<CallHandle>(info[0])->runs;
  if (const auto run = runs.find(runNumber(info[1])); run != runs.end()) run->second->cancelled = true;
  return info.Env().Undefined();
}

Napi::Value callLastShapesExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  const Call& call = readyCall(handle);
  std::vector<const Slotted*> known;
  for (const Slotted& slot : call.slots())
    if (slot.allocator != nullptr && slot.allocator->known()) known.push_back(&slot);
  const Napi::Env env = info.Env();
  return js::array(env, known, [env](const Slotted* slot) {
    return Writer(env).set("name", slot->name).set("shape", js::array(env, slot->allocator->shape())).value();
  });
}

Napi::Value callReadOutputExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  const Napi::Value name = info[1];
  const std::vector<char> bytes = readyCall(handle).readOutput(Reader(name).text());
  return js::arrayBuffer(info.Env(), bytes);
}

Napi::Value callCloseExport(const Napi::CallbackInfo& info) {
  const Napi::Value handle = info[0];
  handleOf<CallHandle>(handle)->close();
  return info.Env().Undefined();
}

}  // namespace

void addCallExports(Napi::Object& exports) {
  js::add<contextOutputsExport>(exports, "contextOutputs");
  js::add<prepareCallExport>(exports, "prepareCall");
  js::add<callBufferExport>(exports, "callBuffer");
  js::add<callLaunchExport>(exports, "callLaunch");
  js::add<callRunSyncExport>(exports, "callRunSync");
  js::add<callRunExport>(exports, "callRun");
  js::add<callCancelExport>(exports, "callCancel");
  js::add<callLastShapesExport>(exports, "callLastShapes");
  js::add<callReadOutputExport>(exports, "callReadOutput");
  js::add<callCloseExport>(exports, "callClose");
}

}  // namespace trtforge
