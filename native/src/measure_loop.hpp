// The loop of a measurement: keeps every stream busy, two inferences each, through warm-up and measured time.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "measure_clock.hpp"

namespace trtforge {

// What the loop needs of one stream with its context.
struct MeasuredStream {
  virtual ~MeasuredStream() = default;
  // Enqueues one inference and records its events, host times in `sample`.
  virtual void enqueue(const EventRing& events, Sample& sample) = 0;
  // Until the oldest inference under way, with its copies, is done.
  virtual void wait(const EventRing& events) = 0;
};

struct LoopPlan {
  double warmUpMs = 0;
  double durationMs = 0;  // from the first timed inference on
  std::int64_t iterations = 0;
  double idleMs = 0;
};

// Host milliseconds since a fixed moment.
double hostMs();

// One stream in the loop, with its events and what it has measured.
class Lane {
 public:
  Lane(MeasuredStream& stream, std::int32_t index, const cuda::Device& device, bool blocking, bool transfers)
      : stream_(stream), events_(device, blocking, transfers), index_(index) {}

  void enqueue();
  // Waits for the oldest inference and dates it. True when it came after the warm-up.
  bool finish(const TimedEvent& start, double warmUpMs);

  std::int64_t underWay() const { return events_.underWay(); }
  const std::deque<Sample>& samples() const { return samples_; }
  std::int64_t warmUpInferences() const { return warmUp_; }
  // GPU's clock, from the first timed inference's compute to that of the last; negative before there is one.
  double measuredMs() const {
    return samples_.empty() ? -1 : samples_.back().computeStart - samples_.front().computeStart;
  }

 private:
  MeasuredStream& stream_;
  EventRing events_;
  std::int32_t index_;
  Sample pending_[2];  // by parity of the inference: two are under way
  std::int64_t enqueued_ = 0;
  std::int64_t finished_ = 0;
  std::int64_t warmUp_ = 0;
  std::deque<Sample> samples_;
};

// Runs the lanes of one thread to the end of the plan. `stop` ends it early; what is under way is waited for in any
// case.
void runLoop(const std::vector<Lane*>& lanes, const LoopPlan& plan, const TimedEvent& start,
             const std::function<bool()>& stop);

}  // namespace trtforge
