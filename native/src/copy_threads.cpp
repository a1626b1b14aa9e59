#include "copy_threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace trtforge {

namespace {

using Help = std::function<void()>;

// With the caller's own thread, twelve saturate the memory that one GPU's transfers read from.
constexpr std::size_t kHelpers = 11;
// Cores left to the event loop and to whoever feeds it, where there are many.
constexpr std::size_t kSpared = 2;

std::size_t helpersHere() {
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  return std::min(kHelpers, cores > 2 * kSpared ? cores - kSpared : cores - 1);
}

class Pool {
 public:
  Pool() : helpers_(helpersHere()) {
    for (std::size_t i = 0; i < helpers_; ++i) std::thread([this] { serve(); }).detach();
  }

  void run(std::size_t wanted, const Help& help, const std::function<void()>& lead) {
    std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
    const std::size_t places = std::min(helpers_, wanted);
    if (!turn.owns_lock() || places == 0) return lead();
    struct Helped {
      Pool& pool;
      ~Helped() { pool.finish(); }
    } helped{*this};
    {
      std::lock_guard<std::mutex> lock(mutex_);
      help_ = &help;
      places_ = places;
      wakeTwo();
    }
    lead();
  }

 private:
  // A helper that comes late finds no place.
  void finish() {
    std::unique_lock<std::mutex> lock(mutex_);
    places_ = 0;
    over_.wait(lock, [this] { return inside_ == 0; });
  }

  // Each that wakes wakes two more, so that the caller copies meanwhile. With the mutex held.
  void wakeTwo() {
    for (std::size_t woken = 0; woken < std::min<std::size_t>(2, places_); ++woken) wake_.notify_one();
  }

  void serve() {
    for (std::unique_lock<std::mutex> lock(mutex_);;) {
      wake_.wait(lock, [this] { return places_ > 0; });
      --places_;
      ++inside_;
      wakeTwo();
      const Help& help = *help_;
      lock.unlock();
      help();
      lock.lock();
      if (--inside_ == 0) over_.notify_one();
    }
  }

  const std::size_t helpers_;
  std::mutex turn_;
  std::mutex mutex_;
  std::condition_variable wake_, over_;
  const Help* help_ = nullptr;
  std::size_t places_ = 0, inside_ = 0;
};

Pool& pool() {
  static Pool* made = new Pool;
  return *made;
}

}  // namespace

void withCopyThreads(std::size_t helpers, const std::function<void()>& help, const std::function<void()>& lead) { pool().run(helpers, help, lead); }

void copyTogether(char* to, const char* from, std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{256} << 10;
  std::atomic<std::size_t> next{0};
  const auto help = [&] {
    for (std::size_t at = next.fetch_add(kPiece); at < bytes; at = next.fetch_add(kPiece)) std::memcpy(to + at, from + at, std::min(kPiece, bytes - at));
  };
  withCopyThreads(bytes / kPiece, help, help);
}

}  // namespace trtforge
