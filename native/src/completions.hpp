// Promises of runs that end on a context's thread, settled on the event loop. While one is about to end the loop looks for it; otherwise a threadsafe
// function, one for all of an environment, wakes it.
#pragma once
#include <node_api.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "failure.hpp"
#include "lookout.hpp"

namespace trtforge {

// A promise, and what must not be collected before it settles. Made and destroyed on the event loop.
class Completion {
 public:
  Completion(napi_env env, napi_value* promise);
  virtual ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  void keep(napi_value value);
  // Set on any thread before `Completions::end`.
  std::optional<Failure> failure;

 private:
  friend class Completions;
  // Called on the event loop, just before the promise settles.
  virtual void settled() {}
  void resolve();

  napi_env env_;
  napi_deferred deferred_ = nullptr;
  std::vector<napi_ref> kept_;
};

class Completions {
 public:
  using Clock = std::chrono::steady_clock;

  // One per environment, made where it is first asked for; never goes, since threads may still hold it.
  static Completions& of(napi_env env);

  // On the event loop: the process stays alive until as many were ended.
  void begin();
  // On the event loop: it looks for completions from now on, for at most so long.
  void look(Clock::duration atMost);
  // The same on any other thread.
  void lookSoon(Clock::duration atMost);
  // On any thread.
  void end(Completion* completion);

 private:
  explicit Completions(napi_env env);
  static void rung(napi_env env, napi_value function, void* completions, void* nothing);
  void ring();
  void turn();
  void stopLooking();
  // With a handle scope and a callback scope around it.
  void settleEnded();
  void settle(Completion& completion);
  void closed();

  napi_env env_;
  napi_threadsafe_function function_ = nullptr;
  napi_async_context scopes_ = nullptr;
  int unsettled_ = 0;
  Clock::time_point lookUntil_;
  std::atomic<bool> looking_{false};
  std::atomic<Clock::rep> soon_{0};
  std::atomic<int> waiting_{0};  // in `ended_`
  std::mutex mutex_;
  std::vector<Completion*> ended_;
  std::unique_ptr<Lookout> lookout_;
};

}  // namespace trtforge
