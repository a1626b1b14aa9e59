#include "worker.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "cuda.hpp"
#include "pause.hpp"

namespace trtforge {

namespace {

// After a task the next one often comes at once; waking a sleeping thread costs as much as a small inference takes. So
// a thread looks for as long as its last task took, within these bounds.
constexpr std::chrono::steady_clock::duration kLeastLook = std::chrono::microseconds(150),
                                              kMostLook = std::chrono::milliseconds(1);

// Of all workers.
std::atomic<int> busy{0};
constexpr auto kWaitAtExit = std::chrono::seconds(10);

// Registered once TensorRT is loaded, and so called before its own clean-up: no run may be inside it then.
void waitForRuns() {
  cuda::endNow();
  const auto until = std::chrono::steady_clock::now() + kWaitAtExit;
  while (busy.load() > 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

}  // namespace

Worker::Worker() {
  static const int registered = std::atexit(waitForRuns);
  (void)registered;
  thread_ = std::thread([this] { work(); });
}

Worker::~Worker() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Worker::post(std::function<void()> task) {
  bool wake = false;
  unfinished_.fetch_add(1, std::memory_order_release);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    queued_.fetch_add(1, std::memory_order_release);
    wake = sleeping_;
  }
  if (wake) wake_.notify_one();
}

void Worker::drain() {
  if (idle()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  drained_.wait(lock, [this] { return idle(); });
}

bool Worker::next(std::function<void()>& task) {
  lookFor([this] { return queued_.load(std::memory_order_acquire) != 0; },
          std::chrono::steady_clock::now() + std::clamp(lastTook_, kLeastLook, kMostLook));
  std::unique_lock<std::mutex> lock(mutex_);
  sleeping_ = true;
  wake_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
  sleeping_ = false;
  if (tasks_.empty()) return false;
  task = std::move(tasks_.front());
  tasks_.pop_front();
  queued_.fetch_sub(1, std::memory_order_release);
  return true;
}

void Worker::work() {
  std::function<void()> task;
  while (next(task)) {
    ++busy;
    const auto began = std::chrono::steady_clock::now();
    if (!cuda::ending()) task();
    lastTook_ = std::chrono::steady_clock::now() - began;
    --busy;
    task = nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) drained_.notify_all();
  }
}

}  // namespace trtforge
