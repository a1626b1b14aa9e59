#include "listeners.hpp"

#include <algorithm>
#include <cstring>

#include "phases.hpp"
#include "versioned.hpp"

namespace trtforge {

namespace {

constexpr int kVerbose = 4;
constexpr std::size_t kLinesKept = 4096;
constexpr std::size_t kLinesShown = 20;

bool containsAny(const std::string& line, const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return line.find(text) != std::string::npos; });
}

thread_local const Listening* innermost = nullptr;
std::mutex listenersMutex;
// Those that receive threads of the library's own.
std::vector<Listener*> listeners;

// A line belongs to the work of its thread: lines of one context must not decide what another one's failure is.
void forwardLine(int severity, const char* message) {
  const char* line = message == nullptr ? "" : message;
  for (const Listening* one = innermost; one != nullptr; one = one->outer()) one->listener().log(severity, line);
  if (innermost != nullptr) return;
  std::lock_guard<std::mutex> lock(listenersMutex);
  for (Listener* listener : listeners) listener->log(severity, line);
}

// ILogger of 8.6 and 10.x: one function, then the destructors. The compiler lays the table out as it did for TensorRT.
class PlainLogger {
 public:
  virtual void log(std::int32_t severity, const char* message) noexcept { forwardLine(severity, message); }
  virtual ~PlainLogger() = default;
};

// ILogger of 11.x and tensorrt-rtx.
class VersionedLogger : public Versioned {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return {"ILogger", 1, 0}; }
  virtual void log(std::int32_t severity, const char* message) noexcept { forwardLine(severity, message); }
};

}  // namespace

class ProgressMonitor : public Versioned {
 public:
  explicit ProgressMonitor(Listener& listener) : listener_(listener), phases_(listener.forward()) {}
  InterfaceInfo getInterfaceInfo() const noexcept override { return {"IProgressMonitor", 1, 0}; }
  virtual void phaseStart(const char* phase, const char* parent, std::int32_t steps) noexcept {
    phases_.start(phase, parent, steps);
  }
  // False asks the library to stop.
  virtual bool stepComplete(const char* phase, std::int32_t step) noexcept {
    phases_.step(phase, step);
    return !listener_.cancelled();
  }
  virtual void phaseFinish(const char* phase) noexcept { phases_.end(phase); }

 private:
  Listener& listener_;
  Phases phases_;
};

ProgressMonitor* newProgressMonitor(Listener& listener) { return new ProgressMonitor(listener); }
void deleteProgressMonitor(ProgressMonitor* monitor) { delete monitor; }

void* loggerFor(const InferenceLibrary& library) {
  static PlainLogger* plain = new PlainLogger;
  static VersionedLogger* versioned = new VersionedLogger;
  const Generation generation = library.generation();
  return generation == Generation::k8 || generation == Generation::k10 ? static_cast<void*>(plain)
                                                                       : static_cast<void*>(versioned);
}

Listening::Listening(Listener& listener, Reach reach) : listener_(listener), reach_(reach), outer_(innermost) {
  if (reach == Reach::kLibrary) {
    std::lock_guard<std::mutex> lock(listenersMutex);
    listeners.push_back(&listener);
  }
  innermost = this;
}

Listening::~Listening() {
  innermost = outer_;
  if (reach_ == Reach::kThread) return;
  std::lock_guard<std::mutex> lock(listenersMutex);
  listeners.erase(std::find(listeners.begin(), listeners.end(), &listener_));
}

void Listener::log(int severity, const char* message) {
  if (severity <= kWarning || std::strstr(message, "timing cache in use") != nullptr) {
    std::lock_guard<std::mutex> lock(mutex_);
    // The middle of an endless flood of lines is worth least.
    if (lines_.size() == kLinesKept) lines_.erase(lines_.begin() + kLinesKept / 2);
    lines_.push_back({received_++, severity, message});
  }
  if (severity < kVerbose || verbose_) forward_(Event::log(severity, message));
}

void Listener::forget() {
  std::lock_guard<std::mutex> lock(mutex_);
  lines_.clear();
}

void Listener::throwIfCancelled() const {
  if (cancelled_) throw Failure("TF_CANCELLED", "The build was cancelled.");
}

Failure Listener::failure(const char* code, const std::string& message) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> errors;
  for (const Line& line : lines_)
    if (line.severity <= kError) errors.push_back(line.text);
  if (errors.size() > kLinesShown) errors.erase(errors.begin(), errors.end() - kLinesShown);
  std::string sentence = message;
  if (!errors.empty()) sentence += " The library reports:";
  for (const std::string& line : errors) sentence += "\n" + line;
  Failure failure(code, sentence);
  failure.lines = errors;
  return failure;
}

Listener::Mark Listener::mark() {
  std::lock_guard<std::mutex> lock(mutex_);
  return {received_};
}

std::string Listener::complaintSince(Mark mark, const std::vector<std::string>& warnings) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Line& line : lines_)
    if (line.number >= mark.lines && (line.severity <= kError || containsAny(line.text, warnings))) return line.text;
  return "";
}

bool Listener::received(const std::vector<std::string>& texts, int least, Mark since) {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(lines_.begin(), lines_.end(), [&](const Line& line) {
    return line.number >= since.lines && line.severity <= least && containsAny(line.text, texts);
  });
}

}  // namespace trtforge
