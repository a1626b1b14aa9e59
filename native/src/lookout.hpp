// Makes Node's event loop look again and again, in place of sleeping, for a while. A processor that slept for a millisecond takes tens to hundreds of
// microseconds to wake, more than many inferences; a loop that looks answers at once and still serves everything else between two looks.
#pragma once
#include <node_api.h>

#include <functional>

namespace trtforge {

class Lookout {
 public:
  // `look` is called on the event loop in each of its turns while started. Without libuv in the process (`works()` is then false) it never is.
  // `closed` is called when the environment goes away, before anything made earlier in it goes.
  Lookout(napi_env env, std::function<void()> look, std::function<void()> closed);
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  bool works() const { return handle_ != nullptr; }
  // On the event loop; both harmless twice.
  void start();
  void stop();

 private:
  static void turn(void* handle);
  static void environmentCloses(napi_async_cleanup_hook_handle hook, void* lookout);
  void finishClosing();

  const std::function<void()> look_, closed_;
  void* handle_ = nullptr;
  napi_async_cleanup_hook_handle hook_ = nullptr;
};

}  // namespace trtforge
