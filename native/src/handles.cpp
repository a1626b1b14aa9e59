#include "handles.hpp"

#include <algorithm>

#include "completions.hpp"

namespace trtforge {

namespace {

// The environment goes away: threads end and the GPU's memory is returned while the driver is still there.
void closeContext(void* context) { static_cast<Context*>(context)->close(); }

[[noreturn]] void closed(const char* what) {
  throw Failure("TF_SESSION_CLOSED", std::string("The ") + what + " is closed.");
}

}  // namespace

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
  calls.erase(std::remove_if(calls.begin(), calls.end(), [](const auto& known) { return known.expired(); }),
              calls.end());
  calls.push_back(call);
}

ContextHandle::ContextHandle(Napi::Env env, std::shared_ptr<Context> made) : env(env), context(std::move(made)) {
  // Hooks run last one first: the thread must be over before the function that settles its runs goes.
  (void)Completions::of(env);
  napi_add_env_cleanup_hook(env, closeContext, context.get());
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
    if (buffer.array.IsEmpty()) continue;
    const Napi::ArrayBuffer array = buffer.array.Value();
    // Nobody can read it any more, so the pool may give it to another call at once; but for memory that JavaScript
    // itself moved to another buffer.
    if (!array.IsEmpty() && !array.IsDetached() && napi_detach_arraybuffer(array.Env(), array) == napi_ok)
      buffer.memory->reset();
    buffer = Buffer();
  }
  return std::move(call);
}

void CallHandle::close() {
  auto open = detach();
  if (open == nullptr) return;
  if (runs.empty())
    open->close();
  else
    closing = std::move(open);
}

}  // namespace trtforge
