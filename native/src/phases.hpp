// What is reported of a library's nested phases while it builds: the outer ones always, what goes on inside them ten
// times a second. A builder measures tens of thousands of tactics, each a phase with steps, and between two
// measurements nothing should wait for a wake-up of the event loop.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "event.hpp"
#include "nvtx.hpp"

namespace trtforge {

// Called from any thread of the library.
class Phases {
 public:
  explicit Phases(std::function<void(Event)> forward) : forward_(std::move(forward)) {}

  // A phase without a parent is an outer one.
  void start(const char* phase, const char* parent, int steps);
  void step(const char* phase, int step);
  void end(const char* phase);

 private:
  using Clock = std::chrono::steady_clock;
  bool isDue();

  std::function<void(Event)> forward_;
  std::mutex mutex_;
  struct Phase {
    explicit Phase(const char* name) : span(name) {}
    const nvtx::Span span;
    int steps = 0;
  };
  // Phases that have started and not ended; those that a failed build left end with this.
  std::map<std::string, Phase> outer_;
  std::map<std::string, Phase> inner_;
  Clock::time_point told_ = {};
};

}  // namespace trtforge
