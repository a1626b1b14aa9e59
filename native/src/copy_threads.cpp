#include "copy_threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace trtforge {

namespace {

// More do not copy faster: eight reach what the memory of one socket gives.
constexpr unsigned kThreads = 8;

class Pool {
 public:
  Pool() {
    const unsigned helpers = std::min(kThreads, std::max(1u, std::thread::hardware_concurrency())) - 1;
    for (unsigned i = 0; i < helpers; ++i) std::thread([this] { help(); }).detach();
    helpers_ = helpers;
  }

  void run(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
    if (!turn.owns_lock() || helpers_ == 0 || count < 2) {
      for (std::size_t i = 0; i < count; ++i) work(i);
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      work_ = &work;
      count_ = count;
      next_ = 0;
      ++round_;
    }
    wake_.notify_all();
    copy(work, count);
    std::unique_lock<std::mutex> lock(mutex_);
    // Helpers that have not joined by now find no work and leave it alone.
    work_ = nullptr;
    idle_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void copy(const std::function<void(std::size_t)>& work, std::size_t count) {
    for (std::size_t i = next_++; i < count; i = next_++) work(i);
  }

  void help() {
    std::uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      if (work_ == nullptr) continue;
      const auto& work = *work_;
      const std::size_t count = count_;
      ++busy_;
      lock.unlock();
      copy(work, count);
      lock.lock();
      if (--busy_ == 0) idle_.notify_one();
    }
  }

  std::mutex turn_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::uint64_t round_ = 0;
  unsigned busy_ = 0;
  unsigned helpers_ = 0;
};

}  // namespace

void onCopyThreads(std::size_t count, const std::function<void(std::size_t)>& work) {
  static Pool* pool = new Pool;
  pool->run(count, work);
}

}  // namespace trtforge
