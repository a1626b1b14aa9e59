// Work off the event loop, on a thread of libuv's pool: a promise for its end, events while it runs, and a way to ask
// it to stop.
#pragma once
#include <napi.h>

#include <functional>

#include "listeners.hpp"

namespace trtforge {

// What a task returns; called on the event loop, it makes the result.
using Answer = std::function<Napi::Value(Napi::Env)>;
using Task = std::function<Answer(Listener&)>;

// Starts the task, which may throw Failure, and returns `{done, cancel}`. The promise settles after the last event was
// delivered; an empty `onEvent` receives none.
Napi::Value startTask(Napi::Env env, const char* name, Task task, Napi::Function onEvent = Napi::Function(),
                      bool verbose = false);

}  // namespace trtforge
