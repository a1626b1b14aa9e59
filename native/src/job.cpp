#include "job.hpp"

#include <optional>

#include "javascript.hpp"

namespace trtforge {

namespace {

class Job {
 public:
  Job(std::unique_ptr<Work> work, bool verbose)
      : work(std::move(work)), listener([this](Event event) { send(std::move(event)); }, verbose) {}

  std::unique_ptr<Work> work;
  Listener listener;
  std::optional<Failure> failure;
  napi_deferred deferred = nullptr;
  napi_async_work asyncWork = nullptr;
  napi_threadsafe_function events = nullptr;

 private:
  void send(Event event) {
    auto* boxed = new Event(std::move(event));
    if (napi_call_threadsafe_function(events, boxed, napi_tsfn_nonblocking) != napi_ok) delete boxed;
  }
};

napi_value eventValue(napi_env env, const Event& event) {
  js::Writer value(env);
  switch (event.type) {
    case Event::Type::kLog:
      value.set("type", "log").set("severity", event.number).set("message", event.text);
      break;
    case Event::Type::kPhaseStart:
      value.set("type", "phase-start").set("phase", event.text).set("steps", event.number);
      break;
    case Event::Type::kStep:
      value.set("type", "step").set("phase", event.text).set("step", event.number);
      break;
    case Event::Type::kInside:
      value.set("type", "inside").set("phase", event.text).set("step", event.number).set("steps", event.steps);
      break;
    case Event::Type::kPhaseEnd:
      value.set("type", "phase-end").set("phase", event.text);
      break;
  }
  return value.value();
}

// On the event loop, once per event. An exception of the listener becomes Node's uncaught exception.
void deliver(napi_env env, napi_value callback, void*, void* data) {
  const std::unique_ptr<Event> event(static_cast<Event*>(data));
  if (env == nullptr || callback == nullptr) return;
  napi_value undefined, argument;
  napi_get_undefined(env, &undefined);
  try {
    argument = eventValue(env, *event);
  } catch (const std::exception&) {
    return;
  }
  if (napi_call_function(env, undefined, callback, 1, &argument, nullptr) == napi_pending_exception) {
    napi_value exception;
    napi_get_and_clear_last_exception(env, &exception);
    napi_fatal_exception(env, exception);
  }
}

void settle(napi_env env, Job& job) {
  try {
    if (!job.failure.has_value()) {
      napi_resolve_deferred(env, job.deferred, job.work->answer(env));
      return;
    }
  } catch (const Failure& failure) {
    job.failure = failure;
  } catch (const std::exception& exception) {
    job.failure = Failure("TF_INTERNAL", exception.what());
  }
  js::reject(env, job.deferred, *job.failure);
}

using SharedJob = std::shared_ptr<Job>;

SharedJob& sharedJob(void* data) { return *static_cast<SharedJob*>(data); }

void execute(napi_env, void* data) {
  Job& job = *sharedJob(data);
  try {
    job.work->run(job.listener);
  } catch (const Failure& failure) {
    job.failure = failure;
  } catch (const std::exception& exception) {
    job.failure = Failure("TF_INTERNAL", exception.what());
  }
}

void complete(napi_env, napi_status, void* data) { napi_release_threadsafe_function(sharedJob(data)->events, napi_tsfn_release); }

// The threadsafe function ends after its last event was delivered: only then is the job over for JavaScript.
void finish(napi_env env, void* data, void*) {
  const std::unique_ptr<SharedJob> job(static_cast<SharedJob*>(data));
  napi_handle_scope scope;
  if (napi_open_handle_scope(env, &scope) == napi_ok) {
    settle(env, **job);
    napi_close_handle_scope(env, scope);
  }
  napi_delete_async_work(env, (*job)->asyncWork);
  // JavaScript may keep `cancel` for long; what the work holds goes now.
  (*job)->work.reset();
}

napi_value cancel(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
  sharedJob(data)->listener.cancel();
  return nullptr;
}

napi_value cancelFunction(napi_env env, const SharedJob& job) {
  auto held = std::make_unique<SharedJob>(job);
  napi_value function;
  js::check(env, napi_create_function(env, "cancel", NAPI_AUTO_LENGTH, cancel, held.get(), &function));
  const auto release = [](napi_env, void* data, void*) { delete static_cast<SharedJob*>(data); };
  js::check(env, napi_add_finalizer(env, function, held.get(), release, nullptr, nullptr));
  (void)held.release();
  return function;
}

class Task : public Work {
 public:
  explicit Task(std::function<Answer(Listener&)> task) : task_(std::move(task)) {}
  void run(Listener& listener) override { answer_ = task_(listener); }
  napi_value answer(napi_env env) override { return answer_(env); }

 private:
  std::function<Answer(Listener&)> task_;
  Answer answer_;
};

}  // namespace

napi_value startTask(napi_env env, const char* name, std::function<Answer(Listener&)> task, napi_value onEvent, bool verbose) {
  return startJob(env, name, std::make_unique<Task>(std::move(task)), onEvent, verbose);
}

napi_value startJob(napi_env env, const char* name, std::unique_ptr<Work> work, napi_value onEvent, bool verbose) {
  const auto job = std::make_shared<Job>(std::move(work), verbose);
  napi_value resourceName, promise;
  js::check(env, napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &resourceName));
  js::check(env, napi_create_promise(env, &job->deferred, &promise));
  js::Writer answer(env);
  answer.set("done", promise).set("cancel", cancelFunction(env, job));
  auto held = std::make_unique<SharedJob>(job);
  js::check(env, napi_create_threadsafe_function(env, onEvent, nullptr, resourceName, 0, 1, held.get(), finish, nullptr, deliver, &job->events));
  // From here on `finish` settles the promise, whatever happens.
  SharedJob* const data = held.release();
  if (napi_create_async_work(env, nullptr, resourceName, execute, complete, data, &job->asyncWork) != napi_ok || napi_queue_async_work(env, job->asyncWork) != napi_ok) {
    job->failure = Failure("TF_INTERNAL", "Node.js has no thread for this work.");
    napi_release_threadsafe_function(job->events, napi_tsfn_release);
  }
  return answer.value();
}

}  // namespace trtforge
