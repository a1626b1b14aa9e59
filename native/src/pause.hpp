// A moment's rest for a thread that looks again and again.
#pragma once
#include <chrono>
#include <thread>

namespace trtforge {

inline void pauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Looks until `found()` or `until`; true where it was found. Where threads outnumber processors it lets the others on:
// the one waited for may be among them.
template <class Found>
bool lookFor(Found found, std::chrono::steady_clock::time_point until) {
  constexpr int kLooks = 64;
  for (;;) {
    for (int i = 0; i < kLooks; ++i) {
      if (found()) return true;
      pauseProcessor();
    }
    if (std::chrono::steady_clock::now() >= until) return found();
    std::this_thread::yield();
  }
}

}  // namespace trtforge
