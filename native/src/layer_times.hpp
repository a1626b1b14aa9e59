// Milliseconds per layer, as the library reports them to its IProfiler.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "library.hpp"

namespace trtforge {

struct LayerTime {
  std::string name;
  double ms = 0;          // summed over `runs`
  std::int64_t runs = 0;  // a layer behind a condition runs less often than the engine
};

// Sums per layer in the order of appearance. Names that repeat within a run stay apart. It must outlive the context
// that holds its profiler.
class LayerTimes {
 public:
  explicit LayerTimes(const InferenceLibrary& library);
  ~LayerTimes();
  LayerTimes(const LayerTimes&) = delete;
  LayerTimes& operator=(const LayerTimes&) = delete;

  // The IProfiler for `IExecutionContext::setProfiler`, in the layout of the library's generation.
  void* profiler() const;
  // To be called before every run that reports: the next layer reported is then the first.
  void beginRun();
  std::vector<LayerTime> table() const;

  class Sums;

 private:
  std::unique_ptr<Sums> sums_;
  struct Profilers;
  std::unique_ptr<Profilers> profilers_;
  bool versioned_;
};

}  // namespace trtforge
