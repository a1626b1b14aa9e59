#include "job.hpp"

#include <memory>
#include <optional>

#include "values.hpp"

namespace trtforge {

namespace {

Napi::Object eventValue(Napi::Env env, const Event& event) {
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

class Job : public Napi::AsyncWorker {
 public:
  Job(Napi::Env env, const char* name, Task task, Napi::Function onEvent, bool verbose)
      : AsyncWorker(env, name), done_(Napi::Promise::Deferred::New(env)), task_(std::move(task)) {
    events_ = Events::New(
        env, onEvent, Napi::Object::New(env), name, 0, 1, static_cast<void*>(nullptr),
        [](Napi::Env, Job* job, void*) { job->delivered(); }, this);
    listener_ = std::make_shared<Listener>([this](Event event) { send(std::move(event)); }, verbose);
  }

  // From here on the job ends itself.
  Napi::Value start() {
    const std::shared_ptr<Listener> listener = listener_;
    const auto cancel = Napi::Function::New(
        Env(), [listener](const Napi::CallbackInfo&) { listener->cancel(); }, "cancel");
    const Napi::Object answer = js::Writer(Env()).set("done", done_.Promise()).set("cancel", cancel).value();
    try {
      Queue();
    } catch (const Napi::Error&) {
      failure_ = Failure("TF_INTERNAL", "Node.js has no thread for this work.");
      OnWorkComplete(Env(), napi_ok);
    }
    return answer;
  }

 private:
  static void deliver(Napi::Env env, Napi::Function onEvent, void*, Event* sent);
  using Events = Napi::TypedThreadSafeFunction<void, Event, deliver>;

  void send(Event event) {
    auto boxed = std::make_unique<Event>(std::move(event));
    if (events_.NonBlockingCall(boxed.get()) == napi_ok) (void)boxed.release();
  }

  void Execute() override {
    try {
      answer_ = task_(*listener_);
    } catch (const Failure& failure) {
      failure_ = failure;
    } catch (const std::exception& exception) {
      failure_ = Failure("TF_INTERNAL", exception.what());
    }
  }

  // On the event loop, when the work is over: events may still be on their way.
  void OnWorkComplete(Napi::Env, napi_status) override {
    completed_ = true;
    if (closed_)
      Destroy();
    else
      events_.Release();
  }

  // On the event loop, after the last event; or before the end of the work, where the environment goes away.
  void delivered() {
    closed_ = true;
    if (!completed_) return;
    const Napi::HandleScope scope(Env());
    settle();
    Destroy();
  }

  void settle() {
    try {
      if (!failure_.has_value()) return js::resolve(done_, answer_(Env()));
    } catch (const Failure& failure) {
      failure_ = failure;
    } catch (const std::exception& exception) {
      failure_ = Failure("TF_INTERNAL", exception.what());
    }
    js::reject(done_, *failure_);
  }

  const Napi::Promise::Deferred done_;
  Events events_;
  // JavaScript may keep `cancel`, and this with it, for long after the job.
  std::shared_ptr<Listener> listener_;
  Task task_;
  Answer answer_;
  std::optional<Failure> failure_;
  bool completed_ = false, closed_ = false;
};

// On the event loop, once per event. An exception of `onEvent` becomes Node's uncaught exception.
void Job::deliver(Napi::Env env, Napi::Function onEvent, void*, Event* sent) {
  const std::unique_ptr<Event> event(sent);
  if (env == nullptr || onEvent.IsEmpty()) return;
  try {
    try {
      onEvent.Call({eventValue(env, *event)});
    } catch (const Napi::Error& error) {
      napi_fatal_exception(env, error.Value());
    }
  } catch (const Napi::Error&) {
    // The thread of JavaScript is being ended.
  }
}

}  // namespace

Napi::Value startTask(Napi::Env env, const char* name, Task task, Napi::Function onEvent, bool verbose) {
  auto job = std::make_unique<Job>(env, name, std::move(task), onEvent, verbose);
  return job.release()->start();
}

}  // namespace trtforge
