#include "completions.hpp"

#include <memory>

#include "values.hpp"

namespace trtforge {

// A promise that nobody got, since what was to be posted failed, would keep its memory for ever.
Completion::~Completion() {
  if (pending_) js::resolve(deferred_, deferred_.Env().Undefined());
}

void Completion::abandon() {
  for (Napi::ObjectReference& reference : kept_) reference.SuppressDestruct();
  pending_ = false;
}

Completions::Completions(Napi::Env env)
    : env_(env),
      function_(Napi::TypedThreadSafeFunction<Completions, Completion, settle>::New(env, "trtforge:runs", 0, 1, this)) {
  function_.Unref(env);
}

namespace {

void stays(Napi::Env, Completions*) {}

}  // namespace

Completions& Completions::of(Napi::Env env) {
  auto* known = env.GetInstanceData<Completions>();
  if (known == nullptr) {
    // A thread-safe function is closed by its environment, which calls `settle` for what is left in it: what it points
    // to stays.
    known = new Completions(env);
    env.SetInstanceData<Completions, stays>(known);
  }
  return *known;
}

void Completions::begin() {
  if (unsettled_++ == 0) function_.Ref(env_);
}

void Completions::settle(Napi::Env env, Napi::Function, Completions* completions, Completion* ended) {
  const std::unique_ptr<Completion> completion(ended);
  completion->settled();
  if (env == nullptr) return completion->abandon();
  if (--completions->unsettled_ == 0) completions->function_.Unref(env);
  completion->pending_ = false;
  if (completion->failure.has_value())
    js::reject(completion->deferred_, *completion->failure);
  else
    js::resolve(completion->deferred_, env.Undefined());
}

}  // namespace trtforge
