#include "measure_loop.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace trtforge {

namespace {

constexpr std::int64_t kUnderWay = 2;

// In pieces, so that a long pause can be called off.
void pause(double ms, const std::function<bool()>& stop) {
  constexpr double kPieceMs = 20;
  const double until = hostMs() + ms;
  for (double left = ms; left > 0 && !stop(); left = until - hostMs())
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(std::min(left, kPieceMs)));
}

}  // namespace

double hostMs() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Lane::enqueue() {
  stream_.enqueue(events_, pending_[enqueued_ % kUnderWay]);
  events_.enqueued();
  ++enqueued_;
}

bool Lane::finish(const TimedEvent& start, double warmUpMs) {
  stream_.wait(events_);
  const Sample& pending = pending_[finished_ % kUnderWay];
  Sample sample = events_.finish(start);
  ++finished_;
  sample.stream = index_;
  sample.enqueueStartMs = pending.enqueueStartMs;
  sample.enqueueEndMs = pending.enqueueEndMs;
  if (sample.computeStart < warmUpMs) return ++warmUp_, false;
  samples_.push_back(sample);
  return true;
}

void runLoop(const std::vector<Lane*>& lanes, const LoopPlan& plan, const TimedEvent& start,
             const std::function<bool()>& stop) {
  const auto unfinished = [&](const Lane* lane) {
    return lane->measuredMs() < plan.durationMs || static_cast<std::int64_t>(lane->samples().size()) < plan.iterations;
  };
  while (!stop() && std::any_of(lanes.begin(), lanes.end(), unfinished)) {
    for (Lane* lane : lanes) lane->enqueue();
    bool measured = false;
    for (Lane* lane : lanes)
      if (lane->underWay() == kUnderWay) measured = lane->finish(start, plan.warmUpMs) || measured;
    if (measured && plan.idleMs > 0) pause(plan.idleMs, stop);
  }
  for (Lane* lane : lanes)
    while (lane->underWay() > 0) lane->finish(start, plan.warmUpMs);
}

}  // namespace trtforge
