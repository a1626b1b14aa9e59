#include "completions.hpp"

#include <algorithm>
#include <utility>

#include "javascript.hpp"
#include "pause.hpp"

namespace trtforge {

namespace {

// A turn of the loop costs system calls, so each looks for a moment; short enough that nothing else on the loop notices.
constexpr auto kTurn = std::chrono::microseconds(5);

}  // namespace

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
  js::check(env, napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, rung, &function_));
  js::check(env, napi_unref_threadsafe_function(env, function_));
  js::check(env, napi_async_init(env, nullptr, name, &scopes_));
  lookout_ = std::make_unique<Lookout>(
      env, [this] { turn(); }, [this] { closed(); });
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

void Completions::look(Clock::duration atMost) {
  if (unsettled_ == 0 || !lookout_->works()) return;
  lookUntil_ = std::max(lookUntil_, Clock::now() + atMost);
  looking_ = true;
  lookout_->start();
}

void Completions::lookSoon(Clock::duration atMost) {
  if (looking_) return;
  soon_ = atMost.count();
  ring();
}

// Either this thread sees that the loop looks, or the loop, which first says that it looks no longer and then looks once more, sees what ended.
void Completions::end(Completion* completion) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_.push_back(completion);
    ++waiting_;
  }
  if (!looking_) ring();
}

void Completions::ring() { napi_call_threadsafe_function(function_, nullptr, napi_tsfn_nonblocking); }

void Completions::rung(napi_env env, napi_value, void* self, void*) {
  auto& completions = *static_cast<Completions*>(self);
  // The environment has gone, and `closed` was called.
  if (env == nullptr) return;
  completions.settleEnded();
  if (const auto atMost = completions.soon_.exchange(0); atMost > 0) completions.look(Clock::duration(atMost));
}

void Completions::turn() {
  const auto until = Clock::now() + kTurn;
  if (!lookFor([this] { return waiting_ != 0; }, until)) {
    if (until < lookUntil_) return;
    stopLooking();
    if (waiting_ == 0) return;
  }
  napi_handle_scope handles = nullptr;
  napi_callback_scope callbacks = nullptr;
  if (napi_open_handle_scope(env_, &handles) != napi_ok) return;
  if (napi_open_callback_scope(env_, nullptr, scopes_, &callbacks) == napi_ok) {
    settleEnded();
    // Promises go on here, and may begin runs.
    napi_close_callback_scope(env_, callbacks);
  }
  napi_close_handle_scope(env_, handles);
  if (unsettled_ == 0) stopLooking();
}

void Completions::stopLooking() {
  looking_ = false;
  lookUntil_ = Clock::time_point();
  lookout_->stop();
}

void Completions::settleEnded() {
  std::vector<Completion*> ended;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ended.swap(ended_);
    waiting_ = 0;
  }
  for (Completion* one : ended) {
    const std::unique_ptr<Completion> completion(one);
    settle(*completion);
  }
}

void Completions::settle(Completion& completion) {
  completion.settled();
  if (--unsettled_ == 0) napi_unref_threadsafe_function(env_, function_);
  if (completion.failure.has_value()) {
    js::reject(env_, std::exchange(completion.deferred_, nullptr), *completion.failure);
    return;
  }
  completion.resolve();
}

// Nobody waits for the promises any more.
void Completions::closed() {
  looking_ = false;
  std::lock_guard<std::mutex> lock(mutex_);
  for (Completion* one : ended_) {
    const std::unique_ptr<Completion> completion(one);
    completion->settled();
    completion->kept_.clear();
    completion->deferred_ = nullptr;
  }
  ended_.clear();
}

}  // namespace trtforge
