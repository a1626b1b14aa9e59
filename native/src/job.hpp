// Work off the event loop: a promise for its end, events while it runs, and a way to ask it to stop.
#pragma once
#include <node_api.h>

#include <functional>
#include <memory>

#include "listeners.hpp"

namespace trtforge {

// What a job does: `run` on a worker thread, then `answer` on the event loop makes its result a value.
struct Work {
  virtual ~Work() = default;
  // Throws Failure.
  virtual void run(Listener& listener) = 0;
  virtual napi_value answer(napi_env env) = 0;
};

// Starts the work and gives `{done, cancel}`. The promise settles after the last event was delivered; without `onEvent` (null) nobody hears events.
napi_value startJob(napi_env env, const char* name, std::unique_ptr<Work> work, napi_value onEvent, bool verbose);

// The same for a function that needs no class of its own: what it gives, called on the event loop, makes the answer.
using Answer = std::function<napi_value(napi_env)>;
napi_value startTask(napi_env env, const char* name, std::function<Answer(Listener&)> task, napi_value onEvent = nullptr, bool verbose = false);

}  // namespace trtforge
