// Streams, events and graphs of the fake GPUs, each of the GPU that was current when it was made. Work is done when it is enqueued and takes its time on
// paper: a stream knows when it will be free, an event when it will have happened, and who waits for it waits by the clock. With FAKE_CLOCK=paper that clock stands
// still but for waits, which put it forward: times depend on nothing else, however busy the machine is.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda-gpus.hpp"

namespace fake {

inline bool onPaper() {
  static const bool paper = std::strcmp(setting("FAKE_CLOCK", ""), "paper") == 0;
  return paper;
}
inline std::atomic<double> paperUs{0};

inline double nowUs() {
  if (onPaper()) return paperUs;
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void putForward(double atUs) {
  for (double now = paperUs; now < atUs && !paperUs.compare_exchange_weak(now, atUs);) continue;
}

struct Work {
  double us;
  std::function<void()> action;
};

struct Graph : Held {
  using Held::Held;
  std::vector<Work> work;
};

struct Stream : Held {
  using Held::Held;
  double freeAtUs = 0;
  Graph* capture = nullptr;
  bool invalidated = false;
};

struct Event : Held {
  Event(Gpu* gpu, unsigned flags) : Held(gpu), flags(flags) {}
  unsigned flags;
  double atUs = 0;
};

inline std::recursive_mutex workMutex;

// Several threads may copy on one stream.
inline int enqueue(Stream* stream, double us, std::function<void()> action) {
  std::lock_guard<std::recursive_mutex> lock(workMutex);
  if (stream->capture != nullptr) {
    stream->capture->work.push_back({us, std::move(action)});
    return 0;
  }
  if (stream->gpu->astray) return kIllegalAddress;
  action();
  stream->freeAtUs = std::max(stream->freeAtUs, nowUs()) + us;
  return 0;
}

// A kernel has gone astray, or FAKE_FAULT says so, which CUDA tells whoever waits.
inline bool faulty(const Gpu* gpu) { return gpu->astray || *setting("FAKE_FAULT", "") != '\0'; }

// Who yields on a busy machine waits for others' time slices, so the last moments are spent here.
inline int waitUntil(const Gpu* gpu, double atUs) {
  if (faulty(gpu)) return kIllegalAddress;
  if (onPaper()) putForward(atUs);
  for (double left = atUs - nowUs(); left > 0; left = atUs - nowUs())
    if (left > 300) std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(left - 200));
  return 0;
}

inline int stateAt(const Gpu* gpu, double atUs) { return faulty(gpu) ? kIllegalAddress : nowUs() < atUs ? kNotReady : 0; }

// What a capturing stream may not be asked ends the capture.
inline bool refusedByCapture(Stream* stream) {
  if (stream->capture == nullptr) return false;
  return stream->invalidated = true;
}

}  // namespace fake
