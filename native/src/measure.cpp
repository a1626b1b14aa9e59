#include "measure.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "engine.hpp"
#include "measure_loop.hpp"
#include "measure_stream.hpp"

namespace trtforge {

namespace {

// The GPU's memory in use, at its highest of the moments looked at. Asking stops the GPU, so nobody asks while
// inferences are timed.
class MemoryPeak {
 public:
  explicit MemoryPeak(const cuda::Device& device) : device_(device) { look(); }
  void look() {
    const cuda::Device::Memory now = device_.memory();
    total_ = static_cast<std::int64_t>(now.total);
    used_ = std::max(used_, static_cast<std::int64_t>(now.total - now.free));
  }
  std::int64_t used() const { return used_; }
  std::int64_t total() const { return total_; }

 private:
  const cuda::Device& device_;
  std::int64_t used_ = 0;
  std::int64_t total_ = 0;
};

// Runs the lanes to their end, on this thread or one thread for each; the first failure ends all, and so does the end
// of the process, which waits for this thread.
class Run {
 public:
  Run(const cuda::Device& device, const MeasureRequest& request, const TimedEvent& start, Listener& listener)
      : device_(device),
        plan_{request.warmUpMs, request.durationMs, request.iterations, request.idleMs},
        start_(start),
        listener_(listener) {}

  void together(const std::vector<Lane*>& lanes) { loop(lanes); }
  void apart(const std::vector<Lane*>& lanes) {
    std::vector<std::thread> threads;
    try {
      for (Lane* lane : lanes) threads.emplace_back([this, lane] { loop({lane}); });
    } catch (const std::system_error& error) {
      fail(Failure("TF_INTERNAL", std::string("A thread for each stream could not be started: ") + error.what() + "."));
    }
    for (std::thread& thread : threads) thread.join();
  }
  void throwIfFailed() const {
    if (failure_.has_value()) throw *failure_;
    if (listener_.cancelled()) throw Failure("TF_CANCELLED", "The measurement was cancelled.");
  }

 private:
  void loop(const std::vector<Lane*>& lanes) {
    try {
      const Listening listening(listener_, Reach::kThread);
      device_.makeCurrent();
      runLoop(lanes, plan_, start_,
              [this] { return failed_.load(std::memory_order_relaxed) || listener_.cancelled() || cuda::ending(); });
    } catch (const Failure& failure) {
      fail(failure);
    } catch (const std::exception& exception) {
      fail(Failure("TF_INTERNAL", exception.what()));
    }
  }
  void fail(const Failure& failure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.has_value()) failure_ = failure;
    failed_ = true;
  }

  const cuda::Device& device_;
  const LoopPlan plan_;
  const TimedEvent& start_;
  Listener& listener_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::optional<Failure> failure_;
};

// All streams' samples in the order they began, from the first one's beginning.
void collect(const std::vector<std::unique_ptr<Lane>>& lanes, Measurement& measurement) {
  auto& samples = measurement.samples;
  for (const auto& lane : lanes) {
    samples.insert(samples.end(), lane->samples().begin(), lane->samples().end());
    measurement.warmUpInferences += lane->warmUpInferences();
  }
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& one, const Sample& other) { return one.inputStart < other.inputStart; });
  if (samples.empty()) return;
  const double first = samples.front().inputStart;
  for (Sample& sample : samples) {
    for (double Sample::*time : {&Sample::inputStart, &Sample::inputEnd, &Sample::computeStart, &Sample::computeEnd,
                                 &Sample::outputStart, &Sample::outputEnd})
      sample.*time -= first;
    measurement.wallMs = std::max(measurement.wallMs, sample.outputEnd);
  }
}

}  // namespace

Measurement measure(const std::shared_ptr<Engine>& engine, const MeasureRequest& request, Listener& listener) {
  const Listening listening(listener);
  const std::int32_t profiles = engine->facts().profiles;
  if (request.profile < 0 || request.profile >= profiles)
    throw Failure("TF_SESSION_INPUT", "The engine has no profile " + std::to_string(request.profile) + ": it has " +
                                          std::to_string(profiles) + ", counted from 0.");
  const cuda::Device& device = engine->device();
  device.makeCurrent();
  Measurement measurement;
  MemoryPeak memory(device);
  std::vector<std::unique_ptr<EngineStream>> streams;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<Lane*> lanePointers;
  for (std::int32_t index = 0; index < request.streams && !listener.cancelled(); ++index) {
    streams.push_back(std::make_unique<EngineStream>(engine, request));
    lanes.push_back(std::make_unique<Lane>(*streams.back(), index, device, !request.spinWait, request.transfers));
    lanePointers.push_back(lanes.back().get());
    if (measurement.graphRefusal.empty()) measurement.graphRefusal = streams.back()->graphRefusal();
  }
  memory.look();
  measurement.graph = request.graph && measurement.graphRefusal.empty();

  const cuda::Stream main(device);
  const TimedEvent start(device, true);
  start.record(main);
  for (const auto& stream : streams) stream->startAfter(start);
  Run run(device, request, start, listener);
  if (request.threads)
    run.apart(lanePointers);
  else
    run.together(lanePointers);
  run.throwIfFailed();
  memory.look();
  measurement.peakUsedBytes = memory.used();
  measurement.totalBytes = memory.total();
  collect(lanes, measurement);
  return measurement;
}

}  // namespace trtforge
