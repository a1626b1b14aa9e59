// Promises of runs that end on a context's thread, settled on the event loop through one thread-safe function for all of an environment.
#pragma once
#include <node_api.h>

#include <optional>
#include <vector>

#include "failure.hpp"

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
  // One per environment, made where it is first asked for; never goes, since threads may still hold it.
  static Completions& of(napi_env env);

  // On the event loop: the process stays alive until as many were ended.
  void begin();
  // On any thread.
  void end(Completion* completion);

 private:
  explicit Completions(napi_env env);
  static void settle(napi_env env, napi_value function, void* completions, void* completion);

  napi_env env_;
  napi_threadsafe_function function_ = nullptr;
  int unsettled_ = 0;
};

}  // namespace trtforge
