// Ranges that profilers show on their time line (Nsight Systems, by NVTX): a client of NVTX 3 without its headers. With
// no profiler a range is one comparison of a pointer.
#pragma once
#include <cstdint>

namespace trtforge {

class Listener;

namespace nvtx {

// Loads the profiler's library that NVTX_INJECTION64_PATH names, once a process and before the first range. One that
// does not serve is a warning to the listener, and no ranges.
void attach(Listener& listener);

// The profiler's functions; null without one, and where it takes no such calls.
struct Profiler {
  int (*push)(const char* name) = nullptr;
  int (*pop)() = nullptr;
  std::uint64_t (*start)(const char* name) = nullptr;
  void (*end)(std::uint64_t id) = nullptr;
};
extern Profiler profiler;

// On one thread, inside the range that the thread is in.
class Range {
 public:
  explicit Range(const char* name) {
    if (profiler.push != nullptr) profiler.push(name);
  }
  ~Range() {
    if (profiler.pop != nullptr) profiler.pop();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

// May end on another thread than it started on.
class Span {
 public:
  explicit Span(const char* name) : id_(profiler.start == nullptr ? 0 : profiler.start(name)) {}
  ~Span() {
    if (profiler.end != nullptr) profiler.end(id_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  std::uint64_t id_;
};

}  // namespace nvtx

}  // namespace trtforge
