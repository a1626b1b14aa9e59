#include "lookout.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <thread>

#include "javascript.hpp"

namespace trtforge {

namespace {

// What is used of libuv, whose ABI holds within a major version; node exports it.
struct Libuv {
  std::size_t (*handleSize)(int type);
  int (*idleInit)(void* loop, void* handle);
  int (*idleStart)(void* handle, void (*)(void*));
  int (*idleStop)(void* handle);
  void (*unref)(void* handle);
  void (*setData)(void* handle, void* data);
  void* (*data)(const void* handle);
  void (*close)(void* handle, void (*)(void*));
  bool found = true;

  Libuv() {
    find("uv_handle_size", handleSize);
    find("uv_idle_init", idleInit);
    find("uv_idle_start", idleStart);
    find("uv_idle_stop", idleStop);
    find("uv_unref", unref);
    find("uv_handle_set_data", setData);
    find("uv_handle_get_data", data);
    find("uv_close", close);
  }

 private:
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
    found = found && function != nullptr;
  }
};

constexpr int kIdleHandle = 6;  // UV_IDLE of uv_handle_type

const Libuv& libuv() {
  static const Libuv* all = new Libuv;
  return *all;
}

}  // namespace

Lookout::Lookout(napi_env env, std::function<void()> look, std::function<void()> closed) : look_(std::move(look)), closed_(std::move(closed)) {
  uv_loop_s* loop = nullptr;
  // On a single processor looking would take it from the thread that is waited for.
  if (libuv().found && std::thread::hardware_concurrency() > 1 && napi_get_uv_event_loop(env, &loop) == napi_ok && loop != nullptr) {
    handle_ = std::calloc(1, libuv().handleSize(kIdleHandle));
    libuv().idleInit(loop, handle_);
    libuv().setData(handle_, this);
    libuv().unref(handle_);
  }
  js::check(env, napi_add_async_cleanup_hook(env, environmentCloses, this, &hook_));
}

void Lookout::start() {
  if (handle_ != nullptr) libuv().idleStart(handle_, turn);
}

void Lookout::stop() {
  if (handle_ != nullptr) libuv().idleStop(handle_);
}

void Lookout::turn(void* handle) { static_cast<Lookout*>(libuv().data(handle))->look_(); }

void Lookout::environmentCloses(napi_async_cleanup_hook_handle, void* self) {
  auto& lookout = *static_cast<Lookout*>(self);
  lookout.stop();
  lookout.closed_();
  if (lookout.handle_ == nullptr) return lookout.finishClosing();
  libuv().close(lookout.handle_, [](void* handle) {
    static_cast<Lookout*>(libuv().data(handle))->finishClosing();
    std::free(handle);
  });
}

void Lookout::finishClosing() {
  handle_ = nullptr;
  napi_remove_async_cleanup_hook(hook_);
}

}  // namespace trtforge
