#include "handles.hpp"

#include <algorithm>

#include "completions.hpp"
#include "javascript.hpp"

namespace trtforge {

namespace {

// The environment goes away: threads end and the GPU's memory is given back while the driver is still there.
void closeContext(void* context) { static_cast<Context*>(context)->close(); }

[[noreturn]] void closed(const char* what) { throw Failure("TF_SESSION_CLOSED", std::string("The ") + what + " is closed."); }

}  // namespace

namespace {

// Of this addon alone: an address of its own, and the kind.
napi_type_tag tagOf(int kind) {
  static const char own = 0;
  return {reinterpret_cast<std::uint64_t>(&own), static_cast<std::uint64_t>(kind)};
}

}  // namespace

napi_value boxed(napi_env env, int kind, std::shared_ptr<void> object) {
  napi_value value;
  auto box = std::make_unique<std::shared_ptr<void>>(std::move(object));
  const auto release = [](napi_env, void* data, void*) { delete static_cast<std::shared_ptr<void>*>(data); };
  js::check(env, napi_create_external(env, box.get(), release, nullptr, &value));
  (void)box.release();
  const napi_type_tag tag = tagOf(kind);
  js::check(env, napi_type_tag_object(env, value, &tag));
  return value;
}

const std::shared_ptr<void>& unboxed(napi_env env, napi_value value, int kind) {
  const napi_type_tag tag = tagOf(kind);
  bool ours = false;
  void* box = nullptr;
  if (napi_check_object_type_tag(env, value, &tag, &ours) != napi_ok || !ours) throw Failure("TF_INTERNAL", "The value passed to the addon is no handle of the kind expected here.");
  js::check(env, napi_get_value_external(env, value, &box));
  return *static_cast<const std::shared_ptr<void>*>(box);
}

const std::shared_ptr<Engine>& EngineHandle::open() const {
  if (engine == nullptr) closed("engine");
  return engine;
}

const std::shared_ptr<cuda::DeviceBlock>& MemoryHandle::open() const {
  if (block == nullptr) closed("device memory");
  return block;
}

Context& ContextHandle::open() const {
  if (context == nullptr) closed("context");
  return *context;
}

std::shared_ptr<Context> ContextHandle::detach() {
  if (context == nullptr) return nullptr;
  for (const auto& known : calls)
    if (const auto call = known.lock()) call->detach();
  calls.clear();
  napi_remove_env_cleanup_hook(env, closeContext, context.get());
  return std::move(context);
}

void ContextHandle::add(const std::shared_ptr<CallHandle>& call) {
  calls.erase(std::remove_if(calls.begin(), calls.end(), [](const auto& known) { return known.expired(); }), calls.end());
  calls.push_back(call);
}

ContextHandle::~ContextHandle() {
  if (context != nullptr) napi_remove_env_cleanup_hook(env, closeContext, context.get());
}

Call& CallHandle::open() const {
  if (call == nullptr) closed("call");
  return *call;
}

std::shared_ptr<Call> CallHandle::detach() {
  spare.clear();
  for (Buffer& buffer : buffers) {
    if (buffer.reference == nullptr) continue;
    napi_value value = nullptr;
    napi_get_reference_value(env, buffer.reference, &value);
    // Nobody can read it any more, so the pool may give it to another call at once; but for memory that JavaScript itself moved to another buffer.
    bool moved = false;
    if (value != nullptr && napi_is_detached_arraybuffer(env, value, &moved) == napi_ok && !moved && napi_detach_arraybuffer(env, value) == napi_ok) buffer.memory->reset();
    napi_delete_reference(env, buffer.reference);
    buffer = Buffer();
  }
  return std::move(call);
}

void CallHandle::close() {
  auto open = detach();
  if (open == nullptr) return;
  if (runs.empty()) open->close();
  else closing = std::move(open);
}

CallHandle::~CallHandle() {
  for (const Buffer& buffer : buffers)
    if (buffer.reference != nullptr) napi_delete_reference(env, buffer.reference);
}

void watchEnvironment(ContextHandle& handle) {
  // Hooks run last one first: the thread must be over before the function that its runs are told through goes.
  (void)Completions::of(handle.env);
  napi_add_env_cleanup_hook(handle.env, closeContext, handle.context.get());
}

}  // namespace trtforge
