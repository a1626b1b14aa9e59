// How long the runs of a call take, learned from the last ones.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>

namespace trtforge {

class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  // Follows a shorter time at once and a longer one slowly, so that a caller that acts before the end is seldom late.
  void took(Clock::duration time) {
    const Clock::rep known = ticks_, now = std::max<Clock::rep>(1, time.count());
    ticks_ = known == 0 || now < known ? now : known + (now - known) / 8;
  }
  // Zero before the first run.
  Clock::duration expected() const { return Clock::duration(ticks_); }

 private:
  std::atomic<Clock::rep> ticks_{0};
};

}  // namespace trtforge
