// What the handles hold that JavaScript keeps of engines, contexts, calls and device memory. All of it is used on the event loop alone.
#pragma once
#include <node_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "call.hpp"

namespace trtforge {

class RunJob;

struct CallHandle {
  static constexpr int kKind = 3;
  ~CallHandle();
  // Throws TF_SESSION_CLOSED.
  Call& open() const;
  // Takes the pinned memory away from JavaScript; then the call goes, at once or after the last of its runs.
  void close();
  // What `close` does on the event loop, for an owner that closes the rest elsewhere.
  std::shared_ptr<Call> detach();

  napi_env env = nullptr;
  std::shared_ptr<Call> call;
  // Pinned memory as JavaScript sees it: the buffer, and what keeps its memory until the buffer is detached or collected.
  struct Buffer {
    napi_ref reference = nullptr;
    std::shared_ptr<cuda::HostBlock>* memory = nullptr;
  };
  std::vector<Buffer> buffers;  // per slot; empty where JavaScript never asked
  std::map<std::uint32_t, RunJob*> runs;
  // Memory of runs that are over, for inputs of the next that have to wait: the kernel takes as long to give fresh memory as a copy into it takes.
  struct Copy {
    std::unique_ptr<char[]> data;
    std::size_t bytes;
  };
  std::vector<Copy> spare;
  std::shared_ptr<Call> closing;
};

struct ContextHandle {
  static constexpr int kKind = 2;
  ~ContextHandle();
  Context& open() const;
  void add(const std::shared_ptr<CallHandle>& call);
  // Everything that must happen on the event loop; the rest is `Context::close` on the object given, wherever.
  std::shared_ptr<Context> detach();

  napi_env env = nullptr;
  std::shared_ptr<Context> context;
  std::vector<std::weak_ptr<CallHandle>> calls;
};

// Closes the context when its environment goes away.
void watchEnvironment(ContextHandle& handle);

struct EngineHandle {
  static constexpr int kKind = 1;
  const std::shared_ptr<Engine>& open() const;

  std::shared_ptr<Engine> engine;
  std::vector<std::weak_ptr<ContextHandle>> contexts;
};

struct MemoryHandle {
  static constexpr int kKind = 4;
  const std::shared_ptr<cuda::DeviceBlock>& open() const;

  const cuda::Device* device = nullptr;
  std::shared_ptr<cuda::DeviceBlock> block;
};

// A value that stands for the object until it is collected.
napi_value boxed(napi_env env, int kind, std::shared_ptr<void> object);
// Throws TF_INTERNAL for anything else.
const std::shared_ptr<void>& unboxed(napi_env env, napi_value value, int kind);

template <class Handle>
napi_value handleValue(napi_env env, std::shared_ptr<Handle> handle) {
  return boxed(env, Handle::kKind, std::move(handle));
}
template <class Handle>
Handle& handleOf(napi_env env, napi_value value) {
  return *static_cast<Handle*>(unboxed(env, value, Handle::kKind).get());
}
template <class Handle>
std::shared_ptr<Handle> sharedHandleOf(napi_env env, napi_value value) {
  return std::static_pointer_cast<Handle>(unboxed(env, value, Handle::kKind));
}

// The engine behind the handle that `openEngine` gave. Throws TF_SESSION_CLOSED.
inline std::shared_ptr<Engine> engineOf(napi_env env, napi_value handle) { return handleOf<EngineHandle>(env, handle).open(); }

}  // namespace trtforge
