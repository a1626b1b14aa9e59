#include "measure_clock.hpp"

namespace trtforge {

namespace {

constexpr unsigned kBlockingSync = 1;

}  // namespace

TimedEvent::TimedEvent(const cuda::Device& device, bool blocking) : device_(device) {
  cuda::check(device.api().eventCreate(&handle_, blocking ? kBlockingSync : 0), "Making an event");
}

TimedEvent::~TimedEvent() {
  if (handle_ != nullptr && !cuda::ending()) device_.api().eventDestroy(handle_);
}

double TimedEvent::msSince(const TimedEvent& earlier) const {
  float ms = 0;
  cuda::check(device_.api().eventElapsed(&ms, earlier.handle_, handle_), "Reading an event's time");
  return ms;
}

EventRing::EventRing(const cuda::Device& device, bool blocking, bool transfers) : transfers_(transfers) {
  for (auto& set : events_)
    for (std::size_t moment = 0; moment < kMoments; ++moment)
      if (transfers || moment == static_cast<std::size_t>(Moment::kComputeStart) ||
          moment == static_cast<std::size_t>(Moment::kComputeEnd))
        set[moment] = std::make_unique<const TimedEvent>(device, blocking);
}

Sample EventRing::finish(const TimedEvent& start) {
  Sample sample;
  const TimedEvent& computeStart = oldest(Moment::kComputeStart);
  const TimedEvent& computeEnd = oldest(Moment::kComputeEnd);
  sample.computeStart = finished_ == 0
                            ? computeStart.msSince(start)
                            : lastComputeStart_ + computeStart.msSince(at(finished_ - 1, Moment::kComputeStart));
  lastComputeStart_ = sample.computeStart;
  sample.computeEnd = sample.computeStart + computeEnd.msSince(computeStart);
  if (transfers_) {
    const TimedEvent& inputStart = oldest(Moment::kInputStart);
    const TimedEvent& outputStart = oldest(Moment::kOutputStart);
    sample.inputStart = sample.computeStart - computeStart.msSince(inputStart);
    sample.inputEnd = sample.inputStart + oldest(Moment::kInputEnd).msSince(inputStart);
    sample.outputStart = sample.computeEnd + outputStart.msSince(computeEnd);
    sample.outputEnd = sample.outputStart + oldest(Moment::kOutputEnd).msSince(outputStart);
  } else {
    sample.inputStart = sample.inputEnd = sample.computeStart;
    sample.outputStart = sample.outputEnd = sample.computeEnd;
  }
  ++finished_;
  return sample;
}

}  // namespace trtforge
