#include "copy_threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>

#include "pause.hpp"

namespace trtforge {

namespace {

using Clock = std::chrono::steady_clock;
using Help = std::function<void()>;

// With the caller's own thread, twelve saturate the memory that one GPU's transfers read from.
constexpr std::size_t kHelpers = 11;
// Cores left to the event loop and to the threads that feed it, where there are many.
constexpr std::size_t kSpared = 2;
constexpr auto kGlance = std::chrono::microseconds(5);
constexpr auto kLookOn = std::chrono::microseconds(50);

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
    if (!turn.owns_lock() || std::min(helpers_, wanted) == 0) return lead();
    struct Helped {
      Pool& pool;
      ~Helped() { pool.finish(); }
    } helped{*this};
    places_ = static_cast<int>(std::min(helpers_, wanted));
    help_ = &help;
    ++round_;
    wakeTwo();
    lead();
  }

  void wake(std::size_t wanted, Clock::duration atMost) {
    lookUntil_ = (Clock::now() + atMost).time_since_epoch().count();
    std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t awake = helpers_ - sleeping_; awake < std::min(wanted, helpers_); ++awake) wake_.notify_one();
  }

 private:
  // A helper that comes late finds nothing; one that is inside was counted before it looked.
  void finish() {
    help_ = nullptr;
    lookFor([this] { return inside_ == 0; }, Clock::time_point::max());
    lookUntil_ = std::max(lookUntil_.load(), (Clock::now() + kLookOn).time_since_epoch().count());
  }

  bool looks() const { return Clock::now().time_since_epoch().count() < lookUntil_; }

  // Each that wakes wakes two more, so that the caller copies meanwhile.
  void wakeTwo() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (sleeping_ > 0 && places_ > 0) wake_.notify_one();
    if (sleeping_ > 1 && places_ > 1) wake_.notify_one();
  }

  void serve() {
    for (std::uint64_t seen = 0;;) {
      while (round_ == seen && looks()) lookFor([&] { return round_ != seen; }, Clock::now() + kGlance);
      if (round_ == seen) sleep(seen);
      if (round_ == seen) continue;
      seen = round_;
      ++inside_;
      if (const Help* help = help_; help != nullptr && --places_ >= 0) (*help)();
      --inside_;
    }
  }

  void sleep(std::uint64_t seen) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, [&] { return round_ != seen || looks(); });
      --sleeping_;
    }
    if (help_ != nullptr) wakeTwo();
  }

  const std::size_t helpers_;
  std::mutex turn_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t sleeping_ = 0;
  std::atomic<const Help*> help_{nullptr};
  std::atomic<int> places_{0};
  std::atomic<int> inside_{0};
  std::atomic<std::uint64_t> round_{0};
  std::atomic<Clock::rep> lookUntil_{0};
};

Pool& pool() {
  static Pool* made = new Pool;
  return *made;
}

}  // namespace

void withCopyThreads(std::size_t helpers, const std::function<void()>& help, const std::function<void()>& lead) {
  pool().run(helpers, help, lead);
}

void copyTogether(char* to, const char* from, std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{256} << 10;
  std::atomic<std::size_t> next{0};
  const auto help = [&] {
    for (std::size_t at = next.fetch_add(kPiece); at < bytes; at = next.fetch_add(kPiece))
      std::memcpy(to + at, from + at, std::min(kPiece, bytes - at));
  };
  withCopyThreads(bytes / kPiece, help, help);
}

void wakeCopyThreads(std::size_t helpers, std::chrono::steady_clock::duration atMost) { pool().wake(helpers, atMost); }

}  // namespace trtforge
