// One run of a call: inputs on their way, the launch, the wait.
#include <algorithm>
#include <cstring>

#include "call.hpp"
#include "copy_threads.hpp"
#include "nvtx.hpp"
#include "pause.hpp"

namespace trtforge {

namespace {

using Clock = Pace::Clock;

// A processor that slept is awake again after this long, at worst.
constexpr auto kWaking = std::chrono::microseconds(300);
constexpr auto kBetweenQueries = std::chrono::microseconds(10);

// How long threads that were woken for the end look for it.
Clock::duration patience(Clock::duration expected) { return 2 * kWaking + expected / 8; }

}  // namespace

void Call::run(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs) {
  std::lock_guard<std::mutex> lock(context_->mutex);
  const nvtx::Range range(label_.c_str());
  end(begin(inputs, outputs), outputs);
}

std::optional<Call::Begun> Call::tryBegin(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs) {
  const std::unique_lock<std::mutex> lock(context_->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return std::nullopt;
  return begin(inputs, outputs);
}

void Call::finish(const Begun& begun, const std::vector<HostView>& outputs) {
  std::lock_guard<std::mutex> lock(context_->mutex);
  const nvtx::Range range(label_.c_str());
  context_->stream().device().makeCurrent();
  end(begun, outputs);
}

Call::Begun Call::begin(const std::vector<HostView>& inputs, const std::vector<HostView>& outputs) {
  open();
  Begun begun;
  begun.started = Clock::now();
  // Who ran a moment ago runs again in a moment.
  begun.follows = begun.started - ended_ < kWaking;
  begun.staged = bytesStaged(inputs) + bytesStaged(outputs);
  const cuda::Stream& stream = context_->stream();
  stream.device().makeCurrent();
  for (const HostView& view : inputs)
    if (!isLarge(view)) std::memcpy(slot(view).host->get(), view.data, slot(view).bytes);
  try {
    if (begun.staged > 0) stageIn(inputs);
  } catch (const Failure&) {
    stream.device().api().streamSynchronize(stream.get());
    throw;
  }
  return begun;
}

void Call::end(const Begun& begun, const std::vector<HostView>& outputs) {
  const cuda::Stream& stream = context_->stream();
  try {
    if (begun.staged > 0)
      launchRest(outputs);
    else
      launch();
    awaitEnd(begun.started, begun.follows ? begun.staged : 0);
    if (begun.staged > 0) stageOut();
    stream.synchronize();
  } catch (const Failure&) {
    stream.device().api().streamSynchronize(stream.get());
    throw;
  }
  for (const HostView& view : outputs)
    if (!isLarge(view)) std::memcpy(view.data, slot(view).host->get(), slot(view).bytes);
  ended_ = Clock::now();
  pace_.took(ended_ - begun.started);
}

// Returns before the end: early enough to wake the threads that copy outputs.
void Call::awaitEnd(Clock::time_point started, std::size_t staged) {
  const Clock::duration expected = pace_.expected();
  if (expected == Clock::duration::zero() || staged == 0) return;
  const Clock::time_point wake = started + expected - kWaking;
  const cuda::Stream& stream = context_->stream();
  for (Clock::time_point now = Clock::now(); now < wake; now = Clock::now()) {
    if (stream.idle()) return;
    lookFor([] { return false; }, std::min(wake, now + kBetweenQueries));
  }
  wakeCopyThreads(helpersFor(staged), patience(expected));
}

void Call::launch() {
  const bool rebound = bind();
  if (fullGraphed_ && !rebound) {
    if (!full_) captureFull();
    if (full_) return full_.launch(context_->stream());
  }
  copyIn();
  enqueue();
  copyOut();
}

void Call::launchRest(const std::vector<HostView>& outputs) {
  const bool rebound = bind();
  const bool whole = outputsAreSmall();
  if (fullGraphed_ && !rebound && !rest_) {
    std::string refusal;
    rest_ = cuda::Graph::capture(
        context_->stream(),
        [&] {
          enqueue();
          if (whole) copyOut();
          return true;
        },
        refusal);
  }
  const bool graphed = !rebound && rest_;
  if (graphed)
    rest_.launch(context_->stream());
  else
    enqueue();
  if (!graphed || !whole) enqueueOut(outputs);
}

}  // namespace trtforge
