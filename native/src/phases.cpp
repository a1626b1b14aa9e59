#include "phases.hpp"

namespace trtforge {

namespace {

constexpr std::chrono::milliseconds kInterval(100);

}  // namespace

bool Phases::isDue() {
  const Clock::time_point now = Clock::now();
  if (told_ != Clock::time_point{} && now - told_ < kInterval) return false;
  told_ = now;
  return true;
}

void Phases::start(const char* phase, const char* parent, int steps) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (parent == nullptr || *parent == 0) {
    outer_.try_emplace(phase, phase).first->second.steps = steps;
    forward_(Event::phaseStart(phase, steps));
    return;
  }
  inner_.try_emplace(phase, phase).first->second.steps = steps;
  if (isDue()) forward_(Event::inside(phase, Event::kNoStep, steps));
}

void Phases::step(const char* phase, int step) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (outer_.count(phase) != 0) {
    told_ = Clock::now();
    forward_(Event::step(phase, step));
    return;
  }
  if (!isDue()) return;
  const auto inner = inner_.find(phase);
  forward_(Event::inside(phase, step, inner == inner_.end() ? 0 : inner->second.steps));
}

void Phases::end(const char* phase) {
  std::lock_guard<std::mutex> lock(mutex_);
  inner_.erase(phase);
  if (outer_.erase(phase) != 0) forward_(Event::phaseEnd(phase));
}

}  // namespace trtforge
