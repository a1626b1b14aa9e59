// What the handles hold that JavaScript keeps of engines, contexts, calls and device memory. All of it is used on the
// event loop alone.
#pragma once
#include <napi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "call.hpp"

namespace trtforge {

class RunJob;

struct CallHandle {
  // Throws TF_SESSION_CLOSED.
  Call& open() const;
  // Takes the pinned memory away from JavaScript; then the call goes, at once or after the last of its runs.
  void close();
  // What `close` does on the event loop, for an owner that closes the rest elsewhere.
  std::shared_ptr<Call> detach();

  std::shared_ptr<Call> call;
  // Pinned memory as JavaScript sees it: the buffer, and what keeps its memory until the buffer is detached or
  // collected.
  struct Buffer {
    Napi::Reference<Napi::ArrayBuffer> array;
    std::shared_ptr<cuda::HostBlock>* memory = nullptr;
  };
  std::vector<Buffer> buffers;  // per slot; empty where JavaScript never asked
  std::map<std::uint32_t, RunJob*> runs;
  // Memory of runs that are over, for inputs of the next that have to wait: the kernel takes as long to give fresh
  // memory as a copy into it takes.
  struct Copy {
    std::unique_ptr<char[]> data;
    std::size_t bytes;
  };
  std::vector<Copy> spare;
  std::shared_ptr<Call> closing;
};

struct ContextHandle {
  // Closes the context when its environment goes away.
  ContextHandle(Napi::Env env, std::shared_ptr<Context> context);
  ~ContextHandle();
  ContextHandle(const ContextHandle&) = delete;
  ContextHandle& operator=(const ContextHandle&) = delete;
  Context& open() const;
  void add(const std::shared_ptr<CallHandle>& call);
  // Everything that must happen on the event loop; the rest is `Context::close` on the object passed, wherever.
  std::shared_ptr<Context> detach();

  const Napi::Env env;
  std::shared_ptr<Context> context;
  std::vector<std::weak_ptr<CallHandle>> calls;
};

struct EngineHandle {
  const std::shared_ptr<Engine>& open() const;

  std::shared_ptr<Engine> engine;
  std::vector<std::weak_ptr<ContextHandle>> contexts;
};

struct MemoryHandle {
  const std::shared_ptr<cuda::DeviceBlock>& open() const;

  const cuda::Device* device = nullptr;
  std::shared_ptr<cuda::DeviceBlock> block;
};

// Of this addon alone, and of one type.
template <class Handle>
const napi_type_tag& tagOf() {
  static const char own = 0;
  static const napi_type_tag tag{reinterpret_cast<std::uint64_t>(&own), 0};
  return tag;
}

// A value that stands for the object until it is collected.
template <class Handle>
Napi::Value handleValue(Napi::Env env, std::shared_ptr<Handle> handle) {
  using Held = std::shared_ptr<Handle>;
  auto held = std::make_unique<Held>(std::move(handle));
  const auto value = Napi::External<Held>::New(env, held.get(), [](Napi::Env, Held* one) { delete one; });
  (void)held.release();
  value.TypeTag(&tagOf<Handle>());
  return value;
}
// Throws TF_INTERNAL for anything else.
template <class Handle>
const std::shared_ptr<Handle>& handleOf(const Napi::Value& value) {
  if (value.IsExternal()) {
    const auto external = value.As<Napi::External<std::shared_ptr<Handle>>>();
    if (external.CheckTypeTag(&tagOf<Handle>())) return *external.Data();
  }
  throw Failure("TF_INTERNAL", "The value passed to the addon is not a handle of the type expected here.");
}

// The engine behind the handle that `openEngine` returned. Throws TF_SESSION_CLOSED.
inline std::shared_ptr<Engine> engineOf(const Napi::Value& handle) { return handleOf<EngineHandle>(handle)->open(); }

}  // namespace trtforge
