#include "completions.hpp"

#include <memory>
#include <utility>

#include "javascript.hpp"

namespace trtforge {

Completion::Completion(napi_env env, napi_value* promise) : env_(env) { js::check(env, napi_create_promise(env, &deferred_, promise)); }

// A promise that nobody got, since what was to be posted failed, would keep its memory for ever.
Completion::~Completion() {
  if (deferred_ != nullptr) resolve();
  for (napi_ref reference : kept_) napi_delete_reference(env_, reference);
}

void Completion::resolve() {
  napi_value undefined = nullptr;
  napi_get_undefined(env_, &undefined);
  napi_resolve_deferred(env_, std::exchange(deferred_, nullptr), undefined);
}

void Completion::keep(napi_value value) {
  napi_ref reference = nullptr;
  js::check(env_, napi_create_reference(env_, value, 1, &reference));
  kept_.push_back(reference);
}

Completions::Completions(napi_env env) : env_(env) {
  napi_value name;
  js::check(env, napi_create_string_utf8(env, "trtforge:runs", NAPI_AUTO_LENGTH, &name));
  js::check(env, napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, settle, &function_));
  js::check(env, napi_unref_threadsafe_function(env, function_));
}

Completions& Completions::of(napi_env env) {
  void* known = nullptr;
  js::check(env, napi_get_instance_data(env, &known));
  if (known == nullptr) {
    // A thread-safe function is closed by its environment, which calls `settle` for what is left in it: what it points to stays.
    known = new Completions(env);
    js::check(env, napi_set_instance_data(env, known, nullptr, nullptr));
  }
  return *static_cast<Completions*>(known);
}

void Completions::begin() {
  if (unsettled_++ == 0) napi_ref_threadsafe_function(env_, function_);
}

void Completions::end(Completion* completion) { napi_call_threadsafe_function(function_, completion, napi_tsfn_nonblocking); }

void Completions::settle(napi_env env, napi_value, void* self, void* ended) {
  const std::unique_ptr<Completion> completion(static_cast<Completion*>(ended));
  completion->settled();
  if (env == nullptr) {
    // The environment has gone, and with it the promise and what was kept for it.
    completion->kept_.clear();
    completion->deferred_ = nullptr;
    return;
  }
  auto& completions = *static_cast<Completions*>(self);
  if (--completions.unsettled_ == 0) napi_unref_threadsafe_function(env, completions.function_);
  if (completion->failure.has_value()) js::reject(env, std::exchange(completion->deferred_, nullptr), *completion->failure);
  else completion->resolve();
}

}  // namespace trtforge
