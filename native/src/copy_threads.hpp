// Threads that copy large host memory, shared by all engines of the process and kept until it ends.
#pragma once
#include <cstddef>
#include <functional>

namespace trtforge {

// Calls `work(0)` … `work(count - 1)`, each once, on several threads of which the caller is one, and returns when all are over. `work` must not throw.
// Where the threads are busy with another caller's work, the caller does its own alone.
void onCopyThreads(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace trtforge
