// Small tensors of a call: copied to the GPU and back, or used by it in pinned memory. A copy costs microseconds;
// memory behind the bus costs each layer that reads it. Which is less differs from engine to engine, so a call tries
// both.
#include <algorithm>

#include "call.hpp"

namespace trtforge {

namespace {

using Clock = Pace::Clock;

constexpr std::size_t kSmall = 4096;
// The copies of small tensors take some 5 microseconds: of longer runs that is nothing.
constexpr auto kWorthwhile = std::chrono::microseconds(500);
// A GPU that was idle takes a moment to run at its speed.
constexpr auto kWarmUp = std::chrono::milliseconds(2);
constexpr int kRuns = 20;
// Less than a twentieth is noise.
constexpr auto kGain = 20;

bool isSmall(const Slotted& slot) {
  return slot.host != nullptr && slot.device != nullptr && !slot.callerOwns && slot.bytes <= kSmall &&
         slot.host->deviceAddress() % kAddressAlignment == 0;
}

}  // namespace

bool Call::mapsSmall() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slotted& slot) { return slot.mapped != 0; });
}

void Call::placeSmall() {
  const bool measures = request_.small == SmallTensors::kMeasured;
  if (request_.small == SmallTensors::kCopied || (measures && !full_) ||
      std::none_of(slots_.begin(), slots_.end(), isSmall))
    return;
  const Clock::duration copied = measures ? bestRun() : Clock::duration::max();
  if (measures && copied > kWorthwhile) return;
  try {
    mapSmall(true);
    if (measures && (!full_ || bestRun() > copied - copied / kGain)) mapSmall(false);
  } catch (const Failure&) {
    if (!measures) throw;
    mapSmall(false);
  }
  for (Slotted& slot : slots_) {
    if (slot.mapped == 0) continue;
    context_->engine()->pool().giveBack(std::move(slot.device));
    slot.device.reset();
  }
}

void Call::mapSmall(bool mapped) {
  for (Slotted& slot : slots_)
    if (isSmall(slot)) slot.mapped = mapped ? slot.host->deviceAddress() : 0;
  execution_->boundTo = nullptr;
  rehearse();
  prepareGraph();
}

// The shortest of some runs one after another, launch and wait.
Clock::duration Call::bestRun() {
  const cuda::Stream& stream = context_->stream();
  Clock::duration best = Clock::duration::max();
  const auto run = [&] {
    const Clock::time_point started = Clock::now();
    full_.launch(stream);
    stream.synchronize();
    return Clock::now() - started;
  };
  keepingOutputs([&] {
    for (const Clock::time_point until = Clock::now() + kWarmUp; Clock::now() < until;) best = std::min(best, run());
    if (best > kWorthwhile) return;
    best = Clock::duration::max();
    for (int i = 0; i < kRuns; ++i) best = std::min(best, run());
  });
  return best;
}

}  // namespace trtforge
