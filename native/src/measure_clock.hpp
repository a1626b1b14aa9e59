// The events of one measured stream, and the times they become. Each inference is dated from the one before it, so that
// a time keeps its sub-microsecond resolution however long the measurement lasts (a single-precision distance from the
// start loses it after seconds).
#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include "cuda.hpp"

namespace trtforge {

enum class Moment { kInputStart, kInputEnd, kComputeStart, kComputeEnd, kOutputStart, kOutputEnd };
constexpr std::size_t kMoments = 6;

// One inference, milliseconds since the measurement's common start. Without transfers input and output take no time.
struct Sample {
  std::int32_t stream = 0;
  double inputStart = 0;
  double inputEnd = 0;
  double computeStart = 0;
  double computeEnd = 0;
  double outputStart = 0;
  double outputEnd = 0;
  double enqueueStartMs = 0;  // host clock
  double enqueueEndMs = 0;
};

// An event with timing. Blocking ones put the waiting thread to sleep, the others let it spin.
class TimedEvent {
 public:
  TimedEvent(const cuda::Device& device, bool blocking);
  ~TimedEvent();
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  void record(const cuda::Stream& stream) const {
    cuda::check(device_.api().eventRecord(handle_, stream.get()), "Recording an event");
  }
  void synchronize() const { cuda::check(device_.api().eventSynchronize(handle_), "The inference"); }
  // The stream goes on only after this event.
  void holdBack(const cuda::Stream& stream) const {
    cuda::check(device_.api().streamWaitEvent(stream.get(), handle_, 0), "Ordering two streams");
  }
  // Both must be done.
  double msSince(const TimedEvent& earlier) const;

 private:
  const cuda::Device& device_;
  cuda::EventHandle handle_ = nullptr;
};

// Two inferences are under way at a time; a third set of events keeps the last finished one, which the next is dated
// from.
class EventRing {
 public:
  EventRing(const cuda::Device& device, bool blocking, bool transfers);

  // Of the inference being enqueued.
  const TimedEvent& next(Moment moment) const { return at(enqueued_, moment); }
  void enqueued() { ++enqueued_; }
  // Of the oldest inference under way.
  const TimedEvent& oldest(Moment moment) const { return at(finished_, moment); }
  std::int64_t underWay() const { return enqueued_ - finished_; }
  // Dates the oldest inference, which must be done. `start` is the common start of all streams.
  Sample finish(const TimedEvent& start);

 private:
  static constexpr std::int64_t kSets = 3;
  const TimedEvent& at(std::int64_t inference, Moment moment) const {
    return *events_[static_cast<std::size_t>(inference % kSets)][static_cast<std::size_t>(moment)];
  }

  bool transfers_;
  std::array<std::array<std::unique_ptr<const TimedEvent>, kMoments>, kSets> events_;
  std::int64_t enqueued_ = 0;
  std::int64_t finished_ = 0;
  double lastComputeStart_ = 0;
};

}  // namespace trtforge
