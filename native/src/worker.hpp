// A thread that does one context's runs in order.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace trtforge {

class Worker {
 public:
  Worker();
  // Does what is queued, then ends. Never called on the thread itself: the caller that posts keeps the context until
  // the task is over.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `task` must not throw.
  void post(std::function<void()> task);
  // True where nothing is queued or running.
  bool idle() const { return unfinished_.load(std::memory_order_acquire) == 0; }
  // Until everything posted so far is over.
  void drain();

 private:
  void work();
  bool next(std::function<void()>& task);

  std::mutex mutex_;
  std::condition_variable wake_, drained_;
  std::deque<std::function<void()>> tasks_;
  std::atomic<int> unfinished_{0};
  std::atomic<int> queued_{0};
  bool sleeping_ = false;
  bool stopped_ = false;
  std::chrono::steady_clock::duration lastTook_{0};  // of the thread alone
  std::thread thread_;
};

}  // namespace trtforge
