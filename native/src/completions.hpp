// Promises of runs that end on a context's thread, settled on the event loop through one thread-safe function for all
// of an environment.
#pragma once
#include <napi.h>

#include <optional>
#include <vector>

#include "failure.hpp"

namespace trtforge {

// A promise, and what must not be collected before it settles. Made and destroyed on the event loop.
class Completion {
 public:
  explicit Completion(Napi::Env env) : deferred_(Napi::Promise::Deferred::New(env)) {}
  virtual ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  Napi::Promise promise() const { return deferred_.Promise(); }
  void keep(const Napi::Value& value) { kept_.push_back(Napi::Persistent(value.As<Napi::Object>())); }
  // Set on any thread before `Completions::end`.
  std::optional<Failure> failure;

 private:
  friend class Completions;
  // Called on the event loop, just before the promise settles.
  virtual void settled() {}
  // The environment has gone, and with it the promise and what was kept for it.
  void abandon();

  const Napi::Promise::Deferred deferred_;
  bool pending_ = true;
  std::vector<Napi::ObjectReference> kept_;
};

class Completions {
 public:
  // One per environment, made where it is first asked for; never goes, since threads may still hold it.
  static Completions& of(Napi::Env env);

  // On the event loop: the process stays alive until as many were ended.
  void begin();
  // On any thread.
  void end(Completion* completion) { function_.NonBlockingCall(completion); }

 private:
  explicit Completions(Napi::Env env);
  static void settle(Napi::Env env, Napi::Function function, Completions* completions, Completion* completion);

  const Napi::Env env_;
  Napi::TypedThreadSafeFunction<Completions, Completion, settle> function_;
  int unsettled_ = 0;
};

}  // namespace trtforge
