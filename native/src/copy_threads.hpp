// Threads that copy large host memory, shared by all engines of the process and kept until it ends.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>

namespace trtforge {

// Calls `lead` here and `help` on up to `helpers` other threads at the same time, and returns (or throws what `lead`
// threw) when all are over. `help` must not throw, and must find nothing left to do once `lead` is over; where the
// threads sleep or serve another caller, `lead` may be alone.
void withCopyThreads(std::size_t helpers, const std::function<void()>& help, const std::function<void()>& lead);

// A memcpy that those threads help with.
void copyTogether(char* to, const char* from, std::size_t bytes);

// Wakes so many of them; they look for work for so long, since a thread that sleeps comes too late for a copy of a
// millisecond.
void wakeCopyThreads(std::size_t helpers, std::chrono::steady_clock::duration atMost);

}  // namespace trtforge
