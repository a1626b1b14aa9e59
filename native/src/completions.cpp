#include "completions.hpp"

#include "javascript.hpp"

namespace trtforge {

Completion::Completion(napi_env env, napi_value* promise) : env_(env) { js::check(env, napi_create_promise(env, &deferred_, promise)); }

Completion::~Completion() {
  for (napi_ref reference : kept_) napi_delete_reference(env_, reference);
}

void Completion::keep(napi_value value) {
  napi_ref reference = nullptr;
  js::check(env_, napi_create_reference(env_, value, 1, &reference));
  kept_.push_back(reference);
}

Completions::Completions(napi_env env) : env_(env) {
  napi_value name;
  js::check(env, napi_create_string_utf8(env, "trtforge:runs", NAPI_AUTO_LENGTH, &name));
  js::check(env, napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, deliver, &function_));
  js::check(env, napi_unref_threadsafe_function(env, function_));
}

Completions& Completions::of(napi_env env) {
  void* known = nullptr;
  js::check(env, napi_get_instance_data(env, &known));
  if (known == nullptr) {
    // A threadsafe function is closed by its environment; what it points to may be told of that later, so it stays.
    known = new Completions(env);
    js::check(env, napi_set_instance_data(env, known, nullptr, nullptr));
  }
  return *static_cast<Completions*>(known);
}

void Completions::begin() {
  if (unsettled_++ == 0) napi_ref_threadsafe_function(env_, function_);
}

void Completions::end(Completion* completion) { napi_call_threadsafe_function(function_, completion, napi_tsfn_nonblocking); }

void Completions::deliver(napi_env env, napi_value, void* data, void* item) {
  auto& completions = *static_cast<Completions*>(data);
  const std::unique_ptr<Completion> completion(static_cast<Completion*>(item));
  completion->settled();
  // The environment is going away: nobody waits for the promise any more.
  if (env == nullptr) {
    completion->kept_.clear();
    return;
  }
  if (--completions.unsettled_ == 0) napi_unref_threadsafe_function(env, completions.function_);
  if (completion->failure.has_value()) {
    napi_reject_deferred(env, completion->deferred_, js::errorOf(env, *completion->failure));
    return;
  }
  napi_value undefined;
  napi_get_undefined(env, &undefined);
  napi_resolve_deferred(env, completion->deferred_, undefined);
}

}  // namespace trtforge
