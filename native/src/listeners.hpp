// What the library reports while it works: log lines and progress. The two objects it calls have the layouts of ILogger
// and IProgressMonitor.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "event.hpp"
#include "library.hpp"

namespace trtforge {

// Severities of ILogger.
constexpr int kError = 1;
constexpr int kWarning = 2;
constexpr int kInfo = 3;

// Receives what the library reports to one job. Called from any thread of the library.
class Listener {
 public:
  // Whose lines go no further.
  Listener() : Listener([](const Event&) {}, false) {}
  Listener(std::function<void(Event)> forward, bool verbose) : forward_(std::move(forward)), verbose_(verbose) {}

  void log(int severity, const char* message);
  const std::function<void(Event)>& forward() const { return forward_; }

  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }
  // Throws TF_CANCELLED when cancel was called.
  void throwIfCancelled() const;
  // What was received so far decides nothing any more.
  void forget();
  // A failure that carries the library's last error lines.
  Failure failure(const char* code, const std::string& message);
  // A moment in the log, and the first line after it that is an error, or a warning with one of the texts; empty where
  // there is none.
  struct Mark {
    std::uint64_t lines;
  };
  Mark mark();
  std::string complaintSince(Mark mark, const std::vector<std::string>& warnings);
  // True when a line of at least this severity, by default warnings, contains one of the texts. Of less severe lines
  // only those about the timing cache in use are kept.
  bool received(const std::vector<std::string>& texts, int least = kWarning, Mark since = {0});

 private:
  std::function<void(Event)> forward_;
  bool verbose_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  struct Line {
    std::uint64_t number;  // of all that were received
    int severity;
    std::string text;
  };
  // Lines of at least warning severity: all of the configuration's, then as many as memory should hold.
  std::vector<Line> lines_;
  std::uint64_t received_ = 0;
};

// What a listener receives: lines of the thread that made the Listening, or also those of threads without a listener,
// as a builder starts them.
enum class Reach { kThread, kLibrary };

// Passes the library's log to a listener as long as it lives; inside another one of the same thread both receive it.
// TensorRT keeps the first logger a process gets, so the logger objects live for ever and pass lines to the current
// listeners.
class Listening {
 public:
  explicit Listening(Listener& listener, Reach reach = Reach::kLibrary);
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  Listener& listener() const { return listener_; }
  const Listening* outer() const { return outer_; }

 private:
  Listener& listener_;
  const Reach reach_;
  const Listening* const outer_;
};

// The ILogger for a generation.
void* loggerFor(const InferenceLibrary& library);

// An IProgressMonitor that reports to one listener; the same layout in 10.x, 11.x and tensorrt-rtx. It must outlive the
// build.
class ProgressMonitor;
ProgressMonitor* newProgressMonitor(Listener& listener);
void deleteProgressMonitor(ProgressMonitor* monitor);

}  // namespace trtforge
